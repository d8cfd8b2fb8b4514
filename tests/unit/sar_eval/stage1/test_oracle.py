"""The oracle: it flies to the victims by the shortest makespan, then covers; its file can be added to, not mixed."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest

from sar_analysis.results.optimality import load_reference
from sar_core.errors import ContractError, InputError
from sar_eval.episode.briefing import briefing_of, make_plans
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare
from sar_eval.stage1 import oracle as reference
from sar_eval.stage1.oracle import (
    ReferenceFlight,
    assign,
    describe,
    fly_reference,
    make_reference,
    oracle_routes,
    parse_episodes,
    parse_levels,
    prepare_oracle,
    save_reference,
)
from sar_sim.radio.devices import DeviceKind
from sar_swarm.piloting.patternlist import names
from sar_swarm.planning.routes import partitioned_lawnmower

SCENARIO = Scenario(world="open_field", drones=3, victims=2, duration_s=5.0)


def makespan(starts: np.ndarray, goals: np.ndarray, ways: list[list[int]]) -> float:
    longest = 0.0
    for start, way in zip(starts, ways, strict=True):
        points = [start, *(goals[k] for k in way)]
        longest = max(longest, sum(math.dist(a, b) for a, b in itertools.pairwise(points)))
    return longest


@pytest.mark.parametrize("victims", [1, 2, 3])
def test_with_a_drone_for_each_victim_the_makespan_is_the_least_there_is(victims: int) -> None:
    rng = np.random.default_rng(victims)
    for _ in range(30):
        starts, goals = rng.uniform(0.0, 100.0, (3, 2)), rng.uniform(0.0, 100.0, (victims, 2))
        found = assign(starts, goals)
        assert sorted(k for way in found for k in way) == list(range(victims))
        least = min(
            max(math.dist(starts[d], goals[v]) for v, d in enumerate(drones))
            for drones in itertools.permutations(range(3), victims)
        )
        assert makespan(starts, goals, found) == pytest.approx(least)


def test_the_sum_alone_would_choose_another_way() -> None:
    """One drone standing over a victim and the other flying 9.5 m sums to less than twice 5 m, but ends later."""
    starts, goals = np.array([[0.0, 0.0], [5.0, 0.0]]), np.array([[5.0, 0.0], [9.0, 3.0]])
    assert assign(starts, goals) == [[0], [1]]


def test_more_victims_than_drones_are_all_visited() -> None:
    rng = np.random.default_rng(3)
    found = assign(rng.uniform(0.0, 100.0, (2, 2)), rng.uniform(0.0, 100.0, (7, 2)))
    assert sorted(k for way in found for k in way) == list(range(7))
    assert max(map(len, found)) - min(map(len, found)) <= 1


def test_routes_begin_at_the_victims_and_end_with_the_lanes_of_the_strip() -> None:
    episode = prepare_oracle(SCENARIO, 4)
    victims = {tuple(d.track[0, 1:3]) for d in episode.devices if d.kind is DeviceKind.VICTIM}
    assert len(victims) == 2
    visited = set()
    for i, route in enumerate(episode.routes):
        lanes = partitioned_lawnmower(episode.world.area, 3, i, SCENARIO.swath_m, SCENARIO.overlap)
        first, rest = route[: -len(lanes)], route[-len(lanes) :]
        visited |= {tuple(point) for point in first}
        assert np.array_equal(rest, lanes) or np.array_equal(rest, lanes[::-1])
        if len(first):
            assert math.dist(first[-1], rest[0]) <= math.dist(first[-1], rest[-1])
        else:
            assert np.array_equal(rest, lanes)
    assert visited == victims


def test_the_swarm_is_given_these_ways_and_no_pattern_knows_the_truth() -> None:
    episode = prepare_oracle(SCENARIO, 4)
    for plan in make_plans(briefing_of(episode)):
        for given, wanted in zip(plan.mission.routes, episode.routes, strict=True):
            assert np.array_equal(given, wanted)
    assert "oracle" not in names()
    plain = prepare(episode.scenario, 0, 4)
    assert plain.routes == () and plain.config_sha256 != episode.config_sha256
    assert "routes" not in plain.resolved()
    lanes = partitioned_lawnmower(plain.world.area, 3, 0, SCENARIO.swath_m, SCENARIO.overlap)
    assert np.array_equal(make_plans(briefing_of(plain))[0].mission.routes[0], lanes)


def test_without_victims_it_only_covers() -> None:
    episode = prepare_oracle(SCENARIO.model_copy(update={"victim_absent": True}), 4)
    for i, route in enumerate(oracle_routes(episode)):
        lanes = partitioned_lawnmower(episode.world.area, 3, i, SCENARIO.swath_m, SCENARIO.overlap)
        assert np.array_equal(route, lanes)


def test_a_reference_is_flown_written_read_and_added_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = SCENARIO.model_copy(update={"drones": 1})
    row = fly_reference(ReferenceFlight(scenario, 2))
    assert row["return"] > 0.0 and row["invalid_reason"] is None
    flown: list[ReferenceFlight] = []

    def fly(job: ReferenceFlight) -> dict[str, object]:
        flown.append(job)
        return row | {"episode": job.index, "sigma": job.scenario.sigma, "kappa": job.scenario.kappa}

    monkeypatch.setattr(reference, "fly_reference", fly)
    first = make_reference(scenario, [2, 3], [(0.05, 8.0)], None, 1, lambda done, total: None)
    path = tmp_path / "open_field-1.json"
    save_reference(first, path)
    held = json.loads(path.read_text())
    assert held == first
    loaded = load_reference(path)
    assert loaded.episodes == (2, 3) and loaded.returns[2, 0.05, 8.0] == row["return"]
    assert held["missing_episodes"] == [0, 1, *range(4, 50)]
    flown.clear()
    more = make_reference(scenario, [1, 2, 3], [(0.05, 8.0), (0.2, 4.0)], held, 1, lambda done, total: None)
    assert [(job.index, job.scenario.sigma) for job in flown] == [(1, 0.05), (1, 0.2), (2, 0.2), (3, 0.2)]
    assert [r["episode"] for r in more["returns"]] == [1, 2, 3, 1, 2, 3]


@pytest.mark.parametrize("key", ["world_sha256", "episode_set", "task_sha256", "sources_sha256"])
def test_a_reference_of_other_things_is_not_added_to(key: str) -> None:
    held = describe(SCENARIO) | {"returns": [], key: "other"}
    with pytest.raises(ContractError, match=rf"of another {key.replace('_', ' ')} \(other, now .*--fresh"):
        make_reference(SCENARIO, [0], [(0.05, 8.0)], held, 1, lambda done, total: None)


def test_episodes_and_levels_are_read_from_words() -> None:
    assert parse_episodes("0-2, 7") == [0, 1, 2, 7]
    assert parse_levels(["0.05:8", "0.1:inf", "0.05:8"]) == [(0.05, 8.0), (0.1, math.inf)]
    for text in ("x", "5-2", "-1", "0-1000000"):
        with pytest.raises(InputError, match="episodes = "):
            parse_episodes(text)
    with pytest.raises(InputError, match="allowed is sigma:kappa"):
        parse_levels(["0.1"])
