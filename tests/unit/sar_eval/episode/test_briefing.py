"""The truth's door: nothing reachable from what the swarm is given leads to a victim, a decoy or a truth stream."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest

from sar_eval.episode import sensing, swarm
from sar_eval.episode.briefing import Briefing, briefing_of
from sar_eval.episode.flight import Flight
from sar_eval.episode.swarm import Swarm
from sar_eval.scenario.model import Episode, Scenario
from sar_eval.scenario.prepare import prepare
from sar_eval.stage1.oracle import prepare_oracle
from sar_sim.judging.scoring import Report
from sar_sim.radio.devices import DeviceKind
from sar_sim.radio.receiver import Frames
from sar_swarm.piloting.policy import Actor

SCENARIO = Scenario(world="village", victims=2, decoys=8, pursuit="on")
TRUTH = (Episode, Scenario, np.random.Generator, np.random.SeedSequence)
"""A scenario says how many victims there are; a generator is somebody's stream."""
SWARM_SPEAKS = (Frames, Report)
"""Of the simulator's types: what a receiver hands over, and what the swarm says itself."""


def reachable(root: object) -> Iterator[tuple[str, Any]]:
    """Everything that can be reached from an object, with the way to it.

    Modules, types and functions' globals are left out: they are code, the same for every swarm, and given to none.
    """
    seen: dict[int, object] = {}
    waiting: list[tuple[str, Any]] = [(type(root).__name__, root)]
    while waiting:
        way, thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, ModuleType | type):
            continue
        seen[id(thing)] = thing
        yield way, thing
        if isinstance(thing, FunctionType):
            held: list[Any] = [thing.__closure__, thing.__defaults__, thing.__kwdefaults__, thing.__dict__]
        else:
            held = gc.get_referents(thing)
        if isinstance(thing, np.ndarray):
            held = [*held, thing.base, *(thing.ravel().tolist() if thing.dtype == object else ())]
        waiting += [(f"{way} > {type(part).__name__}", part) for part in held]


def leaks(root: object, episode: Episode, heard: bool = False) -> list[str]:
    """What of an episode's truth an object leads to. Who has ``heard`` frames knows addresses, and nothing else."""
    west, south, east, north = episode.world.area
    places = {float(v) for device in episode.devices for v in device.track[:, 1:3].ravel()}
    # Passers-by come in at the area's edge, which the swarm is told.
    places -= {west, south, east, north}
    told = briefing_of(episode).radio
    assert told is not None
    secret = set() if heard else {device.address for device in episode.devices} - set(told.known_addresses)
    found = []
    for way, thing in reachable(root):
        simulated = type(thing).__module__.split(".")[0] == "sar_sim" and not isinstance(thing, SWARM_SPEAKS)
        numbers: set[float] = set()
        if isinstance(thing, float | int):
            numbers = {thing}
        elif isinstance(thing, np.ndarray) and thing.dtype.kind in "fiu":
            numbers = set(thing.ravel().tolist())
        if simulated or isinstance(thing, TRUTH) or numbers & (places | secret):
            found.append(way)
    return found


@pytest.fixture(scope="module")
def episode() -> Episode:
    made = prepare(SCENARIO, 3, 5)
    assert {device.kind for device in made.devices} == set(DeviceKind)
    return made


def test_the_swarm_is_given_no_way_to_the_truth(episode: Episode) -> None:
    told = briefing_of(episode)
    assert leaks(told, episode) == []
    assert leaks(Swarm(told), episode) == []
    assert len(list(reachable(Swarm(told)))) > 200, "the walk goes in"


def test_flying_gives_it_none_either(episode: Episode) -> None:
    """Frames carry addresses; where they came from stays with the receiver."""
    flight = Flight(episode, None)
    assert flight.swarm.sensing is not None
    while not sum(len(frames.address) for frames in flight.swarm.sensing.heard.frames):
        flight.advance()
        assert flight.score.time_s < 60.0, "somebody is heard within a minute"
    assert leaks(flight.swarm, episode, heard=True) == []
    assert leaks(flight, episode, heard=True), "the flight itself holds all of it"


def test_only_the_briefing_looks_at_the_episode() -> None:
    assert not [module for module in (swarm, sensing) if hasattr(module, "Episode")]


@dataclass(frozen=True)
class Laden(Actor):
    """A policy with luggage."""

    luggage: Any = None


def carrying(told: Briefing, luggage: Any) -> Briefing:
    return replace(told, actor=Laden((), (), luggage=luggage))


PLANTED: dict[str, Callable[[Briefing, Episode], Briefing]] = {
    "the episode deep in a tuple": lambda b, e: carrying(b, (0, ({"x": [e]},))),
    "the episode in a closure": lambda b, e: carrying(b, lambda: e.seed),
    "the episode as a default": lambda b, e: carrying(b, functools.partial(lambda x, y=e: x, 1)),
    "a device": lambda b, e: carrying(b, e.devices[-1:]),
    "a bound method of a device": lambda b, e: carrying(b, e.devices[0].position_at),
    "a victim's track": lambda b, e: carrying(b, e.devices[0].track.copy()),
    "a view into it": lambda b, e: carrying(b, e.devices[0].track[:, 3:]),
    "its place among others": lambda b, e: replace(b, obstacles=np.vstack([b.obstacles, [*e.devices[0].track[0]] * 2])),
    "one coordinate": lambda b, e: replace(b, altitude_m=float(e.devices[0].track[0, 1])),
    "an object array": lambda b, e: carrying(b, np.array([None, e], dtype=object)),
    "a stream": lambda b, e: carrying(b, np.random.default_rng(1)),
    "a victim's address": lambda b, e: replace(
        b, radio=b.radio and replace(b.radio, known_addresses=(e.devices[0].address,))
    ),
}


@pytest.mark.parametrize("leak", PLANTED)
def test_a_planted_leak_is_found(leak: str, episode: Episode) -> None:
    assert leaks(Swarm(PLANTED[leak](briefing_of(episode), episode)), episode)


@dataclass(frozen=True, eq=False)
class Generous(Briefing):
    """Orders that say too much."""

    more: Any = None


def test_a_briefing_that_says_more_is_found(episode: Episode) -> None:
    told = briefing_of(episode)
    assert leaks(Generous(**vars(told), more=((), [{"deep": (episode,)}])), episode)
    assert leaks(Generous(**vars(told)), episode) == []


def test_the_oracle_which_is_told_the_truth_is_seen_to_be() -> None:
    told_all = prepare_oracle(SCENARIO, 5)
    assert leaks(Swarm(briefing_of(told_all)), told_all)
