"""The terminal's figures are the report's, and they count valid missions only."""

from __future__ import annotations

import json
from pathlib import Path

from sar_analysis.results.document import build_results
from sar_analysis.table import analyze
from sar_eval.cli.studies import _plain, _table
from sar_eval.studies.missions import KEYS, summarise
from tests.unit.sar_analysis.documents import plain
from tests.unit.sar_eval.studies.missionmaker import campaign, mission


def test_the_terminal_and_the_report_show_the_same_numbers(tmp_path: Path) -> None:
    flown = campaign()
    told = _plain(summarise(flown))
    (tmp_path / "r.jsonl").write_text("\n".join(json.dumps({"schema_version": 2, "result": r}) for r in flown))
    (section,) = plain(build_results(analyze(tmp_path / "r.jsonl")).result)["conditions"]
    figures = {e["metric"]: e for e in section["estimates"]}
    figures |= {t["metric"]: {**t, "value": t["median"]} for t in section["times"]}
    for name, key in KEYS.items():
        held = figures.get(key)
        assert told[name] == (None if held is None else {part: held[part] for part in told[name]}), name
    (time,) = [t for t in section["times"] if t["metric"] == KEYS["time_to_detection_s"]]
    mean = told["mean_time_to_detection_s"]
    assert {part: mean[part] for part in ("value", "low", "high")} == {
        part: time["restricted_mean"][part] for part in ("value", "low", "high")
    }
    assert told["flight_hours"] == section["flight_hours"]
    assert (told["missions"] - told["invalid"], told["invalid"]) == (section["missions"], section["invalid"])
    json.dumps(told, allow_nan=False)


def test_the_table_says_what_has_no_end() -> None:
    cells = [cell for column in _table(summarise(campaign()), "made").columns for cell in column.cells]
    assert "median time to each victim" in cells and "CEP50 at issue" in cells
    assert any(str(cell).endswith(" to open") for cell in cells), "so few victims give a CEP95 no upper end"
    assert "mean time to a victim" in cells
    assert "needs missions with victims and without" in cells, "PPV of one kind of mission"
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
