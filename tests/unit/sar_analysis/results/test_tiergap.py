"""Tiers compared from bags: tracking against what was flown, differences over layouts, and what cannot be paired."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sar_analysis.bags.reader import read_bag
from sar_analysis.metrics.metrics import search_span
from sar_analysis.metrics.records import of_result
from sar_analysis.render.stagetables import tier_gap_markdown
from sar_analysis.results.tiergap import TierMission, _difference, compare, missions_in, tracking
from sar_analysis.stats.layouts import DEFAULT
from sar_core.errors import ContractError, MissingDataError
from sar_eval.episode.flight import Flight, fly_episode
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare
from sar_swarm.piloting.controller import Order
from tests.unit.sar_analysis.recordmaker import result

EPISODES = 3


def scenario(speed_mps: float) -> Scenario:
    return Scenario(world="open_field", drones=2, duration_s=20.0, altitude_m=15.0, radio=None, speed_mps=speed_mps)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same missions at two speeds: stands in for two tiers, whose difference nobody knows beforehand."""
    made = []
    for speed in (8.0, 5.0):
        folder = tmp_path_factory.mktemp("tier")
        for index in range(EPISODES):
            fly_episode(prepare(scenario(speed), 1, index), folder / str(index))
        made.append(folder)
    return made[0], made[1]


def test_tracking_is_command_against_truth_one_tick_later(folders: tuple[Path, Path]) -> None:
    """Counted again in the flight itself, tick by tick."""
    flight = Flight(prepare(scenario(8.0), 1, 0), None)
    speeds, heights, places = [], [], []
    while not flight.score.done:
        before, searching = flight.swarm.commands, flight.score.orders.order is Order.SEARCH
        flight.advance()
        if searching:
            for command, velocity, place in zip(
                before, flight.score.state.velocity, flight.score.state.position, strict=True
            ):
                speeds.append(np.hypot(*(command.velocity[:2] - velocity[:2])))
                heights.append(command.position[2] - place[2])
            places += list(flight.score.state.est_position - flight.score.state.position)
    found = tracking(read_bag(folders[0] / "0"))
    assert found is not None
    assert found.velocity_mps == pytest.approx(float(np.sqrt(np.nanmean(np.square(speeds)))), rel=0.02)
    assert found.altitude_m == pytest.approx(float(np.sqrt(np.nanmean(np.square(heights)))), rel=0.02)
    x, y, z = np.sqrt(np.mean(np.square(places), axis=0))
    assert found.estimated_place_m == pytest.approx(float(np.hypot(x, y)), rel=0.02)
    assert found.estimated_height_m == pytest.approx(float(z), rel=0.02)


def test_every_figure_has_an_interval_over_layouts_that_says_how(folders: tuple[Path, Path]) -> None:
    found = compare(*folders)
    assert found.pairs == found.layouts == EPISODES
    row = next(row for row in found.rows if row.measure == "path of all drones")
    paths = [[m.metrics.path_m for _, m in sorted(missions_in(folder).items(), key=str)] for folder in folders]
    assert row.difference.value == pytest.approx(float(np.mean(paths[1]) - np.mean(paths[0])))
    assert row.difference.high < 0.0, "slower drones fly less far"
    for figure in (row.first, row.second, row.difference):
        assert figure.cluster == "layout" and figure.resamples == 10_000 and figure.seed == 0 and figure.n == EPISODES
    told = found.plain["rows"][0]
    assert {"value", "low", "high", "method", "cluster", "resamples", "seed"} <= set(told["difference"])


def test_missions_of_one_layout_do_not_count_twice() -> None:
    """Flown twice as often by the same seeds, a difference between layouts stays as uncertain as it was."""
    gaps = {0: 1.0, 1: 4.0, 2: 2.5, 3: 7.0, 4: 3.0, 5: 0.5}

    def pairs(each: int) -> list[tuple[TierMission, TierMission]]:
        metrics = [of_result(result(episode=k, episode_set="rules-1")) for k in gaps for _ in range(each)]
        return [
            (TierMission(m, None), TierMission(replace(m, path_m=m.path_m + gaps[m.episode]), None)) for m in metrics
        ]

    once, twice = (_difference("path", "m", lambda m: m.metrics.path_m, pairs(each), DEFAULT) for each in (1, 2))
    assert once is not None and twice is not None and twice.pairs == 2 * once.pairs
    assert (twice.difference.low, twice.difference.high) == pytest.approx((once.difference.low, once.difference.high))


def test_a_table_names_the_tiers_and_every_measure(folders: tuple[Path, Path]) -> None:
    found = compare(*folders)
    text = tier_gap_markdown(found)
    assert text.startswith("| | embedded | embedded | embedded minus embedded")
    assert all(row.measure in text for row in found.rows)
    assert f"{EPISODES} missions on both tiers, {EPISODES} layouts" in text and "10000 resamples, seed 0" in text


def test_a_mission_without_a_search_has_no_tracking(tmp_path: Path) -> None:
    episode = prepare(scenario(8.0), 1, 0)
    fly_episode(episode, tmp_path / "bag", stop=lambda: "interrupted")
    bag = read_bag(tmp_path / "bag")
    assert search_span(bag) is None
    assert tracking(bag) is None


def test_what_cannot_be_paired_is_refused(folders: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="no valid mission with a bag"):
        compare(folders[0], tmp_path)
    shutil.copytree(folders[0] / "0", tmp_path / "one")
    with pytest.raises(MissingDataError, match="1 missions in common; at least 2"):
        compare(folders[0], tmp_path)
    shutil.copytree(folders[0] / "0", tmp_path / "two")
    with pytest.raises(ContractError, match="is there twice"):
        compare(folders[0], tmp_path)
