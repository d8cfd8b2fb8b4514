"""What the inter-antenna phase should be, so that a drone's own motion is not mistaken for phase noise.

A drone that turns or flies past a transmitter changes the phase between its antennas without anything being wrong.
Each link therefore carries a small Kalman filter of where the transmitter is as seen from the drone: the horizontal
direction (ux, uy) and the inverse range rho, with the transmitter standing still a known height above the ground.

In these coordinates both models are nearly linear: the phase is BASELINE (axis . u) with uz = -h rho, and a step d of
the drone carries (u, rho) to (u - rho d, rho) / g, where g is the factor the range changes by. The unit length of u is
left to the data. So an unknown front or back is an honest wide variance across the array's axis instead of two
hypotheses, and it shrinks as soon as the drone turns or moves. Where the phase runs over the array's end (half a
wavelength: plus pi is minus pi), the direction goes over to the other end.

The residual comes from the prediction made before the frame was seen, and the filter assumes noise as strong as the
gate's threshold, whatever the noise is: it can neither explain noise away nor follow it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled, inlined
from sar_core.radio import BASELINE

Floats = NDArray[np.float64]

TWO_PI = 2.0 * math.pi

# A link's row: seen or not, the state (ux, uy, rho), its covariance (upper triangle), the drone's last place and time.
SEEN, UX, UY, RHO, PXX, PXY, PXR, PYY, PYR, PRR, LAST_X, LAST_Y, LAST_Z, LAST_S = range(14)
TRACKER = 14

_BEYOND, _LONGEST = 1.1, 1.2
_MIN_RHO, _MAX_RHO = 1.0 / 2000.0, 1.0 / 5.0


@dataclass(frozen=True)
class TrackerConfig:
    """Phases in rad, lengths in m. Without ``compensate`` the prediction is 0: the gate sees the raw phase."""

    compensate: bool = True
    phase_noise_rad: float = 0.85
    """Assumed noise of one frame: about what von Mises noise has at the gate's opening kappa of 2."""
    direction_std: float = 0.7
    """Prior of each horizontal direction component."""
    direction_drift: float = 0.03
    """How far a direction component may wander in a second beyond what own motion explains (walking transmitters)."""
    inverse_range_std: float = 0.01
    """Prior of the inverse range, on top of half its first value from signal strength (1/m)."""
    inverse_range_drift: float = 0.001
    transmitter_height_m: float = 0.5

    def array(self) -> Floats:
        """The numbers the kernels take."""
        return np.array(
            [
                float(self.compensate),
                self.phase_noise_rad**2,
                self.direction_std**2,
                self.direction_drift**2,
                self.inverse_range_std,
                self.inverse_range_drift**2,
                self.transmitter_height_m,
            ]
        )


@inlined
def wrap(angle: float) -> float:
    """Angle within [-pi, pi]."""
    return angle - TWO_PI * math.floor(angle / TWO_PI + 0.5)


@inlined
def _confine(row: Floats, height: float) -> None:
    """Hold the state to what can be: no range below the height or 5 m, no direction longer than 1."""
    row[RHO] = min(max(row[RHO], _MIN_RHO), min(_MAX_RHO, 1.0 / max(abs(height), 1e-3)))
    length = math.sqrt(row[UX] * row[UX] + row[UY] * row[UY])
    if length > _LONGEST:
        row[UX] *= _LONGEST / length
        row[UY] *= _LONGEST / length


@inlined
def _spread(row: Floats, config: Floats) -> None:
    """The prior's covariance: at the start, and should rounding ever spoil it."""
    row[PXY] = row[PXR] = row[PYR] = 0.0
    row[PXX] = row[PYY] = config[2]
    row[PRR] = (config[4] + 0.5 * row[RHO]) ** 2


@inlined
def _bound(row: Floats, config: Floats) -> None:
    """No component is known less well than at the start; correlations stay."""
    x = math.sqrt(min(config[2] / row[PXX], 1.0))
    y = math.sqrt(min(config[2] / row[PYY], 1.0))
    r = min((config[4] + 0.5 * row[RHO]) / math.sqrt(row[PRR]), 1.0)
    row[PXX] *= x * x
    row[PXY] *= x * y
    row[PXR] *= x * r
    row[PYY] *= y * y
    row[PYR] *= y * r
    row[PRR] *= r * r


@inlined
def _carry(row: Floats, ex: float, ey: float, rx: float, ry: float, rr: float, k: float) -> None:
    """Covariance F P F' after the state was carried by a step d, with e = rho d and F the step's Jacobian:

    k [[1 + ux ex, ux ey, -rx], [uy ex, 1 + uy ey, -ry], [rho ex, rho ey, rr]].
    """
    ux, uy, rho = row[UX], row[UY], row[RHO]
    pxx, pxy, pxr, pyy, pyr, prr = row[PXX], row[PXY], row[PXR], row[PYY], row[PYR], row[PRR]
    f00, f01, f02 = k * (1.0 + ux * ex), k * ux * ey, -k * rx
    f10, f11, f12 = k * uy * ex, k * (1.0 + uy * ey), -k * ry
    f20, f21, f22 = k * rho * ex, k * rho * ey, k * rr
    a0, a1, a2 = f00 * pxx + f01 * pxy + f02 * pxr, f00 * pxy + f01 * pyy + f02 * pyr, f00 * pxr + f01 * pyr + f02 * prr
    b0, b1, b2 = f10 * pxx + f11 * pxy + f12 * pxr, f10 * pxy + f11 * pyy + f12 * pyr, f10 * pxr + f11 * pyr + f12 * prr
    c0, c1, c2 = f20 * pxx + f21 * pxy + f22 * pxr, f20 * pxy + f21 * pyy + f22 * pyr, f20 * pxr + f21 * pyr + f22 * prr
    row[PXX], row[PXY], row[PXR] = (
        a0 * f00 + a1 * f01 + a2 * f02,
        a0 * f10 + a1 * f11 + a2 * f12,
        a0 * f20 + a1 * f21 + a2 * f22,
    )
    row[PYY], row[PYR] = b0 * f10 + b1 * f11 + b2 * f12, b0 * f20 + b1 * f21 + b2 * f22
    row[PRR] = c0 * f20 + c1 * f21 + c2 * f22


@compiled
def predict(row: Floats, px: float, py: float, pz: float, time_s: float, range_m: float, config: Floats) -> None:
    """Carry a link's row to the drone's new place and time; the first call starts it with the range heard."""
    if row[SEEN] == 0.0:
        row[:] = 0.0
        row[SEEN] = 1.0
        row[RHO] = 1.0 / range_m
        _confine(row, pz - config[6])
        _spread(row, config)
    else:
        dt = max(time_s - row[LAST_S], 0.0)
        dx, dy, dz = px - row[LAST_X], py - row[LAST_Y], pz - row[LAST_Z]
        rho = row[RHO]
        nearer = row[UX] * dx + row[UY] * dy - (row[LAST_Z] - config[6]) * rho * dz
        g2 = 1.0 - 2.0 * rho * nearer + rho * rho * (dx * dx + dy * dy + dz * dz)
        g = min(max(math.sqrt(max(g2, 0.0)), 0.8), 1.25)
        row[UX] = (row[UX] - dx * rho) / g
        row[UY] = (row[UY] - dy * rho) / g
        row[RHO] = rho / g
        _confine(row, pz - config[6])
        _carry(row, dx * rho, dy * rho, dx - row[UX] * nearer, dy - row[UY] * nearer, 1.0 + row[RHO] * nearer, 1.0 / g)
        row[PXX] += config[3] * dt
        row[PYY] += config[3] * dt
        row[PRR] += config[5] * dt
        _bound(row, config)
    row[LAST_X], row[LAST_Y], row[LAST_Z], row[LAST_S] = px, py, pz, time_s


@inlined
def phase_of(row: Floats, ax: float, ay: float, az: float, pz: float, config: Floats) -> float:
    """The phase (rad, not wrapped) the row predicts for array axis a at height pz."""
    if config[0] == 0.0:
        return 0.0
    return BASELINE * float(ax * row[UX] + ay * row[UY] - az * (pz - config[6]) * row[RHO])


@compiled
def correct(row: Floats, residual: float, ax: float, ay: float, az: float, config: Floats) -> None:
    """Learn from one frame's wrapped residual (measured minus predicted phase)."""
    hx, hy, hr = BASELINE * ax, BASELINE * ay, -BASELINE * az * (row[LAST_Z] - config[6])
    gx = row[PXX] * hx + row[PXY] * hy + row[PXR] * hr
    gy = row[PXY] * hx + row[PYY] * hy + row[PYR] * hr
    gr = row[PXR] * hx + row[PYR] * hy + row[PRR] * hr
    s = hx * gx + hy * gy + hr * gr + config[1]
    if not s >= config[1]:
        _spread(row, config)
        return
    row[UX] += gx / s * residual
    row[UY] += gy / s * residual
    row[RHO] += gr / s * residual
    along = ax * row[UX] + ay * row[UY]
    if abs(along) > _BEYOND:
        turn = math.copysign(TWO_PI / BASELINE, along)
        row[UX] -= turn * ax
        row[UY] -= turn * ay
    _confine(row, row[LAST_Z] - config[6])
    row[PXX] -= gx * gx / s
    row[PXY] -= gx * gy / s
    row[PXR] -= gx * gr / s
    row[PYY] -= gy * gy / s
    row[PYR] -= gy * gr / s
    row[PRR] -= gr * gr / s


@compiled
def residuals(phases: Floats, times: Floats, positions: Floats, axes: Floats, range_m: float, config: Floats) -> Floats:
    """Wrapped residuals [T] of one link's phases [T], for times [T], own positions [T, 3] and array axes [T, 3]."""
    row = np.zeros(TRACKER)
    out = np.empty(phases.size)
    for t in range(phases.size):
        px, py, pz = positions[t, 0], positions[t, 1], positions[t, 2]
        ax, ay, az = axes[t, 0], axes[t, 1], axes[t, 2]
        predict(row, px, py, pz, times[t], range_m, config)
        out[t] = wrap(phases[t] - phase_of(row, ax, ay, az, pz, config))
        correct(row, out[t], ax, ay, az, config)
    return out
