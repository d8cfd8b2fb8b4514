"""Exact intervals on the effective sample: what missions that share layouts are worth as independent ones.

They are for counts too rare for a bootstrap, which cannot draw an event that was not seen. Where nothing varied the
missions of a layout are taken as one: how alike they are cannot be seen then, and this is the worst there is.
"""

from __future__ import annotations

import math

from scipy.special import stdtrit

from sar_analysis.stats.interval import Array
from sar_analysis.stats.rates import beta_ends, gamma_ends

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


def korn_graubard(events: Array, trials: Array, confidence: float = 0.95) -> Ends:
    """Ends of a share from the totals of each layout (layouts,): Clopper-Pearson on the effective sample.

    Korn & Graubard 1998 (Survey Methodology 24, 193). R's `svyciprop(method = "beta")` leaves n / (n - 1) out of the
    design effect; with it, one mission per layout gives Clopper-Pearson's own interval.
    """
    p = float(events.sum() / trials.sum())
    worth = effective_trials(events, trials, confidence)
    low, high = beta_ends(p * worth, (1.0 - p) * worth, confidence)
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
    total, k, layouts = float(exposure.sum()), float(events.sum()), len(exposure)
    if k == 0.0:
        worth = total * layouts / missions
    else:
        worth = total / max(crowding(events, exposure), 1.0) * min(few_layouts(missions, layouts, confidence), 1.0)
    low, high = gamma_ends(k / total * worth, confidence)
    return low / worth, high / worth
