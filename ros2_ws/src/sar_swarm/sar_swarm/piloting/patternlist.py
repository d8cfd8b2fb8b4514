"""The list of search patterns: the one place where a pattern is named, described and bound to its code.

Scenarios, help texts, Stage 1, campaigns, studies and docs/swarm.md all read it. Reading imports no numerics, so that a
help text is quick: shipped patterns name their code as ``module:function``, which is imported when first flown.

A pattern of your own is registered by :func:`register`, for this process; or, for every command, worker and node, by an
entry point of the group ``sar_eval.patterns``, whose name is the pattern's and whose value is a :class:`Pattern`.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Literal

from sar_core.errors import InputError

GROUP = "sar_eval.patterns"
LEARNED = "policy"
"""The pattern that has no rule of its own: a learned actor flies it, without waypoints."""
Function = Callable[..., Any] | str
"""A function, or where to import one from."""


class Twin(IntEnum):
    """Compiled copies of decisions (``piloting.waypoints``) that Stage 1 flies."""

    PHEROMONE = 1
    FIELD = 2
    WANDER = 3


@dataclass(frozen=True)
class Pattern:
    """A search pattern: a route fixed before the mission, or a decision at every waypoint.

    ``route(area, drones, index, swath_m, overlap)`` gives a drone's waypoints float64[K, 2], ENU metres.
    ``decide(walk, place)`` gives its memory and its next waypoint; it sees what one drone knows and nothing else, and
    draws from streams of ``place.key`` (``patterns.Walk`` and ``patterns.Place`` say what they hold).
    """

    name: str
    rule: str
    """What it does, in the line that docs/swarm.md has."""
    route: Function | None = None
    decide: Function | None = None
    aliases: tuple[str, ...] = ()
    partitioned: bool = False
    """Every drone has a part of the area to itself, which the others take over when it is lost."""
    triangulates: bool = False
    """Drones leave it for bearings on whatever they hear."""
    twin: Twin | None = None
    """Stage 1 flies routes as they are, and this copy of a decision; without one it calls ``decide`` itself."""

    @property
    def kind(self) -> Literal["fixed", "reactive", "learned"]:
        if self.name == LEARNED:
            return "learned"
        return "reactive" if self.route is None else "fixed"


_PATTERNS: dict[str, Pattern] = {}


def register(pattern: Pattern) -> Pattern:
    """Add a pattern, from here on known by its name and aliases wherever patterns are named."""
    if _PATTERNS.get(pattern.name) is pattern:
        return pattern
    for name in (pattern.name, *pattern.aliases):
        if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            raise InputError(f"pattern {name!r}: it becomes part of file names; allowed are a-z, 0-9 and _")
        if name in _PATTERNS or name in _aliases():
            raise InputError(f"pattern {name!r} is registered already; choose another name")
    if (pattern.route is None) == (pattern.decide is None) and pattern.name != LEARNED:
        raise InputError(f"pattern {pattern.name!r}: give either route or decide")
    _PATTERNS[pattern.name] = pattern
    return pattern


def names() -> tuple[str, ...]:
    """Every pattern's name: those shipped, those added, and the learned policy last."""
    return tuple(sorted({**_PATTERNS, **_offered()}, key=lambda name: name == LEARNED))


def canonical(name: str) -> str:
    """A pattern's own name from any of its names; an unknown one is an error, never a silent default."""
    key = name.strip().lower()
    key = _aliases().get(key, key)
    if key not in _PATTERNS and key not in _offered():
        raise InputError(f"pattern {name!r} is not known; allowed: {', '.join(names())}")
    return key


def find(name: str) -> Pattern:
    """The pattern of a name; one that another package offers is loaded now."""
    key = canonical(name)
    return _PATTERNS[key] if key in _PATTERNS else register(_load(_offered()[key]))


@cache
def function_of(given: Function) -> Callable[..., Any]:
    """The function itself."""
    if not isinstance(given, str):
        return given
    module, _, function = given.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), function)
    return found


def pattern_file(name: str) -> Path:
    """The source file of a pattern's function, for who must know whether it has changed."""
    pattern = find(name)
    given = pattern.decide if pattern.route is None else pattern.route
    assert given is not None, "a learned policy has weights in place of a rule"
    return Path(inspect.getfile(function_of(given)))


def table() -> str:
    """All patterns as the Markdown table of docs/swarm.md."""
    rows = [f"| {name} | {find(name).rule} |" for name in names()]
    return "\n".join(["| pattern | rule |", "|---|---|", *rows])


def _aliases() -> dict[str, str]:
    return {alias: pattern.name for pattern in _PATTERNS.values() for alias in pattern.aliases}


@cache
def _offered() -> dict[str, EntryPoint]:
    """What installed packages offer, by name, not yet loaded: a help text needs no more."""
    offered = {}
    for entry in entry_points(group=GROUP):
        if entry.name in STANDARD or entry.name == LEARNED or entry.name in offered:
            warnings.warn(f"pattern {entry.name!r} of {entry.value} is left out: the name is taken", stacklevel=2)
        else:
            offered[entry.name] = entry
    return offered


def _load(entry: EntryPoint) -> Pattern:
    try:
        found = entry.load()
    except Exception as error:
        raise InputError(f"pattern {entry.name!r}: {entry.value} cannot be loaded ({error!r})") from error
    if not isinstance(found, Pattern) or found.name != entry.name:
        raise InputError(f"pattern {entry.name!r}: {entry.value} is no Pattern of that name")
    return found


_RULES, _ROUTES = "sar_swarm.piloting.patterns", "sar_swarm.planning.routes"
_SHIPPED = (
    Pattern(
        "partitioned_lawnmower",
        "the area in N vertical strips, drone i sweeps strip i; lanes overlap by 10 %",
        route=f"{_ROUTES}:partitioned_lawnmower",
        aliases=("partitioned",),
        partitioned=True,
    ),
    Pattern(
        "boustrophedon",
        "every drone sweeps the whole area in rows one swath apart; drone i's rows are shifted by a share of the swath",
        route=f"{_ROUTES}:boustrophedon",
        aliases=("lawnmower",),
    ),
    Pattern(
        "spiral",
        "Archimedean from the middle, θ = 0.6 per step, r = swath/2π · θ; arms turned by 2π i/N",
        route=f"{_ROUTES}:spiral",
    ),
    Pattern(
        "pheromone",
        "of eight headings the one with the least visit pressure Σ 1/(1+d); step = swath",
        decide=f"{_RULES}:pheromone",
        aliases=("stigmergic",),
        twin=Twin.PHEROMONE,
    ),
    Pattern(
        "potential_field",
        "repelled by visited places (1/d²) and peers (2/d²), drawn (1.5) to the sampled place farthest from any visit; "
        "step = swath",
        decide=f"{_RULES}:potential_field",
        aliases=("potential",),
        twin=Twin.FIELD,
    ),
    Pattern(
        "levy_flight",
        "uniform heading, Pareto step swath · u^(-1/1.5), at most the diagonal; reflected at the edge",
        decide=f"{_RULES}:levy_flight",
        aliases=("levy", "levyflight"),
        twin=Twin.WANDER,
    ),
    Pattern(
        "random_walk",
        "baseline, lower bound: uniform heading, step = swath",
        decide=f"{_RULES}:random_walk",
        aliases=("random",),
        twin=Twin.WANDER,
    ),
    Pattern(
        "boustrophedon_triangulation",
        "baseline, heuristic: boustrophedon; at any hypothesis above 0.5 the nearest drone takes bearings from three "
        "places around it",
        route=f"{_ROUTES}:boustrophedon",
        triangulates=True,
    ),
)
STANDARD = tuple(pattern.name for pattern in _SHIPPED)
"""Six patterns and two baselines: what is flown where none is named. A pattern that somebody adds is flown where it is
named, so that an installed package changes nobody's campaign."""
for _pattern in (*_SHIPPED, Pattern(LEARNED, "a learned policy flies: `--policy actor.npz`")):
    register(_pattern)
