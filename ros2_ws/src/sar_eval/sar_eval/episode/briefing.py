"""What the swarm is told before the mission: the map, the task and its own equipment, and nothing of the truth.

``briefing_of`` is the door: the one place where something made for the swarm looks at the episode.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sar_core.radio import WAVELENGTH_M
from sar_core.streams import stream
from sar_eval.scenario.model import FENCE_MARGIN_M, Episode
from sar_sim.radio.devices import known_addresses
from sar_sim.radio.radioconfig import RadioConfig
from sar_swarm.piloting.controller import DronePlan
from sar_swarm.piloting.navigation import Chart
from sar_swarm.piloting.neighbours import SeparationLimits
from sar_swarm.piloting.patternlist import find
from sar_swarm.piloting.patterns import fixed_routes
from sar_swarm.piloting.policy import Actor
from sar_swarm.piloting.pursuit import PursuitConfig, PursuitMode
from sar_swarm.piloting.searchtask import Mission
from sar_swarm.planning.trajectory import MotionLimits
from sar_swarm.sensing.attention import Bias
from sar_swarm.sensing.confidence import Calibration
from sar_swarm.sensing.observation import RangeLaw

Floats = NDArray[np.float64]

LOWEST_M = 5.0
NEAREST_M = 2.0
"""Plans keep 4 m from obstacles; the safety layer steers away once a drone is about to come nearer than this."""
RETURN_LAYER_M = 6.0
"""Neighbours fly home this much above each other, which is more than the safety layer keeps."""
PATIENCE_S = 60.0
"""How long a hypothesis may wait for its drones: long enough to come from the other end of the area."""


@dataclass(frozen=True, eq=False)
class RadioBriefing:
    """What the drones know of their receivers and of who may be on the air."""

    law: RangeLaw
    """What signal strength says of the range to a phone as the link budget expects victims' to be."""
    bearing_bias_rad: float
    noise_dbm: float
    known_addresses: tuple[int, ...]
    """A part of the rescuers' radios and access points, by address alone: the list is incomplete by design."""
    calibration: Calibration | None
    """Without one the swarm puts no probability on what it finds, so it reports nothing."""
    gate_forced_open: bool
    attention: Bias


@dataclass(frozen=True, eq=False)
class Briefing:
    """One swarm's orders. ENU, metres; ``key`` (seed, episode) opens the swarm's own random streams.

    Fields are numbers, the a-priori map and what the drones carry: nothing here has room for an episode, a device or a
    simulator's state.
    """

    drones: int
    pattern: str
    pursuit: bool
    key: tuple[int, int]
    spawns: Floats
    """[N, 4] x, y, z of the feet, yaw."""
    altitude_m: float
    speed_mps: float
    turn_rate_rps: float
    acceleration_mps2: float
    swath_m: float
    overlap: float
    area: tuple[float, float, float, float]
    """West, south, east, north."""
    fence: Floats
    """[V, 2]"""
    ceiling_m: float
    obstacles: Floats
    """[M, 8] rows of sar_core.geometry."""
    radio: RadioBriefing | None
    actor: Actor | None
    routes: tuple[Floats, ...] = ()
    """Ways [K, 2] given instead of the pattern's own: only the oracle's swarm, which may know the truth, has any."""


def briefing_of(episode: Episode) -> Briefing:
    """What the drones of an episode are told."""
    s, w = episode.scenario, episode.world
    return Briefing(
        drones=s.drones,
        pattern=s.pattern,
        pursuit=s.pursuit == "on",
        key=(episode.seed, episode.index),
        spawns=episode.spawns,
        altitude_m=episode.altitude_m,
        speed_mps=s.speed_mps,
        turn_rate_rps=math.radians(s.turn_rate_dps),
        acceleration_mps2=s.acceleration_mps2,
        swath_m=s.swath_m,
        overlap=s.overlap,
        area=w.area,
        fence=w.fence,
        ceiling_m=w.ceiling_m,
        obstacles=w.obstacles,
        radio=_radio_of(episode),
        actor=episode.actor,
        routes=episode.routes,
    )


def range_law(radio: RadioConfig) -> RangeLaw:
    """What a link budget says of victims' phones: their usual strength in free space, and how far they spread."""
    first_metre_db = 20.0 * math.log10(4.0 * math.pi / WAVELENGTH_M)
    return RangeLaw(
        reference_dbm=radio.victim_dbm - first_metre_db,
        shadowing_db=radio.shadowing_db,
        power_db=radio.power_spread_db,
        fading_db=radio.fading_db,
    )


def _radio_of(episode: Episode) -> RadioBriefing | None:
    radio = episode.radio
    if radio is None:
        return None
    return RadioBriefing(
        law=range_law(radio),
        bearing_bias_rad=radio.bearing_bias_rad,
        noise_dbm=radio.noise_dbm,
        known_addresses=known_addresses(episode.devices),
        calibration=episode.calibration,
        gate_forced_open=episode.scenario.gate == "forced_open",
        attention=Bias(episode.scenario.attention),
    )


def make_plans(told: Briefing) -> list[DronePlan]:
    """One drone's orders each, in the order of the spawn points."""
    routes = told.routes or fixed_routes(told.pattern, told.area, told.drones, told.swath_m, told.overlap) or ()
    x_min, y_min = told.fence.min(axis=0) + FENCE_MARGIN_M
    x_max, y_max = told.fence.max(axis=0) - FENCE_MARGIN_M
    lowest = min(LOWEST_M, told.altitude_m - 1.0)
    chart = Chart(
        obstacles=told.obstacles,
        bounds=(x_min, y_min, lowest, x_max, y_max, told.ceiling_m - FENCE_MARGIN_M),
        limits=MotionLimits(told.speed_mps, told.turn_rate_rps, told.acceleration_mps2),
    )
    pursuit = None
    by_hand = find(told.pattern).triangulates
    if told.pursuit or by_hand:
        mode = PursuitMode.TRIANGULATE if by_hand else PursuitMode.CONSTELLATION
        pursuit = PursuitConfig(mode=mode, patience_s=PATIENCE_S, speed_mps=told.speed_mps, bounds=told.area)
    return [
        DronePlan(
            mission=Mission(
                index=i,
                drones=told.drones,
                pattern=told.pattern,
                area=told.area,
                swath_m=told.swath_m,
                key=told.key,
                routes=routes,
                pursuit=pursuit,
            ),
            home=told.spawns[i, :3],
            altitude_m=told.altitude_m,
            return_altitude_m=min(told.altitude_m + RETURN_LAYER_M * (i % 3), chart.bounds[5] - 1.0),
            chart=chart,
            fence=told.fence,
            separation=SeparationLimits(
                speed_mps=told.speed_mps, clearance_m=NEAREST_M, ceiling_m=told.ceiling_m, floor_m=lowest
            ),
            key=int(stream("planner", *told.key, i).integers(1 << 62)),
            turn_rate_rps=told.turn_rate_rps,
            actor=told.actor,
        )
        for i in range(told.drones)
    ]
