"""Which seeds go on to Stage 2: those whose return is nearest to the median seed's.

A seed's figure is the IQM of the return over all its episodes, pooled over policies, so that one choice serves all and
conditions stay paired. Seeds are taken by their distance from the median of these figures; the lower seed wins a tie,
and distances equal to nine digits are one. Chosen seeds are no sample: what they give holds for them alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sar_analysis.stage1.rows import Stage1Row, check_whole
from sar_analysis.stats.aggregate import iqm
from sar_core.errors import InputError, MissingDataError

COUNT = 3
_TIE_DIGITS = 9


@dataclass(frozen=True)
class Candidate:
    """One seed: the IQM of its return over so many episodes, how far that is from the median, and the verdict."""

    seed: int
    return_iqm: float
    episodes: int
    distance: float
    chosen: bool


@dataclass(frozen=True)
class Pick:
    """The seeds chosen over all policies (policy None) or for one, and all they were chosen from, by seed."""

    policy: str | None
    median: float
    candidates: tuple[Candidate, ...]

    @property
    def seeds(self) -> tuple[int, ...]:
        """The chosen seeds in ascending order."""
        return tuple(c.seed for c in self.candidates if c.chosen)


@dataclass(frozen=True)
class SeedChoice:
    """One pick over all policies, or one per policy."""

    count: int
    per_policy: bool
    picks: tuple[Pick, ...]

    @property
    def seeds(self) -> tuple[int, ...]:
        """Every seed that was chosen for anything, in ascending order."""
        return tuple(sorted({seed for pick in self.picks for seed in pick.seeds}))

    def plain(self) -> dict[str, Any]:
        """What was chosen from what, for JSON."""
        picks = [{**asdict(pick), "seeds": pick.seeds} for pick in self.picks]
        return {"count": self.count, "per_policy": self.per_policy, "seeds": self.seeds, "picks": picks}


def choose(rows: Sequence[Stage1Row], count: int = COUNT, per_policy: bool = False) -> SeedChoice:
    """The ``count`` seeds nearest to the median seed, for all policies together or for each apart."""
    if count < 1:
        raise InputError(f"count = {count}: must be 1 or more")
    if not rows:
        raise MissingDataError("no Stage-1 rows to choose seeds from")
    check_whole(rows, "Stage-1 rows")
    policies: list[str | None] = [*sorted({row.policy for row in rows})] if per_policy else [None]
    return SeedChoice(count, per_policy, tuple(_pick(rows, count, policy) for policy in policies))


def _pick(rows: Sequence[Stage1Row], count: int, policy: str | None) -> Pick:
    returns: dict[int, list[float]] = {}
    for row in rows:
        if policy is None or row.policy == policy:
            returns.setdefault(row.seed, []).append(row.episode_return)
    if len(returns) < count:
        found = ", ".join(map(str, sorted(returns)))
        raise MissingDataError(f"{count} seeds are wanted, but there are only {len(returns)} ({found})")
    figures = {seed: iqm(values) for seed, values in sorted(returns.items())}
    median = float(np.median(list(figures.values())))
    nearest = sorted(figures, key=lambda seed: (round(abs(figures[seed] - median), _TIE_DIGITS), seed))[:count]
    candidates = tuple(
        Candidate(seed, figure, len(returns[seed]), abs(figure - median), seed in nearest)
        for seed, figure in figures.items()
    )
    return Pick(policy, median, candidates)
