"""What the inter-antenna phase should be, so that a drone's own motion is not mistaken for phase noise.

A drone that turns or flies past a transmitter changes the phase between its antennas without anything being wrong.
Each link therefore carries a small Kalman filter of where the transmitter is as seen from the drone: the horizontal
direction (ux, uy) and the inverse range rho, with the transmitter standing still a known height above the ground.

In these coordinates both models are linear: the phase is BASELINE (axis . u) with uz = -h rho, and a step d of the
drone carries (u, rho) to (u - rho d, rho) / g, where g is the factor the range changes by. The unit length of (ux, uy)
is left to the data. So an unknown front or back is an honest wide variance across the array's axis instead of two
hypotheses, and it shrinks as soon as the drone turns or moves.

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
    inverse_range_std: float = 0.02
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
        pxr, pyr, prr = row[PXR], row[PYR], row[PRR]
        k = 1.0 / (g * g)
        keep = max(1.0 - config[3] / config[2] * dt, 0.0)
        row[PXX] = k * keep * (row[PXX] - 2.0 * dx * pxr + dx * dx * prr) + config[3] * dt
        row[PYY] = k * keep * (row[PYY] - 2.0 * dy * pyr + dy * dy * prr) + config[3] * dt
        row[PXY] = k * keep * (row[PXY] - dx * pyr - dy * pxr + dx * dy * prr)
        row[PXR] = k * math.sqrt(keep) * (pxr - dx * prr)
        row[PYR] = k * math.sqrt(keep) * (pyr - dy * prr)
        row[PRR] = k * prr + config[5] * dt
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
