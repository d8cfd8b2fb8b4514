"""Exact intervals on the effective sample: what missions that share layouts are worth as independent ones.

They are for counts too rare for a bootstrap, which cannot draw an event that was not seen. Where nothing varied the
missions of a layout are taken as one: how alike they are cannot be seen then, and this is the worst there is.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import betaincinv, gammaincinv, stdtrit

from sar_analysis.stats.interval import Array

Ends = tuple[float, float]


def linear_error(events: Array, sizes: Array) -> float:
    """Standard error of sum(events) / sum(sizes), each a total of one layout, by linearisation (Cochran 1977, 6.4)."""
    m, total = len(events), float(sizes.sum())
    residuals = events - events.sum() / total * sizes
    return math.sqrt(m / (m - 1) * float((residuals**2).sum())) / total


def few_layouts(missions: float, layouts: int, confidence: float) -> float:
    """What Korn & Graubard 1998 multiply an effective sample by: its variance rests on so few layouts."""
    tail = 0.5 * (1.0 - confidence)
    return float(stdtrit(missions - 1.0, tail) / stdtrit(layouts - 1.0, tail)) ** 2 if missions > layouts else 1.0


def effective_trials(events: Array, trials: Array, confidence: float) -> float:
    """How many independent trials these are worth (layouts,), as Korn & Graubard 1998; never more than there are.

    Trials over the design effect (Kish 1965, 8.2), times what so few layouts cost. Where all or none had the event:
    the number of layouts.
    """
    n, layouts = float(trials.sum()), len(trials)
    p = float(events.sum()) / n
    if p in (0.0, 1.0):
        return float(layouts)
    variance = linear_error(events, trials) ** 2
    found = n * p * (1.0 - p) / (n - 1.0) / variance if variance > 0.0 else n
    return min(found * few_layouts(n, layouts, confidence), n)


def beta_ends(p: float | Array, trials: float, confidence: float) -> tuple[Array, Array]:
    """Clopper-Pearson's two ends for shares p of a number of trials that need not be whole."""
    tail, share = 0.5 * (1.0 - confidence), np.asarray(p, dtype=np.float64)
    had, missed = share * trials, (1.0 - share) * trials
    low = np.where(had > 0.0, betaincinv(np.maximum(had, 1e-300), missed + 1.0, tail), 0.0)
    high = np.where(missed > 0.0, betaincinv(had + 1.0, np.maximum(missed, 1e-300), 1.0 - tail), 1.0)
    return low, high


def korn_graubard(events: Array, trials: Array, confidence: float = 0.95) -> Ends:
    """Ends of a share from the totals of each layout (layouts,): Clopper-Pearson on the effective sample.

    Korn & Graubard 1998 (Survey Methodology 24, 193). R's `svyciprop(method = "beta")` leaves n / (n - 1) out of the
    design effect; with it, one mission per layout gives Clopper-Pearson's own interval.
    """
    p = float(events.sum() / trials.sum())
    low, high = beta_ends(p, effective_trials(events, trials, confidence), confidence)
    return float(low), float(high)


def crowding(events: Array, exposure: Array) -> float:
    """How many times as much the rate varies between layouts (layouts,) as that of Poisson counts; 1 without events."""
    k = float(events.sum())
    return linear_error(events, exposure) ** 2 * float(exposure.sum()) ** 2 / k if k else 1.0


def effective_poisson(events: Array, exposure: Array, missions: int, confidence: float = 0.95) -> Ends:
    """Ends of a rate from the totals of each layout (layouts,): Garwood's on the effective exposure.

    The counterpart of Korn & Graubard's for counts: the exposure is divided by how much more the layouts vary than
    Poisson counts would. Without any event a layout counts as long as one of its missions.
    """
    tail, total, k, layouts = 0.5 * (1.0 - confidence), float(exposure.sum()), float(events.sum()), len(exposure)
    if k == 0.0:
        worth = total * layouts / missions
        return 0.0, float(gammaincinv(1.0, 1.0 - tail)) / worth
    worth = total / max(crowding(events, exposure), 1.0) * min(few_layouts(missions, layouts, confidence), 1.0)
    had = k / total * worth
    return float(gammaincinv(had, tail)) / worth, float(gammaincinv(had + 1.0, 1.0 - tail)) / worth
