"""The typed document: its schema is the committed one, and it refuses what the schema refuses."""

from __future__ import annotations

import copy
import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from sar_analysis.results import document as building
from sar_analysis.results.document import build_results, read_results
from sar_analysis.results.model import results_schema
from sar_analysis.table import analyze
from sar_core.errors import ContractError
from tests.unit.sar_analysis.documents import plain
from tests.unit.sar_analysis.recordmaker import record

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    file = tmp_path_factory.mktemp("model") / "r.jsonl"
    file.write_text("\n".join(record(seed=s, config_sha256=f"{s}") for s in (1, 2)))
    return plain(build_results(analyze(file), resamples=200))


def test_the_committed_schema_is_what_the_script_writes() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "schema.py"))
    assert script["SCHEMA"].read_text(encoding="utf-8") == script["text"](), "run: python scripts/schema.py"


def test_published_results_are_read_as_a_document() -> None:
    text = (ROOT / "results" / "results.json").read_text(encoding="utf-8")
    found = read_results(text)
    same = found.text() == text
    assert same, "and written as they were"
    assert found.result.counts.episodes == len(found.result.episodes) == 2400
    coverage = next(e for e in found.result.headlines[0].estimates if e.metric == "coverage_240s")
    assert coverage.low is not None and (coverage.cluster, coverage.resamples, coverage.seed) == ("layout", 10_000, 0)


@pytest.mark.parametrize(
    "breaking",
    [
        lambda d: d.update(schema_version=2),
        lambda d: d["result"]["counts"].update(valid="2"),
        lambda d: d["result"]["conditions"][0]["estimates"][-1].update(notes=[]),
        lambda d: d["result"]["conditions"][0]["scores"][0].update(colour="red"),
        lambda d: d["result"]["episodes"][0].update(gdop="good"),
        lambda d: d["result"]["episodes"][0].pop("valid"),
        lambda d: d["result"]["noise_envelope"][0].update(cep50_m=3.0),
    ],
)
def test_model_and_schema_refuse_the_same(made: dict[str, Any], breaking: Callable[[dict[str, Any]], Any]) -> None:
    validator = jsonschema.Draft202012Validator(results_schema())
    validator.validate(made)
    broken = copy.deepcopy(made)
    breaking(broken)
    assert not validator.is_valid(broken)
    with pytest.raises(ContractError, match="do not keep their schema"):
        read_results(json.dumps(broken))


def test_a_document_that_lacks_a_metric_is_an_older_one(made: dict[str, Any]) -> None:
    older = copy.deepcopy(made)
    del older["result"]["episodes"][0]["overlap_ratio"]
    jsonschema.Draft202012Validator(results_schema()).validate(older)


def test_a_document_that_breaks_its_schema_is_never_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "r.jsonl").write_text(record())
    monkeypatch.setattr(building, "conditional", lambda seeds: seeds)
    with pytest.raises(ContractError, match=r"do not keep their schema: .*\s+result\.conditional"):
        build_results(analyze(tmp_path / "r.jsonl"), resamples=200)
