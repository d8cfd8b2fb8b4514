"""The swarm's sensing: counts that add up, and reports that are confirmed, calibrated and new."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sar_core.radio import WAVELENGTH_M
from sar_eval.episode.briefing import briefing_of
from sar_eval.episode.sensing import MOST_VIEWS, WORTH_M, Sensing, Tally
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare, radio_path
from sar_sim.radio.radioconfig import load_radio
from sar_swarm.sensing.frames import Reason

TOLD = briefing_of(prepare(Scenario(world="open_field"), 0, 0)).radio
assert TOLD is not None


def estimate(**changes: Any) -> Any:
    plain = {"time_s": 9.0, "track": 1, "address": 7, "x": 10.0, "y": 20.0, "views": 3, "confirmed": True}
    dilutions = {"path_gdop": 1.5, "constellation_gdop": 1.2, "information_dop_m": 2.0}
    return SimpleNamespace(**(plain | dilutions | changes))


@pytest.fixture
def sensing(monkeypatch: pytest.MonkeyPatch) -> Sensing:
    """Its calibration says what the test wants."""
    monkeypatch.setattr("sar_eval.episode.sensing.features", lambda found: getattr(found, "p", 0.8))
    made = Sensing(2, TOLD)
    made._calibration = SimpleNamespace(probability=lambda p: p)  # type: ignore[assignment]
    return made


def test_shares_are_of_all_frames_and_none_of_none() -> None:
    gate = np.zeros((2, 5), dtype=np.int64)
    assert set(Tally(gate, np.zeros(len(Reason), np.int64)).gate_shares().values()) == {0.0}
    gate[0, 2], gate[1, 0], gate[1, 1] = 2, 5, 3
    shares = Tally(gate, np.zeros(len(Reason), np.int64)).gate_shares()
    assert shares["phase_open"] == 0.8 and shares["accept"] == 0.5
    assert sum(share for name, share in shares.items() if name != "phase_open") == pytest.approx(1.0)


def test_only_reasons_that_occurred_are_named() -> None:
    dropped = np.zeros(len(Reason), np.int64)
    dropped[list(Reason)[-1]] = 4
    assert Tally(np.zeros((2, 4), np.int64), dropped).dropped_by_reason() == {list(Reason)[-1].name.lower(): 4}


def test_what_is_confirmed_is_reported_and_believed(sensing: Sensing) -> None:
    found = sensing._report(1, estimate())
    assert found is not None
    report = found.report
    assert (report.drone, report.address, report.x, report.y, report.confidence) == (1, 7, 10.0, 20.0, 0.8)
    (hypothesis,) = sensing.hypotheses(1)
    assert (hypothesis.track, hypothesis.confidence) == (1, 0.8) and sensing.hypotheses(0) == ()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({}, False),
        ({"x": 10.0 + 0.9 * WORTH_M}, False),
        ({"x": 10.0 + 1.1 * WORTH_M}, True),
        ({"p": 0.81}, False),
        ({"p": 0.83}, True),
        ({"track": 2}, True),
    ],
)
def test_it_is_told_again_when_it_says_something_new(sensing: Sensing, change: dict[str, Any], told: bool) -> None:
    assert sensing._report(0, estimate()) is not None
    assert (sensing._report(0, estimate(**change)) is not None) is told
    assert sensing._report(1, estimate(**change)) is not None, "another drone has its own say"


def test_a_step_over_the_confident_line_is_always_told(sensing: Sensing) -> None:
    """However small: whoever acts at 0.85 must hear of it, upwards and downwards."""
    told = [sensing._report(0, estimate(p=p)) is not None for p in (0.845, 0.849, 0.851, 0.853, 0.849)]
    assert told == [True, False, True, False, True]


def test_nobody_reports_before_the_search_and_nothing_is_lost_by_it(sensing: Sensing) -> None:
    for centre in sensing.centres:
        centre.solve = lambda time_s: [estimate()]  # type: ignore[method-assign]
    sensing.heard.observations[:] = [[], []]
    for tick in range(40):
        assert sensing.think(tick, 0.05 * tick, [[], []], searching=False) == []
    told = [found for tick in range(40, 60) for found in sensing.think(tick, 0.05 * tick, [[], []])]
    assert len(told) == 2, "once by each drone"


@pytest.mark.parametrize("radio", ["open_ground", "near", "rubble", "optimistic"])
def test_listeners_and_fusion_are_told_their_budgets_own_loss(radio: str) -> None:
    """A range law that expects a phone in the open takes a buried one to be ten times as far."""
    told = briefing_of(prepare(Scenario(radio=radio), 0, 0, calibrated=False)).radio
    assert told is not None
    config = load_radio(radio_path(radio))
    made = Sensing(1, told)
    law = made.listeners[0].config.law
    free_space_db = 20.0 * math.log10(4.0 * math.pi * 100.0 / WAVELENGTH_M)
    assert law.range_m(config.victim_dbm - free_space_db) == pytest.approx(100.0)
    assert law.power_db == config.power_spread_db and law.fading_db == config.fading_db
    model = made.centres[0].config.model
    assert model.power_log_std == pytest.approx(config.power_spread_db * math.log(10.0) / 20.0)
    assert model.shadow_log_std == pytest.approx(config.shadowing_db * math.log(10.0) / 20.0)
    assert model.bias_phase_std_rad == config.bearing_bias_rad


def test_small_steps_add_up_to_news(sensing: Sensing) -> None:
    """Against what was told last, not against the last look."""
    told = [sensing._report(0, estimate(x=10.0 + 0.2 * k)) is not None for k in range(7)]
    assert told == [True, False, False, True, False, False, True]


def test_what_is_not_confirmed_or_not_calibrated_is_no_report(sensing: Sensing) -> None:
    assert sensing._report(0, estimate(confirmed=False)) is None
    uncalibrated = Sensing(2, replace(TOLD, calibration=None))
    assert uncalibrated._report(0, estimate()) is None and uncalibrated.hypotheses(0) == ()


def test_a_message_has_one_byte_for_views(sensing: Sensing) -> None:
    found = sensing._report(0, estimate(views=300))
    assert found is not None and found.report.views == MOST_VIEWS
