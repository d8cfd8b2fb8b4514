"""One vehicle through a scripted setpoint file, to lay it over anyone's own flight logs.

The columns are those of a PX4 flight trace: t, then estimate, attitude and rates in local NED/FRD, the setpoints sp_*
(nan = not commanded) and the truth gt_*. Only t and sp_* are read, and x y z of the first row as the starting point.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sar_core.errors import InputError, RunError
from sar_core.streams import stream
from sar_sim.vehicle import autopilot as ap
from sar_sim.vehicle.airframe import Vehicle
from sar_sim.vehicle.fleet import Fleet

Floats = NDArray[np.float64]

SETPOINT_COLUMNS = ("sp_x", "sp_y", "sp_z", "sp_vx", "sp_vy", "sp_vz", "sp_yaw")
OPTIONAL_COLUMNS = ("sp_ax", "sp_ay", "sp_az", "sp_yawrate")
TRUTH_COLUMNS = ("gt_x", "gt_y", "gt_z", "gt_vx", "gt_vy", "gt_vz")
COLUMNS = (
    *("t", "x", "y", "z", "vx", "vy", "vz", "roll", "pitch", "yaw", "p", "q", "r"),
    *SETPOINT_COLUMNS,
    *TRUTH_COLUMNS,
)
SETTLE_S = 20.0
STREAM_S = 0.05
GROUND_M = 0.5
LARGEST = 100_000.0
"""No time, position (m), speed (m/s) or angle (rad) of a script is larger; whatever is has other units."""


@dataclass(frozen=True)
class Script:
    """Setpoints over time: times [K], setpoints [K, SETPOINT] NED, start [3] NED, and whether that is on the ground."""

    times: Floats
    setpoints: Floats
    start: Floats
    on_ground: bool


def read_script(path: Path) -> Script:
    """Read and check a setpoint file."""
    try:
        with open(path, newline="", encoding="utf-8") as stream_:
            reader = csv.DictReader(stream_)
            rows = list(reader)
            names = set(reader.fieldnames or ())
    except OSError as error:
        raise InputError(f"{path}: cannot read the setpoint file ({error.strerror})") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot read the setpoint file ({error})") from error
    missing = [c for c in ("t", *SETPOINT_COLUMNS) if c not in names]
    if missing:
        raise InputError(f"{path}: column {missing[0]!r} is missing; needed are t, {', '.join(SETPOINT_COLUMNS)}")
    if len(rows) < 2:
        raise InputError(f"{path}: {len(rows)} rows; a flight needs at least 2")

    def column(name: str) -> Floats:
        if name not in names:
            return np.full(len(rows), np.nan)
        values = np.empty(len(rows))
        for k, row in enumerate(rows):
            try:
                values[k] = float(row[name] or "")
            except ValueError:
                raise InputError(
                    f"{path}: row {k + 1}, {name} = {row[name] or ''!r}: not a number; nan means not commanded"
                ) from None
        beyond = np.abs(values) > LARGEST
        if beyond.any():
            k = int(np.argmax(beyond))
            raise InputError(
                f"{path}: row {k + 1}, {name} = {values[k]:g}: allowed are nan and {-LARGEST:g} to {LARGEST:g}"
            )
        return values

    times = column("t")
    if not (np.isfinite(times).all() and (np.diff(times) > 0).all() and times[0] >= 0):
        before = np.concatenate(([-1e-12], times[:-1]))
        k = int(np.argmin(times > before))
        raise InputError(f"{path}: row {k + 1}, t = {times[k]:g}: times are finite, begin at 0 or later and grow")
    order = (*SETPOINT_COLUMNS[:6], *OPTIONAL_COLUMNS[:3], "sp_yaw", "sp_yawrate")
    setpoints = np.stack([column(name) for name in order], axis=1)
    start = np.array([column(axis)[0] for axis in "xyz"])
    if not np.isfinite(start).all():
        start = setpoints[0, :3]
    if not np.isfinite(start).all():
        raise InputError(f"{path}: the first row has neither x y z nor sp_x sp_y sp_z to start from")
    return Script(times, setpoints, start, bool(abs(start[2]) < GROUND_M))


def fly_script(script: Script, vehicle: Vehicle, seed: int, with_noise: bool = True) -> Floats:
    """Fly it; returns the trace [K, len(COLUMNS)] at the script's own times.

    Before t = 0 the vehicle holds the starting point until estimator and integrators have settled. Setpoints reach
    it by a 20 Hz stream whose phase depends on the seed, as they do over MAVLink.
    """
    fleet = _settled(script, vehicle, seed, with_noise)
    phase = stream("setpoint stream", seed).uniform(0.0, STREAM_S) if with_noise else 0.0
    steps = np.rint(script.times * 250.0).astype(int)
    sent = -1
    trace = np.empty((len(steps), len(COLUMNS)))
    for k, target in enumerate(steps):
        while fleet.step < target:
            now = fleet.step * 0.004
            latest = phase + math.floor((now - phase) / STREAM_S + 1e-9) * STREAM_S
            row = int(np.searchsorted(script.times, latest + 1e-9, side="right")) - 1
            if row > sent:
                sent = row
                fleet.command_ned(0, script.setpoints[row])
            fleet.tick(1)
        trace[k] = _observe(fleet, script, k)
        if not np.isfinite(trace[k, -len(TRUTH_COLUMNS) :]).all():
            raise RunError(
                f"{vehicle.name}: the state is not finite at t = {script.times[k]:g} s; no trace was written"
            )
    return trace


def _settled(script: Script, vehicle: Vehicle, seed: int, with_noise: bool) -> Fleet:
    north, east, down = script.start
    spawn = np.array([[east, north, 0.0 if script.on_ground else -down, math.pi / 2]])
    fleet = Fleet(vehicle, spawn, seed, 0, in_air=not script.on_ground, with_noise=with_noise)
    if not script.on_ground:
        hold = np.full(ap.SETPOINT, np.nan)
        hold[0:3] = script.start
        hold[ap.SP_YAW] = 0.0
        fleet.command_ned(0, hold)
    fleet.warm_up(SETTLE_S)
    if script.on_ground:
        fleet.armed[:] = True
    else:
        fleet.place_estimate(0, script.start)
    return fleet


def _observe(fleet: Fleet, script: Script, k: int) -> Floats:
    body, error, q = fleet.state_ned(0)
    w, x, y, z = q
    roll = math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    pitch = math.asin(max(-1.0, min(1.0, 2 * (w * y - z * x))))
    yaw = math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    sp = script.setpoints[k]
    return np.array(
        [
            script.times[k],
            *(body[0:3] + error[0:3]),
            *(body[3:6] + error[3:6]),
            roll,
            pitch,
            yaw,
            *body[10:13],
            *sp[0:6],
            sp[ap.SP_YAW],
            *body[0:3],
            *body[3:6],
        ]
    )


def write_trace(path: Path, trace: Floats) -> None:
    """Write a trace under the usual column names, replacing nothing that exists until it is complete."""
    partial = path.with_name(path.name + ".partial")
    try:
        with open(partial, "w", newline="", encoding="utf-8") as stream_:
            writer = csv.writer(stream_)
            writer.writerow(COLUMNS)
            for row in trace:
                writer.writerow([f"{row[0]:.3f}", *(f"{value:.5f}" for value in row[1:])])
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise RunError(f"{path}: cannot write the trace ({error.strerror})") from error
