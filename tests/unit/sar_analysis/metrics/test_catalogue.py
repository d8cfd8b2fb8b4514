"""The catalogue is the one place of a metric: what is added to it is found wherever metrics are shown."""

from __future__ import annotations

import csv
import json
import runpy
from pathlib import Path

import jsonschema
import pytest

from sar_analysis.bags.reader import Bag
from sar_analysis.metrics import catalogue
from sar_analysis.metrics.catalogue import METRICS, Metric, estimated, metric, of_missions, register
from sar_analysis.metrics.metrics import EpisodeMetrics
from sar_analysis.render.report import write_report
from sar_analysis.results.model import results_schema
from sar_analysis.table import analyze
from sar_core.errors import InputError
from tests.unit.sar_analysis.campaigns import campaign
from tests.unit.sar_analysis.documents import plain

ROOT = Path(__file__).parents[4]
PAGE = ROOT / "docs" / "metrics.md"


def least_height(bag: Bag) -> float | None:
    return float(bag.truth.position[:, :, 2].min())


ADDED = Metric(
    "least_height_m",
    "least height flown",
    "lowest place of any drone over the whole flight",
    "true states",
    unit="m",
    better="higher",
    aggregate="mean",
    measure=least_height,
)
DERIVED = Metric(
    "speed_mps",
    "mean speed",
    "path over flight time and drones",
    "true states",
    unit="m/s",
    value=lambda e: e.path_m / e.flight_time_s / e.drones,
)


def renewed(page: str) -> str:
    text: str = runpy.run_path(str(ROOT / "scripts" / "metricspage.py"))["renewed"](page)
    return text


def test_the_page_on_metrics_holds_the_catalogue_as_it_is() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert renewed(page) == page, "run: python scripts/metricspage.py"


def test_a_metric_is_added_by_its_entry_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for entry in (ADDED, DERIVED):
        monkeypatch.setitem(METRICS, entry.key, entry)
        with pytest.raises(InputError, match=f"metric '{entry.key}'"):
            register(entry)
    runs = campaign(tmp_path / "runs")
    table = analyze(runs)
    assert {"least_height_m", "speed_mps"} <= set(table.columns())
    assert all(e.measured["least_height_m"] == pytest.approx(30.0) for e in table.episodes)
    out = tmp_path / "out"
    document = write_report(runs, out, resamples=200).document
    with open(out / "episodes.csv", encoding="utf-8") as stream:
        assert {row["least_height_m"] for row in csv.DictReader(stream)} == {"30.0"}
    with open(out / "summary.csv", encoding="utf-8") as stream:
        assert {"estimate", "iqm"} <= {r["kind"] for r in csv.DictReader(stream) if r["metric"] == "least_height_m"}
    found = json.loads((out / "results.json").read_text())["result"]
    assert found == plain(document.result)
    assert all(e["least_height_m"] == 30.0 and e["speed_mps"] > 0.0 for e in found["episodes"])
    assert "least_height_m" in {e["metric"] for e in found["conditions"][0]["estimates"]}
    schema = results_schema()
    jsonschema.Draft202012Validator(schema).validate(plain(document))
    assert schema["$defs"]["EpisodeRow"]["properties"]["least_height_m"]["description"] == ADDED.definition
    assert "least height flown" in (out / "TABLES.md").read_text()
    assert "least height flown" in (out / "results.tex").read_text()
    shown = (out / "report.html").read_text()
    assert "least height flown" in shown and "mean speed, m/s" in shown
    docs = renewed(PAGE.read_text(encoding="utf-8"))
    assert "`least_height_m` | least height flown | m | higher |" in docs


def test_every_entry_says_what_it_is() -> None:
    assert list(METRICS) == [m.key for m in METRICS.values()]
    fields = EpisodeMetrics.__dataclass_fields__
    for m in METRICS.values():
        assert m.label and m.definition and m.source, m.key
        assert m.column == (m.key in fields and m.value is None), m.key
        assert m.interval == catalogue.INTERVALS[m.aggregate]
    assert len({m.label for m in METRICS.values()}) == len(METRICS), "a label names one metric"
    for m in estimated():
        functions = {"share": m.counts, "rate": m.counts, "quantile": m.samples, "restricted mean": m.timed}
        given = functions.get(m.aggregate, m.of_mission)
        assert given, f"{m.key} has no function for its {m.aggregate}"


def test_short_tables_show_metrics_of_the_catalogue() -> None:
    for keys in (catalogue.HEADLINE, catalogue.SEED_BY_SEED, catalogue.SEED_RATES, catalogue.NOISE_ENVELOPE):
        assert set(keys) <= {m.key for m in estimated()}
    assert {m.key for m in of_missions() if m.open_ended} < set(METRICS)


def test_a_key_of_another_catalogue_is_its_own_label() -> None:
    assert metric("wing_flutter").heading == "wing flutter"
