"""Figures that need missions with victims and without, ADR-149's ten, and looks at fixed times."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from sar_analysis.metrics.catalogue import AS_ADR149, REPORTED
from sar_analysis.metrics.findings import Adr149, Decoy, HeldReport
from sar_analysis.metrics.metrics import EpisodeMetrics
from sar_analysis.render.reported import as_adr149, geometry_bands, geometry_correlations, geometry_views, reported
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


def test_ppv_is_of_as_many_missions_without_victims_as_with(base: EpisodeMetrics) -> None:
    missions = both(base, "spiral")
    (row,) = together(group(missions), FEW)
    n = len(missions) // 2
    right = 2 * n
    assert figures(row)["ppv"]["value"] == pytest.approx(right / (right + n // 2))
    (unmixed,) = together(group(missions[:-1]), FEW)
    assert "ppv" not in figures(unmixed)


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
    assert looks is not None and looks.times == (60.0, 120.0, 180.0)
    (part,) = geometry(group(missions), FEW)
    drawn = [row["rho"] for row in part["correlations"] if row["rho"] is not None]
    assert drawn and {(rho["resamples"], rho["seed"]) for rho in drawn} == {(200, 0)}, "as all figures of the document"
    assert part["looks"] == 3 * len(missions)
    assert [band["n"] for band in part["bands"]] == [0, len(missions), len(missions), 0, len(missions)]
    assert looks_at(campaign(base, "spiral")) is None


def test_the_tables_show_what_the_document_holds(base: EpisodeMetrics) -> None:
    victim = dataclasses.replace(FOUND, fixes=tuple(held(k) for k in range(3)))
    missions = [dataclasses.replace(e, victims=(victim,) if e.victims else ()) for e in both(base, "spiral")]
    result = build_results(Table(tuple(missions), ()), resamples=200).result
    (row,) = reported(result).rows
    assert row[:4] == ("embedded", "spiral", str(len(missions)), "0")
    assert any("36 of 36" in cell or "%" in cell for cell in row[4:])
    assert as_adr149(result).rows[0][1] == "spiral"
    assert len(geometry_bands(result).rows) == 5
    assert {r[1] for r in geometry_correlations(result).rows} >= {"information_dop_m"}
    assert [r[2] for r in geometry_views(result).rows] == ["2", "3", "4"]
