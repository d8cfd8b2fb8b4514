"""Figures that need missions with victims and without, ADR-149's ten, and looks at fixed times."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from sar_analysis.metrics.catalogue import AS_ADR149, REPORTED
from sar_analysis.metrics.findings import Adr149, Decoy, HeldReport
from sar_analysis.metrics.metrics import EpisodeMetrics
from sar_analysis.render.reported import (
    as_adr149,
    geometry_bands,
    geometry_correlations,
    geometry_errors,
    geometry_views,
    reported,
)
from sar_analysis.render.tables import headline
from sar_analysis.results.conditions import group
from sar_analysis.results.document import build_results
from sar_analysis.results.together import ALL, geometry, looks_at, together
from sar_analysis.stats.layouts import Options
from sar_analysis.table import Table
from tests.unit.sar_analysis.missions import FOUND, campaign

FEW = Options(resamples=200)


def both(base: EpisodeMetrics, pattern: str, layouts: int = 6) -> list[EpisodeMetrics]:
    """Missions with victims, each issue right, and as many without, of which every other had a decoy alarm."""
    present = campaign(base, pattern, layouts=layouts, issues=2, displaced=0, false_alarms=0, detections=2)
    absent = campaign(
        base, pattern, layouts=layouts, victim_absent=True, issues=1, displaced=0, detections=0, false_alarms=1
    )
    heard = Decoy(9, "rescuer", False, 10.0, 70.0)
    silent = Decoy(9, "rescuer", False, None, None)
    made = [dataclasses.replace(e, decoys=(silent,)) for e in present]
    for k, e in enumerate(absent):
        alarm = k % 2
        decoy = heard if alarm else dataclasses.replace(heard, alarm_s=None)
        made.append(dataclasses.replace(e, victims=(), issues=alarm, false_alarms=alarm, decoys=(decoy,)))
    return made


def figures(row: dict[str, Any]) -> dict[str, Any]:
    return {e["metric"]: e for e in row["estimates"]}


def test_ppv_is_at_one_mission_without_victims_for_each_with(base: EpisodeMetrics) -> None:
    missions = both(base, "spiral")
    (row,) = together(group(missions), FEW)
    n = len(missions) // 2
    even = figures(row)["ppv"]
    assert even["value"] == pytest.approx(2 * n / (2 * n + n // 2)) and "Clopper-Pearson" in even["exact"]["method"]
    present, absent = missions[:n], missions[n:]
    for other in ([*present, *absent[: n // 2]], [*present[:6], *absent]):
        (uneven,) = together(group(other), FEW)
        assert figures(uneven)["ppv"]["value"] == pytest.approx(even["value"]), "as many per mission"
        assert figures(uneven)["ppv"]["exact"] is None
    spoilt = [*missions[:-1], dataclasses.replace(missions[-1], valid=False, invalid_reason="not_ready")]
    (row,) = together(group(spoilt), FEW)
    alarms = sum(e.false_alarms or 0 for e in absent[:-1]) / (n - 1)
    assert figures(row)["ppv"]["value"] == pytest.approx(2.0 / (2.0 + alarms)), "one INVALID mission erases nothing"
    (alone,) = together(group(present), FEW)
    assert "ppv" not in figures(alone)


def test_the_headline_has_ppv_and_the_mean_time_to_a_victim(base: EpisodeMetrics) -> None:
    missions = both(base, "spiral")
    result = build_results(Table(tuple(missions), ()), resamples=200).result
    told = {row.victim_absent: {e.metric: e for e in row.estimates} for row in result.headlines}
    n = len(missions) // 2
    assert told[False]["ppv"].value == pytest.approx(2 * n / (2 * n + n // 2)) and "ppv" not in told[True]
    found, missed = FOUND.time_s, missions[0].search_time_s
    of_pair = (found or 0.0) if len(missions[0].victims) == 1 else ((found or 0.0) + missed) / 2.0
    assert told[False]["mean_time_to_victim_s"].value == pytest.approx(of_pair)
    (row,) = [line for line in results_markdown_rows(result) if "| present |" in line]
    assert f"{100 * told[False]['ppv'].value:.1f} % [" in row and f"{of_pair:.1f} s [" in row
    old = [dataclasses.replace(e, schema=1, issues=None) for e in missions]
    (flattered,) = [e for e in build_results(Table(tuple(old), ()), resamples=200).result.headlines if e.victims]
    assert not {"ppv", "mean_time_to_victim_s"} & {e.metric for e in flattered.estimates}, "not by schema 1"


def results_markdown_rows(result: Any) -> list[str]:
    return ["| " + " | ".join(row) + " |" for row in headline(result).rows]


def test_a_decoy_alarm_is_given_three_ways(base: EpisodeMetrics) -> None:
    missions = both(base, "spiral")
    (row,) = together(group(missions), FEW)
    found = figures(row)
    n = len(missions) // 2
    assert found["exposed_missions_with_false_alarm"]["value"] == 0.5
    assert found["exposed_missions_with_false_alarm"]["n"] == n
    assert found["absent_missions_with_false_alarm"]["value"] == 0.5
    assert found["missions_with_exposed_decoy"]["value"] == 0.5
    hours = n // 2 * (60.0 + 230.0) / 3600.0
    assert found["false_alarms_per_decoy_hour"]["value"] == pytest.approx(n // 2 / hours)


def test_more_missions_without_any_exposed_decoy_do_not_move_the_headline(base: EpisodeMetrics) -> None:
    missions = both(base, "spiral")
    quiet = [
        dataclasses.replace(e, seed=e.seed + 10, config_sha256=f"q{e.config_sha256}")
        for e in missions
        if not e.victim_absent
    ]
    (row,), (diluted,) = together(group(missions), FEW), together(group(missions + quiet), FEW)
    headline = "exposed_missions_with_false_alarm"
    assert figures(row)[headline]["value"] == figures(diluted)[headline]["value"]
    assert figures(diluted)["missions_with_exposed_decoy"]["value"] < 0.5


def test_all_patterns_come_first_and_every_row_has_its_figures(base: EpisodeMetrics) -> None:
    rows = together(group(both(base, "spiral") + both(base, "pheromone")), FEW)
    assert [row["pattern"] for row in rows] == [ALL, "spiral", "pheromone"]
    assert rows[0]["missions"] == rows[1]["missions"] + rows[2]["missions"]
    for row in rows:
        named = {*figures(row), *(t["metric"] for t in row["times"])}
        assert named <= {*REPORTED, *AS_ADR149} and "cep95_m" in named


def test_without_radio_there_is_no_row(base: EpisodeMetrics) -> None:
    deaf = [dataclasses.replace(e, false_alarms=None, detections=None) for e in campaign(base, "spiral")]
    assert together(group(deaf), FEW) == []


def test_the_ten_metrics_count_by_their_own_definitions(base: EpisodeMetrics) -> None:
    missions = []
    for k, e in enumerate(both(base, "spiral")):
        seen = Adr149(k % 2 == 0, k % 2 == 0, 20.0 + k if k % 2 == 0 else None, (3.0, 40.0 + k), (1.4, None))
        missions.append(dataclasses.replace(e, adr149=seen, flight_time_s=300.0))
    (row,) = together(group(missions), FEW)
    found = figures(row)
    assert found["adr149_detection_rate"]["value"] == 0.5 == found["adr149_false_alarm_rate"]["value"]
    assert found["adr149_cep50_m"]["value"] == 3.0 and found["adr149_cep95_m"]["value"] > 40.0
    (time,) = [t for t in row["times"] if t["metric"] == "adr149_time_to_first_detection_s"]
    assert time["n"] == len(missions) // 2 and time["reached"] == len(missions) // 4


def held(k: int) -> HeldReport:
    return HeldReport(60.0 * (k + 1), 1.0, 4.0 / (k + 1), 0.5, 2.0, (3.0, 1.5, None)[k], 5.0 / (k + 1), 2 + k)


def test_looks_are_columns_and_what_was_undefined_stays_so(base: EpisodeMetrics) -> None:
    victim = dataclasses.replace(FOUND, fixes=tuple(held(k) for k in range(3)))
    missions = [dataclasses.replace(e, victims=(victim,)) for e in campaign(base, "spiral")]
    looks = looks_at(missions)
    assert looks is not None and looks.times == (60.0, 120.0, 180.0, 240.0)
    (part,) = geometry(group(missions), FEW)
    drawn = [row["rho"] for row in part["correlations"] if row["rho"] is not None]
    assert drawn and {(rho["resamples"], rho["seed"]) for rho in drawn} == {(200, 0)}, "as all figures of the document"
    assert part["looks"] == 4 * len(missions)
    placed = [(row["time_s"], row["n"], row["reported"]) for row in part["errors"]]
    assert placed == [(60.0 * k, len(missions), len(missions) if k < 4 else 0) for k in (1, 2, 3, 4)]
    assert part["errors"][3]["cep50_m"] is None, "nothing was held of any: infinite"
    assert [band["n"] for band in part["bands"]] == [0, len(missions), len(missions), 0, len(missions)]
    assert looks_at([dataclasses.replace(e, schema=1) for e in missions]) is None, "its records tell of none"
    assert looks_at([dataclasses.replace(e, search_time_s=59.0) for e in missions]) is None


def test_the_tables_show_what_the_document_holds(base: EpisodeMetrics) -> None:
    victim = dataclasses.replace(FOUND, fixes=tuple(held(k) for k in range(3)))
    missions = [dataclasses.replace(e, victims=(victim,) if e.victims else ()) for e in both(base, "spiral")]
    result = build_results(Table(tuple(missions), ()), resamples=200).result
    (row,) = reported(result).rows
    assert row[:4] == ("embedded", "spiral", str(len(missions)), "0")
    assert any("36 of 36" in cell or "%" in cell for cell in row[4:])
    assert as_adr149(result).rows[0][1] == "spiral"
    assert [r[1:4] for r in geometry_errors(result).rows][3] == ("240 s", "36", "36")
    assert geometry_errors(result).rows[3][4:] == ("infinite", "infinite")
    assert len(geometry_bands(result).rows) == 5
    assert {r[1] for r in geometry_correlations(result).rows} >= {"information_dop_m"}
    assert [r[2] for r in geometry_views(result).rows] == ["2", "3", "4 or more"]
