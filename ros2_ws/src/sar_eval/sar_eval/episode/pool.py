"""Many episodes without bags, from as many processes as wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from sar_core.errors import InputError
from sar_eval.episode.flight import fly_episode
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare
from sar_eval.scenario.splits import CALIBRATION, EVALUATION

T = TypeVar("T")


R = TypeVar("R")


CALIBRATION_SEED = CALIBRATION.first
"""Seeds and episode indices from here on belong to calibration and what else is fitted; evaluations stay below."""


@dataclass(frozen=True)
class Spec:
    """One mission to fly."""

    scenario: Scenario
    seed: int
    index: int


def fly_one(spec: Spec) -> dict[str, Any]:
    """The deterministic result of one mission; what a worker process calls."""
    return fly_episode(prepare(spec.scenario, spec.seed, spec.index), None).result


def spread(task: Callable[[T], R], items: Iterable[T], workers: int) -> Iterator[R]:
    """Results in the order of the items, from as many processes as wanted."""
    work = list(items)
    if workers <= 1:
        yield from map(task, work)
        return
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(task, work)


def plan_missions(scenario: Scenario, missions: int, first_seed: int) -> list[Spec]:
    """Mission k flies seed and episode index first_seed + k: every mission its own layout, wind and noise."""
    if missions < 1 or first_seed < 0 or first_seed + missions > EVALUATION.end:
        raise InputError(
            f"missions = {missions} from seed {first_seed}: evaluations use seeds 0 to {EVALUATION.end - 1}; "
            "those beyond belong to calibration"
        )
    return [Spec(scenario, first_seed + k, first_seed + k) for k in range(missions)]
