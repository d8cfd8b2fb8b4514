"""The same vehicles and control law on MuJoCo's physics: the peer our kernel's speed is measured against.

MuJoCo moves the bodies (its default Euler integrator, contacts with ground and obstacles on); our compiled functions
do per step what they do in our own kernel apart from integration and contact: gyro filter, PX4's cascade, motor lag,
rotor thrust and drag. Gusts and the estimator are left out here, which favours the peer.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sar_core.errors import MissingDependencyError
from sar_core.geometry import BOX
from sar_sim import autopilot as ap
from sar_sim import vehicle as kernel
from sar_sim.airframe import Vehicle
from sar_sim.vehicle import Airframe

Floats = NDArray[np.float64]
Records = NDArray[np.void]


def load_mujoco() -> Any:
    try:
        import mujoco
    except ImportError:
        raise MissingDependencyError("mujoco is not installed; get it with: pip install 'sar-eval[bench]'") from None
    return mujoco


def model_xml(frame: Airframe, spawns: Floats, obstacles: Floats) -> str:
    """An MJCF scene: free bodies at the spawns, static obstacles, a ground plane. MuJoCo's world is ENU as ours is."""
    bodies = "".join(
        f'<body pos="{x} {y} {z}"><freejoint/><inertial pos="0 0 0" mass="{frame.mass}" '
        f'diaginertia="{frame.inertia_x} {frame.inertia_y} {frame.inertia_z}"/>'
        f'<geom type="sphere" size="{frame.hull_radius}"/></body>'
        for x, y, z, _ in spawns
    )
    geoms = "".join(
        f'<geom type="box" pos="{r[1]} {r[2]} {r[3]}" size="{r[4]} {r[5]} {r[6]}" euler="0 0 {math.degrees(r[7])}"/>'
        if r[0] == BOX
        else f'<geom type="cylinder" pos="{r[1]} {r[2]} {r[3]}" size="{r[4]} {r[6]}"/>'
        for r in obstacles
    )
    return (
        f'<mujoco><option timestep="{kernel.STEP_S}" gravity="0 0 -{kernel.GRAVITY}"/>'
        f'<worldbody><geom type="plane" size="0 0 1"/>{geoms}{bodies}</worldbody></mujoco>'
    )


@njit(cache=True, error_model="numpy")
def control(
    qpos: Floats,
    qvel: Floats,
    wrench: Floats,
    rows: Floats,
    memory: Floats,
    setpoints: Floats,
    frames: Records,
    gain_sets: Records,
    mix: Floats,
    unmix: Floats,
    step: int,
    decay: Floats,
    scratch: Floats,
) -> None:
    """One control step for all bodies: MuJoCo's state in, forces and torques on the bodies out."""
    frame, gains = frames[0], gain_sets[0]
    for i in range(rows.shape[0]):
        s, m, sp = rows[i], memory[i], setpoints[i]
        _read_body(qpos, qvel, i, s)
        for j in range(3):
            scratch[j] = s[kernel.RATE + j]
        ap.filter_gyro(m, gains, scratch, kernel.STEP_S)
        attitude = s[kernel.QUAT : kernel.QUAT + 4]
        if step % ap.POSITION_EVERY == 0:
            if math.isfinite(sp[ap.SP_YAW]):
                m[ap.YAW_SP] = sp[ap.SP_YAW]
            tilt_cos = 1.0 - 2.0 * (attitude[1] ** 2 + attitude[2] ** 2)
            dt = ap.POSITION_EVERY * kernel.STEP_S
            ap.position_step(m, gains, sp, s[0:3], s[3:6], m[ap.VEL_DOT + 2], tilt_cos, True, dt)
        rr, rp, ry = ap.attitude_step(m, gains, attitude, sp[ap.SP_YAWRATE])
        tr, tp, ty = ap.rate_step(m, gains, rr, rp, ry, kernel.STEP_S)
        ap.allocate(m, mix, unmix, tr, tp, ty, m[ap.THRUST_SP], scratch)
        _push(frame, s, decay, scratch, wrench[i + 1])


@njit(cache=True, error_model="numpy")
def _read_body(qpos: Floats, qvel: Floats, i: int, s: Floats) -> None:
    """One free body's ENU/FLU state as our NED/FRD row; MuJoCo gives rates in body axes."""
    p, v = 7 * i, 6 * i
    s[0], s[1], s[2] = qpos[p + 1], qpos[p], -qpos[p + 2]
    s[3], s[4], s[5] = qvel[v + 1], qvel[v], -qvel[v + 2]
    h = math.sqrt(0.5)
    w, x, y, z = qpos[p + 3], qpos[p + 4], qpos[p + 5], qpos[p + 6]
    s[6], s[7], s[8], s[9] = h * (w + z), h * (x + y), h * (x - y), h * (w - z)
    s[10], s[11], s[12] = qvel[v + 3], -qvel[v + 4], -qvel[v + 5]


@njit(cache=True, error_model="numpy")
def _push(f: Airframe, s: Floats, decay: Floats, command: Floats, out: Floats) -> None:
    """Motor lag, rotor thrust, torque and drag of one body as MuJoCo's world-frame wrench, ENU."""
    thrust = tx = ty = tz = spin = 0.0
    for j in range(4):
        target = f.rotor_idle + (1.0 - f.rotor_idle) * command[j]
        gap = s[kernel.ROTOR + j] - target
        speed = target + gap * (decay[1] if gap < 0.0 else decay[3])
        s[kernel.ROTOR + j] = speed
        t = kernel.thrust_of(speed, f)
        thrust += t
        spin += speed
        tx -= f.rotor_y[j] * t
        ty += f.rotor_x[j] * t
        tz += (f.moment_ratio if j < 2 else -f.moment_ratio) * t
    w, a, b, c = s[6], s[7], s[8], s[9]
    bx, by, _ = kernel.rotate(w, -a, -b, -c, s[3], s[4], s[5])
    drag = f.drag_rotor * spin
    fx, fy, fz = kernel.rotate(w, a, b, c, -drag * bx, -drag * by, -thrust)
    fx -= f.drag_linear * s[3]
    fy -= f.drag_linear * s[4]
    fz -= f.drag_linear * s[5]
    mx, my, mz = kernel.rotate(
        w, a, b, c, tx - f.drag_angular * s[10], ty - f.drag_angular * s[11], tz - f.drag_angular * s[12]
    )
    out[0], out[1], out[2] = fy, fx, -fz
    out[3], out[4], out[5] = my, mx, -mz


class MujocoFleet:
    """N vehicles hovering in MuJoCo under our compiled control law."""

    def __init__(self, vehicle: Vehicle, spawns: Floats, obstacles: Floats) -> None:
        self._mj = load_mujoco()
        frame = vehicle.airframe
        self._model = self._mj.MjModel.from_xml_string(model_xml(frame, spawns, obstacles))
        self._data = self._mj.MjData(self._model)
        n = len(spawns)
        self._rows = np.zeros((n, kernel.BODY))
        hover = frame.mass * kernel.GRAVITY / (4.0 * frame.thrust_max)
        self._rows[:, kernel.ROTOR :] = hover ** (1.0 / frame.thrust_exponent)
        self._memory = np.zeros((n, ap.MEMORY))
        self._setpoints = np.full((n, ap.SETPOINT), np.nan)
        self._setpoints[:, 0], self._setpoints[:, 1], self._setpoints[:, 2] = spawns[:, 1], spawns[:, 0], -spawns[:, 2]
        self._setpoints[:, ap.SP_YAW] = math.pi / 2
        frames, gains, _, _ = vehicle.records
        for row in self._memory:
            ap.reset_memory(row, gains[0], True, math.pi / 2)
        lags = np.array([-0.5 / frame.lag_up, -1.0 / frame.lag_up, -0.5 / frame.lag_down, -1.0 / frame.lag_down])
        self._constants = (frames, gains, vehicle.mix, vehicle.unmix)
        self._decay = np.exp(lags * kernel.STEP_S)
        self._scratch = np.zeros(4)

    @property
    def positions(self) -> Floats:
        """ENU positions [N, 3]."""
        return np.array(self._data.qpos).reshape(-1, 7)[:, :3]

    def run(self, steps: int) -> None:
        """Advance by so many 4 ms steps."""
        data, model, mj_step = self._data, self._model, self._mj.mj_step
        qpos, qvel, wrench = data.qpos, data.qvel, data.xfrc_applied
        for step in range(steps):
            control(
                qpos,
                qvel,
                wrench,
                self._rows,
                self._memory,
                self._setpoints,
                *self._constants,
                step,
                self._decay,
                self._scratch,
            )
            mj_step(model, data)


