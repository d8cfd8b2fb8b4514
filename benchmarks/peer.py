"""The same vehicles and control law on MuJoCo's physics: the peer our kernel's speed is measured against.

MuJoCo moves the bodies and finds contacts with ground and obstacles (its default Euler integrator: one evaluation of
the forces per step against our four). All else is the same compiled code as in our own kernel: sensor noise, estimator,
PX4's cascade, motor lag, rotor thrust and drag, gusts.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled
from sar_core.errors import MissingDependencyError
from sar_core.geometry import BOX
from sar_sim.vehicle import autopilot as ap
from sar_sim.vehicle import vehicle as kernel
from sar_sim.vehicle.airframe import Vehicle
from sar_sim.vehicle.rigidbody import GRAVITY, ROTOR, Airframe, rotate, rotor_wrench
from sar_sim.vehicle.rows import (
    GPS_NOISE,
    N_HEADING,
    NOISE,
    SCRATCH,
    SLOW_EVERY,
    SLOW_NOISE,
    Normals,
    Records,
    Rows,
    make_rows,
)
from sar_sim.vehicle.wind import AIR, LAW, gust_coefficients, moving_air

Floats = NDArray[np.float64]


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
        f'<mujoco><option timestep="{kernel.STEP_S}" gravity="0 0 -{GRAVITY}"/>'
        f'<worldbody><geom type="plane" size="0 0 1"/>{geoms}{bodies}</worldbody></mujoco>'
    )


@compiled
def control(
    qpos: Floats,
    qvel: Floats,
    wrench: Floats,
    rows: Rows,
    normals: Normals,
    wind: Floats,
    constants: Records,
    first_step: int,
    k: int,
    scratch: Records,
) -> None:
    """One step for all bodies: MuJoCo's state in, forces and torques on the bodies out. Arguments as in our kernel."""
    c, work = constants[0], scratch[0]
    step = first_step + k
    for i in range(rows.body.shape[0]):
        s, e, gust, own = rows.body[i], rows.error[i], rows.gust[i], normals.steps[i, k]
        air, law = gust[AIR:], gust[LAW:]
        slow = normals.slow[i, step // SLOW_EVERY % normals.slow.shape[1]]
        vx, vy, vz = s[3], s[4], s[5]
        _read_body(qpos, qvel, i, s)
        if step > 0:
            acceleration = (s[3] - vx) / kernel.STEP_S, (s[4] - vy) / kernel.STEP_S, (s[5] - vz) / kernel.STEP_S
            fix, heading = normals.fixes[0, i], slow[N_HEADING]
            kernel.sense(s, e, rows.aids[i], acceleration, 1.0, own, fix, heading, step, c, work)
        kernel.decide(s, rows.memory[i], e, rows.setpoints[i], True, own, step, c, work)
        if k == 0:
            gust_coefficients(s, wind, SLOW_EVERY * kernel.STEP_S, law)
        if step % SLOW_EVERY == 0:
            moving_air(gust, law, wind, slow[0], slow[1], slow[2], air)
        _push(c.airframe, s, rows.scale[i], c.decay, work.command, air, wrench[i + 1])


@compiled
def _read_body(qpos: Floats, qvel: Floats, i: int, s: Floats) -> None:
    """One free body's ENU/FLU state as our NED/FRD row; MuJoCo gives rates in body axes."""
    p, v = 7 * i, 6 * i
    s[0], s[1], s[2] = qpos[p + 1], qpos[p], -qpos[p + 2]
    s[3], s[4], s[5] = qvel[v + 1], qvel[v], -qvel[v + 2]
    h = math.sqrt(0.5)
    w, x, y, z = qpos[p + 3], qpos[p + 4], qpos[p + 5], qpos[p + 6]
    s[6], s[7], s[8], s[9] = h * (w + z), h * (x + y), h * (x - y), h * (w - z)
    s[10], s[11], s[12] = qvel[v + 3], -qvel[v + 4], -qvel[v + 5]


@compiled
def _push(f: Airframe, s: Floats, scale: Floats, decay: Floats, command: Floats, air: Floats, out: Floats) -> None:
    """Motor lag, rotor thrust, torque and drag of one body as MuJoCo's world-frame wrench, ENU."""
    rotor = s[ROTOR:]
    for j in range(4):
        target = f.rotor_idle + (1.0 - f.rotor_idle) * command[j]
        gap = rotor[j] - target
        rotor[j] = target + gap * (decay[1] if gap < 0.0 else decay[3])
    thrust, tx, ty, tz, spin = rotor_wrench(rotor, scale, f)
    w, a, b, c = s[6], s[7], s[8], s[9]
    ax, ay, az = s[3] - air[0], s[4] - air[1], s[5] - air[2]
    bx, by, _ = rotate(w, -a, -b, -c, ax, ay, az)
    drag = f.drag_rotor * spin
    fx, fy, fz = rotate(w, a, b, c, -drag * bx, -drag * by, -thrust)
    fx -= f.drag_linear * ax
    fy -= f.drag_linear * ay
    fz -= f.drag_linear * az
    mx, my, mz = rotate(
        w, a, b, c, tx - f.drag_angular * s[10], ty - f.drag_angular * s[11], tz - f.drag_angular * s[12]
    )
    out[0], out[1], out[2] = fy, fx, -fz
    out[3], out[4], out[5] = my, mx, -mz


class MujocoFleet:
    """N vehicles hovering in MuJoCo under our compiled control law, with our sensor noise and gusts."""

    def __init__(self, vehicle: Vehicle, spawns: Floats, obstacles: Floats, wind_ned: Floats) -> None:
        self._mj = load_mujoco()
        frame = vehicle.airframe
        self._model = self._mj.MjModel.from_xml_string(model_xml(frame, spawns, obstacles))
        self._data = self._mj.MjData(self._model)
        n = len(spawns)
        hover = frame.mass * GRAVITY / (4.0 * frame.thrust_max)
        self._rows = make_rows(n)
        self._rows.body[:, ROTOR:] = hover ** (1.0 / frame.thrust_exponent)
        setpoints = self._rows.setpoints
        setpoints[:, 0], setpoints[:, 1], setpoints[:, 2] = spawns[:, 1], spawns[:, 0], -spawns[:, 2]
        setpoints[:, ap.SP_YAW] = math.pi / 2
        self._constants, self._wind = vehicle.constants, wind_ned
        for row in self._rows.memory:
            ap.reset_memory(row, self._constants["gains"][0], True, math.pi / 2)
        self._scratch = np.zeros(1, dtype=SCRATCH)
        self._rng = np.random.default_rng(0)
        self._step = 0

    @property
    def positions(self) -> Floats:
        """ENU positions [N, 3]."""
        return np.array(self._data.qpos).reshape(-1, 7)[:, :3]

    def run(self, seconds: int) -> None:
        """Advance by whole seconds, 250 steps each."""
        data, model, mj_step = self._data, self._model, self._mj.mj_step
        n = self._rows.body.shape[0]
        for _ in range(seconds):
            normals = Normals(
                steps=self._rng.standard_normal((n, 250, NOISE)),
                slow=self._rng.standard_normal((n, 50, SLOW_NOISE)),
                fixes=self._rng.standard_normal((1, n, GPS_NOISE)),
            )
            for k in range(250):
                control(
                    data.qpos,
                    data.qvel,
                    data.xfrc_applied,
                    self._rows,
                    normals,
                    self._wind,
                    self._constants,
                    self._step,
                    k,
                    self._scratch,
                )
                mj_step(model, data)
            self._step += 250
