"""Every pattern on the same missions: what a row says of results that are made up."""

from __future__ import annotations

from typing import Any

import pytest

from sar_eval.episode.pool import Spec
from sar_eval.studies import patternstudy
from sar_eval.studies.patternstudy import PatternRow, scenario_of, study, time_to_cover
from sar_swarm.piloting.patternlist import STANDARD, find
from tests.unit.sar_analysis.recordmaker import result

Told = list[tuple[int, int]]


def studied(
    monkeypatch: pytest.MonkeyPatch, missions: int, unlimited: int, reached: bool = True, **changes: Any
) -> tuple[list[PatternRow], Told]:
    """Two patterns in one world; mission k covers (k + 1) / 10 and reaches 95 % after 100 + k s."""

    def fly(spec: Spec) -> dict[str, Any]:
        return result(seed=spec.seed, episode=spec.index, coverage_240s=(spec.seed + 1) / 10) | changes

    def cover(spec: Spec) -> tuple[float | None, float]:
        return (100.0 + spec.seed if reached else None), 900.0

    monkeypatch.setattr(patternstudy, "fly_one", fly)
    monkeypatch.setattr(patternstudy, "time_to_cover", cover)
    told: Told = []
    rows = study(["open_field"], ["spiral", "levy_flight"], missions, unlimited, 0, 1, lambda *now: told.append(now))
    return [row for row, _ in rows], told


def test_radios_are_on_where_hearing_changes_the_flight_and_only_there() -> None:
    radios = {pattern: scenario_of("open_field", pattern).radio for pattern in STANDARD}
    assert radios == {pattern: "open_ground" if find(pattern).triangulates else None for pattern in STANDARD}
    assert set(radios.values()) == {"open_ground", None}


def test_a_row_per_pattern_says_what_its_missions_came_to(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, told = studied(monkeypatch, missions=8, unlimited=6)
    assert [(row.pattern, row.missions, row.invalid) for row in rows] == [("spiral", 8, 0), ("levy_flight", 8, 0)]
    assert rows[0].coverage_240s.value == pytest.approx(0.45)
    assert (rows[0].unlimited, rows[0].reached_95) == (6, 6)
    assert told == [(k, 28) for k in range(1, 29)]


def test_where_nobody_got_there_there_is_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, _ = studied(monkeypatch, missions=3, unlimited=3, reached=False)
    assert (rows[0].time_to_95_s, rows[0].unlimited, rows[0].reached_95) == (None, 3, 0)
    rows, _ = studied(monkeypatch, missions=3, unlimited=0)
    assert (rows[0].time_to_95_s, rows[0].unlimited) == (None, 0)


def test_a_flight_without_limit_stops_once_the_share_is_covered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small share here, which takes a few seconds of search."""
    monkeypatch.setattr(patternstudy, "COVERED", 0.002)
    scenario = scenario_of("open_field", "spiral").model_copy(update={"drones": 1, "altitude_m": 5.0})
    reached, ended = time_to_cover(Spec(scenario, 0, 0))
    assert reached is not None and reached <= ended < 5.0
