"""The swarm's conduct from a bag: the terms that a record holds, with whatever constants one likes.

A bag tells phases, failsafe states and bands twice a second, so terms that rest on them may differ a little from the
referee's; path is that of straight legs between ticks. It does not tell what drones believed: those assumptions are
None. A record holds terms, not tracks: with other constants it cannot be computed anew, and nothing here pretends so.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sar_analysis.bags.reader import Bag
from sar_analysis.metrics.metrics import search_span
from sar_core.conduct import Conduct, FlightGround, Guarded, SearchFlight, conduct_of
from sar_core.errors import ContractError
from sar_core.indices import Indices
from sar_core.sweep import sweep

Ints = NDArray[np.int64]


def bag_conduct(bag: Bag, indices: Indices) -> Conduct | None:
    """All terms that a bag tells; None where there was no search to speak of."""
    span = search_span(bag)
    if span is None or span.stop - span.start < 2:
        return None
    truth, stamps = bag.truth, bag.truth.stamps_ns[span]
    times, position = truth.times_s[span], truth.position[span]
    cover = sweep(bag.info.area_m, times - times[0], position)
    at = [_latest(health.stamps_ns, stamps) for health in bag.health]
    flown = SearchFlight(
        times_s=times,
        position=position,
        velocity=truth.velocity[span],
        attitude=truth.attitude[span],
        phase=np.stack([health.phase[k] for health, k in zip(bag.health, at, strict=True)], axis=1),
        failsafe=np.stack([health.failsafe[k] for health, k in zip(bag.health, at, strict=True)], axis=1),
        path_m=float(cover.path_m.sum()),
        recovered_m=float(cover.recovered_m.sum()),
        around=_surroundings(bag),
        guarded=_guarded(bag, stamps, at),
        believed=None,
        heard_s=None,
    )
    return conduct_of(flown, indices)


def demand_same_constants(conduct: Conduct, indices: Indices, where: str) -> None:
    """Refuse a record's terms where others are asked for than those it was made with."""
    for name, digest in indices.sha256.items():
        made = conduct.indices.get(name, "none")
        if made != digest:
            raise ContractError(
                f"{where}: its terms were computed with {name} {made[:12]}, asked for is {digest[:12]}; "
                "a record cannot be computed anew with other constants, its bag can"
            )


def _latest(told: Ints, stamps: Ints) -> NDArray[np.intp]:
    """The row last told at each stamp; the first one before it was told."""
    return np.maximum(np.searchsorted(told, stamps, side="right") - 1, 0)


def _surroundings(bag: Bag) -> FlightGround | None:
    scene = bag.world
    if scene is None:
        return None
    homes = bag.truth.position[0]
    return FlightGround(scene.area_m, scene.obstacles, scene.hull_radius_m, scene.fence, homes, bag.routes)


def _guarded(bag: Bag, stamps: Ints, at: list[NDArray[np.intp]]) -> Guarded | None:
    """None for bags from before setpoints and statuses told of the safety layer."""
    wanted, commanded, excess, band = [], [], [], []
    for own, health, k in zip(bag.setpoints, bag.health, at, strict=bool(bag.setpoints)):
        if own.wanted is None or own.limit_excess is None or health.band is None:
            return None
        row = _latest(own.stamps_ns, stamps)
        wanted.append(own.wanted[row, :2])
        commanded.append(own.velocity[row, :2])
        excess.append(own.limit_excess[row])
        band.append(health.band[k])
    if not wanted:
        return None
    asked, flown = np.stack(wanted, axis=1), np.stack(commanded, axis=1)
    return Guarded(asked, flown, np.stack(excess, axis=1), np.stack(band, axis=1))
