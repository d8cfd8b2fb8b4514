"""The map as a planner asks it: is this straight piece of way free, and how near is the nearest obstacle.

Built once per map. Upright bodies are sorted into the cells of a grid, each cell listing every body within ``reach_m``
of it, so a question looks only at bodies near by. A piece of way is cut at the cells' borders and each part is held
against its own cell's list: the answer is that of an exact check against all bodies. ENU, metres.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled, inlined
from sar_core.errors import InputError
from sar_core.geometry import BOX, ROW

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

_CELLS = 15_000
_LEAST_CELL_M = 3.0
_SLACK_M = 1e-6
_TOLERANCE = 1e-10
_STEPS = 60
_BODIES = 12
_BODY = 10
_COS, _SIN = 8, 9

FREE = -1
OUTSIDE = -2


class PlanMap(NamedTuple):
    """Obstacles within bounds, sorted for questions.

    It has only two arrays, because every array that is handed to a kernel costs time. reach_m is the largest clearance
    or influence that may be asked for; the grid has nx * ny * nz cells of cell_m; bodies is how many obstacles there
    are. floats float64: the bounds (lows of x, y, z, then highs) and the six scalars below; per body its obstacle row
    and the yaw's cosine and sine (10 numbers); per cell a distance to the nearest body that none of its points falls
    short of (rooms), then one that none exceeds (depths); then for every entry of the lists how near the body at least
    is to the cell (gaps).
    ints int32: where each cell's list begins (cells + 1 numbers), then the lists of bodies, nearest first.
    """

    floats: Floats
    ints: Ints
    cell_m: float
    reach_m: float
    nx: int
    ny: int
    nz: int
    bodies: int

    @property
    def bounds(self) -> Floats:
        """Where one may fly: x_min, y_min, z_min, x_max, y_max, z_max."""
        return self.floats[:6]

    @property
    def obstacles(self) -> Floats:
        """The obstacles [M, 8] as they were given."""
        return self.floats[_BODIES : _BODIES + _BODY * self.bodies].reshape(-1, _BODY)[:, :ROW]


def plan_map(obstacles: Floats, bounds: Floats, reach_m: float = 6.0) -> PlanMap:
    """Sort obstacles [M, 8] for flights within the bounds (x_min, y_min, z_min, x_max, y_max, z_max)."""
    rows = np.asarray(obstacles, dtype=np.float64).reshape(-1, ROW)
    box = np.array(bounds, dtype=np.float64)
    if box.shape != (6,) or not np.all(np.isfinite(box)) or not np.all(box[3:] > box[:3]):
        raise InputError(f"bounds are 6 finite numbers, lows then higher highs, got {box.tolist()}")
    if not np.all(np.isfinite(rows)):
        raise InputError(f"obstacle {int(np.nonzero(~np.isfinite(rows))[0][0])} has a number that is not finite")
    if not 0.0 < reach_m < math.inf:
        raise InputError(f"reach_m must be above 0, got {reach_m}")
    sides = box[3:] - box[:3]
    cell = max(float(np.cbrt(np.prod(sides) / _CELLS)), _LEAST_CELL_M)
    shape = np.maximum(np.ceil(sides / cell), 1.0).astype(np.int64)
    bodies = np.column_stack((rows, np.cos(rows[:, 7]), np.sin(rows[:, 7])))
    scalars = (cell, reach_m, *shape, len(rows))
    floats = np.concatenate((box, scalars, bodies.reshape(-1)))
    ints, cells = _sort(floats, len(rows), cell, shape, float(reach_m))
    nx, ny, nz = (int(n) for n in shape)
    return PlanMap(np.concatenate((floats, cells)), ints, cell, float(reach_m), nx, ny, nz, len(rows))


@inlined
def open_map(floats: Floats, ints: Ints) -> PlanMap:
    """The map from its arrays, inside a kernel: two arrays cross from Python faster than a tuple of eight."""
    return PlanMap(floats, ints, floats[6], floats[7], int(floats[8]), int(floats[9]), int(floats[10]), int(floats[11]))


@inlined
def _local(floats: Floats, o: int, x: float, y: float) -> tuple[float, float]:
    """Horizontal position in the body's own frame."""
    dx = x - floats[o + 1]
    dy = y - floats[o + 2]
    return floats[o + _COS] * dx + floats[o + _SIN] * dy, floats[o + _COS] * dy - floats[o + _SIN] * dx


@inlined
def _excess(floats: Floats, o: int, u: float, v: float, w: float) -> tuple[float, float, float]:
    """How far a point in the body's frame lies beyond its extents (0 within), along u, v and up.

    A cylinder's radial excess stands in the first place.
    """
    ew = max(abs(w) - floats[o + 6], 0.0)
    if floats[o] == BOX:
        return max(abs(u) - floats[o + 4], 0.0), max(abs(v) - floats[o + 5], 0.0), ew
    return max(math.sqrt(u * u + v * v) - floats[o + 4], 0.0), 0.0, ew


@inlined
def _distance(floats: Floats, o: int, x: float, y: float, z: float) -> float:
    """Distance to the body, 0 inside."""
    u, v = _local(floats, o, x, y)
    eu, ev, ew = _excess(floats, o, u, v, z - floats[o + 3])
    return math.sqrt(eu * eu + ev * ev + ew * ew)


@inlined
def _window(floats: Floats, o: int, axis: int, low: float, cell: float, count: int, reach: float) -> tuple[int, int]:
    """Cells along one axis that a body's extent, grown by the reach, touches."""
    half = floats[o + 6]
    if axis < 2:
        half = floats[o + 4]
        if floats[o] == BOX:
            c, s = abs(floats[o + _COS]), abs(floats[o + _SIN])
            half = c * floats[o + 4] + s * floats[o + 5] if axis == 0 else s * floats[o + 4] + c * floats[o + 5]
    below = (floats[o + 1 + axis] - half - reach - _SLACK_M - low) / cell
    above = (floats[o + 1 + axis] + half + reach + _SLACK_M - low) / cell
    return math.floor(max(below, 0.0)), math.floor(min(above, float(count - 1))) + 1


@compiled
def _sort(floats: Floats, count: int, cell: float, shape: Longs, reach: float) -> tuple[Ints, Floats]:
    """Which bodies each cell must know, those within reach of any of its points; ints and what follows the bodies."""
    cells = shape[0] * shape[1] * shape[2]
    starts = np.zeros(cells + 1, np.int32)
    depths = np.full(cells, np.inf)
    half_cell = 0.5 * math.sqrt(3.0) * cell + _SLACK_M
    items, gaps = np.empty(0, np.int32), np.empty(0)
    cursor = np.empty(0, np.int32)
    for fill in (False, True):
        for m in range(count):
            o = _BODIES + _BODY * m
            i0, i1 = _window(floats, o, 0, floats[0], cell, shape[0], reach)
            j0, j1 = _window(floats, o, 1, floats[1], cell, shape[1], reach)
            k0, k1 = _window(floats, o, 2, floats[2], cell, shape[2], reach)
            for i in range(i0, i1):
                for j in range(j0, j1):
                    for k in range(k0, k1):
                        x, y = floats[0] + (i + 0.5) * cell, floats[1] + (j + 0.5) * cell
                        gap = _distance(floats, o, x, y, floats[2] + (k + 0.5) * cell) - half_cell
                        if gap > reach:
                            continue
                        c = (i * shape[1] + j) * shape[2] + k
                        if not fill:
                            starts[c + 1] += 1
                            depths[c] = min(depths[c], gap + 2.0 * half_cell)
                            continue
                        n = cursor[c]
                        while n > starts[c] and gaps[n - 1] > gap:
                            items[n], gaps[n] = items[n - 1], gaps[n - 1]
                            n -= 1
                        items[n], gaps[n] = m, gap
                        cursor[c] += 1
        if not fill:
            for c in range(cells):
                starts[c + 1] += starts[c]
            items, gaps = np.empty(starts[cells], np.int32), np.empty(starts[cells])
            cursor = starts[:-1].copy()
    rooms = _rooms(starts, gaps, shape, cell, reach)
    return np.concatenate((starts, items)), np.concatenate((rooms, depths, gaps))


@compiled
def _rooms(starts: Ints, gaps: Floats, shape: Longs, cell: float, reach: float) -> Floats:
    """Per cell a distance to the nearest body that none of its points falls short of.

    A body farther than the reach lies beyond as many cells, counted along the longest axis, as there are to the
    nearest cell with a list; two raster passes count them.
    """
    nx, ny, nz = shape
    steps = np.full((nx + 2, ny + 2, nz + 2), 32000, np.int32)
    for i in range(nx):
        for j in range(ny):
            for k in range(nz):
                c = (i * ny + j) * nz + k
                if starts[c + 1] > starts[c]:
                    steps[i + 1, j + 1, k + 1] = 0
    for forward in (True, False):
        for ii in range(nx):
            i = ii + 1 if forward else nx - ii
            for jj in range(ny):
                j = jj + 1 if forward else ny - jj
                for kk in range(nz):
                    k = kk + 1 if forward else nz - kk
                    back = -1 if forward else 1
                    least = min(steps[i, j, k + back], steps[i, j + back, k])
                    for d in (-1, 0, 1):
                        least = min(least, steps[i, j + back, k + d])
                        for e in (-1, 0, 1):
                            least = min(least, steps[i + back, j + d, k + e])
                    steps[i, j, k] = min(steps[i, j, k], least + 1)
    rooms = np.empty(nx * ny * nz)
    for c in range(rooms.shape[0]):
        away = steps[c // (ny * nz) + 1, c // nz % ny + 1, c % nz + 1]
        rooms[c] = gaps[starts[c]] if away == 0 else reach + (away - 1) * cell
    return rooms


@inlined
def _square(
    floats: Floats, o: int, u: float, v: float, w: float, du: float, dv: float, dw: float
) -> tuple[float, float]:
    """Squared distance to the body at a point of its frame, and half its rate along a direction."""
    eu, ev, ew = _excess(floats, o, u, v, w)
    rate = ew * (dw if w > 0.0 else -dw)
    if floats[o] == BOX:
        rate += eu * (du if u > 0.0 else -du) + ev * (dv if v > 0.0 else -dv)
    elif eu > 0.0:
        rate += eu * (u * du + v * dv) / (eu + floats[o + 4])
    return eu * eu + ev * ev + ew * ew, rate


@inlined
def _clear_of(
    floats: Floats, o: int, ax: float, ay: float, az: float, bx: float, by: float, bz: float, clearance: float
) -> bool:
    """Whether the segment a-b keeps the clearance from one body.

    The squared distance along a segment is convex, so a secant search on its rate brackets the least value; tangents
    bound it from below, and most questions end after two or three looks. A doubt is answered with no.
    """
    au, av = _local(floats, o, ax, ay)
    bu, bv = _local(floats, o, bx, by)
    aw = az - floats[o + 3]
    bw = bz - floats[o + 3]
    hu = floats[o + 4] + clearance
    hv = (floats[o + 5] if floats[o] == BOX else floats[o + 4]) + clearance
    hw = floats[o + 6] + clearance
    if min(au, bu) >= hu or max(au, bu) <= -hu or min(av, bv) >= hv or max(av, bv) <= -hv:
        return True
    if min(aw, bw) >= hw or max(aw, bw) <= -hw:
        return True
    du, dv, dw = bu - au, bv - av, bw - aw
    limit = clearance * clearance
    enough = limit * (1.0 - _TOLERANCE)
    f0, g0 = _square(floats, o, au, av, aw, du, dv, dw)
    if f0 < enough:
        return False
    if g0 >= 0.0:
        return True
    f1, g1 = _square(floats, o, bu, bv, bw, du, dv, dw)
    if f1 < enough:
        return False
    if g1 <= 0.0:
        return True
    lo, hi = 0.0, 1.0
    for step in range(_STEPS):
        s = lo + (hi - lo) * g0 / (g0 - g1)
        if step % 3 == 2:
            s = 0.5 * (lo + hi)
        f, g = _square(floats, o, au + s * du, av + s * dv, aw + s * dw, du, dv, dw)
        if f < enough:
            return False
        if f + 2.0 * g * ((lo if g > 0.0 else hi) - s) >= enough:
            return True
        if g > 0.0:
            hi, g1 = s, g
        else:
            lo, g0 = s, g
    return False


@inlined
def within(plan: PlanMap, x: float, y: float, z: float) -> bool:
    """Whether a point lies in the bounds; never for what is not a number."""
    f = plan.floats
    return bool(f[0] <= x <= f[3] and f[1] <= y <= f[4] and f[2] <= z <= f[5])


@inlined
def _body(m: int) -> int:
    """Where body m begins among the floats."""
    return _BODIES + _BODY * m


@inlined
def _rooms_at(plan: PlanMap) -> tuple[int, int]:
    """How many cells there are, and where their rooms begin among the floats; depths and gaps follow."""
    return plan.nx * plan.ny * plan.nz, _BODIES + _BODY * plan.bodies


@inlined
def _cell(plan: PlanMap, x: float, y: float, z: float) -> tuple[int, int, int]:
    per_m = 1.0 / plan.cell_m
    i = min(max(int((x - plan.floats[0]) * per_m), 0), plan.nx - 1)
    j = min(max(int((y - plan.floats[1]) * per_m), 0), plan.ny - 1)
    return i, j, min(max(int((z - plan.floats[2]) * per_m), 0), plan.nz - 1)


@inlined
def _exit(low: float, cell: float, index: int, start: float, per_way: float) -> float:
    """Where on a segment its coordinate ``start + s / per_way`` leaves the cell with this index."""
    if per_way == 0.0:
        return np.inf
    return (low + (index + (per_way > 0.0)) * cell - start) * per_way


@inlined
def _inverse(way: float) -> float:
    """1 / way, and 0 where the way does not move."""
    return 1.0 / way if abs(way) > 1e-12 else 0.0


@inlined
def edge_free(
    plan: PlanMap, ax: float, ay: float, az: float, bx: float, by: float, bz: float, clearance: float
) -> bool:
    """Whether the segment a-b stays in the bounds and keeps the clearance from everything."""
    return blocker(plan, ax, ay, az, bx, by, bz, clearance)[0] == FREE


@compiled
def blocker(
    plan: PlanMap, ax: float, ay: float, az: float, bx: float, by: float, bz: float, clearance: float
) -> tuple[int, float]:
    """The body first met within the clearance on the way from a to b, and what share of the way is free before it.

    FREE if there is none, OUTSIDE if the way leaves the bounds; the share is right up to one cell, on the safe side.
    Cells with room to spare are crossed in one stride, as far as their room carries.
    """
    if not (within(plan, ax, ay, az) and within(plan, bx, by, bz) and clearance <= plan.reach_m):
        return OUTSIDE, 0.0
    cells, rooms = _rooms_at(plan)
    lists, depths, gaps = cells + 1, rooms + cells, rooms + 2 * cells
    dx, dy, dz = bx - ax, by - ay, bz - az
    per_x, per_y, per_z = _inverse(dx), _inverse(dy), _inverse(dz)
    per_m = 1.0 / max(math.sqrt(dx * dx + dy * dy + dz * dz), _SLACK_M)
    nudge = 0.1 * _SLACK_M * per_m
    s = 0.0
    while True:
        px, py, pz = ax + s * dx, ay + s * dy, az + s * dz
        i, j, k = _cell(plan, px, py, pz)
        c = (i * plan.ny + j) * plan.nz + k
        room = plan.floats[rooms + c]
        tx = _exit(plan.floats[0], plan.cell_m, i, ax, per_x)
        ty = _exit(plan.floats[1], plan.cell_m, j, ay, per_y)
        t = max(min(tx, ty, _exit(plan.floats[2], plan.cell_m, k, az, per_z)), s) + nudge
        if room >= clearance:
            t = min(max(t, s + (room - clearance) * per_m), 1.0)
        elif plan.floats[depths + c] < clearance:
            return int(plan.ints[lists + plan.ints[c]]), s
        else:
            t = min(t, 1.0)
            qx, qy, qz = ax + t * dx, ay + t * dy, az + t * dz
            for n in range(plan.ints[c], plan.ints[c + 1]):
                if plan.floats[gaps + n] >= clearance:
                    break
                if not _clear_of(plan.floats, _body(plan.ints[lists + n]), px, py, pz, qx, qy, qz, clearance):
                    return int(plan.ints[lists + n]), s
        if t >= 1.0:
            return FREE, 1.0
        s = t


@compiled
def clearance_at(plan: PlanMap, x: float, y: float, z: float) -> float:
    """Distance to the nearest obstacle, at most ``reach_m``; 0 inside an obstacle, NaN out of bounds."""
    if not within(plan, x, y, z):
        return np.nan
    i, j, k = _cell(plan, x, y, z)
    c = (i * plan.ny + j) * plan.nz + k
    cells, rooms = _rooms_at(plan)
    best = plan.reach_m
    for n in range(plan.ints[c], plan.ints[c + 1]):
        if plan.floats[rooms + 2 * cells + n] >= best:
            break
        best = min(best, _distance(plan.floats, _body(plan.ints[cells + 1 + n]), x, y, z))
    return best


@compiled
def repulsion(plan: PlanMap, x: float, y: float, z: float, influence: float) -> tuple[float, float, float]:
    """Potential-field push away from bodies nearer than the influence: (d0 - d) / d^2 each, along the way out.

    The law is upstream's RRT-APF; d is held above a tenth of d0 so that the push stays finite at a surface.
    """
    rx, ry, rz = 0.0, 0.0, 0.0
    if not within(plan, x, y, z):
        return rx, ry, rz
    i, j, k = _cell(plan, x, y, z)
    c = (i * plan.ny + j) * plan.nz + k
    cells, rooms = _rooms_at(plan)
    for n in range(plan.ints[c], plan.ints[c + 1]):
        if plan.floats[rooms + 2 * cells + n] >= influence:
            break
        floats, o = plan.floats, _body(plan.ints[cells + 1 + n])
        u, v = _local(floats, o, x, y)
        w = z - floats[o + 3]
        eu, ev, ew = _excess(floats, o, u, v, w)
        d = math.sqrt(eu * eu + ev * ev + ew * ew)
        if d >= influence or d == 0.0:
            continue
        if floats[o] == BOX:
            gu = eu if u > 0.0 else -eu
            gv = ev if v > 0.0 else -ev
        else:
            r = max(math.sqrt(u * u + v * v), 1e-9)
            gu, gv = eu * u / r, eu * v / r
        held = max(d, 0.1 * influence)
        push = (influence - held) / (held * held) / d
        rx += push * (floats[o + _COS] * gu - floats[o + _SIN] * gv)
        ry += push * (floats[o + _SIN] * gu + floats[o + _COS] * gv)
        rz += push * (ew if w > 0.0 else -ew)
    return rx, ry, rz


@compiled
def bypass(
    plan: PlanMap, m: int, ends: Floats, clearance: float, side: float, margin: float
) -> tuple[float, float, float]:
    """A point beside, above or below body m, just beyond the clearance, for a line between ends [2, 3] that it blocks.

    side in [0, 1) picks left or right (0.4 each), above or below (0.1 each); margin is added to the clearance.
    """
    floats, o = plan.floats, _body(m)
    dx, dy = ends[1, 0] - ends[0, 0], ends[1, 1] - ends[0, 1]
    n = math.sqrt(dx * dx + dy * dy)
    away = clearance + margin
    if side >= 0.8 or n < 1e-6:
        return floats[o + 1], floats[o + 2], floats[o + 3] + (floats[o + 6] + away) * (1.0 if side < 0.9 else -1.0)
    ux, uy = -dy / n, dx / n
    half = floats[o + 4]
    if floats[o] == BOX:
        half = floats[o + 4] * abs(floats[o + _COS] * ux + floats[o + _SIN] * uy) + floats[o + 5] * abs(
            floats[o + _COS] * uy - floats[o + _SIN] * ux
        )
    half = (half + away) * (1.0 if side < 0.4 else -1.0)
    along = min(max(((floats[o + 1] - ends[0, 0]) * dx + (floats[o + 2] - ends[0, 1]) * dy) / (n * n), 0.0), 1.0)
    return floats[o + 1] + half * ux, floats[o + 2] + half * uy, ends[0, 2] + along * (ends[1, 2] - ends[0, 2])
