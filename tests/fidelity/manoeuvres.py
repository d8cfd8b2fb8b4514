"""Figures of a recorded or flown manoeuvre, by one definition for both.

Rise times run from the row in which the setpoint changes, between the value there and the value commanded.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Trace = Mapping[str, Floats]

DATA = Path(__file__).parent / "data"
RECORDINGS = ("", "_v1.18")


def read_trace(path: Path) -> dict[str, Floats]:
    with open(path, newline="") as stream:
        rows = list(csv.DictReader(stream))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}


def _rise(t: Floats, y: Floats, share: float) -> float:
    """First time the normalised response reaches a share, interpolated between rows."""
    k = int(np.argmax(y >= share))
    assert y[k] >= share, f"the response never reaches {share:.0%}"
    if k == 0:
        return float(t[0])
    return float(np.interp(share, y[k - 1 : k + 1], t[k - 1 : k + 1]))


def _step(trace: Trace, value: str, setpoint: str, change: float) -> tuple[int, Floats, Floats]:
    """Index of the step, time since then, response normalised to 0 at the step and 1 at the command."""
    at = int(np.argmax(np.abs(np.nan_to_num(trace[setpoint])) > abs(change)))
    assert at > 0, "no step found"
    start, goal = trace[value][at], trace[setpoint][at]
    return at, trace["t"][at:] - trace["t"][at], (trace[value][at:] - start) / (goal - start)


def figures(name: str, trace: Trace) -> dict[str, float]:
    """The figures by which one manoeuvre is judged."""
    if name == "hover30s":
        spread = [np.std(trace[f"gt_{axis}"]) for axis in "xyz"]
        return {"spread_m": float(np.sqrt(np.mean(np.square(spread))))}
    if name == "vel_step_3ms":
        _, t, y = _step(trace, "vx", "sp_vx", 1.0)
        at = int(np.argmax(np.nan_to_num(trace["sp_vx"]) > 1.0))
        late = (t > 5.8) & (t < 6.2)
        return {"t50_s": _rise(t, y, 0.5), "after_6s_mps": float(np.mean(trace["vx"][at:][late]))}
    value, setpoint, change, peak, scale = {
        "pos_step_x10m": ("x", "sp_x", 5.0, "vx", 1.0),
        "pos_step_z5m_up": ("z", "sp_z", 12.0, "vz", -1.0),
        "pos_step_z5m_down": ("z", "sp_z", 12.0, "vz", 1.0),
        "yaw_step_90deg": ("yaw", "sp_yaw", 1.0, "r", 180.0 / np.pi),
    }[name]
    at, t, y = _step(trace, value, setpoint, change)
    return {
        "t10_s": _rise(t, y, 0.1),
        "t50_s": _rise(t, y, 0.5),
        "t90_s": _rise(t, y, 0.9),
        "overshoot_pct": 100.0 * float(y.max() - 1.0),
        "peak_rate": float(np.max(scale * trace[peak][at:])),
    }
