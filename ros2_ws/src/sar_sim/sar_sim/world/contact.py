"""The referee's arithmetic: contacts carried along straight flight legs, compiled, one call per tick.

Distance to anything convex is convex along a leg, so on each leg it is below a threshold during one span of time or
never; a contact's whole life is decided by two such spans, below "touching" and below "not yet clear".
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled
from sar_core.geometry import distance_to, segment_distance

Floats = NDArray[np.float64]


class ContactRules(NamedTuple):
    """The configuration as the kernels read it."""

    hull: float
    gear: float
    ceiling: float
    collision: float
    near_miss: float
    margin: float
    rearm_s: float
    obstacles: Floats
    fence: Floats


class Book(NamedTuple):
    """What the referee remembers, in arrays that the kernels write.

    contacts float64[rows, 9]: one row per pair of things that could touch: drone pairs as collisions, drone pairs as
    near misses, drones x obstacles, drones with the ground, drones with the fence.
    flown float64[N] odometers; last float64[N, 3] positions. to_pair [N(N-1)/2], to_obstacle [N, M], to_any_obstacle
    [N], to_fence [N]: what is d away cannot be met before d has been flown, so these hold the odometer reading (for a
    pair: the sum of both) up to which a distance stays above zero, and most of a tick's work is skipped.
    figures float64[3]: least separation, least clearance, number of open contacts.
    """

    contacts: Floats
    flown: Floats
    last: Floats
    to_pair: Floats
    to_obstacle: Floats
    to_any_obstacle: Floats
    to_fence: Floats
    figures: Floats


class Log(NamedTuple):
    """Announcements of one tick: the first `used` rows are [row of contacts, phase, contact from BEGIN on]."""

    rows: Floats
    used: int


OPEN, BEGIN, END, HELD, MIN, MIN_AT, X, Y, Z = range(9)
SEPARATION, CLEARANCE, OPEN_COUNT = range(3)
_TOUCH_M = 1e-6
"""What reaches into the ground or an obstacle is put back onto the surface: touching is not being inside."""
_FENCE_PIECE_M = 1e-2
_SLACK_M = 1e-9


@compiled
def fence_clearance(fence: Floats, ceiling_m: float, x: float, y: float, z: float) -> float:
    """Distance to the nearest wall of the fence or to the ceiling; negative outside."""
    nearest_sq = np.inf
    inside = False
    count = fence.shape[0]
    for i in range(count):
        ax = fence[i - 1, 0]
        ay = fence[i - 1, 1]
        ex = fence[i, 0] - ax
        ey = fence[i, 1] - ay
        length_sq = ex * ex + ey * ey
        s = 0.0
        if length_sq > 0.0:
            s = min(1.0, max(0.0, ((x - ax) * ex + (y - ay) * ey) / length_sq))
        dx = x - ax - s * ex
        dy = y - ay - s * ey
        nearest_sq = min(nearest_sq, dx * dx + dy * dy)
        if (ay > y) != (fence[i, 1] > y) and x < ax + (y - ay) / ey * ex:
            inside = not inside
    wall = math.sqrt(nearest_sq)
    if count > 0 and not inside:
        wall = -wall
    return min(wall, ceiling_m - z)


@compiled
def _announce(contact: Floats, row: int, phase: int, log: Log) -> Log:
    rows = log.rows
    if log.used == rows.shape[0]:
        rows = np.empty((2 * log.used, log.rows.shape[1]))
        for i in range(log.used):
            for j in range(rows.shape[1]):
                rows[i, j] = log.rows[i, j]
    rows[log.used, 0] = row
    rows[log.used, 1] = phase
    for j in range(Z):
        rows[log.used, 2 + j] = contact[BEGIN + j]
    return Log(rows, log.used + 1)


@compiled
def _close(book: Book, row: int, unless_below: float, log: Log) -> Log:
    """End an open contact; one that came below `unless_below` has been reported as something graver."""
    contact = book.contacts[row]
    contact[OPEN] = 0.0
    book.figures[OPEN_COUNT] -= 1.0
    if contact[MIN] >= unless_below:
        return _announce(contact, row, 1, log)
    return log


@compiled
def _hold(
    book: Book,
    row: int,
    near: tuple[float, float],
    touch: tuple[float, float],
    least: tuple[float, float, float, float, float],
    rearm_s: float,
    unless_below: float,
    log: Log,
) -> Log:
    """Carry one contact over one leg.

    near is the span of time (s) not clear, touch the span in contact (either empty where it ends before it starts),
    least is (distance, time, x, y, z) of the closest approach. Each is one span because distance is convex along a
    leg. unless_below > -inf marks a kind that is announced only at its end.
    """
    if near[0] > near[1]:
        return log
    contact = book.contacts[row]
    if contact[OPEN] != 0.0 and near[0] - contact[HELD] >= rearm_s:
        log = _close(book, row, unless_below, log)
    if touch[0] <= touch[1]:
        opens = contact[OPEN] == 0.0
        if opens:
            contact[OPEN] = 1.0
            contact[BEGIN] = touch[0]
            contact[MIN] = np.inf
            book.figures[OPEN_COUNT] += 1.0
        contact[END] = touch[1]
        if least[0] < contact[MIN]:
            for i in range(5):
                contact[MIN + i] = least[i]
        if opens and unless_below == -np.inf:
            log = _announce(contact, row, 0, log)
    if contact[OPEN] != 0.0:
        contact[HELD] = near[1]
    return log


@compiled
def _linear_span(d0: float, d1: float, t0: float, t1: float, threshold: float) -> tuple[float, float]:
    """When a distance that goes linearly from d0 to d1 is below the threshold; (t1, t0 - 1) if never."""
    if d0 < threshold and d1 < threshold:
        return t0, t1
    if d0 >= threshold and d1 >= threshold:
        return t1, t0 - 1.0
    cross = t0 + (threshold - d0) / (d1 - d0) * (t1 - t0)
    return (t0, cross) if d0 < threshold else (cross, t1)


@compiled
def _quadratic_span(
    a: float, b: float, c: float, t0: float, t1: float, d: float, at: float, threshold: float
) -> tuple[float, float]:
    """When sqrt(a s^2 + 2 b s + c), s from 0 at t0 to 1 at t1, is below the threshold; (t1, t0 - 1) if never.

    d is its least value, taken at s = at, and alone decides whether there is such a span.
    """
    if d >= threshold:
        return t1, t0 - 1.0
    if a <= 0.0:
        return t0, t1
    root = math.sqrt(max(0.0, b * b - a * (c - threshold * threshold)))
    lo = min(at, max(0.0, (-b - root) / a))
    hi = max(at, min(1.0, (-b + root) / a))
    return t0 + lo * (t1 - t0), t0 + hi * (t1 - t0)


@compiled
def _obstacle_edge(row: Floats, a: Floats, b: Floats, below: float, above: float, threshold: float) -> float:
    """Where on the leg a-b, between a place below and a place above it, the distance passes the threshold."""
    for _ in range(50):
        s = 0.5 * (below + above)
        d = distance_to(row, a[0] + s * (b[0] - a[0]), a[1] + s * (b[1] - a[1]), a[2] + s * (b[2] - a[2]))
        if d < threshold:
            below = s
        else:
            above = s
    return below


@compiled
def _obstacle_span(
    row: Floats, a: Floats, b: Floats, t0: float, t1: float, ends: tuple[float, float], at: float, threshold: float
) -> tuple[float, float]:
    """When the leg a-b, below the threshold at `at`, is below it; ends are the distances at a and b."""
    lo = 0.0 if ends[0] < threshold else _obstacle_edge(row, a, b, at, 0.0, threshold)
    hi = 1.0 if ends[1] < threshold else _obstacle_edge(row, a, b, at, 1.0, threshold)
    return t0 + lo * (t1 - t0), t0 + hi * (t1 - t0)


@compiled
def _first_fault(times: Floats, positions: Floats) -> int:
    """First sample and drone (sample * N + drone) that is not finite or whose time runs backwards, or -1."""
    for k in range(positions.shape[0]):
        if k > 0 and times[k] < times[k - 1]:
            return int(k * positions.shape[1])
        for n in range(positions.shape[1]):
            total = times[k] + positions[k, n, 0] + positions[k, n, 1] + positions[k, n, 2]
            if not math.isfinite(total):
                return int(k * positions.shape[1] + n)
    return -1


@compiled
def _distance(p: Floats, q: Floats) -> float:
    return math.sqrt((p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2 + (p[2] - q[2]) ** 2)


@compiled
def _judge_ground(rules: ContactRules, book: Book, times: Floats, path: Floats, row: int, log: Log) -> Log:
    """path float64[K, 3] is one drone's flight over the tick."""
    for k in range(1, path.shape[0]):
        a, b, t0, t1 = path[k - 1], path[k], times[k - 1], times[k]
        d0, d1 = a[2] - rules.gear, b[2] - rules.gear
        near = _linear_span(d0, d1, t0, t1, rules.margin)
        touch = _linear_span(d0, d1, t0, t1, _TOUCH_M)
        least = (d0, t0, a[0], a[1], a[2]) if d0 <= d1 else (d1, t1, b[0], b[1], b[2])
        log = _hold(book, row, near, touch, least, rules.rearm_s, -np.inf, log)
    return log


@compiled
def _judge_fence_leg(
    rules: ContactRules, book: Book, t0: float, t1: float, a: Floats, b: Floats, row: int, log: Log
) -> Log:
    pieces = max(1, math.ceil(_distance(a, b) / _FENCE_PIECE_M))
    x, y, z, t = a[0], a[1], a[2], t0
    d = fence_clearance(rules.fence, rules.ceiling, x, y, z)
    for i in range(1, pieces + 1):
        s = i / pieces
        before = (d, t, x, y, z)
        x, y, z, t = a[0] + s * (b[0] - a[0]), a[1] + s * (b[1] - a[1]), a[2] + s * (b[2] - a[2]), t0 + s * (t1 - t0)
        d = fence_clearance(rules.fence, rules.ceiling, x, y, z)
        near = _linear_span(before[0], d, before[1], t, rules.margin)
        touch = _linear_span(before[0], d, before[1], t, 0.0)
        least = before if before[0] <= d else (d, t, x, y, z)
        log = _hold(book, row, near, touch, least, rules.rearm_s, -np.inf, log)
    return log


@compiled
def _judge_fence(
    rules: ContactRules, book: Book, times: Floats, path: Floats, n: int, flown_before: float, row: int, log: Log
) -> Log:
    flown = book.flown[n]
    reach = rules.margin + _SLACK_M
    if book.to_fence[n] - flown > reach:
        return log
    d = fence_clearance(rules.fence, rules.ceiling, path[0, 0], path[0, 1], path[0, 2])
    book.to_fence[n] = d + flown_before
    if book.to_fence[n] - flown > reach:
        return log
    for k in range(1, path.shape[0]):
        if d - _distance(path[k - 1], path[k]) <= reach:
            log = _judge_fence_leg(rules, book, times[k - 1], times[k], path[k - 1], path[k], row, log)
        d = fence_clearance(rules.fence, rules.ceiling, path[k, 0], path[k, 1], path[k, 2])
    book.to_fence[n] = d + flown
    return log


@compiled
def _judge_obstacle(
    rules: ContactRules, book: Book, times: Floats, path: Floats, obstacle: Floats, row: int, log: Log
) -> Log:
    hull, near_m = rules.hull, rules.hull + rules.margin
    d0 = distance_to(obstacle, path[0, 0], path[0, 1], path[0, 2])
    for k in range(1, path.shape[0]):
        a, b, t0, t1 = path[k - 1], path[k], times[k - 1], times[k]
        d1 = distance_to(obstacle, b[0], b[1], b[2])
        book.figures[CLEARANCE] = min(book.figures[CLEARANCE], d1 - hull)
        no_less_than = 0.5 * (d0 + d1 - _distance(a, b))
        if no_less_than - _SLACK_M < max(near_m, book.figures[CLEARANCE] + hull - 2.0 * _SLACK_M):
            d, s = segment_distance(obstacle, a, b)
            book.figures[CLEARANCE] = min(book.figures[CLEARANCE], d - hull)
            if d < near_m:
                near = _obstacle_span(obstacle, a, b, t0, t1, (d0, d1), s, near_m)
                touch = (t1, t0 - 1.0)
                if d < hull + _TOUCH_M:
                    touch = _obstacle_span(obstacle, a, b, t0, t1, (d0, d1), s, hull + _TOUCH_M)
                x, y, z = a[0] + s * (b[0] - a[0]), a[1] + s * (b[1] - a[1]), a[2] + s * (b[2] - a[2])
                least = (d - hull, t0 + s * (t1 - t0), x, y, z)
                log = _hold(book, row, near, touch, least, rules.rearm_s, -np.inf, log)
        d0 = d1
    return log


@compiled
def _judge_obstacles(
    rules: ContactRules, book: Book, times: Floats, path: Floats, n: int, flown_before: float, first_row: int, log: Log
) -> Log:
    """Also keeps the least clearance of the whole flight, so what lies beyond both it and the margin is skipped."""
    flown = book.flown[n]
    reach = rules.hull + max(rules.margin, book.figures[CLEARANCE]) + _SLACK_M
    if book.to_any_obstacle[n] - flown > reach:
        return log
    soonest = np.inf
    for m in range(rules.obstacles.shape[0]):
        if book.to_obstacle[n, m] - flown <= reach:
            obstacle = rules.obstacles[m]
            d = distance_to(obstacle, path[0, 0], path[0, 1], path[0, 2])
            book.figures[CLEARANCE] = min(book.figures[CLEARANCE], d - rules.hull)
            reach = rules.hull + max(rules.margin, book.figures[CLEARANCE]) + _SLACK_M
            book.to_obstacle[n, m] = d + flown_before
            if book.to_obstacle[n, m] - flown <= reach:
                log = _judge_obstacle(rules, book, times, path, obstacle, first_row + m, log)
                end = path[path.shape[0] - 1]
                book.to_obstacle[n, m] = distance_to(obstacle, end[0], end[1], end[2]) + flown
        soonest = min(soonest, book.to_obstacle[n, m])
    book.to_any_obstacle[n] = soonest
    return log


@compiled
def _judge_pair(
    rules: ContactRules, book: Book, times: Floats, one: Floats, other: Floats, row: int, near_row: int, log: Log
) -> Log:
    """one, other float64[K, 3]: two drones' flights over the tick; their squared distance is a parabola per leg."""
    for k in range(1, one.shape[0]):
        t0, t1 = times[k - 1], times[k]
        rx, ry, rz = other[k - 1, 0] - one[k - 1, 0], other[k - 1, 1] - one[k - 1, 1], other[k - 1, 2] - one[k - 1, 2]
        vx, vy, vz = other[k, 0] - one[k, 0] - rx, other[k, 1] - one[k, 1] - ry, other[k, 2] - one[k, 2] - rz
        qa = vx * vx + vy * vy + vz * vz
        qb = rx * vx + ry * vy + rz * vz
        qc = rx * rx + ry * ry + rz * rz
        s = 0.0 if qb >= 0.0 else (1.0 if qa + qb <= 0.0 else -qb / qa)
        rx, ry, rz = rx + s * vx, ry + s * vy, rz + s * vz
        d = math.sqrt(rx * rx + ry * ry + rz * rz)
        book.figures[SEPARATION] = min(book.figures[SEPARATION], d)
        if d < rules.near_miss + rules.margin:
            x = one[k - 1, 0] + s * (one[k, 0] - one[k - 1, 0]) + 0.5 * rx
            y = one[k - 1, 1] + s * (one[k, 1] - one[k - 1, 1]) + 0.5 * ry
            z = one[k - 1, 2] + s * (one[k, 2] - one[k - 1, 2]) + 0.5 * rz
            least = (d, t0 + s * (t1 - t0), x, y, z)
            near = _quadratic_span(qa, qb, qc, t0, t1, d, s, rules.collision + rules.margin)
            touch = _quadratic_span(qa, qb, qc, t0, t1, d, s, rules.collision)
            log = _hold(book, row, near, touch, least, rules.rearm_s, -np.inf, log)
            near = _quadratic_span(qa, qb, qc, t0, t1, d, s, rules.near_miss + rules.margin)
            touch = _quadratic_span(qa, qb, qc, t0, t1, d, s, rules.near_miss)
            log = _hold(book, near_row, near, touch, least, rules.rearm_s, rules.collision, log)
    return log


@compiled
def judge(
    rules: ContactRules, book: Book, times: Floats, positions: Floats, ground_allowed: NDArray[np.bool_]
) -> tuple[Floats, int]:
    """One tick for all drones: the announcements' rows and their number, or -1 - index of a faulty sample."""
    log = Log(np.empty((8, 2 + Z)), 0)
    samples, number, _ = positions.shape
    fault = _first_fault(times, positions)
    if fault >= 0:
        return log.rows, -1 - fault
    pairs = book.to_pair.shape[0]
    bodies = rules.obstacles.shape[0]
    ground_row = 2 * pairs + number * bodies

    for n in range(number):
        path = positions[:, n]
        flown_before = book.flown[n] + _distance(book.last[n], path[0])
        flown = flown_before
        lowest = path[0, 2]
        for k in range(1, samples):
            flown += _distance(path[k - 1], path[k])
            lowest = min(lowest, path[k, 2])
        book.flown[n] = flown
        for i in range(3):
            book.last[n, i] = path[samples - 1, i]
        if lowest - rules.gear < rules.margin and not ground_allowed[n]:
            log = _judge_ground(rules, book, times, path, ground_row + n, log)
        log = _judge_fence(rules, book, times, path, n, flown_before, ground_row + number + n, log)
        log = _judge_obstacles(rules, book, times, path, n, flown_before, 2 * pairs + n * bodies, log)

    pair = -1
    for i in range(number):
        for j in range(i + 1, number):
            pair += 1
            flown = book.flown[i] + book.flown[j]
            reach = max(rules.near_miss + rules.margin, book.figures[SEPARATION]) + _SLACK_M
            if book.to_pair[pair] - flown <= reach:
                log = _judge_pair(rules, book, times, positions[:, i], positions[:, j], pair, pairs + pair, log)
                book.to_pair[pair] = _distance(book.last[i], book.last[j]) + flown

    if book.figures[OPEN_COUNT] > 0.0:
        for row in range(book.contacts.shape[0]):
            contact = book.contacts[row]
            if contact[OPEN] != 0.0 and times[samples - 1] - contact[HELD] >= rules.rearm_s:
                log = _close(book, row, rules.collision if pairs <= row < 2 * pairs else -np.inf, log)
    return log.rows, log.used
