"""Where a transmitter is: ranges and array phases of many places and times, solved for one point on the ground.

A range from signal strength is off by a factor, so its residual is taken in the logarithm; one array's phase tells a
cone, which meets the ground in two branches. Hence several starts, a Student-t likelihood (a reflection must not pull
the fix), and the runner-up mode beside the best. Errors that many observations share (own pose, shadowing, multipath)
do not average out: each such variance counts as often as observations share it. ENU, SI.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled, inlined
from sar_core.radio import BASELINE

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Columns of one observation: who and when, own position, array axis, log-distance range, inter-antenna phase.
DRONE, TIME, PX, PY, PZ, AX, AY, AZ, RANGE, RANGE_STD, PHASE, PHASE_STD = range(12)
MEASURED = 12

STATIC, MOVING = 3, 5
MAX_DRONES = 64
SUBSET = 40
GLANCE = 16
REFERENCES = 5
RANGE_FACTORS = (0.6, 1.0, 1.6)
STARTS = 8
STEPS = 10
MODES = 3
CLEAR_GAP = 15.0
"""A mode this far behind on the subset needs no polishing to stay behind."""
MAX_GAP = 50.0
"""A log-likelihood gap this large, or a single mode, is simply certain."""


class Model(NamedTuple):
    """What the solver believes about the errors. Log standard deviations are of the range's natural logarithm.

    4 dB of shadowing and 5 dB of unknown transmit power are 0.461 and 0.576 in free space (dB ln 10 / 20); the rest of
    an observation's own range spread counts as fresh noise. ``bias_phase_std_rad`` is what a drone's array keeps wrong
    while it looks the same way, reflections included.
    """

    height_m: float = 0.5
    pose_std_m: float = 0.3
    yaw_std_rad: float = 0.01
    pose_correlation_s: float = 10.0
    shadow_log_std: float = 0.461
    bias_phase_std_rad: float = 0.22
    shadow_correlation_m: float = 37.0
    power_log_std: float = 0.576
    white_log_std_floor: float = 0.005
    speed_std_mps: float = 10.0
    student_nu: float = 5.0
    mode_distance_m: float = 10.0


class Fix(NamedTuple):
    """One solution: position and covariance (m, m^2), the runner-up, and how much better a moving point would fit.

    ``gap`` and ``speed_gain`` are log-likelihood differences; ``chi2`` is per measured number, 1 where the model holds;
    ``power_log`` is the estimated common error of the logarithmic ranges.
    """

    x: float
    y: float
    cxx: float
    cxy: float
    cyy: float
    power_log: float
    log_likelihood: float
    gap: float
    second_x: float
    second_y: float
    chi2: float
    vx: float
    vy: float
    speed_gain: float


@compiled
def precisions(obs: Floats, x: float, y: float, model: Model) -> tuple[Floats, Floats]:
    """Inverse variances of log-range and phase, float64[K] each, at a point or (x = nan) as observed.

    An error shared by n observations of a drone enters each with n times its variance, so that their sum is known no
    better than the error itself; n fades with time (pose) and with the way flown (shadowing, multipath).
    """
    n = obs.shape[0]
    held_pose, held_way = np.zeros(n), np.zeros(n)
    last = np.full(MAX_DRONES, -1)
    sums = np.zeros((MAX_DRONES, 2))
    for sweep in range(2):
        for d in range(MAX_DRONES):
            last[d] = -1
        for k in range(n):
            i = k if sweep == 0 else n - 1 - k
            d = int(obs[i, DRONE]) % MAX_DRONES
            j = last[d]
            if j < 0:
                sums[d, 0] = sums[d, 1] = 0.0
            else:
                way = math.sqrt((obs[i, PX] - obs[j, PX]) ** 2 + (obs[i, PY] - obs[j, PY]) ** 2)
                sums[d, 0] = (1.0 + sums[d, 0]) * math.exp(-abs(obs[i, TIME] - obs[j, TIME]) / model.pose_correlation_s)
                sums[d, 1] = (1.0 + sums[d, 1]) * math.exp(-way / model.shadow_correlation_m)
            held_pose[i] += sums[d, 0]
            held_way[i] += sums[d, 1]
            last[d] = i
    common = model.shadow_log_std**2 + model.power_log_std**2
    pose2, yaw2 = model.pose_std_m**2, model.yaw_std_rad**2
    in_range, in_phase = np.empty(n), np.empty(n)
    for i in range(n):
        dz = model.height_m - obs[i, PZ]
        if math.isfinite(x):
            dx, dy = x - obs[i, PX], y - obs[i, PY]
            r2 = max(dx * dx + dy * dy + dz * dz, 1.0)
            s = (obs[i, AX] * dx + obs[i, AY] * dy + obs[i, AZ] * dz) / math.sqrt(r2)
            turning2 = (obs[i, AX] * dy - obs[i, AY] * dx) ** 2 / r2
        else:
            r2 = max(obs[i, RANGE] ** 2, dz * dz, 1.0)
            s = min(max(obs[i, PHASE] / BASELINE, -1.0), 1.0)
            turning2 = 1.0 - s * s
        shared_pose, shared_way = 1.0 + held_pose[i], 1.0 + held_way[i]
        relative2 = (obs[i, RANGE_STD] / obs[i, RANGE]) ** 2
        white = max(relative2 - common, model.white_log_std_floor**2)
        in_range[i] = 1.0 / (white + shared_way * model.shadow_log_std**2 + shared_pose * pose2 / r2)
        in_phase[i] = 1.0 / (
            obs[i, PHASE_STD] ** 2
            + shared_way * model.bias_phase_std_rad**2
            + shared_pose * BASELINE**2 * (max(1.0 - s * s, 0.0) * pose2 / r2 + turning2 * yaw2)
        )
    return in_range, in_phase


@inlined
def _residuals(
    obs: Floats, i: int, x: float, y: float, offset: float, height: float
) -> tuple[float, float, float, float, float, float]:
    """Log-range and phase residual of row i at a point, and their gradients: (er, ep, rx, ry, px, py)."""
    dx, dy, dz = x - obs[i, PX], y - obs[i, PY], height - obs[i, PZ]
    r2 = max(dx * dx + dy * dy + dz * dz, 1e-6)
    inverse = 1.0 / math.sqrt(r2)
    s = (obs[i, AX] * dx + obs[i, AY] * dy + obs[i, AZ] * dz) * inverse
    e_range = math.log(obs[i, RANGE] * inverse) - offset
    e_phase = obs[i, PHASE] - BASELINE * s
    if e_phase > math.pi:
        e_phase -= 2.0 * math.pi
    elif e_phase < -math.pi:
        e_phase += 2.0 * math.pi
    across = BASELINE * inverse
    return (
        e_range,
        e_phase,
        dx / r2,
        dy / r2,
        across * (obs[i, AX] - s * dx * inverse),
        across * (obs[i, AY] - s * dy * inverse),
    )


@compiled
def _evaluate(
    obs: Floats,
    rows: Ints,
    in_range: Floats,
    in_phase: Floats,
    weight: Floats,
    p: Floats,
    t0: float,
    model: Model,
    H: Floats,
    g: Floats,
) -> float:
    """Log-likelihood at p = (x, y, offset) or (x, y, offset, vx, vy); fills information H and gradient g.

    H = sum of w J J^T with the weights w = (nu + 1) / (nu + e^2 / std^2) / std^2 by which Student's t takes a residual
    e back where it is large: Lange, Little and Taylor (1989), Robust statistical modeling using the t distribution,
    JASA 84(408).
    """
    moving = p.shape[0] == MOVING
    nu = model.student_nu
    scale = 0.5 * (nu + 1.0)
    likelihood = 0.0
    gx = gy = gb = hxx = hxy = hyy = hxb = hyb = hbb = 0.0
    ux = uy = txx = txy = tyy = txb = tyb = qxx = qxy = qyy = 0.0
    for k in range(rows.shape[0]):
        i = rows[k]
        dt = obs[i, TIME] - t0
        x, y = p[0], p[1]
        if moving:
            x += p[3] * dt
            y += p[4] * dt
        er, ep, rx, ry, px, py = _residuals(obs, i, x, y, p[2], model.height_m)
        a, b = er * er * in_range[i] / nu, ep * ep * in_phase[i] / nu
        likelihood -= weight[i] * scale * math.log((1.0 + a) * (1.0 + b))
        wr = weight[i] * (nu + 1.0) / (nu * (1.0 + a)) * in_range[i]
        wp = weight[i] * (nu + 1.0) / (nu * (1.0 + b)) * in_phase[i]
        dgx, dgy = wr * er * rx + wp * ep * px, wr * er * ry + wp * ep * py
        xx, xy, yy = wr * rx * rx + wp * px * px, wr * rx * ry + wp * px * py, wr * ry * ry + wp * py * py
        gx += dgx
        gy += dgy
        gb += wr * er
        hxx += xx
        hxy += xy
        hyy += yy
        hxb += wr * rx
        hyb += wr * ry
        hbb += wr
        if moving:
            ux += dt * dgx
            uy += dt * dgy
            txx += dt * xx
            txy += dt * xy
            tyy += dt * yy
            txb += dt * wr * rx
            tyb += dt * wr * ry
            qxx += dt * dt * xx
            qxy += dt * dt * xy
            qyy += dt * dt * yy
    power = 1.0 / max(model.power_log_std**2, 1e-12)
    likelihood -= 0.5 * power * p[2] * p[2]
    # A kilometre of prior spread keeps the information invertible where the geometry does not.
    H[0, 0], H[0, 1], H[1, 1], H[0, 2], H[1, 2], H[2, 2] = hxx + 1e-6, hxy, hyy + 1e-6, hxb, hyb, hbb + power
    g[0], g[1], g[2] = gx, gy, gb - power * p[2]
    if moving:
        speed = 1.0 / model.speed_std_mps**2
        likelihood -= 0.5 * speed * (p[3] * p[3] + p[4] * p[4])
        H[0, 3], H[0, 4], H[1, 3], H[1, 4] = txx, txy, txy, tyy
        H[2, 3], H[2, 4] = txb, tyb
        H[3, 3], H[3, 4], H[4, 4] = qxx + speed, qxy, qyy + speed
        g[3], g[4] = ux - speed * p[3], uy - speed * p[4]
    return float(likelihood)


@compiled
def _step(H: Floats, g: Floats, damping: float, L: Floats, out: Floats) -> None:
    """Solve (H + damping diag H) out = g by Cholesky; only the upper triangle of H is read."""
    size = g.shape[0]
    for j in range(size):
        for i in range(j, size):
            total = H[j, i]
            if i == j:
                total *= 1.0 + damping
            for k in range(j):
                total -= L[i, k] * L[j, k]
            if i == j:
                L[j, j] = math.sqrt(max(total, 1e-15))
            else:
                L[i, j] = total / L[j, j]
    for i in range(size):
        total = g[i]
        for k in range(i):
            total -= L[i, k] * out[k]
        out[i] = total / L[i, i]
    for i in range(size - 1, -1, -1):
        total = out[i]
        for k in range(i + 1, size):
            total -= L[k, i] * out[k]
        out[i] = total / L[i, i]


@compiled
def _climb(
    obs: Floats,
    rows: Ints,
    in_range: Floats,
    in_phase: Floats,
    weight: Floats,
    p: Floats,
    t0: float,
    model: Model,
    tolerance_m: float,
    H: Floats,
) -> float:
    """Levenberg-Marquardt ascent from p (changed in place); returns the log-likelihood, leaves H at the solution."""
    size = p.shape[0]
    g, trial_g, delta, trial = np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size)
    trial_H, L = np.zeros((size, size)), np.zeros((size, size))
    best = _evaluate(obs, rows, in_range, in_phase, weight, p, t0, model, H, g)
    damping = 1e-3
    for _ in range(STEPS):
        _step(H, g, damping, L, delta)
        length = math.sqrt(delta[0] * delta[0] + delta[1] * delta[1])
        shrink = min(1.0, 80.0 / max(length, 1e-12))
        for k in range(size):
            trial[k] = p[k] + shrink * delta[k]
        value = _evaluate(obs, rows, in_range, in_phase, weight, trial, t0, model, trial_H, trial_g)
        if value >= best:
            for j in range(size):
                p[j], g[j] = trial[j], trial_g[j]
                for k in range(j, size):
                    H[j, k] = trial_H[j, k]
            best = value
            damping = max(0.1 * damping, 1e-6)
            if length < tolerance_m:
                break
        else:
            damping *= 20.0
            if damping > 1e8 or length < tolerance_m:
                break
    return best


@compiled
def _candidates(obs: Floats, warm_x: float, warm_y: float, height: float) -> Floats:
    """Places float64[C, 2] where the cones of a few observations meet the ground, at three ranges, on both sides."""
    n = obs.shape[0]
    out = np.empty((2 * REFERENCES * len(RANGE_FACTORS) + 1, 2))
    count = 0
    nearest = 0
    for i in range(n):
        if obs[i, RANGE] < obs[nearest, RANGE]:
            nearest = i
    for k in range(REFERENCES):
        i = nearest if k == REFERENCES - 1 else (k * (n - 1)) // max(REFERENCES - 2, 1)
        dz = height - obs[i, PZ]
        flat = math.sqrt(obs[i, AX] ** 2 + obs[i, AY] ** 2)
        axis = math.atan2(obs[i, AY], obs[i, AX])
        for factor in RANGE_FACTORS:
            across = math.sqrt(max((factor * obs[i, RANGE]) ** 2 - dz * dz, 25.0))
            reach = math.sqrt(across * across + dz * dz)
            c = (obs[i, PHASE] / BASELINE * reach - obs[i, AZ] * dz) / max(across * flat, 1e-9)
            turn = math.acos(min(max(c, -1.0), 1.0))
            for side in (-1.0, 1.0):
                out[count, 0] = obs[i, PX] + across * math.cos(axis + side * turn)
                out[count, 1] = obs[i, PY] + across * math.sin(axis + side * turn)
                count += 1
    if math.isfinite(warm_x) and math.isfinite(warm_y):
        out[count, 0], out[count, 1] = warm_x, warm_y
        count += 1
    return out[:count]


@compiled
def _subset(n: int, wanted: int) -> Ints:
    """Indices spread over 0..n-1, jittered by the golden ratio so that a regular order of drones is not aliased."""
    if n <= wanted:
        return np.arange(n)
    out = np.empty(wanted, np.int64)
    for k in range(wanted):
        jitter = (k * 0.6180339887498949) % 1.0
        out[k] = min(int((k + jitter) * n / wanted), n - 1)
    return out


@compiled
def _modes(
    obs: Floats, weight: Floats, warm_x: float, warm_y: float, model: Model, found: Floats, values: Floats
) -> int:
    """Fill up to MODES distinct local optima of a subset, best first: found [MODES, 3], values [MODES]."""
    glance, rows = _subset(obs.shape[0], GLANCE), _subset(obs.shape[0], SUBSET)
    in_range, in_phase = precisions(obs, math.nan, math.nan, model)
    H, g, p = np.zeros((STATIC, STATIC)), np.zeros(STATIC), np.zeros(STATIC)
    places = _candidates(obs, warm_x, warm_y, model.height_m)
    total = places.shape[0]
    worth = np.empty(total)
    for c in range(total):
        p[0], p[1] = places[c, 0], places[c, 1]
        worth[c] = _evaluate(obs, glance, in_range, in_phase, weight, p, 0.0, model, H, g)
    count = 0
    for _ in range(STARTS):
        c = int(np.argmax(worth))
        if worth[c] == -math.inf:
            break
        p[0], p[1], p[2] = places[c, 0], places[c, 1], 0.0
        for j in range(total):
            if math.hypot(places[j, 0] - p[0], places[j, 1] - p[1]) < model.mode_distance_m:
                worth[j] = -math.inf
        worth[c] = -math.inf
        value = _climb(obs, rows, in_range, in_phase, weight, p, 0.0, model, 0.5, H)
        slot = count
        for j in range(count):
            if math.hypot(found[j, 0] - p[0], found[j, 1] - p[1]) < model.mode_distance_m:
                slot = -1 if values[j] >= value else j
                break
        if slot == -1:
            continue
        if slot == count:
            if count < MODES:
                count += 1
            else:
                slot = MODES - 1
                if values[slot] >= value:
                    continue
        for k in range(STATIC):
            found[slot, k] = p[k]
        values[slot] = value
        while slot > 0 and values[slot] > values[slot - 1]:
            for k in range(STATIC):
                found[slot, k], found[slot - 1, k] = found[slot - 1, k], found[slot, k]
            values[slot], values[slot - 1] = values[slot - 1], values[slot]
            slot -= 1
    return count


@compiled
def _motion(
    obs: Floats, rows: Ints, in_range: Floats, in_phase: Floats, weight: Floats, p: Floats, model: Model
) -> tuple[float, float, float]:
    """Velocity (m/s) of the best constant-velocity fit and its log-likelihood gain over standing still at p.

    Started at rest and from the difference between the first and the second half in time.
    """
    n = rows.shape[0]
    t0 = 0.0
    for k in range(n):
        t0 += obs[rows[k], TIME] / n
    halves = np.empty((2, n), np.int64)
    size = [0, 0]
    middle = [0.0, 0.0]
    for k in range(n):
        half = 0 if obs[rows[k], TIME] < t0 else 1
        halves[half, size[half]] = rows[k]
        middle[half] += obs[rows[k], TIME]
        size[half] += 1
    if min(size) < 2:
        return 0.0, 0.0, 0.0
    apart = max(middle[1] / size[1] - middle[0] / size[0], 0.1)
    H_still, ends = np.zeros((STATIC, STATIC)), np.zeros((3, STATIC))
    still = 0.0
    for k in range(3):
        for j in range(STATIC):
            ends[k, j] = p[j]
        part = rows if k == 0 else halves[k - 1, : size[k - 1]]
        value = _climb(obs, part, in_range, in_phase, weight, ends[k], t0, model, 0.1, H_still)
        if k == 0:
            still = value
    H, q = np.zeros((MOVING, MOVING)), np.zeros(MOVING)
    vx, vy, gain = 0.0, 0.0, 0.0
    for start in range(2):
        q[0], q[1], q[2], q[3], q[4] = ends[0, 0], ends[0, 1], ends[0, 2], 0.0, 0.0
        if start == 1:
            q[0], q[1] = 0.5 * (ends[1, 0] + ends[2, 0]), 0.5 * (ends[1, 1] + ends[2, 1])
            wx, wy = (ends[2, 0] - ends[1, 0]) / apart, (ends[2, 1] - ends[1, 1]) / apart
            shrink = min(1.0, 2.0 * model.speed_std_mps / max(math.hypot(wx, wy), 1e-9))
            q[3], q[4] = wx * shrink, wy * shrink
        value = _climb(obs, rows, in_range, in_phase, weight, q, t0, model, 0.05, H) - still
        if value > gain:
            vx, vy, gain = q[3], q[4], value
    return vx, vy, gain


@compiled
def solve(obs: Floats, weight: Floats, warm_x: float, warm_y: float, model: Model) -> Fix:
    """Solve K >= 1 observations (rows float64[K, >=12]) with attention weights [K]; a nan warm start is none."""
    n = obs.shape[0]
    found, values = np.zeros((MODES, STATIC)), np.full(MODES, -math.inf)
    count = _modes(obs, weight, warm_x, warm_y, model, found, values)
    rows = np.arange(n)
    H = np.zeros((STATIC, STATIC))
    in_range, in_phase = precisions(obs, found[0, 0], found[0, 1], model)
    rough = values[0]
    for m in range(count):
        lag = rough - values[m]
        if lag > CLEAR_GAP:
            values[m] = values[0] - lag
            continue
        values[m] = _climb(obs, rows, in_range, in_phase, weight, found[m], 0.0, model, 0.02, H)
    best = int(np.argmax(values[:count]))
    in_range, in_phase = precisions(obs, found[best, 0], found[best, 1], model)
    p = found[best]
    top = _climb(obs, rows, in_range, in_phase, weight, p, 0.0, model, 1e-3, H)
    gap, second_x, second_y = MAX_GAP, math.nan, math.nan
    for m in range(count):
        if m != best and math.hypot(found[m, 0] - p[0], found[m, 1] - p[1]) >= model.mode_distance_m:
            difference = max(values[best] - values[m], 0.0)
            if difference < gap:
                gap, second_x, second_y = difference, found[m, 0], found[m, 1]
    plain = robust = total = 0.0
    nu = model.student_nu
    for i in range(n):
        er, ep, _, _, _, _ = _residuals(obs, i, p[0], p[1], p[2], model.height_m)
        a, b = er * er * in_range[i], ep * ep * in_phase[i]
        plain += weight[i] * (a + b)
        robust += weight[i] * (nu + 1.0) * (a / (nu + a) + b / (nu + b))
        total += 2.0 * weight[i]
    # Residuals beyond what the model says widen the covariance, never narrow it: Birge (1932), Phys. Rev. 40, 207.
    scale = max(1.0, robust / max(total, 1e-9))
    xx, xy, yy = (
        H[0, 0] - H[0, 2] ** 2 / H[2, 2],
        H[0, 1] - H[0, 2] * H[1, 2] / H[2, 2],
        H[1, 1] - H[1, 2] ** 2 / H[2, 2],
    )
    determinant = max(xx * yy - xy * xy, 1e-18)
    vx, vy, gain = _motion(obs, _subset(n, 2 * SUBSET), in_range, in_phase, weight, p, model)
    return Fix(
        p[0],
        p[1],
        scale * yy / determinant,
        -scale * xy / determinant,
        scale * xx / determinant,
        p[2],
        top,
        gap,
        second_x,
        second_y,
        plain / max(total, 1e-9),
        vx,
        vy,
        gain,
    )
