"""The geofence: a polygon and a ceiling the drone must not leave, and the velocity that respects them.

The polygon is the hard limit. A soft margin lies inside it: the outward speed allowed falls to nothing there, early
enough for a vehicle that needs a second to obey, so that wind and the estimate's error stay inside the margin. ENU, SI.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled
from sar_core.geometry import room, to_edge

Floats = NDArray[np.float64]

SAFE, SOFT, HARD = 0, 1, 2

APPROACH_S = 2.0
"""Outward speed allowed is the room left over this time: four times the velocity loop's lag, so nothing overshoots."""
LEAD_S = 1.0
"""How far ahead of itself a drone flying out too fast sees itself, to brake harder than by letting go."""
RETURN_MPS = 3.0
_PASSES = 4


@compiled
def fence_state(pos: Floats, fence: Floats, soft_margin: float, ceiling: float, floor: float) -> int:
    """SAFE, SOFT (within the margin of a limit) or HARD (outside)."""
    left = min(room(pos[0], pos[1], fence)[0], ceiling - pos[2], pos[2] - floor + soft_margin)
    if left <= 0.0:
        return HARD
    return SOFT if left < soft_margin else SAFE


@compiled
def keep_inside(
    pos: Floats, vel: Floats, vx: float, vy: float, fence: Floats, soft_margin: float
) -> tuple[float, float]:
    """The wanted velocity without what would carry the drone out; outside, the way back.

    Each edge near enough to matter limits the component towards its nearest point. Limits of several edges are applied
    in turn; where that does not settle (an acute corner) the drone stops.
    """
    distance, ux, uy = room(pos[0], pos[1], fence)
    if distance <= 0.0:
        return ux * RETURN_MPS, uy * RETURN_MPS
    speed = math.sqrt(vx * vx + vy * vy)
    pace = math.sqrt(vel[0] * vel[0] + vel[1] * vel[1])
    if distance - soft_margin > APPROACH_S * speed + LEAD_S * pace:
        return vx, vy
    for _ in range(_PASSES):
        changed = False
        for k in range(fence.shape[0]):
            dx, dy = to_edge(pos[0], pos[1], fence, k)
            d = math.sqrt(dx * dx + dy * dy)
            ox, oy = dx / max(d, 1e-9), dy / max(d, 1e-9)
            pull = vel[0] * ox + vel[1] * oy
            left = d - soft_margin
            allowed = max(left, 0.0) / APPROACH_S
            if pull > 0.0 and left < LEAD_S * pull:
                allowed = max(min(allowed, (left - LEAD_S * pull) / APPROACH_S), -RETURN_MPS)
            over = vx * ox + vy * oy - allowed
            if over > 1e-9:
                vx, vy = vx - over * ox, vy - over * oy
                changed = True
        if not changed:
            return vx, vy
    return 0.0, 0.0


@compiled
def keep_level(z: float, soft_margin: float, ceiling: float, floor: float) -> float:
    """The wanted altitude, brought under the ceiling by the soft margin and not below the floor."""
    return max(min(z, ceiling - soft_margin), floor)
