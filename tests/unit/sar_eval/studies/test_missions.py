"""The terminal's figures are the report's, and they count valid missions only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sar_analysis.results.document import build_results
from sar_analysis.table import analyze
from sar_eval.cli.studies import _plain, _table
from sar_eval.studies.missions import KEYS, summarise
from tests.unit.sar_analysis.documents import plain
from tests.unit.sar_analysis.recordmaker import result


def victim(found: bool, time_s: float = 50.0, error_m: float = 2.0) -> dict[str, Any]:
    dilutions = {"path_gdop": 1.3, "constellation_gdop": 1.4, "information_dop_m": 5.0}
    seen = {"issued_s": time_s, "error_m": error_m, "final_error_m": error_m / 2, "settled_s": time_s, "views": 2}
    issue = seen | dilutions | {"confidence": 0.9, "heard_s": time_s}
    return {"x": 1.0, "y": 2.0, "found": found, "fixes": [], **(issue if found else dict.fromkeys(issue))}


def mission(found: bool, alarms: int | None, valid: bool = True, collisions: int = 0, **more: Any) -> dict[str, Any]:
    place = {"x": 0.0, "y": 0.0, "error_m": None, "confidence": 0.9, "constellation_gdop": None}
    alarm = {"verdict": "decoy", "time_s": 9.0, "flight_s": 29.0, "address": 1, "kind": "rescuer", **place}
    changes: dict[str, Any] = {
        "episode_id": f"somewhere-{found}-{alarms}",
        "valid": valid,
        "victims": [victim(found)],
        "detections": int(found),
        "false_alarms": alarms,
        "issues": None if alarms is None else int(found) + alarms,
        "displaced": None if alarms is None else 0,
        "decoys": [],
        "issue_events": [alarm] * (alarms or 0),
        "collisions": collisions,
        "near_misses": 2 * collisions,
        "search_time_s": 240.0,
        "flight_time_s": 900.0,
        "num_drones": 4,
    }
    return result(**(changes | more))


def campaign() -> list[dict[str, Any]]:
    """Two dozen missions, no two alike, of which some found nobody and one is INVALID."""
    return [
        mission(
            k % 3 > 0,
            k % 4,
            valid=k != 5,
            collisions=int(k == 7),
            invalid_reason="interrupted" if k == 5 else None,
            seed=k,
            episode=k,
            episode_id=f"made-{k}",
            config_sha256=f"{k}",
            coverage_240s=0.5 + 0.01 * k,
            victims=[
                victim(k % 3 > 0, 20.0 + 11.0 * k, 1.0 + 0.3 * k),
                victim(k % 5 > 1, 15.0 + 7.0 * k, 9.0 - 0.3 * k),
            ],
        )
        for k in range(24)
    ]


def test_the_terminal_and_the_report_show_the_same_numbers(tmp_path: Path) -> None:
    flown = campaign()
    told = _plain(summarise(flown))
    (tmp_path / "r.jsonl").write_text("\n".join(json.dumps({"schema_version": 2, "result": r}) for r in flown))
    (section,) = plain(build_results(analyze(tmp_path / "r.jsonl")).result)["conditions"]
    figures = {e["metric"]: e for e in section["estimates"]}
    figures |= {t["metric"]: {**t, "value": t["median"]} for t in section["times"]}
    for name, key in KEYS.items():
        assert told[name] == {part: figures[key][part] for part in told[name]}, name
    (time,) = [t for t in section["times"] if t["metric"] == KEYS["time_to_detection_s"]]
    assert told["mean_time_to_detection_s"] == time["restricted_mean"]
    assert told["flight_hours"] == section["flight_hours"]
    assert (told["missions"] - told["invalid"], told["invalid"]) == (section["missions"], section["invalid"])
    json.dumps(told, allow_nan=False)


def test_the_table_says_what_has_no_end() -> None:
    cells = [cell for column in _table(summarise(campaign()), "made").columns for cell in column.cells]
    assert "median time to each victim" in cells and "CEP50 at issue" in cells
    assert any(str(cell).endswith(" to open") for cell in cells), "so few victims give a CEP95 no upper end"
    caption = str(_table(summarise(campaign()), "made").caption)
    assert caption.endswith(
        "a rate covers down to 79 %, not 95; 23 layouts: where they differ much, a mean covers down to 92 %, not 95."
    )


def test_a_summary_counts_valid_missions_only() -> None:
    summary = summarise([mission(True, 0), mission(False, 2), mission(True, 5, valid=False)])
    assert (summary.missions, summary.invalid, summary.victims) == (3, 1, 2)
    assert summary.found_at_all is not None and summary.found_at_all.value == 0.5
    assert summary.false_alarms_by_kind == {"rescuer": 2}
    assert summary.false_alarms_per_hour is not None and summary.false_alarms_per_hour.value == 1.0


def test_nothing_flown_is_no_figure() -> None:
    summary = summarise([])
    assert (summary.missions, summary.found_at_all, summary.time_to_detection_s) == (0, None, None)


def test_missions_without_radio_say_nothing_of_alarms() -> None:
    deaf = summarise([mission(False, None), mission(False, None)])
    assert deaf.missions_with_false_alarm is None and deaf.false_alarms_per_hour is None
    mixed = summarise([mission(False, None), mission(True, 1)])
    assert mixed.false_alarms_per_mission is not None and mixed.false_alarms_per_mission.value == 1.0


def test_missions_with_a_collision_are_named_for_replay() -> None:
    summary = summarise([mission(True, 0), mission(True, 3, collisions=2), mission(True, 1, False, 5)])
    assert summary.collided == ("somewhere-True-3",)
    assert summary.collisions_per_mission is not None and summary.collisions_per_mission.value == 1.0
    assert summary.near_misses_per_mission is not None and summary.near_misses_per_mission.value == 2.0
