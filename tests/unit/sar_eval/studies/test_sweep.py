"""The grid of noise levels: every cell on the same missions, each figure in its own cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scipy import special

from sar_eval.episode.pool import Spec
from sar_eval.studies import sweep
from sar_eval.studies.sweep import CLOSES_AT_KAPPA, KAPPAS, OPENS_AT_KAPPA, SIGMAS, draw_sweep, fly_sweep
from tests.unit.sar_analysis.recordmaker import result

GATE = ("phase_open", "accept", "predict_only")


def made_up(spec: Spec) -> dict[str, Any]:
    """As if flown: what the gate lets through tells which cell and which mission it was."""
    shares = dict.fromkeys(GATE, spec.scenario.sigma + 0.1 * spec.seed)
    return result(seed=spec.seed, episode=spec.index, episode_set="rules-1", gate=shares, detections=0)


@pytest.fixture
def cells(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    monkeypatch.setattr(sweep, "fly_one", made_up)
    return fly_sweep("open_field", 2, 4, 60.0, 1, lambda done, of: None)


@pytest.mark.parametrize(("kappa", "coherence"), [(OPENS_AT_KAPPA, 0.70), (CLOSES_AT_KAPPA, 0.65)])
def test_the_drawn_boundary_is_where_the_mean_phasor_crosses_the_gate(kappa: float, coherence: float) -> None:
    assert special.i1e(kappa) / special.i0e(kappa) == pytest.approx(coherence, abs=2e-4)


def test_every_cell_is_flown_on_the_same_missions(cells: list[dict[str, Any]]) -> None:
    assert [(cell["sigma"], cell["kappa"]) for cell in cells] == [(s, k) for s in SIGMAS for k in KAPPAS]
    for cell in cells:
        assert cell["missions"] == 2
        assert {name: share["value"] for name, share in cell["gate"].items()} == pytest.approx(
            dict.fromkeys(GATE, cell["sigma"] + 0.45)
        ), "the mean over seeds 4 and 5"


def test_every_figure_of_a_cell_has_an_interval_over_layouts_that_says_how(cells: list[dict[str, Any]]) -> None:
    for cell in cells[:3]:
        for share in cell["gate"].values():
            assert share["low"] < share["value"] < share["high"]
            assert share["notes"][0] == "only 2 layouts: covers less than it claims"
            assert (share["cluster"], share["resamples"], share["seed"]) == ("layout", 10_000, 0)
        alarms = cell["decoy_alarms_per_mission"]
        assert alarms["low"] == 0.0 < alarms["high"] and alarms["cluster"] == "layout"
        assert cell["wrong_issues_per_mission"]["value"] == 0.0 and cell["displaced"] is None
        assert cell["invalid"] == 0


def test_an_invalid_mission_enters_no_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "fly_one", lambda spec: made_up(spec) | {"valid": spec.seed > 4, "invalid_reason": "x"})
    cells = fly_sweep("open_field", 2, 4, 60.0, 1, lambda done, of: None)
    assert {cell["invalid"] for cell in cells} == {1}
    assert cells[0]["gate"]["accept"]["value"] == pytest.approx(cells[0]["sigma"] + 0.5)


def test_who_waits_is_told_of_every_mission(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "fly_one", made_up)
    told: list[tuple[int, int]] = []
    fly_sweep("open_field", 1, 0, 60.0, 1, lambda done, of: told.append((done, of)))
    total = len(SIGMAS) * len(KAPPAS)
    assert told == [(k + 1, total) for k in range(total)]


def test_a_figure_that_no_mission_gave_is_left_open_in_the_picture(cells: list[dict[str, Any]], tmp_path: Path) -> None:
    for cell in cells:
        cell.update(found=None, cep50_m=None)
    draw_sweep(cells, "open_field", tmp_path / "sweep.png")
    assert (tmp_path / "sweep.png").stat().st_size > 5000
