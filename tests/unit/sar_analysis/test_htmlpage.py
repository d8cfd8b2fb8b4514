"""The page as text: everything from data is escaped, rows find their bags, and what is missing is said."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

from sar_analysis.render.graphs import _levels, envelope
from sar_analysis.render.page import link_names, match_rows, render, write_page
from sar_analysis.render.panels import comparisons, number
from sar_analysis.render.replaydata import Replay
from sar_analysis.results.document import build_results, read_results
from sar_analysis.results.model import Document
from sar_analysis.table import Table, analyze
from tests.unit.sar_analysis.bagmaker import Made, report, straight
from tests.unit.sar_analysis.documents import result

DOCS = Path(__file__).parents[3] / "docs" / "replay.md"
EVIL = "<script>alert(1)</script>\"'&"


class Reader(HTMLParser):
    """Elements opened, ids, and the text of the page outside scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.scripts = 0
        self.text = ""
        self._inside: list[str] = []
        self.feed(page)

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(name)
        self.ids += [value for key, value in attributes if key == "id" and value]
        self._inside.append(name)
        assert not any(key.startswith("on") for key, _ in attributes), (name, attributes)

    def handle_endtag(self, name: str) -> None:
        self._inside.append("/" + name)

    def handle_data(self, text: str) -> None:
        if self._inside[-1:] not in (["script"], ["style"]):
            self.text += text


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Two noise levels of one episode, with the same id, and one that was interrupted."""
    runs = tmp_path_factory.mktemp("runs")
    path = straight(6.0, np.array([[2.5, 52.5, 30.0]]), np.array([[8.0, 0.0, 0.0]]))
    for k, status in enumerate(({}, {}, {"valid": False, "invalid_reason": EVIL})):
        more = {"info": {"config_sha256": f"c{k}"}, "config": {"sigma": 0.1 * k}, "status": status}
        reports = [report(3.0, 21.0 + k, 50.0, 0.9)]
        Made(path, 1.0, 5.0, devices=[(7, 0, (20.0, 50.0, 0.5))], reports=reports, **more).write(runs / str(k))
    return analyze(runs, workers=1)


@pytest.fixture(scope="module")
def results(table: Table) -> Document:
    return build_results(table, resamples=200)


def test_nothing_from_data_becomes_markup(results: Document, table: Table) -> None:
    """Every text of the document made hostile: the page opens the same elements as with harmless ones."""
    harmless, hostile = (_with_text(results, text) for text in ("harmless", EVIL))
    none = [None] * len(table.episodes)
    good, bad = Reader(render(harmless, none)), Reader(render(hostile, none))
    assert bad.tags == good.tags
    assert bad.tags.count("script") == 1
    assert EVIL in bad.text


def _with_text(value: Any, text: str) -> Any:
    keep = ("metric", "method", "design", "name")
    if isinstance(value, BaseModel):
        return value.model_copy(update={k: v if k in keep else _with_text(v, text) for k, v in value})
    if isinstance(value, dict):
        return {k: v if k in keep else _with_text(v, text) for k, v in value.items()}
    if isinstance(value, list):
        return [_with_text(v, text) for v in value]
    return text if isinstance(value, str) else value


def test_the_page_asks_for_nothing(results: Document, table: Table, tmp_path: Path) -> None:
    page = write_page(results, table, table.bags, tmp_path / "page.html").read_text(encoding="utf-8")
    assert not re.findall(r"(?:src|href)=\"(?!#|data:)[^\"]*\"", page)
    assert "@import" not in page and "url(" not in page
    assert "default-src 'none'" in page
    found = Reader(page)
    assert len(found.ids) == len(set(found.ids))
    assert page.count("data-replay=") == 3


def test_rows_with_one_id_find_their_own_bags(results: Document, table: Table) -> None:
    rows = results.result.episodes
    assert {row.episode_id for row in rows} == {"made"}
    found = match_rows(rows, table.episodes[::-1])
    assert [e.localization_error_m for e in found if e] == [row.figure("localization_error_m") for row in rows]
    assert len({e.key for e in found if e}) == 3
    assert match_rows(rows, [replace(table.episodes[0], episode_id="other")]) == [None] * 3
    names = link_names(rows)
    assert names[0] == "made" and len(set(names)) == 3


def test_a_table_of_records_has_no_replays_and_says_so(results: Document, table: Table, tmp_path: Path) -> None:
    page = write_page(results, table, {}, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "data-replay=" not in page.partition("<script>")[0]
    assert Reader(page).text.count("no bag") == 3


def test_the_printed_example_writes_a_page(table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "runs").symlink_to(next(iter(table.bags.values())).parent)
    monkeypatch.chdir(tmp_path)
    exec(example, {})
    assert (tmp_path / "report.html").read_text(encoding="utf-8").count("data-replay=") == 3


def test_a_bag_that_went_away_is_named(results: Document, table: Table, tmp_path: Path) -> None:
    gone = dict.fromkeys(table.bags, tmp_path / "gone")
    text = Reader(write_page(results, table, gone, tmp_path / "page.html").read_text(encoding="utf-8")).text
    assert "Replays that cannot be shown: made: gone: no such bag" in text


def test_two_maps_of_one_world_are_named(results: Document, table: Table) -> None:
    plain = {"name": "field", "sha256": "ab" * 32, "obstacles": [], "names": [], "fence": [], "area_m": [0, 0, 1, 1]}
    data = {"episode_id": "made", "scene": "one"}
    replays = [Replay(data, plain), Replay({**data, "scene": "two"}, plain), Replay({**data, "scene": None}, None)]
    assert "2 different maps are all called field abababababab." in Reader(render(results, replays)).text
    assert "different maps" not in Reader(render(results, [replays[0], replays[0], None])).text


def test_an_invalid_episode_stands_in_the_table_with_its_reason(results: Document, table: Table) -> None:
    text = Reader(render(results, [None] * 3)).text
    assert f"INVALID: {EVIL}" in text and "2 valid and 1 INVALID missions" in text


def test_what_was_not_flown_is_said() -> None:
    drawn = {"method": "none", "cluster": None, "resamples": None, "seed": None, "notes": []}
    absent = {"missions": 0, **drawn, **{k: [] for k in ("time_s", "mean", "mean_low", "mean_high", "low", "high")}}
    nobody = {"tau_m": [], "share": [], "low": [], "high": [], "victims": 0, **drawn}
    given = result(1) | {"noise_envelope": []}
    given["reliability"]["bins"] = []
    given["conditions"][0] |= {"gdop_bands": [], "coverage_curve": absent, "profile": nobody}
    host = {**dict.fromkeys(("command", "sar_eval", "python", "numpy", "scipy", "platform"), "x"), "cpus": 1}
    document = {"schema_version": 1, "result": given, "run": host | {"campaign": None}}
    text = Reader(render(read_results(json.dumps(document)), [None])).text
    for said in (
        "No victim was issued",
        "no noise levels",
        "no performance profile",
        "no reliability curve",
        "No mission has a coverage curve",
        "nothing to compare",
        "No oracle's returns",
        "not held against a pre-registration",
        "There are no warnings",
    ):
        assert said in text, said


def test_a_noise_table_holds_one_condition_apart_from_noise_and_each_figures_own_n(table: Table) -> None:
    quiet, loud = (e for e in table.episodes if e.valid)
    other = {**quiet.configuration, "gate": "forced_open"}
    flown = [quiet, loud, replace(quiet, configuration=other), replace(quiet, drones=9), replace(loud, tier="sih")]
    flown += [replace(quiet, seed=2, victims=(), detections=0)]
    result = build_results(Table(tuple(flown), ()), resamples=200).result
    drawn = _levels(result)
    assert [len(rows) for _, rows in drawn] == [2, 1, 1, 1]
    assert "9 drones" in drawn[2][0] and "gate forced_open" in drawn[1][0] and drawn[3][0].startswith("sih")
    found = {row.condition: row.figure("cep50_m") for row in result.noise_envelope}
    assert found["c01"] is not None and found["c01"].n == 1 < result.noise_envelope[0].missions
    shown = Reader(envelope(result)).text
    assert re.search(r"1\.00 m.{0,40}n 1(?!\d)", shown) and shown.count("n 2") == 1, "only false alarms rest on two"


def test_every_table_counts_invalid_missions_and_a_comparison_gives_the_chance_to_be_better(table: Table) -> None:
    flown = []
    for pattern in ("spiral", "levy_flight"):
        for seed in (1, 2):
            quiet = next(e for e in table.episodes if e.valid)
            flown.append(replace(quiet, pattern=pattern, seed=seed, coverage_240s=0.1 * seed + 0.01 * len(pattern)))
            flown.append(replace(flown[-1], episode=99, valid=False, invalid_reason="cut"))
    document = build_results(Table(tuple(flown), ()), resamples=200)
    captions = re.findall(r"<caption>(.*?)</caption>", render(document, [None] * len(flown)))
    for title in ("Interquartile means", "Issued victims by GDOP band", "Paired by seed", "Reports by confidence"):
        assert any(c.startswith(title) and c.endswith("4 valid missions, 4 INVALID") for c in captions), title
    heats = [c for c in captions if c.startswith(("missions with a victim found: ", "CEP50 at issue: "))]
    assert len(heats) == 4 and all(c.endswith(": 2 valid missions, 2 INVALID") for c in heats)
    shown = Reader(comparisons(document.result)).text
    assert "P(first better)" in shown and "0.0 % [0.0, 0.0]" in shown, "levy_flight covers more in every pair"


def test_numbers_as_people_read_them() -> None:
    assert number("coverage_240s", 0.98765) == "98.8 %"
    assert number("cep50_m", 4.184) == "4.18 m"
    assert number("cep50_m", None) == "undefined"
    assert number("collisions_per_hour", 0.01234) == "0.0123"
