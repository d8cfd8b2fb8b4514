"""Obstacles and fences as arrays, and exact distances to them.

An obstacle is one row of 8 numbers, ENU metres and radians::

    [kind, cx, cy, cz, a, b, h, yaw]

kind BOX:      a, b, h are half extents along the box's own x, y and z; yaw turns it about z.
kind CYLINDER: a is the radius, h the half height, the axis is vertical; b and yaw are 0.
Both are convex and upright, so the distance along a straight flight segment is a convex function.

A fence is a polygon, its corners float64[V, 2] in order; V = 0 is none.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled, inlined

Floats = NDArray[np.float64]

BOX = 0.0
CYLINDER = 1.0
ROW = 8


def box(cx: float, cy: float, cz: float, sx: float, sy: float, sz: float, yaw: float = 0.0) -> Floats:
    """A row for a box given its centre and full sizes."""
    return np.array([BOX, cx, cy, cz, sx / 2, sy / 2, sz / 2, yaw])


def cylinder(cx: float, cy: float, cz: float, radius: float, height: float) -> Floats:
    """A row for an upright cylinder given its centre, radius and full height."""
    return np.array([CYLINDER, cx, cy, cz, radius, 0.0, height / 2, 0.0])


def no_obstacles() -> Floats:
    return np.zeros((0, ROW))


@compiled
def distance_to(row: Floats, x: float, y: float, z: float) -> float:
    """Signed distance from a point to one obstacle: negative inside."""
    dx = x - row[1]
    dy = y - row[2]
    ez = abs(z - row[3]) - row[6]
    if row[0] == BOX:
        c = math.cos(row[7])
        s = math.sin(row[7])
        ex = abs(c * dx + s * dy) - row[4]
        ey = abs(-s * dx + c * dy) - row[5]
        inside = min(max(ex, ey, ez), 0.0)
        ox = max(ex, 0.0)
        oy = max(ey, 0.0)
        oz = max(ez, 0.0)
        return float(math.sqrt(ox * ox + oy * oy + oz * oz) + inside)
    er = math.sqrt(dx * dx + dy * dy) - row[4]
    inside = min(max(er, ez), 0.0)
    orr = max(er, 0.0)
    oz = max(ez, 0.0)
    return float(math.sqrt(orr * orr + oz * oz) + inside)


@compiled
def nearest(obstacles: Floats, x: float, y: float, z: float) -> tuple[float, int]:
    """Signed distance to the nearest obstacle and its index; (inf, -1) where there is none."""
    best = np.inf
    index = -1
    for m in range(obstacles.shape[0]):
        d = distance_to(obstacles[m], x, y, z)
        if d < best:
            best = d
            index = m
    return best, index


@compiled
def gradient(row: Floats, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Unit vector along which the distance to one obstacle grows fastest (central differences)."""
    e = 1e-4
    gx = distance_to(row, x + e, y, z) - distance_to(row, x - e, y, z)
    gy = distance_to(row, x, y + e, z) - distance_to(row, x, y - e, z)
    gz = distance_to(row, x, y, z + e) - distance_to(row, x, y, z - e)
    n = math.sqrt(gx * gx + gy * gy + gz * gz)
    if n < 1e-12:
        return 0.0, 0.0, 1.0
    return gx / n, gy / n, gz / n


@compiled
def segment_distance(row: Floats, a: Floats, b: Floats) -> tuple[float, float]:
    """Least signed distance from the segment a-b to one obstacle, and where on it (0 at a, 1 at b).

    The signed distance to a convex body is convex along a line, so a golden-section search is exact to its
    tolerance (1e-6 of the segment).
    """
    ratio = 0.6180339887498949
    lo = 0.0
    hi = 1.0
    s1 = hi - ratio * (hi - lo)
    s2 = lo + ratio * (hi - lo)
    f1 = distance_to(row, a[0] + s1 * (b[0] - a[0]), a[1] + s1 * (b[1] - a[1]), a[2] + s1 * (b[2] - a[2]))
    f2 = distance_to(row, a[0] + s2 * (b[0] - a[0]), a[1] + s2 * (b[1] - a[1]), a[2] + s2 * (b[2] - a[2]))
    while hi - lo > 1e-6:
        if f1 <= f2:
            hi = s2
            s2 = s1
            f2 = f1
            s1 = hi - ratio * (hi - lo)
            f1 = distance_to(row, a[0] + s1 * (b[0] - a[0]), a[1] + s1 * (b[1] - a[1]), a[2] + s1 * (b[2] - a[2]))
        else:
            lo = s1
            s1 = s2
            f1 = f2
            s2 = lo + ratio * (hi - lo)
            f2 = distance_to(row, a[0] + s2 * (b[0] - a[0]), a[1] + s2 * (b[1] - a[1]), a[2] + s2 * (b[2] - a[2]))
    s = 0.5 * (lo + hi)
    best = min(f1, f2)
    for end in (0.0, 1.0):
        d = distance_to(row, a[0] + end * (b[0] - a[0]), a[1] + end * (b[1] - a[1]), a[2] + end * (b[2] - a[2]))
        if d < best:
            best = d
            s = end
    return best, s


@inlined
def to_edge(px: float, py: float, fence: Floats, k: int) -> tuple[float, float]:
    """From the point to the nearest point of the k-th edge."""
    n = fence.shape[0]
    ax, ay = fence[k, 0], fence[k, 1]
    ex, ey = fence[(k + 1) % n, 0] - ax, fence[(k + 1) % n, 1] - ay
    length = ex * ex + ey * ey
    t = 0.0 if length <= 0.0 else min(max(((px - ax) * ex + (py - ay) * ey) / length, 0.0), 1.0)
    return ax + t * ex - px, ay + t * ey - py


@compiled
def room(px: float, py: float, fence: Floats) -> tuple[float, float, float]:
    """Distance to the polygon (negative outside, infinite without one) and the unit vector towards its nearest edge."""
    best, bx, by = np.inf, 0.0, 0.0
    inside = False
    n = fence.shape[0]
    for k in range(n):
        dx, dy = to_edge(px, py, fence, k)
        d = dx * dx + dy * dy
        if d < best:
            best, bx, by = d, dx, dy
        ay, by2 = fence[k, 1], fence[(k + 1) % n, 1]
        if (ay > py) != (by2 > py):
            cross = fence[k, 0] + (py - ay) / (by2 - ay) * (fence[(k + 1) % n, 0] - fence[k, 0])
            if px < cross:
                inside = not inside
    if n == 0:
        return np.inf, 0.0, 0.0
    distance = math.sqrt(best)
    if distance > 0.0:
        bx, by = bx / distance, by / distance
    return (distance if inside else -distance), bx, by


@inlined
def crosses_rectangle(px: float, py: float, qx: float, qy: float, a: float, b: float) -> bool:
    """Whether the segment p-q touches the rectangle |x| < a, |y| < b (slab test)."""
    low, high = 0.0, 1.0
    for start, move, half in ((px, qx - px, a), (py, qy - py, b)):
        if abs(move) < 1e-12:
            if abs(start) >= half:
                return False
            continue
        t1, t2 = (-half - start) / move, (half - start) / move
        low, high = max(low, min(t1, t2)), min(high, max(t1, t2))
    return low < high


@inlined
def from_segment2(x: float, y: float, px: float, py: float, qx: float, qy: float) -> float:
    """Squared distance of the point (x, y) from the segment p-q."""
    mx, my = qx - px, qy - py
    length = mx * mx + my * my
    t = 0.0 if length <= 0.0 else min(max(((x - px) * mx + (y - py) * my) / length, 0.0), 1.0)
    return (x - px - t * mx) ** 2 + (y - py - t * my) ** 2
