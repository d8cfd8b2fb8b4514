"""What each drone is told before the mission."""

from __future__ import annotations

import math

from sar_core.streams import stream
from sar_eval.scenario.model import FENCE_MARGIN_M, Episode
from sar_swarm.piloting.controller import Plan
from sar_swarm.piloting.errand import Mission
from sar_swarm.piloting.navigation import Chart
from sar_swarm.piloting.neighbours import Manners
from sar_swarm.piloting.patterns import fixed_route
from sar_swarm.piloting.pursuit import Mode, PursuitConfig
from sar_swarm.planning.trajectory import Limits

LOWEST_M = 5.0
NEAREST_M = 2.0
"""Plans keep 4 m from obstacles; the safety layer steers away once a drone is about to come nearer than this."""
RETURN_LAYER_M = 6.0
"""Neighbours fly home this much above each other, which is more than the safety layer keeps."""
PATIENCE_S = 60.0
"""How long a hypothesis may wait for its drones: long enough to come from the other end of the area."""


def make_plans(episode: Episode) -> list[Plan]:
    """What each drone is told before the mission."""
    s, w = episode.scenario, episode.world
    routes = episode.routes or [
        fixed_route(s.pattern, w.area, s.drones, i, s.swath_m, s.overlap) for i in range(s.drones)
    ]
    x_min, y_min = w.fence.min(axis=0) + FENCE_MARGIN_M
    x_max, y_max = w.fence.max(axis=0) - FENCE_MARGIN_M
    chart = Chart(
        obstacles=w.obstacles,
        bounds=(x_min, y_min, min(LOWEST_M, episode.altitude_m - 1.0), x_max, y_max, w.ceiling_m - FENCE_MARGIN_M),
        limits=Limits(s.speed_mps, math.radians(s.turn_rate_dps), s.acceleration_mps2),
    )
    pursuit = None
    by_hand = s.pattern == "boustrophedon_triangulation"
    if s.pursuit == "on" or by_hand:
        mode = Mode.TRIANGULATE if by_hand else Mode.CONSTELLATION
        pursuit = PursuitConfig(mode=mode, patience_s=PATIENCE_S, speed_mps=s.speed_mps, bounds=w.area)
    return [
        Plan(
            mission=Mission(
                index=i,
                drones=s.drones,
                pattern=s.pattern,
                area=w.area,
                swath_m=s.swath_m,
                key=(episode.seed, episode.index),
                routes=tuple(r for r in routes if r is not None),
                pursuit=pursuit,
            ),
            home=episode.spawns[i, :3],
            altitude_m=episode.altitude_m,
            return_altitude_m=min(episode.altitude_m + RETURN_LAYER_M * (i % 3), chart.bounds[5] - 1.0),
            chart=chart,
            fence=w.fence,
            manners=Manners(speed=s.speed_mps, clearance=NEAREST_M, ceiling=w.ceiling_m, floor=chart.bounds[2]),
            key=int(stream("planner", episode.seed, episode.index, i).integers(1 << 62)),
            turn_rate_rps=math.radians(s.turn_rate_dps),
            actor=episode.actor,
        )
        for i in range(s.drones)
    ]
