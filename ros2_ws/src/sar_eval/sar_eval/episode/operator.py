"""The operator's part: which order the swarm has, and when the episode cannot go on."""

from __future__ import annotations

import math
from typing import NamedTuple

from sar_eval.bag.tick import DroneStatuses
from sar_eval.scenario.model import Episode
from sar_swarm.piloting.controller import Order
from sar_swarm.piloting.searchtask import OUT_OF_THE_SEARCH

STANDING_S = 1.0
TAKEOFF_LIMIT_S = 60.0
RETURN_LIMIT_S = 240.0
AT_ALTITUDE_M = 1.0
"""A drone is at its altitude once it is no farther below it than this."""


class Orders(NamedTuple):
    """What is ordered, since when the swarm has searched and until when it did, and what spoiled the episode."""

    order: Order = Order.WAIT
    search_begin_s: float = math.inf
    search_end_s: float = math.inf
    invalid_reason: str = ""

    def search_time_s(self, time_s: float) -> float:
        """Search time at a moment of the flight."""
        if not math.isfinite(self.search_begin_s):
            return 0.0
        return min(time_s, self.search_end_s) - self.search_begin_s

    def overdue(self, time_s: float) -> bool:
        """Whether the way home takes longer than anyone waits."""
        return self.order is Order.RETURN and time_s - self.search_end_s > RETURN_LIMIT_S


def direct(orders: Orders, episode: Episode, time_s: float, lowest_m: float, statuses: DroneStatuses) -> Orders:
    """The orders for one tick: from the lowest drone's estimated height, and how the drones stood the tick before."""
    if orders.order is Order.WAIT and time_s >= STANDING_S:
        return orders._replace(order=Order.TAKE_OFF)
    if orders.order is Order.TAKE_OFF:
        if lowest_m > episode.altitude_m - AT_ALTITUDE_M:
            return orders._replace(order=Order.SEARCH, search_begin_s=time_s)
        if time_s > TAKEOFF_LIMIT_S:
            return orders._replace(invalid_reason="takeoff_timeout")
    elif orders.order is Order.SEARCH:
        drones = zip(statuses.finished, statuses.failsafe, strict=True)
        flown = all(finished or failsafe in OUT_OF_THE_SEARCH for finished, failsafe in drones)
        if flown or orders.search_time_s(time_s) >= episode.scenario.duration_s:
            return orders._replace(order=Order.RETURN, search_end_s=time_s)
    return orders
