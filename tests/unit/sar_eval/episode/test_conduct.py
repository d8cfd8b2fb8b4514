"""The record's conduct is that of its bag, flown for real."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from sar_analysis.bags.reader import read_bag
from sar_analysis.metrics.conduct import bag_conduct
from sar_core.indices import load_indices
from sar_eval.episode.flight import fly_episode
from sar_eval.episode.invalid import invalid_record
from sar_eval.scenario.model import Episode, Scenario
from sar_eval.scenario.prepare import prepare
from sar_eval.scenario.resources import share_dir

INDICES = load_indices(share_dir("configs") / "indices")
TOLD_RARELY = ("split_entries", "diverge_entries", "lane", "direction", "return", "hold", "productive", "empty")
"""Terms that rest on what a bag tells twice a second, or on path between its ticks."""


@pytest.fixture(scope="module")
def episode() -> Episode:
    brief = {"world": "open_field", "drones": 4, "duration_s": 12.0, "altitude_m": 10.0, "radio": None}
    return prepare(Scenario(**brief), 1, 0)


@pytest.fixture(scope="module")
def flown(episode: Episode, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    record = fly_episode(episode, tmp_path_factory.mktemp("conduct") / "bag")
    return json.loads(json.dumps(record.result)), Path(record.run["bag"])


def test_the_record_agrees_with_its_bag(flown: tuple[dict[str, Any], Path]) -> None:
    result, path = flown
    found = bag_conduct(read_bag(path), INDICES)
    assert found is not None
    told = result["conduct"]
    assert told["indices"] == INDICES.sha256
    assert told["interventions"]["asked_ticks"] == 4 * 241 and told["comfort"]["jerk_rms_mps3"] > 0.0
    for group in ("comfort", "interventions", "rules"):
        for term, value in dataclasses.asdict(getattr(found, group)).items():
            if not term.startswith(TOLD_RARELY):
                assert told[group][term] == (None if value is None else pytest.approx(value, abs=1e-8)), term
    assert told["rules"]["lane_s"] == pytest.approx(found.rules.lane_s, abs=2.0)
    assert told["rules"]["empty_m"] == pytest.approx(found.rules.empty_m, abs=0.5)
    assert told["assumptions"]["commands_tracked"] == dataclasses.asdict(found.assumptions)["commands_tracked"]
    assert told["assumptions"]["estimate_near"]["steps"] == told["assumptions"]["neighbours_fresh"]["steps"] == 4 * 241


def test_a_bag_carries_the_routes_that_are_flown(episode: Episode, flown: tuple[dict[str, Any], Path]) -> None:
    bag = read_bag(flown[1])
    assert bag.notes == () and bag.routes is not None and len(bag.routes) == 4
    west, south, east, north = episode.world.area
    for route in bag.routes:
        assert ((route >= (west, south)) & (route <= (east, north))).all()


def test_without_a_search_there_is_no_conduct(episode: Episode) -> None:
    assert invalid_record(episode, "lockstep_timeout").result["conduct"] is None
