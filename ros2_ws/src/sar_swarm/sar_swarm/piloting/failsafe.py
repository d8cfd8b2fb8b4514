"""What a drone does when something is wrong: seven states, judged once per tick from the drone's own vitals.

A drone assesses itself from lift-off to touch-down. The rules, the first that applies wins:

| state | entered when | left when |
|---|---|---|
| CONTROLLED_DESCENT | a motor is out; no fix for 5 s; tilted beyond 60 deg for 0.3 s; wild for 1 s | never |
| EMERGENCY_LAND | the charge does not carry it home | for CONTROLLED_DESCENT |
| EMERGENCY_DIVERGE | the safety layer's last band, or another drone within 1.5 m | 2 m apart and band below 4 |
| AUTONOMOUS_HOLD | no fix for 1 s | there is a fix |
| RETURN_TO_HOME | charge 15 % or less; nothing heard for 30 s | for any state above |
| AUTONOMOUS_HOLD | nothing heard for 3 s | something is heard |
| LOW_BATTERY_WARN | charge 20 % or less | charge above 22 % |
| NOMINAL | | |

Wild is 8 m below the commanded altitude and not climbing, sinking at 3 m/s or flying at 15 m/s: no setpoint asks for
that. The link is the swarm's: what a drone misses is the others' broadcasts; orders come another way. A drone that
cannot hear the others cannot keep out of their way, so it stops, and after half a minute leaves. Once begun a return
is not called off, whatever comes back: by then others have taken over its share. A crippled drone coming down does not
diverge; the others see its state and keep clear of it.

What is not a number is never good news:

| not finite | is taken as |
|---|---|
| position, velocity, gps_age_s, tilt_rad | no fix, no attitude: CONTROLLED_DESCENT at once |
| charge | 15 %: RETURN_TO_HOME; it cannot be told whether it gets there |
| home_distance_m | out of reach: EMERGENCY_LAND if it has to return, AUTONOMOUS_HOLD before |
| altitude_error_m | wild: CONTROLLED_DESCENT after its second |
| heard_age_s infinite | nothing heard for ever: RETURN_TO_HOME; NaN says that there is no one to hear |
| nearest_m NaN, time_s | blind: AUTONOMOUS_HOLD; an infinite distance says that no one is near |
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Failsafe(IntEnum):
    """The states, with their codes on the link and in UavStatus."""

    NOMINAL = 0
    AUTONOMOUS_HOLD = 1
    LOW_BATTERY_WARN = 2
    RETURN_TO_HOME = 3
    EMERGENCY_LAND = 4
    EMERGENCY_DIVERGE = 5
    CONTROLLED_DESCENT = 6


class FailsafeLimits(NamedTuple):
    """Where the states begin. Charges are shares of a full battery."""

    link_hold_s: float = 3.0
    link_return_s: float = 30.0
    battery_warn: float = 0.20
    battery_recover: float = 0.22
    battery_return: float = 0.15
    touch_down: float = 0.03
    """What coming down from altitude costs: 45 s of the 25 min of hover that a full battery lasts."""
    charge_per_m: float = 1.2e-4
    """8 m/s on that battery is 0.83e-4 per metre; the rest is for wind and detours."""
    gps_hold_s: float = 1.0
    gps_descent_s: float = 5.0
    """PX4's EKF2_NOAID_TOUT: after it the estimator itself gives its position up."""
    tilt_rad: float = math.radians(60.0)
    """PX4's FD_FAIL_R and FD_FAIL_P."""
    tilt_s: float = 0.3
    """PX4's FD_FAIL_R_TTRI and FD_FAIL_P_TTRI."""
    sunk_m: float = 8.0
    climb_mps: float = 0.5
    sink_mps: float = 3.0
    """PX4 sinks at 1.5 m/s at most (MPC_Z_VEL_MAX_DN) ..."""
    speed_mps: float = 15.0
    """... and flies at 12 m/s at most (MPC_XY_VEL_MAX)."""
    control_s: float = 1.0
    diverge_m: float = 1.5
    apart_m: float = 2.0
    diverge_band: int = 4


LIMITS = FailsafeLimits()


class Vitals(NamedTuple):
    """What a drone knows of its own health; positions ENU, its own estimate."""

    time_s: float
    position: Floats
    velocity: Floats
    charge: float
    heard_age_s: float
    """Since anything was received on the swarm link; NaN if no other drone is expected."""
    gps_age_s: float
    """Since the estimator's last fix."""
    motors_ok: bool
    tilt_rad: float
    nearest_m: float
    """To the nearest other drone; infinite if none is known."""
    band: int
    """Of the safety layer, 0 (free) to 4 (diverge)."""
    altitude_error_m: float
    """Commanded minus own altitude; 0 while no altitude is commanded."""
    home_distance_m: float


class FailsafeState(NamedTuple):
    """The state, since when, and what must not be forgotten."""

    state: Failsafe = Failsafe.NOMINAL
    since_s: float = 0.0
    crippled: bool = False
    landing: bool = False
    returning: bool = False
    low: bool = False
    diverging: bool = False
    tilted_s: float = math.inf
    """Since when it is tilted too far; infinite while it is not. The next likewise for control."""
    wild_s: float = math.inf


def assess(failsafe: FailsafeState, vitals: Vitals, limits: FailsafeLimits = LIMITS) -> FailsafeState:
    """One tick of watch: what is remembered first, then the state that follows from it."""
    tilted_s = _since(failsafe.tilted_s, not vitals.tilt_rad <= limits.tilt_rad, vitals.time_s)
    wild_s = _since(failsafe.wild_s, _is_wild(vitals, limits), vitals.time_s)
    held = vitals.time_s - tilted_s >= limits.tilt_s or vitals.time_s - wild_s >= limits.control_s
    crippled = failsafe.crippled or held or _is_crippled(vitals, limits)
    returning = failsafe.returning or _must_return(vitals, limits)
    failsafe = failsafe._replace(
        crippled=crippled,
        returning=returning,
        landing=failsafe.landing or (returning and not _gets_home(vitals, limits)),
        low=not vitals.charge > (limits.battery_recover if failsafe.low else limits.battery_warn),
        diverging=_must_diverge(failsafe.diverging, vitals, limits),
        tilted_s=tilted_s,
        wild_s=wild_s,
    )
    state = _state(failsafe, vitals, limits)
    if state == failsafe.state:
        return failsafe
    return failsafe._replace(state=state, since_s=vitals.time_s if math.isfinite(vitals.time_s) else failsafe.since_s)


def _state(failsafe: FailsafeState, vitals: Vitals, limits: FailsafeLimits) -> Failsafe:
    if failsafe.crippled:
        return Failsafe.CONTROLLED_DESCENT
    if failsafe.landing:
        return Failsafe.EMERGENCY_LAND
    if failsafe.diverging:
        return Failsafe.EMERGENCY_DIVERGE
    if vitals.gps_age_s >= limits.gps_hold_s or math.isnan(vitals.nearest_m) or not math.isfinite(vitals.time_s):
        return Failsafe.AUTONOMOUS_HOLD
    if failsafe.returning:
        return Failsafe.RETURN_TO_HOME
    if vitals.heard_age_s > limits.link_hold_s or not math.isfinite(vitals.home_distance_m):
        return Failsafe.AUTONOMOUS_HOLD
    return Failsafe.LOW_BATTERY_WARN if failsafe.low else Failsafe.NOMINAL


def _since(since_s: float, now: bool, time_s: float) -> float:
    """When a condition that holds began; infinite if it does not hold. A broken clock changes nothing."""
    if not now:
        return math.inf
    return min(since_s, time_s) if math.isfinite(time_s) else since_s


def _is_wild(vitals: Vitals, limits: FailsafeLimits) -> bool:
    """The vehicle does not do what it is told, by height or by speed."""
    error, (east, north, up) = vitals.altitude_error_m, vitals.velocity
    sunk = error > limits.sunk_m and not up > limits.climb_mps
    fast = up < -limits.sink_mps or math.hypot(east, north) > limits.speed_mps
    return sunk or fast or not math.isfinite(error)


def _is_crippled(vitals: Vitals, limits: FailsafeLimits) -> bool:
    """A motor, or the knowledge of where it is and which way is up, is gone."""
    known = all(math.isfinite(x) for x in (*vitals.position, *vitals.velocity, vitals.gps_age_s, vitals.tilt_rad))
    return not (vitals.motors_ok and known and vitals.gps_age_s < limits.gps_descent_s)


def _must_return(vitals: Vitals, limits: FailsafeLimits) -> bool:
    deaf = math.isinf(vitals.heard_age_s) or vitals.heard_age_s > limits.link_return_s
    return deaf or not vitals.charge > limits.battery_return or not math.isfinite(vitals.charge)


def _gets_home(vitals: Vitals, limits: FailsafeLimits) -> bool:
    """Whether the charge lasts for the way home and down; one that is not known may."""
    needed = limits.touch_down + limits.charge_per_m * vitals.home_distance_m
    return math.isfinite(needed) and not (math.isfinite(vitals.charge) and vitals.charge < needed)


def _must_diverge(diverging: bool, vitals: Vitals, limits: FailsafeLimits) -> bool:
    """Begun within the inner distance, kept up to the outer one."""
    return vitals.band >= limits.diverge_band or vitals.nearest_m < (limits.apart_m if diverging else limits.diverge_m)
