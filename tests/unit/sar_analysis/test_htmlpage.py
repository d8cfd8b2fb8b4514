"""The page as text: everything from data is escaped, rows find their bags, and what is missing is said."""

from __future__ import annotations

import copy
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sar_analysis.render.charts import Axis, ChartCurve, curve_panel, interval_bar
from sar_analysis.render.graphs import _levels, envelope
from sar_analysis.render.markup import join, tag
from sar_analysis.render.page import link_names, match_rows, render, write_page
from sar_analysis.render.panels import comparisons, number
from sar_analysis.render.replaydata import Replay
from sar_analysis.results.document import build_results
from sar_analysis.table import Table, analyze
from tests.unit.sar_analysis.bagmaker import Made, report, straight

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
def results(table: Table) -> dict[str, Any]:
    return build_results(table, resamples=200)


def test_nothing_from_data_becomes_markup(results: dict[str, Any], table: Table) -> None:
    """Every text of the document made hostile: the page opens the same elements as with harmless ones."""
    harmless, hostile = (_with_text(copy.deepcopy(results), text) for text in ("harmless", EVIL))
    none = [None] * len(table.episodes)
    good, bad = Reader(render(harmless, none)), Reader(render(hostile, none))
    assert bad.tags == good.tags
    assert bad.tags.count("script") == 1
    assert EVIL in bad.text


def _with_text(value: Any, text: str) -> Any:
    keep = ("metric", "method", "design", "name")
    if isinstance(value, dict):
        return {k: v if k in keep else _with_text(v, text) for k, v in value.items()}
    if isinstance(value, list):
        return [_with_text(v, text) for v in value]
    return text if isinstance(value, str) else value


def test_the_page_asks_for_nothing(results: dict[str, Any], table: Table, tmp_path: Path) -> None:
    page = write_page(results, table, table.bags, tmp_path / "page.html").read_text(encoding="utf-8")
    assert not re.findall(r"(?:src|href)=\"(?!#|data:)[^\"]*\"", page)
    assert "@import" not in page and "url(" not in page
    assert "default-src 'none'" in page
    found = Reader(page)
    assert len(found.ids) == len(set(found.ids))
    assert page.count("data-replay=") == 3


def test_rows_with_one_id_find_their_own_bags(results: dict[str, Any], table: Table) -> None:
    rows = results["result"]["episodes"]
    assert {row["episode_id"] for row in rows} == {"made"}
    found = match_rows(rows, table.episodes[::-1])
    assert [e.localization_error_m for e in found if e] == [row["localization_error_m"] for row in rows]
    assert len({e.key for e in found if e}) == 3
    assert match_rows(rows, [replace(table.episodes[0], episode_id="other")]) == [None] * 3
    names = link_names(rows)
    assert names[0] == "made" and len(set(names)) == 3


def test_a_table_of_records_has_no_replays_and_says_so(results: dict[str, Any], table: Table, tmp_path: Path) -> None:
    page = write_page(results, table, {}, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "data-replay=" not in page.partition("<script>")[0]
    assert Reader(page).text.count("no bag") == 3


def test_the_printed_example_writes_a_page(table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "runs").symlink_to(next(iter(table.bags.values())).parent)
    monkeypatch.chdir(tmp_path)
    exec(example, {})
    assert (tmp_path / "report.html").read_text(encoding="utf-8").count("data-replay=") == 3


def test_a_bag_that_went_away_is_named(results: dict[str, Any], table: Table, tmp_path: Path) -> None:
    gone = dict.fromkeys(table.bags, tmp_path / "gone")
    text = Reader(write_page(results, table, gone, tmp_path / "page.html").read_text(encoding="utf-8")).text
    assert "Replays that cannot be shown: made: gone: no such bag" in text


def test_two_maps_of_one_world_are_named(results: dict[str, Any], table: Table) -> None:
    plain = {"name": "field", "sha256": "ab" * 32, "obstacles": [], "names": [], "fence": [], "area_m": [0, 0, 1, 1]}
    data = {"episode_id": "made", "scene": "one"}
    replays = [Replay(data, plain), Replay({**data, "scene": "two"}, plain), Replay({**data, "scene": None}, None)]
    assert "2 different maps are all called field abababababab." in Reader(render(results, replays)).text
    assert "different maps" not in Reader(render(results, [replays[0], replays[0], None])).text


def test_an_invalid_episode_stands_in_the_table_with_its_reason(results: dict[str, Any], table: Table) -> None:
    text = Reader(render(results, [None] * 3)).text
    assert f"INVALID: {EVIL}" in text and "2 valid and 1 INVALID missions" in text


def test_an_empty_document_says_what_is_missing() -> None:
    text = Reader(render({"result": {"title": "Stage 2 (embedded)"}}, [])).text
    for said in (
        "no summary over all missions",
        "no conditions",
        "no rows per seed",
        "No victim was detected",
        "no noise levels",
        "no performance profile",
        "no reliability curve",
        "No mission has a coverage curve",
        "nothing to compare",
        "No oracle's returns",
        "not held against a pre-registration",
        "There are no warnings",
        "There is no card",
        "lists no episodes",
    ):
        assert said in text, said


@pytest.mark.parametrize(
    "key", ["headlines", "conditions", "seeds", "noise_envelope", "reliability", "optimality", "card", "episodes"]
)
def test_any_one_section_may_be_missing(results: dict[str, Any], key: str) -> None:
    less = {**results, "result": {k: v for k, v in results["result"].items() if k != key}}
    render(less, [None] * (0 if key == "episodes" else 3))


def test_a_noise_table_holds_one_condition_apart_from_noise_and_each_figures_own_n(table: Table) -> None:
    quiet, loud = (e for e in table.episodes if e.valid)
    other = {**quiet.configuration, "gate": "forced_open"}
    flown = [quiet, loud, replace(quiet, configuration=other), replace(quiet, drones=9), replace(loud, tier="sih")]
    flown += [replace(quiet, seed=2, victims=(), detections=0)]
    result = build_results(Table(tuple(flown), ()), resamples=200)["result"]
    drawn = _levels(result, result["noise_envelope"])
    assert [len(rows) for _, rows in drawn] == [2, 1, 1, 1]
    assert "9 drones" in drawn[2][0] and "gate forced_open" in drawn[1][0] and drawn[3][0].startswith("sih")
    found = {r["condition"]: r["cep50_m"]["n"] for r in result["noise_envelope"]}
    assert found["c01"] == 1 < result["noise_envelope"][0]["missions"]
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
    for title in ("Interquartile means", "Detections by GDOP", "Paired by seed", "Reports by confidence"):
        assert any(c.startswith(title) and c.endswith("4 valid missions, 4 INVALID") for c in captions), title
    heats = [c for c in captions if c.startswith(("missions with a detection: ", "CEP50 at first report: "))]
    assert len(heats) == 4 and all(c.endswith(": 2 valid missions, 2 INVALID") for c in heats)
    shown = Reader(comparisons(document["result"])).text
    assert "P(first better)" in shown and "0.0 % [0.0, 0.0]" in shown, "levy_flight covers more in every pair"


def test_numbers_as_people_read_them() -> None:
    assert number("coverage_240s", 0.98765) == "98.8 %"
    assert number("cep50_m", 4.184) == "4.18 m"
    assert number("cep50_m", None) == "undefined"
    assert number("collisions_per_hour", 0.01234) == "0.0123"


def test_an_open_end_is_drawn_to_the_border_and_marked() -> None:
    axis = Axis("m", 0.0, 20.0, (0.0, 20.0))
    bar = interval_bar(5.0, 4.0, None, axis)
    assert 'class="span endless"' in bar and 'x1="20.0" x2="100.0"' in bar
    assert "endless" not in interval_bar(5.0, 4.0, 6.0, axis)
    panel = curve_panel(ChartCurve([0, 1], [0, 1], [None, 0.5], [None, 1.0]), [], axis, axis, EVIL)
    assert "<script>" not in panel and "NaN" not in panel


def test_markup_escapes_text_and_attributes() -> None:
    assert tag("p", "<b>&\"'", title="<b>&\"'") == '<p title="&lt;b&gt;&amp;&quot;&#x27;">&lt;b&gt;&amp;"\'</p>'
    assert join(tag("b", 1), None, ["<", 2.5]) == "<b>1</b>&lt;2.5"
    assert tag("input", checked=True, disabled=False, name=None) == "<input checked>"
