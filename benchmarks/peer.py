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
from sar_sim.vehicle import estimator as est
from sar_sim.vehicle import vehicle as kernel
from sar_sim.vehicle.airframe import Vehicle
from sar_sim.vehicle.rigidbody import BODY, GRAVITY, ROTOR, Airframe, rotate, rotor_wrench
from sar_sim.vehicle.wind import AIR, GUST, GUST_LAW, gust_coefficients, moving_air

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
        f'<mujoco><option timestep="{kernel.STEP_S}" gravity="0 0 -{GRAVITY}"/>'
        f'<worldbody><geom type="plane" size="0 0 1"/>{geoms}{bodies}</worldbody></mujoco>'
    )


@compiled
def control(
    qpos: Floats,
    qvel: Floats,
    wrench: Floats,
    rows: Floats,
    memory: Floats,
    error: Floats,
    gust: Floats,
    aids: Floats,
    setpoints: Floats,
    noise: Floats,
    slow_noise: Floats,
    gps_noise: Floats,
    wind: Floats,
    frames: Records,
    gain_sets: Records,
    decay: Floats,
    mix: Floats,
    unmix: Floats,
    filters: Records,
    sensors: Records,
    scale: Floats,
    first_step: int,
    k: int,
    law: Floats,
    work: Floats,
) -> None:
    """One step for all bodies: MuJoCo's state in, forces and torques on the bodies out. Arguments as in our kernel."""
    frame, gains, filter_gains, sensor = frames[0], gain_sets[0], filters[0], sensors[0]
    command = work[1]
    step = first_step + k
    for i in range(rows.shape[0]):
        s, e = rows[i], error[i]
        slow = slow_noise[i, step // kernel.SLOW_EVERY % slow_noise.shape[1]]
        vx, vy, vz = s[3], s[4], s[5]
        _read_body(qpos, qvel, i, s)
        if step > 0:
            ax, ay, az = (s[3] - vx) / kernel.STEP_S, (s[4] - vy) / kernel.STEP_S, (s[5] - vz) / kernel.STEP_S
            kernel.sense(
                s,
                e,
                ax,
                ay,
                az,
                1.0,
                noise[i],
                k,
                step,
                gps_noise[i],
                slow[kernel.N_HEADING],
                filter_gains,
                sensor,
                aids[i],
                work[7],
                work[8],
            )
        kernel.decide(
            s,
            memory[i],
            e,
            setpoints[i],
            True,
            noise[i],
            k,
            step,
            frame.gear_height,
            gains,
            mix,
            unmix,
            sensor,
            command,
            work[3],
            work[4],
            work[5],
            work[6],
        )
        if k == 0:
            gust_coefficients(s, wind, kernel.SLOW_EVERY * kernel.STEP_S, law[i])
        if step % kernel.SLOW_EVERY == 0:
            moving_air(gust[i], law[i], wind, slow[0], slow[1], slow[2], gust[i, AIR:])
        _push(frame, s, scale, decay, command, gust[i, AIR:], wrench[i + 1])


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
        self._rows = np.zeros((n, BODY))
        hover = frame.mass * GRAVITY / (4.0 * frame.thrust_max)
        self._rows[:, ROTOR:] = hover ** (1.0 / frame.thrust_exponent)
        self._memory = np.zeros((n, ap.MEMORY))
        setpoints = np.full((n, ap.SETPOINT), np.nan)
        setpoints[:, 0], setpoints[:, 1], setpoints[:, 2] = spawns[:, 1], spawns[:, 0], -spawns[:, 2]
        setpoints[:, ap.SP_YAW] = math.pi / 2
        constants = vehicle.constants
        for row in self._memory:
            ap.reset_memory(row, constants[1][0], True, math.pi / 2)
        self._before: tuple[Any, ...] = (
            self._rows,
            self._memory,
            np.zeros((n, est.ERROR)),
            np.zeros((n, GUST)),
            np.zeros((n, est.AIDS)),
            setpoints,
        )
        self._after: tuple[Any, ...] = (wind_ned, *constants, np.ones(4))
        self._scratch: tuple[Any, ...] = (np.zeros((n, GUST_LAW)), np.zeros((kernel.SCRATCH, 4)))
        self._rng = np.random.default_rng(0)
        self._step = 0

    @property
    def positions(self) -> Floats:
        """ENU positions [N, 3]."""
        return np.array(self._data.qpos).reshape(-1, 7)[:, :3]

    def run(self, seconds: int) -> None:
        """Advance by whole seconds, 250 steps each."""
        data, model, mj_step = self._data, self._model, self._mj.mj_step
        state = (data.qpos, data.qvel, data.xfrc_applied, *self._before)
        n = len(self._rows)
        for _ in range(seconds):
            noise = self._rng.standard_normal((n, 250, kernel.NOISE))
            slow = self._rng.standard_normal((n, 50, kernel.SLOW_NOISE))
            gps = self._rng.standard_normal((n, kernel.GPS_NOISE))
            for k in range(250):
                arguments: Any = (*state, noise, slow, gps, *self._after, self._step, k, *self._scratch)
                control(*arguments)
                mj_step(model, data)
            self._step += 250
