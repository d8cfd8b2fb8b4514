"""What schema 1 hid, on hand-made records: which report came first, how far off it was, and of whom."""

from __future__ import annotations

from typing import Any

import pytest

from sar_analysis.results.erratum import Layout, corrections
from sar_core.errors import ContractError, MissingDataError

BEGIN_S = 15.0
HOME = {11: (0.0, 0.0), 12: (100.0, 0.0)}


def layout(index: int) -> Layout:
    return Layout(index, HOME, unlisted_rescuer=index % 2 == 0)


def victim(x: float, time_s: float | None = None, error_m: float | None = None) -> dict[str, Any]:
    return {"x": x, "y": 0.0, "detected": time_s is not None, "time_s": time_s, "error_m": error_m}


def alarm(flight_s: float, address: int, x: float, kind: str) -> dict[str, Any]:
    return {"time_s": flight_s, "address": address, "x": x, "y": 0.0, "kind": kind}


def record(
    episode: int, victims: list[dict[str, Any]], alarms: list[dict[str, Any]], absent: bool = False
) -> dict[str, Any]:
    return {
        "episode_id": f"e{episode}",
        "episode": episode,
        "valid": True,
        "search_time_s": 200.0,
        "victims": victims,
        "detections": sum(v["detected"] for v in victims),
        "false_alarms": len(alarms),
        "false_alarm_events": alarms,
        "configuration": {"victim_absent": absent},
    }


def figures(results: list[dict[str, Any]]) -> dict[str, tuple[float | None, float]]:
    """Published and corrected value by the first words of each figure."""
    made = corrections(results, layout, BEGIN_S)
    return {
        c.words.split(",")[0].split(":")[0] + (" absent" if "absent" in c.words else ""): (
            None if c.published is None else c.published.value,
            c.corrected.value,
        )
        for c in made
    }


def test_a_victims_device_12_m_off_is_displaced_and_no_false_alarm() -> None:
    missions = [record(k, [victim(0.0, 20.0, 3.0), victim(100.0)], [alarm(40.0, 12, 112.0, "victim")]) for k in (0, 1)]
    told = figures(missions)
    assert told["false alarm"] == (1.0, 0.0)
    assert told["displaced"] == (None, 0.5)
    assert told["CEP95 at issue"] == (3.0, 12.0)


def test_what_was_displaced_when_issued_is_not_found_though_it_was_right_later() -> None:
    missions = [record(k, [victim(0.0, 60.0, 2.0)], [alarm(BEGIN_S + 59.0, 11, 30.0, "victim")]) for k in (0, 1)]
    told = figures(missions)
    assert told["victims found; now"] == (1.0, 0.0)
    assert told["time to find a victim"] == (None, 240.0)
    assert told["CEP50 at issue"] == (2.0, 30.0)


def test_a_report_after_the_search_counts_for_nothing() -> None:
    late = BEGIN_S + 200.5
    missions = [record(k, [victim(0.0, 201.0, 1.0)], [alarm(late, 7, 50.0, "rescuer")]) for k in (0, 1)]
    told = figures([*missions, record(2, [victim(0.0, 10.0, 1.0)], [])])
    assert told["false alarm"] == (pytest.approx(2 / 3), 0.0)
    assert told["victims found; now"] == (1.0, pytest.approx(1 / 3))


def test_alarms_without_victims_are_also_given_where_a_layout_can_have_them() -> None:
    missions = [record(k, [], [alarm(50.0, 7, 5.0, "rescuer")] if k == 0 else [], absent=True) for k in range(4)]
    told = figures(missions)
    assert told["false alarm absent"] == (0.25, 0.25)
    assert told["decoy alarm absent"] == (None, 0.5)


def test_issues_of_missions_without_victims_weigh_as_much_as_those_with() -> None:
    present = [record(k, [victim(0.0, 9.0, 1.0)], []) for k in (0, 1)]
    absent = [record(k, [], [alarm(50.0, 7, 5.0, "rescuer")], absent=True) for k in (0, 1)]
    assert figures([*present, *absent])["right issues of all issues absent"] == (None, 0.5)
    with pytest.raises(ContractError, match="as many of either"):
        figures([*present, absent[0]])


def test_a_layout_that_lacks_the_victim_is_refused_and_so_is_nothing() -> None:
    with pytest.raises(ContractError, match="no victim of its layout has address 99"):
        figures([record(0, [victim(0.0)], [alarm(40.0, 99, 30.0, "victim")])])
    with pytest.raises(MissingDataError, match="no valid mission"):
        figures([])
