"""The same missions give the same number with the same interval, wherever it stands."""

from __future__ import annotations

import csv
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from sar_analysis.metrics.catalogue import HEADLINE, METRICS, metric
from sar_analysis.render.latex import escape
from sar_analysis.render.report import TEXTS, write_texts
from sar_analysis.render.wording import estimate
from sar_analysis.results.document import build_results
from sar_analysis.results.rows import EstimateRow
from sar_analysis.table import analyze as read
from sar_eval.cli import analysis
from tests.unit.sar_eval.studies.missionmaker import campaign

SHOWN = [key for key in HEADLINE if not METRICS[key].mixed and "exposed" not in key]
"""What missions with victims and without an exposed decoy have."""


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("records") / "missions.jsonl"
    path.write_text("\n".join(json.dumps({"schema_version": 2, "result": r}) for r in campaign()))
    return path


@pytest.fixture(scope="module")
def texts(records: Path) -> dict[str, str]:
    """What a report writes, by name."""
    table = read(records)
    write_texts(build_results(table), table, records.parent)
    return {name: (records.parent / name).read_text(encoding="utf-8") for name in TEXTS}


def parts(row: dict[str, Any]) -> dict[str, float | None]:
    """Value and ends; an empty field is an end that is not given."""
    return {name: None if row[name] in ("", None) else float(row[name]) for name in ("value", "low", "high")}


def made(row: dict[str, Any]) -> list[str]:
    """How its interval was made."""
    return ["" if row[name] is None else str(row[name]) for name in ("method", "cluster", "resamples", "seed")]


def of_json(told: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["metric"]: row for row in told}


def test_terminal_report_csv_latex_and_json_agree(
    records: Path, texts: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    screen = StringIO()
    monkeypatch.setattr(analysis, "out", Console(file=screen, width=400))
    analysis.analyze(records)
    capsys.readouterr()
    analysis.analyze(records, as_json=True)
    piped = of_json(json.loads(capsys.readouterr().out)["summary"])
    result = json.loads(texts["results.json"])["result"]
    (section,), (headline,) = result["conditions"], result["headlines"]
    figures, first = of_json(section["estimates"]), of_json(headline["estimates"])
    rows = list(csv.DictReader(StringIO(texts["summary.csv"])))
    listed = of_json([row for row in rows if row["condition"] == "c01" and row["kind"] == "estimate"])
    for key in SHOWN:
        wanted = parts(figures[key])
        assert wanted == parts(first[key]) == parts(piped[key]) == parts(listed[key]), key
        assert made(figures[key]) == made(first[key]) == made(piped[key]) == made(listed[key]), key
        words = estimate(EstimateRow.model_validate(figures[key]))
        assert "[" in words and words in texts["RESULTS.md"] and escape(words) in texts["results.tex"], key
        line = next(line for line in screen.getvalue().splitlines() if line.startswith(metric(key).heading))
        assert line.endswith(words) or f"{words} " in line, key


def test_adr149s_ten_are_the_reports(records: Path, texts: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    analysis.adr149(records, as_json=True)
    (ten,) = json.loads(capsys.readouterr().out)
    (row,) = json.loads(texts["results.json"])["result"]["together"]
    figures = of_json(row["estimates"]) | {t["metric"]: {**t, "value": t["median"]} for t in row["times"]}
    means = {t["metric"]: t["restricted_mean"] for t in row["times"]}
    told = {item["metric"]: item for item in ten["metrics"] if item["figure"] is not None}
    assert {"coverage_240s", "time_to_95_s", "overlap_ratio"} <= set(told)
    for key, item in told.items():
        assert parts(item["figure"]) == parts(figures[key]), key
        assert item["mean"] == means.get(key), key
