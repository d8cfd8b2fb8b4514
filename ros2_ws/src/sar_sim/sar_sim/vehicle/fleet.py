"""The vehicles of one episode: their state, their noise streams, and the call that moves them by one swarm tick."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sar_core.compiled import compiled
from sar_core.frames import swap_attitude_into, swap_world, swap_yaw
from sar_core.geometry import no_obstacles
from sar_core.streams import stream
from sar_sim.vehicle import autopilot as ap
from sar_sim.vehicle import estimator as est
from sar_sim.vehicle import vehicle as kernel
from sar_sim.vehicle.airframe import Vehicle
from sar_sim.vehicle.rigidbody import GRAVITY, QUAT, ROTOR
from sar_sim.vehicle.rows import GPS_NOISE, NOISE, SLOW_EVERY, SLOW_NOISE, Normals, Surroundings, make_rows

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

STEPS_PER_SECOND = 250
TICKS_PER_SECOND = 20
FIXES_PER_SECOND = 8
STEP_NS = 4_000_000
MOST_SIGMA = 2.0  # no motor's thrust lies farther from the nominal one
TELEMETRY_SEES = 0.5
"""Share of a motor's thrust: a motor that lost less draws about its usual current, and telemetry finds it sound."""


def step_of_tick(tick: int) -> int:
    """The 4 ms step on which a 20 Hz tick falls: the first one not before it (0, 13, 25, 38, 50, ...)."""
    return -(-tick * STEPS_PER_SECOND // TICKS_PER_SECOND)


def stamp_ns(tick: int) -> int:
    """Simulation time of a tick in nanoseconds."""
    return step_of_tick(tick) * STEP_NS


@dataclass(frozen=True)
class FleetState:
    """A snapshot over N vehicles, ENU/FLU, SI: truth and estimate apart."""

    position: Floats
    velocity: Floats
    attitude: Floats
    rates: Floats
    est_position: Floats
    est_velocity: Floats
    est_attitude: Floats
    charge: Floats
    landed: Bools
    gps_age_s: Floats
    """[N] since the last fix the estimator took, as the autopilot reports it."""
    motors_ok: Bools
    """[N] what the motor controllers' telemetry says."""
    tilt_rad: Floats
    """[N] of the estimated attitude."""


class Fleet:
    """N equal vehicles in one compiled kernel.

    Noise comes in one-second blocks from one stream per vehicle, so a vehicle's noise depends neither on how many
    others fly nor on how the ticks are grouped.
    """

    def __init__(
        self,
        vehicle: Vehicle,
        spawns: Floats,
        seed: int,
        episode: int,
        wind_mps: Floats | None = None,
        obstacles: Floats | None = None,
        thrust_variation: float = 0.0,
        in_air: bool = False,
        with_noise: bool = True,
    ) -> None:
        """spawns [N, 4] = x, y, z, yaw in ENU; z is that of the feet unless in_air."""
        n = len(spawns)
        self.vehicle = vehicle
        self.count = n
        self.step = 0
        self.armed: Bools = np.zeros(n, dtype=np.bool_) if not in_air else np.ones(n, dtype=np.bool_)
        wind_ned = swap_world(wind_mps) if wind_mps is not None else np.zeros(3)
        self._around = Surroundings(wind_ned, obstacles if obstacles is not None else no_obstacles())
        self._rows = make_rows(n)
        self._motors_left = np.ones((n, 4))
        self._powered: Bools = np.ones(n, dtype=np.bool_)
        self._streams = [stream("vehicle", seed, episode, i) for i in range(n)]
        self._normals = Normals(
            steps=np.zeros((n, STEPS_PER_SECOND, NOISE)),
            slow=np.zeros((n, STEPS_PER_SECOND // SLOW_EVERY, SLOW_NOISE)),
            fixes=np.zeros((FIXES_PER_SECOND, n, GPS_NOISE)),
        )
        self._noisy = with_noise
        frame = vehicle.airframe
        for i, (x, y, z, yaw) in enumerate(spawns):
            yaw_ned = float(swap_yaw(yaw))
            self._rows.body[i, 0:3] = y, x, -z - (0.0 if in_air else frame.gear_height)
            self._rows.body[i, QUAT : QUAT + 4] = np.cos(yaw_ned / 2), 0.0, 0.0, np.sin(yaw_ned / 2)
            ap.reset_memory(self._rows.memory[i], vehicle.constants["gains"][0], in_air, yaw_ned)
            if thrust_variation > 0.0:
                draw = self._streams[i].standard_normal(4)
                self._rows.scale[i] = 1.0 + thrust_variation * np.clip(draw, -MOST_SIGMA, MOST_SIGMA)
            if in_air:
                hover = frame.mass * GRAVITY / (4.0 * frame.thrust_max)
                self._rows.body[i, ROTOR : ROTOR + 4] = hover ** (1.0 / frame.thrust_exponent)
        self._sound_scale = self._rows.scale.copy()

    def command(self, index: int, position: Floats, velocity: Floats, acceleration: Floats, yaw: float) -> None:
        """Set one vehicle's OFFBOARD setpoint, ENU; NaN means not commanded."""
        row = self._rows.setpoints[index]
        row[0], row[1], row[2] = position[1], position[0], -position[2]
        row[3], row[4], row[5] = velocity[1], velocity[0], -velocity[2]
        row[6], row[7], row[8] = acceleration[1], acceleration[0], -acceleration[2]
        row[9] = math.pi / 2.0 - yaw

    def command_ned(self, index: int, row: Floats) -> None:
        """Set one vehicle's setpoint as PX4 takes it: position, velocity, acceleration, yaw, yaw rate in NED."""
        self._rows.setpoints[index] = row

    def warm_up(self, seconds: float) -> None:
        """Let estimator and controller settle as a real vehicle's do before anyone looks; the clock then starts at 0.

        On the ground the vehicles stand; in the air they hold the setpoint they have.
        """
        self.tick(int(seconds * STEPS_PER_SECOND))
        self.step = 0
        self._rows.charge[:] = 1.0
        self._rows.aids[:, est.A_FIX] = 0.0

    def place_estimate(self, index: int, position_ned: Floats) -> None:
        """Shift one vehicle so that its estimate is at the given position."""
        self._rows.body[index, 0:3] = np.asarray(position_ned) - self._rows.error[index, 0:3]
        self._rows.clear[index] = -np.inf

    def lose_gps(self, index: int, lost: bool) -> None:
        """Take one vehicle's fixes away, or give them back."""
        self._rows.aids[index, est.A_LOST] = float(lost)

    def drift_gps(self, index: int, east_mps: float, north_mps: float) -> None:
        """Let one vehicle's fixes wander off at a speed; zero puts them right at once."""
        row = self._rows.aids[index]
        row[est.A_RATE], row[est.A_RATE + 1] = north_mps, east_mps
        if east_mps == north_mps == 0.0:
            row[est.A_DRIFT : est.A_DRIFT + 2] = 0.0

    def bias_compass(self, index: int, yaw_rad: float) -> None:
        """Let one vehicle's compass read a yaw (ENU) that is off by an angle."""
        self._rows.aids[index, est.A_HEADING] = -yaw_rad

    def weaken_motors(self, index: int, left: Floats) -> None:
        """Leave one vehicle's motors these shares [4] of the thrust they have when sound."""
        self._rows.scale[index] = self._sound_scale[index] * left
        self._motors_left[index] = left

    def switch_power(self, index: int, on: bool) -> None:
        """Without power the motors stand still whatever is commanded."""
        self._powered[index] = on

    def set_charge(self, index: int, charge: float) -> None:
        """Set the share of one battery's charge that is left."""
        self._rows.charge[index] = charge

    def state_ned(self, index: int) -> tuple[Floats, Floats, Floats]:
        """One vehicle in PX4's frames: body row (truth), error row (estimate minus truth), estimated attitude."""
        q_est = np.empty(4)
        kernel.estimated_attitude(self._rows.body[index], self._rows.error[index], q_est)
        return self._rows.body[index].copy(), self._rows.error[index].copy(), q_est

    def tick(self, steps: int) -> Floats:
        """Advance by some steps of 4 ms; returns the true positions [steps + 1, N, 3] along the way, ENU."""
        track = np.empty((self.count, steps + 1, 3))
        self._advance(steps, track)
        return track.transpose(1, 0, 2)

    def _advance(self, steps: int, track: Floats) -> None:
        running = self.armed & self._powered
        done = 0
        while done < steps:
            if self.step % STEPS_PER_SECOND == 0 and self._noisy:
                for i, rng in enumerate(self._streams):
                    rng.standard_normal(out=self._normals.steps[i])
                    rng.standard_normal(out=self._normals.slow[i])
                    self._normals.fixes[:, i, :] = rng.standard_normal((FIXES_PER_SECOND, GPS_NOISE))
            next_tick = step_of_tick(self.step * TICKS_PER_SECOND // STEPS_PER_SECOND + 1)
            part = min(steps - done, next_tick - self.step)
            kernel.advance(
                self._rows,
                running,
                self._normals,
                self._around,
                self.vehicle.constants,
                self.step,
                part,
                track,
                done,
            )
            self.step += part
            done += part

    def snapshot(self) -> FleetState:
        """Where everything is and where it believes itself to be, as fresh arrays."""
        vectors = np.empty((5, self.count, 3))
        attitudes = np.empty((2, self.count, 4))
        tilt = np.empty(self.count)
        _observe(self._rows.body, self._rows.error, vectors, attitudes, tilt)
        return FleetState(
            position=vectors[0],
            velocity=vectors[1],
            attitude=attitudes[0],
            rates=vectors[2],
            est_position=vectors[3],
            est_velocity=vectors[4],
            est_attitude=attitudes[1],
            charge=self._rows.charge.copy(),
            landed=self._rows.memory[:, ap.LANDED] > 0.0,
            gps_age_s=(self.step - self._rows.aids[:, est.A_FIX]) * kernel.STEP_S,
            motors_ok=self._powered & (self._motors_left.min(axis=1) > TELEMETRY_SEES),
            tilt_rad=tilt,
        )


@compiled
def _observe(body: Floats, error: Floats, vectors: Floats, attitudes: Floats, tilt: Floats) -> None:
    """Truth and estimate of all vehicles in ENU/FLU: vectors [5, N, 3], attitudes [2, N, 4], estimated tilt [N]."""
    q_est = np.empty(4)
    for i in range(body.shape[0]):
        b, e = body[i], error[i]
        for k, (at, shift) in enumerate(((0, -1), (3, -1), (10, -2), (0, 0), (3, 3))):
            x, y, z = b[at], b[at + 1], b[at + 2]
            if shift >= 0:
                x, y, z = x + e[shift], y + e[shift + 1], z + e[shift + 2]
            if shift == -2:
                vectors[k, i, 0], vectors[k, i, 1], vectors[k, i, 2] = x, -y, -z
            else:
                vectors[k, i, 0], vectors[k, i, 1], vectors[k, i, 2] = y, x, -z
        swap_attitude_into(b[6:10], attitudes[0, i])
        kernel.estimated_attitude(b, e, q_est)
        swap_attitude_into(q_est, attitudes[1, i])
        tilt[i] = math.acos(max(min(1.0 - 2.0 * (q_est[1] ** 2 + q_est[2] ** 2), 1.0), -1.0))


@compiled
def add_path(track: Floats, flown: Floats) -> None:
    """Add the length of each vehicle's way along track [K, N, 3] to flown [N]."""
    for k in range(1, track.shape[0]):
        for i in range(track.shape[1]):
            dx = track[k, i, 0] - track[k - 1, i, 0]
            dy = track[k, i, 1] - track[k - 1, i, 1]
            dz = track[k, i, 2] - track[k - 1, i, 2]
            flown[i] += math.sqrt(dx * dx + dy * dy + dz * dz)
