"""Records of either schema as rows: each by its own definitions, never both in one table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sar_analysis.bags.reader import SchemaVersionError
from sar_analysis.bags.textfiles import read_text
from sar_analysis.metrics.records import FIRST_NOTE, parse_record
from sar_analysis.results.summary import summary_of
from sar_analysis.table import analyze
from sar_core.errors import InputError
from tests.unit.sar_analysis.recordmaker import record

PUBLISHED = Path(__file__).parents[4] / "results" / "episodes.jsonl.zst"


@pytest.fixture(scope="module")
def old() -> str:
    """A published record of schema 1 in which something was found and something was a false alarm."""
    lines = (line for line in read_text(PUBLISHED).splitlines() if line.strip())
    return next(line for line in lines if '"detections": 2' in line and '"false_alarm_events": [{' in line)


def test_a_record_of_schema_1_is_read_by_its_own_names_and_what_it_lacks_is_none(old: str) -> None:
    told, read = json.loads(old)["result"], parse_record(old, "old")
    assert read.schema == 1 and FIRST_NOTE in read.notes
    assert (read.detections, read.false_alarms) == (told["detections"], told["false_alarms"])
    assert [v.error_m for v in read.victims] == [v["error_m"] for v in told["victims"]]
    assert (read.issues, read.displaced, read.gdop, read.adr149, read.conduct) == (None,) * 5
    assert read.decoys == () and all(v.settled_s is None and v.fixes == () for v in read.victims)
    figures = summary_of([read]).estimates
    assert "victims_found" in figures
    assert not {"displaced_issues", "exposed_missions_with_false_alarm", "victims_settled", "ppv"} & set(figures)


def test_a_table_of_both_schemas_is_refused_with_both_named(old: str, tmp_path: Path) -> None:
    (tmp_path / "mixed.jsonl").write_text(f"{old}\n{record()}\n")
    with pytest.raises(InputError, match=r"mixed\.jsonl:1.*mixed\.jsonl:2.*apart"):
        analyze(tmp_path / "mixed.jsonl")
    for line in (old, record()):
        (tmp_path / "one.jsonl").write_text(f"{line}\n")
        assert len(analyze(tmp_path / "one.jsonl").episodes) == 1


def test_a_schema_that_is_not_known_is_refused() -> None:
    line = json.dumps({**json.loads(record()), "schema_version": 3})
    with pytest.raises(SchemaVersionError, match="schema_version is 3; this analysis reads 1 and 2"):
        parse_record(line, "here")
