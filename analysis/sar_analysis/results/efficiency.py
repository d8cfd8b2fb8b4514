"""Sample-efficiency curves: the IQM of the return over environment steps, from evaluations made during training.

Nothing is trained here. Whoever trains writes one JSON object per line and evaluation episode:

    {"policy": "mappo", "seed": 3, "steps": 200000, "episode": 7, "return": 15210.0}

``steps`` counts environment steps seen in training, ``seed`` is the training run. At each step every seed has flown the
same episodes, so each point is a crossed table like any other and gets its interval the same way (Agarwal 2021,
section 4.4; Gorsane 2022 ask for the interval at every evaluated step).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sar_analysis.stats.designs import Design
from sar_analysis.stats.interval import Reading
from sar_analysis.stats.resampling import RESAMPLES, bootstrap
from sar_analysis.stats.scores import Cell, from_cells
from sar_analysis.stats.statistics import iqm_of
from sar_core.errors import InputError, MissingDataError

FEWEST_SEEDS = 2


class Point(BaseModel):
    """One evaluation episode of one training run."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    policy: Annotated[str, Field(min_length=1)]
    seed: Annotated[int, Field(ge=0)]
    steps: Annotated[int, Field(ge=0)]
    episode: Annotated[int, Field(ge=0)]
    score: Annotated[float, Field(alias="return", allow_inf_nan=False)]


@dataclass(frozen=True)
class EfficiencyCurve:
    """One policy's IQM of the return at each evaluated step, with point-wise ends; all lists (steps,)."""

    policy: str
    steps: list[int]
    iqm: list[float]
    low: list[float]
    high: list[float]
    seeds: list[int]
    episodes: list[int]
    method: str
    estimand: str
    resamples: int | None
    bootstrap_seed: int | None
    confidence: float
    notes: list[str]


def read_points(path: Path) -> list[Point]:
    """Every line of a JSONL file; a line that is not a point is refused with its number."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise MissingDataError(f"{path}: no such file of evaluation points") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot read the evaluation points ({error})") from error
    points = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            points.append(Point.model_validate_json(line))
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(map(str, first["loc"])) or "line"
            allowed = "policy, seed, steps, episode, return"
            raise InputError(f"{path}, line {number}: {key}: {first['msg']}; the keys are {allowed}") from None
    if not points:
        raise MissingDataError(f"{path}: no evaluation points")
    return points


def curves(
    points: Iterable[Point],
    design: Design = "seeds",
    reading: Reading = "t",
    resamples: int = RESAMPLES,
    seed: int = 0,
    confidence: float = 0.95,
) -> list[EfficiencyCurve]:
    """One curve per policy in the order of first appearance; a hole in seeds x episodes at any step is refused.

    The default is what holds from few seeds on (see the coverage study): Student's t over training seeds.
    """
    by_policy: dict[str, list[Point]] = {}
    for point in points:
        by_policy.setdefault(point.policy, []).append(point)
    return [_curve(name, mine, design, reading, resamples, seed, confidence) for name, mine in by_policy.items()]


def _curve(
    policy: str,
    points: Sequence[Point],
    design: Design,
    reading: Reading,
    resamples: int,
    seed: int,
    confidence: float,
) -> EfficiencyCurve:
    steps = sorted({point.steps for point in points})
    seeds, episodes = sorted({point.seed for point in points}), sorted({point.episode for point in points})
    if len(seeds) < FEWEST_SEEDS:
        raise InputError(f"{policy}: {len(seeds)} training seed; an interval takes at least {FEWEST_SEEDS}")
    found, notes = [], list[str]()
    for step in steps:
        here = {(point.seed, point.episode): point.score for point in points if point.steps == step}
        if len(here) < sum(point.steps == step for point in points):
            raise InputError(f"{policy}, step {step}: a seed and episode appear twice; allowed: once")
        cells = [Cell(s, e, here.get((s, e))) for s in seeds for e in episodes]
        interval = bootstrap(
            from_cells(f"{policy}, step {step}", cells), iqm_of, design, reading, resamples, seed, confidence
        )
        found.append(interval)
        notes += [f"step {step}: {note}" for note in interval.notes]
    return EfficiencyCurve(
        policy,
        steps,
        [interval.value for interval in found],
        [interval.low for interval in found],
        [interval.high for interval in found],
        seeds,
        episodes,
        found[0].method,
        found[0].estimand,
        found[0].resamples,
        found[0].seed,
        confidence,
        notes,
    )


def as_plain(found: Iterable[EfficiencyCurve]) -> list[dict[str, Any]]:
    """The curves as a results document holds them, under ``sample_efficiency``; ends beyond all numbers are null."""
    plain = [asdict(curve) for curve in found]
    for curve in plain:
        for side in ("low", "high"):
            curve[side] = [value if math.isfinite(value) else None for value in curve[side]]
    return plain
