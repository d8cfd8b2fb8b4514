"""The report's folder: all of it or nothing, never over foreign files, and honest about what is left out."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from sar_analysis.render import report
from sar_analysis.render.figures import FIGURES
from sar_analysis.render.report import TEXTS, default_place, write_report
from sar_analysis.results.model import Document, ResultBody, results_schema
from sar_core.errors import InputError, MissingDependencyError
from tests.unit.sar_analysis.campaigns import campaign


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return campaign(tmp_path_factory.mktemp("runs"))


def stand_in(monkeypatch: pytest.MonkeyPatch, draw: Any = None) -> None:
    """Figures and page that leave a file each, so that the folder's handling can be seen alone."""

    def draw_figures(result: ResultBody, folder: Path) -> list[Path]:
        folder.mkdir()
        (folder / "coverage.png").write_text(result.title)
        return [folder / "coverage.png"]

    def write_page(document: Document, table: Any, bags: Any, out: Path) -> Path:
        out.write_text(document.result.title)
        return out

    monkeypatch.setattr(report, "draw_figures", draw or draw_figures)
    monkeypatch.setattr(report, "write_page", write_page)


def test_everything_is_written_and_an_earlier_report_replaced(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch)
    out = tmp_path / "out"
    made = write_report(runs, out, resamples=200)
    assert set(made.files) == {*TEXTS, "report.html", "figures/coverage.png"}
    assert len(made.left_out) == len(FIGURES) - 1
    assert "figure gdop: no victim was detected" in made.left_out
    jsonschema.Draft202012Validator(results_schema()).validate(json.loads((out / "results.json").read_text()))
    (out / "figures" / "old.svg").write_text("an earlier figure")
    before = (out / "RESULTS.md").read_text()
    write_report(runs, out, resamples=200)
    assert not (out / "figures" / "old.svg").exists()
    assert (out / "RESULTS.md").read_text() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out"]


def test_foreign_files_are_never_touched(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch)
    out = tmp_path / "out"
    write_report(runs, out, resamples=200)
    (out / "figures" / "thesis.docx").write_text("mine")
    with pytest.raises(InputError, match=r"out: holds figures/thesis\.docx, which is no part of a report"):
        write_report(runs, out, resamples=200)
    assert (out / "figures" / "thesis.docx").read_text() == "mine"
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(InputError, match="exists and is not a folder"):
        write_report(runs, file, resamples=200)
    assert file.read_text() == "mine"


def test_a_failure_half_way_leaves_the_earlier_report(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch)
    out = tmp_path / "out"
    write_report(runs, out, resamples=200)

    def fails(result: ResultBody, folder: Path) -> None:
        raise RuntimeError("disk full")

    stand_in(monkeypatch, fails)
    with pytest.raises(RuntimeError, match="disk full"):
        write_report(runs, out, resamples=200)
    assert (out / "report.html").exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out"]


def test_without_matplotlib_the_texts_stand_and_the_lack_is_said(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(result: ResultBody, folder: Path) -> None:
        folder.mkdir()
        raise MissingDependencyError("matplotlib is missing")

    stand_in(monkeypatch, fails)
    made = write_report(runs, tmp_path / "out", resamples=200)
    assert made.left_out == ("figures: matplotlib is missing",)
    assert set(made.files) == {*TEXTS, "report.html"}


def test_nothing_is_read_when_it_could_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "analyze", lambda *_: pytest.fail("read before checking"))
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"notes\.txt"):
        write_report(tmp_path, tmp_path)
    with pytest.raises(InputError, match="resamples"):
        write_report(tmp_path, tmp_path / "out", resamples=1)


def test_csv_and_latex_hold_what_the_document_holds(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch)
    out = write_report(runs, tmp_path / "out", resamples=200).out
    document = json.loads((out / "results.json").read_text())
    with open(out / "episodes.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["condition"] for row in rows] == [e["condition"] for e in document["result"]["episodes"]]
    with open(out / "victims.csv", newline="") as stream:
        assert len(list(csv.DictReader(stream))) == 4
    with open(out / "summary.csv", newline="") as stream:
        figures = list(csv.DictReader(stream))
    told = document["result"]["conditions"][0]
    mine = [f for f in figures if f["condition"] == "c01"]
    means = sum(time["restricted_mean"] is not None for time in told["times"])
    assert len(mine) == means + sum(len(told[key]) for key in ("estimates", "not_computed", "scores", "times"))
    assert all(f["value"] or f["note"] for f in mine), "a figure without value says why"
    tex = (out / "results.tex").read_text()
    assert tex.count(r"\begin{table}") == tex.count(r"\bottomrule") == tex.count(r"\end{table}") >= 9
    assert "Stage 2 (embedded)" in tex
    assert not set("σκ·∞²³°") & set(tex)


def test_default_places(runs: Path, tmp_path: Path) -> None:
    assert default_place(runs) == runs / "report"
    bag = next(runs.iterdir())
    assert default_place(bag) == runs / f"{bag.name}-report"
    (tmp_path / "r.jsonl").write_text("")
    assert default_place(tmp_path / "r.jsonl") == tmp_path / "r-report"


def test_a_report_of_the_folder_one_stands_in(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names lose the folder they lie in, and nothing else: dots stay where they are."""
    stand_in(monkeypatch)
    (runs / "broken").mkdir(exist_ok=True)
    (runs / "broken" / "broken.mcap").write_bytes(b"no bag")
    monkeypatch.chdir(runs)
    told = write_report(Path("."), tmp_path / "out", resamples=200).document.result.warnings
    shutil.rmtree(runs / "broken")
    assert [text for text in told if text.startswith("unreadable: broken: metadata.yaml is missing")]
    assert not any(str(runs) in text for text in told)
    assert default_place(Path(".")) == runs.resolve() / "report"
