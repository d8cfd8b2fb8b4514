"""Every pattern and baseline on the same missions: how much is covered, how fast, and how close the drones came.

Two flights per pattern, world and mission: one of 240 s, for coverage, overlap, collisions and near misses, return and
landing included; and one that goes on until 95 % is covered or the batteries end it, for the time to 95 % with no other
limit. Radios are switched on only where the pattern acts on what they hear: in the others sensing changes no flight.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sar_analysis.metrics.catalogue import METRICS
from sar_analysis.metrics.records import of_result
from sar_analysis.results.summary import Watch, estimate, median
from sar_analysis.stats.interval import Interval
from sar_eval.episode.flight import Flight
from sar_eval.episode.pool import Spec, fly_one, plan_missions, spread
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare
from sar_eval.studies.drawing import draw_map
from sar_swarm.piloting.controller import Order
from sar_swarm.piloting.patternlist import find

COVERED = 0.95
UNLIMITED_S = 3600.0


def scenario_of(world: str, pattern: str) -> Scenario:
    """The mission of one row: as default, deaf where hearing would change nothing."""
    return Scenario(world=world, pattern=pattern, radio="open_ground" if find(pattern).triangulates else None)


def time_to_cover(spec: Spec) -> tuple[float | None, float]:
    """Search time until 95 % is covered, None where the batteries ended the flight before; and when that ended [s]."""
    scenario = spec.scenario.model_copy(update={"duration_s": UNLIMITED_S})
    flight = Flight(prepare(scenario, spec.seed, spec.index), None)
    while not flight.score.done and flight.score.orders.order is not Order.RETURN:
        flight.advance()
        if flight.score.tick % 20 == 0 and flight.score.coverage.fraction >= COVERED:
            break
    return flight.score.coverage.time_to(COVERED), flight.score.search_time_s


@dataclass(frozen=True)
class PatternRow:
    """One pattern in one world. Of ``unlimited`` flights without limit ``reached_95`` got there.

    The median time is none where half of the flights, or so few, leave its upper end open.
    """

    world: str
    pattern: str
    missions: int
    invalid: int
    coverage_240s: Interval | None
    time_to_95_s: Interval | None
    unlimited: int
    reached_95: int
    overlap: Interval | None
    collisions_per_mission: Interval | None
    near_misses_per_mission: Interval | None


def study(
    worlds: list[str],
    patterns: list[str],
    missions: int,
    unlimited: int,
    first_seed: int,
    workers: int,
    tell: Callable[[int, int], None],
) -> Iterator[tuple[PatternRow, list[dict[str, Any]]]]:
    """Row by row, each pattern in each world on the same missions, with the results it comes from.

    The first ``unlimited`` missions are flown a second time, until 95 % is covered.
    """
    cases = [(world, pattern) for world in worlds for pattern in patterns]
    done, total = 0, len(cases) * (missions + unlimited)
    for world, pattern in cases:
        specs = plan_missions(scenario_of(world, pattern), missions, first_seed)
        results: list[dict[str, Any]] = []
        times: list[tuple[float | None, float]] = []
        for result in spread(fly_one, specs, workers):
            results.append(result)
            tell(done + len(results), total)
        for reached in spread(time_to_cover, specs[:unlimited], workers):
            times.append(reached)
            tell(done + len(results) + len(times), total)
        done += missions + unlimited
        yield _row(world, pattern, results, times), results


def _row(
    world: str, pattern: str, results: list[dict[str, Any]], times: list[tuple[float | None, float]]
) -> PatternRow:
    valid = [of_result(r) for r in results if r["valid"]]
    layouts: list[Hashable] = list(range(len(times)))
    watched = Watch([end if t is None else t for t, end in times], [t is not None for t, _ in times], layouts)
    median_time = median(METRICS["time_to_95_s"], watched)
    return PatternRow(
        world=world,
        pattern=pattern,
        missions=len(results),
        invalid=len(results) - len(valid),
        coverage_240s=estimate(METRICS["coverage_240s"], valid),
        time_to_95_s=None if median_time is None or math.inf in (median_time.value, median_time.high) else median_time,
        unlimited=len(times),
        reached_95=sum(watched.came),
        overlap=estimate(METRICS["overlap_ratio"], valid),
        collisions_per_mission=estimate(METRICS["collisions_per_mission"], valid),
        near_misses_per_mission=estimate(METRICS["near_misses_per_mission"], valid),
    )


def draw_patterns(world: str, patterns: list[str], seed: int, picture: Path) -> None:
    """One mission of every pattern as seen from above: true tracks over the map, one colour per drone."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    columns = min(4, len(patterns))
    rows = math.ceil(len(patterns) / columns)
    size = (3.2 * columns, 3.7 * rows)
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    for axis in axes.flat[len(patterns) :]:
        axis.axis("off")
    for axis, pattern in zip(axes.flat, patterns, strict=False):
        episode = prepare(scenario_of(world, pattern), seed, seed)
        flight = Flight(episode, None)
        places = []
        while not flight.score.done and flight.score.orders.order is not Order.RETURN:
            flight.advance()
            if flight.score.orders.order is Order.SEARCH and flight.score.tick % 10 == 0:
                places.append(flight.score.state.position[:, :2])
        tracks = np.array(places)
        draw_map(axis, episode.world, episode.altitude_m)
        for i in range(tracks.shape[1]):
            axis.plot(tracks[:, i, 0], tracks[:, i, 1], linewidth=0.8)
        share = flight.score.coverage.coverage_at(240.0)
        axis.set_title(f"{pattern.replace('_', ' ')}\n{share:.0%} in 240 s", fontsize=9)
        axis.set_aspect("equal")
        axis.set_xticks([])
        axis.set_yticks([])
    figure.suptitle(f"Stage 2 (embedded): {world}, seed {seed}", fontsize=10)
    figure.savefig(picture, dpi=110)
    plt.close(figure)
