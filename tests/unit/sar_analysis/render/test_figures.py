"""What is drawn is what the document says: lines, marks and intervals are read back from the axes."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sar_analysis.render.figures import FIGURES, draw_figures, draw_training, make_figure, undrawn
from sar_analysis.render.plots import efficiency
from sar_analysis.results.efficiency import EfficiencyCurve
from sar_core.errors import InputError
from tests.unit.sar_analysis.documents import BANDS, LEVELS, MADE, result, typed

pytest.importorskip("matplotlib", reason="figures need it; get it with: pip install 'sar-eval[report]'")


EMPTY = {"low": [], "high": [], **MADE}
CURVE = EfficiencyCurve(
    "mappo",
    [0, 10_000, 20_000, 40_000],
    [100.0, 900.0, 1500.0, 1700.0],
    [-math.inf, 700.0, 1300.0, 1550.0],
    [150.0, 1100.0, 1700.0, 1800.0],
    [0, 1, 2, 3, 4],
    [0, 1, 2, 3],
    "seeds jackknife, t",
    "IQM",
    None,
    None,
    0.95,
    [],
)


def axes_of(name: str, given: dict[str, Any]) -> list[Any]:
    figure = make_figure(name, typed(given))
    assert figure is not None
    return figure.get_axes()


def line(axis: Any, label: str) -> tuple[np.ndarray, np.ndarray]:
    """The one line of this label; an error bar's line is found through its container."""
    found = [item for item in axis.get_lines() if item.get_label() == label]
    found += [item.lines[0] for item in axis.containers if item.get_label() == label]
    assert len(found) == 1, label
    return np.asarray(found[0].get_xdata(), float), np.asarray(found[0].get_ydata(), float)


def bars(axis: Any, label: str) -> np.ndarray:
    """Ends (marks, 2 ends, 2 coordinates) of the error bars of this label."""
    (container,) = [item for item in axis.containers if item.get_label() == label]
    return np.array(container.lines[2][0].get_segments())


def words(name: str, given: dict[str, Any], gid: str = "caption") -> str:
    figure = make_figure(name, typed(given))
    assert figure is not None
    (text,) = [item for item in figure.texts if item.get_gid() == gid]
    return " ".join(str(text.get_text()).split())


def test_the_forest_shows_rates_and_their_intervals_in_per_cent() -> None:
    alarms, collisions = axes_of("summary", result())
    x, row = line(alarms, "levy flight")
    assert (x[0], row[0]) == pytest.approx((20.0, 2.0))
    assert bars(alarms, "levy flight")[0, :, 0] == pytest.approx([10.0, 39.0])
    assert bars(collisions, "pheromone")[0, :, 0] == pytest.approx([0.0, 11.6])
    names = [tick.get_text() for tick in alarms.get_yticklabels()]
    assert names == ["partitioned lawnmower", "pheromone", "levy flight"]
    for axis in (alarms, collisions):
        assert axis.get_xlim()[1] > 39.0, "an interval leaves the picture"


@pytest.mark.parametrize(
    ("name", "key", "x_name", "middle"),
    [("profiles", "profile", "tau_m", "share"), ("coverage", "coverage_curve", "time_s", "mean")],
)
def test_curves_and_bands_are_the_documents(name: str, key: str, x_name: str, middle: str) -> None:
    given = result()
    (axis,) = axes_of(name, given)
    for group, label, patch in zip(
        given["conditions"],
        ("partitioned lawnmower", "pheromone", "levy flight"),
        axis.collections,
        strict=True,
    ):
        curve = group[key]
        x, y = line(axis, label)
        np.testing.assert_allclose(x, curve[x_name])
        np.testing.assert_allclose(y, 100.0 * np.array(curve[middle]))
        edge = {(round(px, 6), round(py, 6)) for px, py in patch.get_paths()[0].vertices}
        for side in ("low", "high"):
            for point in zip(curve[x_name], curve[side], strict=True):
                assert (round(point[0], 6), round(100.0 * point[1], 6)) in edge


def test_reliability_shows_shares_with_their_intervals() -> None:
    (axis,) = axes_of("reliability", result())
    x, y = line(axis, "flown")
    np.testing.assert_allclose(x, [0.1, 0.3, 0.5, 0.9])
    np.testing.assert_allclose(y, [0.0, 0.2, 5 / 9, 0.9])
    np.testing.assert_allclose(bars(axis, "flown")[1, :, 1], [0.05, 0.35])
    assert "47 reports" in words("reliability", result()) and "0.091" in words("reliability", result())


def test_the_noise_envelope_has_every_level_in_order_and_leaves_an_unknown_end_open() -> None:
    detection, alarm, error = axes_of("noise", result())
    label = "partitioned lawnmower"
    x, y = line(detection, label)
    np.testing.assert_allclose(y, [90.0, 80.0, 70.0, 60.0, 50.0])
    assert (np.round(x) == np.arange(len(LEVELS))).all()
    np.testing.assert_allclose(line(alarm, label)[1], [5.0, 15.0, 25.0, 35.0, 45.0])
    np.testing.assert_allclose(line(error, label)[1], [1.0, 2.0, 3.0, 4.0, 5.0])
    np.testing.assert_allclose(bars(error, label)[-1, :, 1], [4.5, 5.0])
    ticks = [tick.get_text() for tick in error.get_xticklabels()]
    assert ticks[0].endswith("0.05\nκ 8") and ticks[-1].endswith("0.4\nκ 2")


def test_one_noise_level_is_no_envelope_and_conditions_apart_from_noise_are_lines_apart() -> None:
    assert make_figure("noise", typed(result(levels=1))) is None
    given = result(3)
    for group, row in zip(given["conditions"], given["noise_envelope"], strict=False):
        row["condition"] = group["id"]
        group["condition"]["victim_absent"] = group["id"] == "c02"
        group["condition"]["pattern"] = "pheromone"
    given["noise_envelope"] = given["noise_envelope"][:3]
    given["noise_envelope"][1]["missions_with_detection"] = None
    detection, alarm, _ = axes_of("noise", given)
    np.testing.assert_allclose(line(alarm, "victims present")[1], [5.0, 25.0])
    np.testing.assert_allclose(line(alarm, "victims absent")[1], [15.0])
    assert line(detection, "victims absent")[1].size == 0


def test_every_seed_has_its_mark_and_the_bar_is_their_mean() -> None:
    given = result()
    area, found, value = axes_of("seeds", given)
    x, row = line(area, "seed 5")
    np.testing.assert_allclose(x, [92.0, 87.0, 82.0])
    assert (np.round(row) == [0, 1, 2]).all()
    np.testing.assert_allclose(line(found, "seed 8")[0], [74.0] * 3)
    np.testing.assert_allclose(line(value, "seed 3")[0], [15_150.0, 14_350.0, 13_550.0])
    means = [bar.get_xdata()[0] for bar in area.get_lines() if bar.get_color() == "k"]
    np.testing.assert_allclose(means, 100.0 * (np.array([0.9, 0.85, 0.8]) + 0.004 * 16 / 3))


def test_gdop_bands_stand_at_their_names_with_both_errors() -> None:
    (axis,) = axes_of("gdop", result(1))
    x, y = line(axis, "c01")
    assert [BANDS[round(k)] for k in x] == ["< 1.2", "1.2 - 2", ">= 4"]
    np.testing.assert_allclose(y, [1.5, 2.5, 4.5])
    np.testing.assert_allclose(line(axis, "_c01 CEP95")[1], [3.0, 5.0, 9.0])
    assert [text.get_text() for text in axis.texts] == ["7", "9", "3"]


def test_a_training_curve_is_drawn_over_steps(tmp_path: Path) -> None:
    (axis,) = efficiency("Stage 1", [CURVE]).get_axes()
    x, y = line(axis, "mappo")
    np.testing.assert_array_equal(x, [0, 10_000, 20_000, 40_000])
    np.testing.assert_array_equal(y, [100.0, 900.0, 1500.0, 1700.0])
    assert [path.name for path in draw_training("Stage 1", [CURVE], tmp_path)] == ["efficiency.png", "efficiency.svg"]


@pytest.mark.parametrize("name", FIGURES)
def test_every_picture_names_its_tier_and_what_it_rests_on(name: str) -> None:
    given = result()
    given["title"] = "Stage 2 (sih)"
    assert words(name, given, "title").startswith("Stage 2 (sih): ")
    assert "n = " in words(name, given)


def test_what_conditions_share_stands_in_the_caption_and_only_the_rest_in_labels() -> None:
    assert words("summary", result()).startswith(
        "village, x500, default, 4 drones, σ 0.05, κ 8, victims present. n = 90 missions, 3 invalid, 3 seeds."
    )


def test_conditions_that_differ_in_tier_or_in_a_setting_without_a_column_have_labels_apart() -> None:
    given = result(3)
    for group, more in zip(given["conditions"], ({"tier": "sih"}, {"gate": "open"}, {}), strict=True):
        group["condition"] |= {"pattern": "spiral", "gate": "closed"} | more
    (axis,) = axes_of("coverage", given)
    labels = [item.get_label() for item in axis.get_lines() if not item.get_label().startswith("_")]
    assert labels == ["sih, gate closed", "embedded, gate open", "embedded, gate closed"]
    for k, group in enumerate(given["conditions"]):
        group["condition"] |= {"tier": "embedded", "gate": "a long story " * 9 + str(k)}
    (axis,) = axes_of("coverage", given)
    cut = [item.get_label() for item in axis.get_lines() if not item.get_label().startswith("_")]
    assert len(set(cut)) == 3 and cut[2].endswith("(c03)") and max(map(len, cut)) < 50
    rows = given["noise_envelope"][:6]
    for k, row in enumerate(rows):
        row["condition"] = f"c{k // 2 + 1:02d}"
    given["noise_envelope"] = rows
    for k, group in enumerate(given["conditions"]):
        group["condition"]["gate"] = f"g{k}"
    detection, *_ = axes_of("noise", given)
    assert [item.get_label() for item in detection.containers] == ["gate g0", "gate g1", "gate g2"]


def test_more_seeds_than_a_legends_line_get_the_room_they_take() -> None:
    given = result(1)
    room = []
    for seeds in (6, 7, 13):
        rows = [{**given["seeds"][0], "seed": seed} for seed in range(seeds)]
        figure = make_figure("seeds", typed({**given, "seeds": rows}))
        assert figure is not None
        figure.draw_without_rendering()
        (drawn,) = figure.legends
        box = drawn.get_window_extent()
        assert box.y1 <= min(axis.get_tightbbox().y0 for axis in figure.get_axes()) + 1.0, seeds
        room.append(figure.get_figheight())
    assert room[0] < room[1] < room[2]


def test_too_many_conditions_are_pooled_or_counted() -> None:
    given = result(24)
    assert "The first 8 of 24 conditions are drawn" in words("coverage", given)
    pooled = result(2)["conditions"]
    for group in pooled:
        del group["condition"]["sigma"], group["condition"]["kappa"]
    given["pooled"] = pooled
    (axis,) = axes_of("coverage", given)
    assert len(axis.collections) == 2
    assert "Noise levels are pooled." in words("coverage", given)


def campaign_of_eighty() -> dict[str, Any]:
    """Eight patterns at five noise levels, with victims and without, and the same pooled over noise."""
    given = result(8)
    names = ("partitioned_lawnmower", "boustrophedon_triangulation", "potential_field", "pheromone")
    patterns = [*names, "levy_flight", "spiral", "boustrophedon", "random_walk"]
    made = given["conditions"]
    conditions, pooled, envelope = [], [], []
    for pattern, absent in itertools.product(patterns, (False, True)):
        group = made[patterns.index(pattern)]
        whole = {**group, "id": f"p{len(pooled) + 1:02d}"}
        whole["condition"] = {**group["condition"], "pattern": pattern, "victim_absent": absent}
        noisy = [dict(whole["condition"], sigma=sigma, kappa=kappa) for sigma, kappa in LEVELS]
        del whole["condition"]["sigma"], whole["condition"]["kappa"]
        pooled.append(whole)
        for row, condition in zip(given["noise_envelope"][:5], noisy, strict=True):
            conditions.append({**group, "id": f"c{len(conditions) + 1:02d}", "condition": condition})
            envelope.append({**row, "condition": conditions[-1]["id"], "pattern": pattern})
    seeds = given["seeds"][:3]
    told = {
        key: [{**s, "condition": g["id"]} for g in groups for s in seeds]
        for key, groups in (("seeds", conditions), ("pooled_seeds", pooled))
    }
    given |= {"conditions": conditions, "pooled": pooled, "noise_envelope": envelope, **told}
    return given


@pytest.mark.parametrize("name", FIGURES)
def test_eighty_conditions_leave_every_panel_its_room(name: str) -> None:
    given = campaign_of_eighty()
    figure = make_figure(name, typed(given))
    assert figure is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.draw_without_rendering()
    boxes = [axis.get_position() for axis in figure.get_axes()]
    assert min(box.width for box in boxes) > 0.2 and min(box.height for box in boxes) > 0.05
    if name != "reliability":
        assert "The first" not in words(name, given), "all eight patterns are drawn"


def test_long_labels_stack_the_panels_of_rates_instead_of_squeezing_them() -> None:
    given = result(16)
    figure = make_figure("summary", typed(given))
    assert figure is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.draw_without_rendering()
    one, two = (axis.get_position() for axis in figure.get_axes())
    assert one.y0 > two.y1 and one.width > 0.3


def test_a_picture_without_data_is_left_out_and_named(tmp_path: Path) -> None:
    given = result()
    given["noise_envelope"] = []
    for group in given["conditions"]:
        group["profile"] = EMPTY | {"tau_m": [], "share": [], "victims": 0}
    written = draw_figures(typed(given), tmp_path)
    missing = undrawn(written)
    assert list(missing) == ["profiles", "noise"]
    assert missing["profiles"] == "no condition has a victim to localise"
    names = [path.name for path in written]
    assert names == [f"{name}.{kind}" for name in FIGURES if name not in missing for kind in ("png", "svg")]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)


def test_nothing_known_draws_nothing(tmp_path: Path) -> None:
    given = result(1) | {"noise_envelope": [], "seeds": []}
    given["reliability"]["bins"] = []
    given["conditions"][0] |= {
        **{"estimates": [], "gdop_bands": []},
        "profile": EMPTY | {"tau_m": [], "share": [], "victims": 0},
        "coverage_curve": EMPTY | {"missions": 0} | {name: [] for name in ("time_s", "mean", "mean_low", "mean_high")},
    }
    assert draw_figures(typed(given), tmp_path) == []
    assert list(undrawn([])) == list(FIGURES)


def test_the_same_document_gives_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    here = [path for path in draw_figures(typed(result()), tmp_path / "a") if path.suffix == ".svg"]
    script = (
        "import sys; from pathlib import Path\n"
        "from sar_analysis.render.figures import draw_figures\n"
        "from tests.unit.sar_analysis.documents import result, typed\n"
        "draw_figures(typed(result()), Path(sys.argv[1]))\n"
    )
    root = Path(__file__).parents[4]
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "b")], check=True, cwd=root)
    assert len(here) == len(FIGURES)
    for path in here:
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name
        assert b"<dc:date>" not in path.read_bytes()


def test_an_unknown_figure_and_a_file_in_the_way_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"figure 'pie' is not known; allowed: summary, profiles"):
        make_figure("pie", typed(result()))
    (tmp_path / "taken").write_text("")
    with pytest.raises(InputError, match="taken: cannot create the folder of figures"):
        draw_figures(typed(result()), tmp_path / "taken")


def test_settings_that_are_no_plain_values_tell_noise_lines_apart() -> None:
    given = result()
    for number, group in enumerate(given["conditions"]):
        group["condition"]["faults"] = [{"kind": "gps_loss", "drone": 1 + number % 2}]
    assert make_figure("noise", typed(given)) is not None
