"""The smallest difference between two conditions that a campaign of so many layouts and seeds would find.

Each layout is flown once per seed under both conditions, or each condition has layouts of its own. A layout's mean is
one value to the test, Student's t over layouts: seeds make it sharper, only layouts make it general. The formula is
checked by flying the campaign many times in the computer (`simulated_power`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaincinv, gammaincinv, stdtrit

from sar_analysis.stats.interval import Array
from sar_analysis.stats.rates import POWER, needed_shift
from sar_core.errors import InputError
from sar_core.streams import stream

Kind = Literal["share", "rate"]
CAMPAIGNS = 4000


@dataclass(frozen=True)
class Design:
    """What is flown. ``base`` is the first condition's share, or its events per unit of exposure.

    ``correlation`` is that of two missions of one layout and condition; ``common`` how much of what is particular to a
    layout both conditions share when they fly the same ones (1: all of it, and pairing removes it). ``exposure`` is
    that of one mission, for a rate.
    """

    layouts: int
    seeds: int
    base: float
    correlation: float = 0.3
    kind: Kind = "share"
    paired: bool = True
    common: float = 0.5
    exposure: float = 1.0

    def __post_init__(self) -> None:
        top = 1.0 if self.kind == "share" else math.inf
        checks = (
            (self.layouts >= 2, f"{self.layouts} layouts", "at least 2: one says nothing about others"),
            (self.seeds >= 1, f"{self.seeds} seeds", "at least 1"),
            (0.0 < self.base < top, f"base {self.base:g}", f"above 0 and below {top:g}"),
            (0.0 <= self.correlation < 1.0, f"correlation {self.correlation:g}", "from 0, below 1"),
            (0.0 <= self.common <= 1.0, f"common {self.common:g}", "0 to 1"),
            (0.0 < self.exposure < math.inf, f"exposure {self.exposure:g}", "finite and above 0"),
        )
        for sound, told, allowed in checks:
            if not sound:
                raise InputError(f"detectable difference: {told}; allowed: {allowed}")

    def parts(self, level: float) -> tuple[float, float]:
        """Variance of a layout's true level, and of one mission about it, where the level is this."""
        if self.kind == "share":
            whole = level * (1.0 - level)
            return self.correlation * whole, (1.0 - self.correlation) * whole
        within = level / self.exposure
        return within * self.correlation / (1.0 - self.correlation), within

    def error(self, other: float) -> float:
        """Standard error of the difference of the two conditions' means."""
        (between, within), (between_2, within_2) = self.parts(self.base), self.parts(other)
        shared = 2.0 * self.common * math.sqrt(between * between_2) if self.paired else 0.0
        return math.sqrt((between + between_2 - shared + (within + within_2) / self.seeds) / self.layouts)

    @property
    def freedom(self) -> int:
        return self.layouts - 1 if self.paired else 2 * (self.layouts - 1)


@dataclass(frozen=True)
class Detectable:
    """The nearest level below and above the base that is told from it with this power; None where there is none."""

    campaign: Design
    power: float
    alpha: float
    below: float | None
    above: float | None


def detectable(campaign: Design, power: float = POWER, alpha: float = 0.05) -> Detectable:
    """By the noncentral t distribution with the variances of both levels (Donner & Klar 2000, chapter 5)."""
    if not 0.0 < alpha < 0.5:
        raise InputError(f"detectable difference: alpha {alpha:g}; allowed: above 0 and below 0.5")
    if not alpha < power < 1.0:
        raise InputError(f"detectable difference: power {power:g}; allowed: above {alpha:g} and below 1")
    shift = needed_shift(campaign.freedom, power, alpha)
    base = campaign.base

    def missing(level: float) -> float:
        return abs(level - base) - shift * campaign.error(level)

    tiny = 1e-9 * base
    below = float(brentq(missing, 0.0, base - tiny)) if missing(0.0) > 0.0 else None
    top = 1.0 - 1e-12 if campaign.kind == "share" else 2.0 * base
    while campaign.kind == "rate" and missing(top) <= 0.0:
        top *= 2.0
    above = float(brentq(missing, base + tiny, top)) if missing(top) > 0.0 else None
    return Detectable(campaign, power, alpha, below, above)


def simulated_power(
    campaign: Design, other: float, alpha: float = 0.05, campaigns: int = CAMPAIGNS, seed: int = 0
) -> float:
    """How often the t-test over layouts finds the other level, in campaigns drawn with beta or gamma layouts."""
    rng = stream("detectable difference", seed)
    first, second = _layout_levels(campaign, other, campaigns, rng)
    a, b = (_flown(campaign, levels, rng) for levels in (first, second))
    if campaign.paired:
        gaps = a - b
        value, error = gaps.mean(axis=1), gaps.std(axis=1, ddof=1) / math.sqrt(campaign.layouts)
    else:
        value = a.mean(axis=1) - b.mean(axis=1)
        error = np.sqrt((a.var(axis=1, ddof=1) + b.var(axis=1, ddof=1)) / campaign.layouts)
    critical = float(stdtrit(campaign.freedom, 1.0 - 0.5 * alpha))
    return float((np.abs(value) > critical * np.maximum(error, 1e-300)).mean())


def sharper(campaign: Design) -> dict[str, Design]:
    """What twice the missions could be spent on."""
    return {
        "twice the layouts": replace(campaign, layouts=2 * campaign.layouts),
        "twice the seeds": replace(campaign, seeds=2 * campaign.seeds),
    }


def _layout_levels(campaign: Design, other: float, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """True levels (count, layouts) of either condition; a share ``common`` of paired layouts have the same quantile.

    So the levels correlate by ``common`` as far as the two distributions have one shape.
    """
    shape = (count, campaign.layouts)
    quantiles = rng.random(shape)
    same = rng.random(shape) < (campaign.common if campaign.paired else 0.0)
    others = np.where(same, quantiles, rng.random(shape))
    return _level_quantiles(campaign, campaign.base, quantiles), _level_quantiles(campaign, other, others)


def _level_quantiles(campaign: Design, level: float, quantiles: Array) -> Array:
    between, _ = campaign.parts(level)
    if between == 0.0:
        return np.full(quantiles.shape, level)
    if campaign.kind == "rate":
        return np.asarray(gammaincinv(level**2 / between, quantiles) * between / level)
    size = 1.0 / campaign.correlation - 1.0
    return np.asarray(betaincinv(level * size, (1.0 - level) * size, quantiles))


def _flown(campaign: Design, levels: Array, rng: np.random.Generator) -> Array:
    if campaign.kind == "share":
        return rng.binomial(campaign.seeds, np.clip(levels, 0.0, 1.0)) / campaign.seeds
    hours = campaign.seeds * campaign.exposure
    return rng.poisson(levels * hours) / hours
