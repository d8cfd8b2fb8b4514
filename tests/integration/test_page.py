"""The report's page in a real chromium, from disk, with no network: it loads, it fits, and it shows what happened."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

from sar_analysis.render.page import render
from sar_analysis.render.replaydata import Replay, make_replay, pack
from sar_analysis.results.document import build_results
from sar_analysis.results.model import Document
from sar_analysis.table import analyze
from sar_eval.episode.flight import fly_episode
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare
from tests.integration.browser import MISSING, Browser, find_chromium
from tests.integration.pagemaker import multiplied
from tests.unit.sar_analysis.bagmaker import Made, report, straight

pytestmark = pytest.mark.skipif(find_chromium() is None, reason=MISSING)

COUNT = 150
LIMIT_BYTES = 15_000_000
VERMILLION = (0xD5, 0x5E, 0x00)
LIT = """(() => {
    const c = document.getElementById("scanned");
    const data = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
    return data.filter((v, k) => k % 4 === 3 && v > 0).length / (c.width * c.height);
})()"""
"""The share of the scanned layer's pixels that are painted."""


@pytest.fixture(scope="module")
def flown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Document, list[Replay]]:
    """A whole mission (with a false alarm), one in which a drone falls, and one made by hand: a decoy issued."""
    runs = tmp_path_factory.mktemp("page") / "runs"
    whole = Scenario(world="village", drones=4, victims=2, decoys=6)
    fly_episode(prepare(whole, 12, 12), runs / "whole")
    fault = {"kind": "drone_lost", "drone": 2, "begin_s": 4.0}
    fly_episode(prepare(Scenario(world="village", drones=3, duration_s=15.0, faults=[fault]), 3, 1), runs / "crash")
    path = straight(20.0, np.array([[20.0, 20.0, 30.0]]), np.array([[2.0, 1.0, 0.0]]))
    alarm = [report(t, 60.0, 60.0, p, address=9) for t, p in ((8.0, 0.3), (12.0, 0.95))]
    devices = [(7, 0, (20.0, 60.0, 0.5)), (9, 2, (62.0, 60.0, 0.5))]
    Made(path, 2.0, 18.0, devices=devices, reports=alarm).write(runs / "alarm")
    table = analyze(runs, workers=1)
    results = build_results(table, resamples=200)
    keys = {e.episode_id: table.bags[e.key] for e in table.episodes}
    return results, [make_replay(keys[row.episode_id]) for row in results.result.episodes]


@pytest.fixture(scope="module")
def page(flown: tuple[Document, list[Replay]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(render(*multiplied(*flown, COUNT)), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture
def browser(chromium: Browser, page: Path) -> Iterator[Browser]:
    """The page freshly loaded; whatever the console said in a test fails that test."""
    chromium.size(1280, 900)
    chromium.complaints.clear()
    chromium.requests.clear()
    chromium.open(page)
    yield chromium
    assert chromium.complaints == []
    assert {url.partition("#")[0] for url in chromium.requests} <= {"about:blank", page.as_uri()}


def pick(browser: Browser, show: str, kind: str, name: str = "") -> str:
    """Filter the table, open the first row that is left, jump to the first event of a kind; its text."""
    browser.run(f"document.querySelector('input[name=text]').value = '{name}'")
    browser.run(f"document.querySelector('input[value={show}]').click()")
    browser.run("document.querySelector('#episode-table tbody tr:not([hidden]) a').click()")
    browser.wait("player.replay !== null")
    text = browser.run(f"document.querySelector('#events button[data-kind={kind}]')?.textContent ?? ''")
    assert text, f"no {kind} among the events"
    browser.run(f"document.querySelector('#events button[data-kind={kind}]').click()")
    return str(text)


def painted(browser: Browser, selector: str, colour: tuple[int, int, int], folder: Path) -> int:
    """How many pixels of an element have a colour."""
    image = matplotlib.image.imread(browser.screenshot(folder / "shot.png", selector))[..., :3]
    return int((np.abs(image * 255 - np.array(colour)) < 3).all(axis=-1).sum())


def test_150_episodes_load_without_a_complaint_and_stay_small(
    browser: Browser, page: Path, flown: tuple[Document, list[Replay]]
) -> None:
    assert page.stat().st_size < LIMIT_BYTES
    assert max(len(pack(replay.data)) * 3 // 4 for replay in flown[1]) < 40_000
    assert browser.run("document.querySelectorAll('#episode-table tbody tr').length") == COUNT
    assert browser.run("document.querySelectorAll('script[data-replay]').length") == COUNT
    assert browser.run("document.getElementById('shown').textContent") == f"{COUNT} of {COUNT} shown"
    assert browser.run("document.querySelectorAll('#summary tbody tr').length") > 5
    assert "Stage 2 (embedded)" in browser.run("document.querySelector('h1').textContent")


def test_a_collision_picked_from_the_table_is_shown(browser: Browser, tmp_path: Path) -> None:
    text = pick(browser, "collisions", "collision")
    assert "drone 2" in text and "ground" in text
    assert browser.run("document.querySelectorAll('#touch-layer .touch.collision').length") == 2
    facts = browser.run("document.getElementById('facts').textContent")
    assert "collisions so far1" in facts
    there = browser.run("(() => { const e = player.replay.events[0]; return [e.uav, e.begin, player.t]; })()")
    assert there[0] == 2 and there[1] == there[2]
    shown = painted(browser, "#map", VERMILLION, tmp_path)
    browser.run("jump(0)")
    assert browser.run("document.querySelectorAll('#touch-layer .touch').length") == 0
    assert shown > painted(browser, "#map", VERMILLION, tmp_path) + 50
    assert browser.run("document.querySelectorAll('#map .obstacle').length") > 100
    assert browser.run("document.querySelectorAll('#map .drone').length") == 3


def test_a_false_alarm_picked_from_the_table_is_shown(browser: Browser, tmp_path: Path) -> None:
    text = pick(browser, "alarms", "decoy", "made")
    assert text.startswith("12.0 s") and "confidence 0.950" in text
    assert browser.run("document.querySelectorAll('#report-layer .report.wrong').length") == 1
    assert "decoy alarms so far1" in browser.run("document.getElementById('facts').textContent")
    assert painted(browser, "#map", VERMILLION, tmp_path) > 50
    browser.run("jump(80)")
    assert browser.run("document.querySelectorAll('#report-layer .report.wrong').length") == 0
    assert browser.run("document.querySelectorAll('#report-layer .report.unsure').length") == 1
    assert "The map is missing" in browser.run("document.getElementById('replay-message').textContent")


def test_a_false_alarm_that_was_flown_is_shown(browser: Browser, flown: tuple[Document, list[Replay]]) -> None:
    row = max(flown[0].result.episodes, key=lambda r: r.figure("coverage_240s"))
    assert row.figure("false_alarms"), f"{row.episode_id} raised no decoy alarm: give `flown` a mission that does"
    text = pick(browser, "alarms", "decoy", row.episode_id)
    assert "decoy alarm: drone" in text
    assert browser.run("document.querySelectorAll('#report-layer .report.wrong').length") >= 1
    assert browser.run("document.querySelectorAll('#touch-layer .touch.decoy').length") == 1
    assert browser.run("document.querySelectorAll('#map .obstacle').length") > 100


def test_the_replay_flies_what_the_bag_holds(
    browser: Browser, flown: tuple[Document, list[Replay]], tmp_path: Path
) -> None:
    """Drones stand where the data has them, scanned cells add up to the coverage, gates are those of the moment."""
    results, replays = flown
    row = max(results.result.episodes, key=lambda r: r.figure("coverage_240s"))
    assert row.figure("detections")
    replay = next(r for r in replays if r.data["episode_id"] == row.episode_id)
    browser.run(f"document.querySelector('a[data-open={json.dumps(row.episode_id)}]').click()")
    browser.wait("player.replay !== null")
    browser.run("jump(player.replay.end)")
    told = browser.run("document.querySelector('#facts td').textContent")
    assert float(told.split()[0]) == pytest.approx(100 * row.figure("coverage_240s"), abs=0.5)
    assert f"victims found{row.figure('detections')}" in browser.run("document.getElementById('facts').textContent")
    x = np.cumsum(replay.data["tracks"][0]["x"])[200] / 10
    browser.run("jump(1000)")
    box = browser.run("document.getElementById('map').viewBox.baseVal.width")
    at = browser.run("document.querySelector('.drone').transform.baseVal[0].matrix.e")
    fence = [corner[0] for corner in (replay.scene or {})["fence"]]
    assert box == pytest.approx(max(fence) - min(fence) + 16)
    assert at == pytest.approx(x - min(fence) + 8, abs=0.1)
    share = browser.run(LIT)
    assert share == pytest.approx(browser.run("coverageAt(player.replay, player.t)"), abs=1e-9) and 0.2 < share < 0.9
    assert browser.run("document.querySelectorAll('#gates tbody tr').length") == 4
    assert set(
        browser.run("[...document.querySelectorAll('#gates tbody span')].map((s) => s.textContent).join('')")
    ) & set("AP")
    assert browser.run("document.querySelectorAll('#link-layer path').length") > 0


def test_keys_move_the_time_and_the_address_names_it(browser: Browser, page: Path) -> None:
    name = browser.run("document.querySelector('#episode-table a[data-open*=lawnmower]').dataset.open")
    browser.open(page, f"#episode={name}&t=5")
    browser.wait("player.replay !== null")
    assert browser.run("player.t") == 50
    browser.press("ArrowRight")
    browser.press("ArrowRight", shift=True)
    assert browser.run("player.t") == 160
    browser.press("ArrowLeft")
    assert browser.run("[player.t, document.getElementById('time').value, location.hash]") == [
        150,
        "150",
        f"#episode={name}&t=15",
    ]
    assert "15.0 seconds" in browser.run("document.getElementById('spoken').textContent")
    browser.press("n")
    first = browser.run("player.t")
    assert first == browser.run("player.replay.moments.find((m) => m.t > 150).t")
    browser.press(" ")
    browser.wait(f"player.playing && player.t > {first}")
    browser.press(" ")
    assert not browser.run("player.playing")
    browser.press("Escape")
    assert browser.run("document.getElementById('replay').hidden")


def test_an_unknown_link_is_said(browser: Browser, page: Path) -> None:
    browser.open(page, "#episode=nowhere&t=3")
    told = browser.wait("document.getElementById('replay-message').textContent")
    assert told == "There is no replay of nowhere in this page."


def test_headings_sort(browser: Browser) -> None:
    values = "[...document.querySelectorAll('#episode-table tbody tr')].map((r) => Number(r.cells[6].dataset.value))"
    browser.run("document.querySelector('button[data-sort=collisions]').click()")
    assert browser.run(values) == sorted(browser.run(values))
    browser.run("document.querySelector('button[data-sort=collisions]').click()")
    assert browser.run(values) == sorted(browser.run(values), reverse=True) and browser.run(values)[0] > 0


@pytest.mark.parametrize("fragment", ["", "#replay"])
def test_a_phone_needs_no_sideways_scroll(browser: Browser, page: Path, fragment: str) -> None:
    browser.size(360, 740, mobile=True)
    name = browser.run("document.querySelector('#episode-table a[data-open*=lawnmower]').dataset.open")
    browser.open(page, f"#episode={name}&t=30" if fragment else "")
    if fragment:
        browser.wait("player.replay !== null")
    assert browser.run("[document.documentElement.scrollWidth, innerWidth]") == [360, 360]


def test_print_holds_every_row_and_no_replay(browser: Browser) -> None:
    pick(browser, "collisions", "collision")
    browser.call("Emulation.setEmulatedMedia", media="print")
    try:
        gone, rows = browser.run(
            "[getComputedStyle(document.getElementById('replay')).display,"
            " [...document.querySelectorAll('#episode-table tbody tr')].filter((r) => r.offsetHeight > 0).length]"
        )
        assert gone == "none" and rows == COUNT
        data = browser.pdf()
    finally:
        browser.call("Emulation.setEmulatedMedia", media="")
    assert browser.run("[...document.querySelectorAll('details')].every((d) => d.open)")
    assert data.startswith(b"%PDF-") and data.count(b"/Type /Page\n") + data.count(b"/Type/Page\n") > 2
