"""Sample-efficiency curves: each point is the IQM of its step, and a file that cannot carry one is refused in words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sar_analysis.render import plots
from sar_analysis.results.efficiency import as_plain, curves, read_points
from sar_analysis.stats.resampling import bootstrap
from sar_analysis.stats.scores import of_matrix
from sar_analysis.stats.statistics import iqm_of
from sar_core.errors import InputError, MissingDataError
from sar_eval.cli.analysis import efficiency

STEPS, SEEDS, EPISODES = (0, 1000, 5000), (2, 4, 7), (0, 1, 2, 3, 9)


def tables() -> dict[str, np.ndarray]:
    """Returns (steps, seeds, episodes) of two policies."""
    rng = np.random.default_rng(8)
    base = np.array([0.0, 50.0, 80.0])[:, None, None]
    return {
        name: base * gain + rng.normal(0.0, 5.0, (len(STEPS), len(SEEDS), len(EPISODES)))
        for name, gain in (("mappo", 1.0), ("ippo", 0.5))
    }


def write(path: Path, drop: int = 0, **changed: Any) -> Path:
    """All points in an order nobody sorted; ``changed`` goes into the last one."""
    points = [
        {"policy": name, "seed": s, "steps": t, "episode": e, "return": float(values[i, j, k])}
        for name, values in tables().items()
        for i, t in enumerate(STEPS)
        for j, s in enumerate(SEEDS)
        for k, e in enumerate(EPISODES)
    ]
    points = [points[k] for k in np.random.default_rng(0).permutation(len(points))][drop:]
    points[-1] |= changed
    path.write_text("\n".join(json.dumps(point) for point in points) + "\n\n")
    return path


def test_every_point_is_the_interval_of_its_own_table(tmp_path: Path) -> None:
    found = {curve.policy: curve for curve in curves(read_points(write(tmp_path / "points.jsonl")))}
    assert set(found) == {"mappo", "ippo"}
    for name, values in tables().items():
        curve = found[name]
        assert (curve.steps, curve.seeds, curve.episodes) == (list(STEPS), list(SEEDS), list(EPISODES))
        for k in range(len(STEPS)):
            expected = bootstrap(of_matrix("return", values[k]), iqm_of, "seeds", "t")
            assert (curve.iqm[k], curve.low[k], curve.high[k]) == pytest.approx(
                (expected.value, expected.low, expected.high)
            )
        ordered = np.sort(values[1].ravel())
        assert curve.iqm[1] == pytest.approx(ordered[3:-3].mean())
        assert curve.method == "seeds jackknife, t"


def test_a_hole_is_refused_with_its_step(tmp_path: Path) -> None:
    points = read_points(write(tmp_path / "points.jsonl"))
    whole = [p for p in points if not (p.policy == "ippo" and p.steps == 1000 and p.seed == 4 and p.episode == 9)]
    with pytest.raises(MissingDataError, match=r"ippo, step 1000: 1 of 15 cells have no value: seed 4 episode 9"):
        curves(whole)


def test_a_point_given_twice_and_a_single_seed_are_refused(tmp_path: Path) -> None:
    points = read_points(write(tmp_path / "points.jsonl"))
    with pytest.raises(InputError, match="appear twice"):
        curves([*points, points[0]])
    with pytest.raises(InputError, match="1 training seed; an interval takes at least 2"):
        curves([point for point in points if point.seed == 2])


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"return": None}, "return"),
        ({"return": float("nan")}, "return"),
        ({"steps": -1}, "steps"),
        ({"seed": "3"}, "seed"),
        ({"reward": 1.0}, "reward"),
    ],
)
def test_a_line_that_is_no_point_is_refused_by_number_and_key(
    tmp_path: Path, changed: dict[str, Any], words: str
) -> None:
    path = write(tmp_path / "points.jsonl", **changed)
    with pytest.raises(InputError, match=rf"points.jsonl, line 90: {words}: .*policy, seed, steps, episode, return"):
        read_points(path)


def test_no_file_and_no_points_are_said(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="no such file of evaluation points"):
        read_points(tmp_path / "none.jsonl")
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(MissingDataError, match="no evaluation points"):
        read_points(tmp_path / "empty.jsonl")


def test_the_command_prints_and_draws_what_was_computed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="figures need it; get it with: pip install 'sar-eval[report]'")
    path = write(tmp_path / "points.jsonl")
    efficiency(path, "Stage 1", tmp_path / "out")
    plain = as_plain(curves(read_points(path)))
    assert json.loads(capsys.readouterr().out) == plain
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["efficiency.png", "efficiency.svg"]
    (axis,) = plots.efficiency("Stage 1", curves(read_points(path))).get_axes()
    assert {line.get_label(): list(line.get_ydata()) for line in axis.get_lines()} == {
        curve["policy"]: curve["iqm"] for curve in plain
    }
