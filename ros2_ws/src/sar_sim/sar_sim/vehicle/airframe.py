"""Vehicle files: what a vehicle is made of, read from YAML and checked."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import yaml
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sar_core.errors import InputError
from sar_core.validation import describe_validation
from sar_sim.vehicle.autopilot import Gains
from sar_sim.vehicle.estimator import FilterGains, design_filter
from sar_sim.vehicle.parameters import assumed_noise, gains_from, mixer_from, read_parameters
from sar_sim.vehicle.rigidbody import Airframe, rotor_decay
from sar_sim.vehicle.rows import Constants, Noise, Records, as_record
from sar_sim.vehicle.vehicle import STEP_S

Floats = NDArray[np.float64]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Nonnegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Triple = tuple[Nonnegative, Nonnegative, Nonnegative]
Quadruple = tuple[float, float, float, float]


class SensorFile(BaseModel):
    """Per-sample sensor noise (one standard deviation) and the accuracies the GPS receiver reports."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    accel_mps2: Triple
    gyro_rps: Triple
    gps_position_m: Triple
    gps_velocity_mps: Triple
    heading_rad: Nonnegative
    gps_reported_horizontal_m: Positive
    gps_reported_vertical_m: Positive
    gps_reported_speed_mps: Positive


class VehicleFile(BaseModel):
    """One vehicle's constants; the YAML file's comments give each value's source."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str
    mass_kg: Positive
    inertia_kgm2: tuple[Positive, Positive, Positive]
    thrust_max_n: Positive
    torque_max_nm: Positive
    rotor_x_m: Quadruple
    rotor_y_m: Quadruple
    rotor_idle: Annotated[float, Field(ge=0, lt=1)]
    thrust_exponent: Annotated[float, Field(ge=1, le=2)]
    lag_up_s: Positive
    lag_down_s: Positive
    drag_linear_nspm: Nonnegative
    drag_rotor_nspm: Nonnegative
    drag_angular_nmspr: Nonnegative
    hull_radius_m: Positive
    gear_height_m: Nonnegative
    endurance_s: Positive
    air_speed_max_mps: Positive
    sensors: SensorFile


@dataclass(frozen=True)
class Vehicle:
    """Everything the kernel needs to fly one kind of vehicle."""

    name: str
    airframe: Airframe
    gains: Gains
    mix: Floats
    unmix: Floats
    filter_gains: FilterGains
    noise: Noise
    air_speed_max_mps: float
    sha256: str

    @cached_property
    def constants(self) -> Records:
        """The same as the kernel takes it: one record of Constants."""
        decay = rotor_decay(self.airframe, STEP_S)
        return as_record(
            Constants(self.airframe, self.gains, decay, self.mix, self.unmix, self.filter_gains, self.noise)
        )


def _read(path: Path) -> tuple[Any, bytes]:
    try:
        text = path.read_bytes()
        return yaml.safe_load(text), text
    except (OSError, yaml.YAMLError, RecursionError) as error:
        raise InputError(f"{path}: cannot read the vehicle file ({error})".replace("\n", " ")) from error


def load_vehicle(vehicle_path: Path, params_path: Path) -> Vehicle:
    """Combine a vehicle file with a PX4 parameter file.

    What a vehicle file with ``like: NAME`` does not say is taken from the file of that name beside it.
    """
    raw, text = _read(vehicle_path)
    if isinstance(raw, dict) and "like" in raw:
        base_path = vehicle_path.with_name(f"{raw.pop('like')}.yaml")
        base, base_text = _read(base_path)
        if not isinstance(base, dict) or "like" in base:
            raise InputError(f"{base_path}: {vehicle_path.stem} is like it, so it must say everything itself")
        raw, text = {**base, **raw}, base_text + text
    try:
        file = VehicleFile.model_validate(raw)
    except ValidationError as error:
        raise InputError(describe_validation(vehicle_path, error)) from error
    values = read_parameters(params_path)
    source = str(params_path)
    mix, unmix = mixer_from(values, source)
    s = file.sensors
    assumed = assumed_noise(
        values, s.gps_reported_horizontal_m, s.gps_reported_vertical_m, s.gps_reported_speed_mps, source
    )
    airframe = Airframe(
        mass=file.mass_kg,
        inertia_x=file.inertia_kgm2[0],
        inertia_y=file.inertia_kgm2[1],
        inertia_z=file.inertia_kgm2[2],
        thrust_max=file.thrust_max_n,
        moment_ratio=file.torque_max_nm / file.thrust_max_n,
        rotor_x=file.rotor_x_m,
        rotor_y=file.rotor_y_m,
        rotor_idle=file.rotor_idle,
        thrust_exponent=file.thrust_exponent,
        lag_up=file.lag_up_s,
        lag_down=file.lag_down_s,
        drag_linear=file.drag_linear_nspm,
        drag_rotor=file.drag_rotor_nspm,
        drag_angular=file.drag_angular_nmspr,
        hull_radius=file.hull_radius_m,
        gear_height=file.gear_height_m,
        endurance=file.endurance_s,
    )
    noise = Noise(s.accel_mps2, s.gyro_rps, s.gps_position_m, s.gps_velocity_mps, s.heading_rad)
    digest = hashlib.sha256(text + params_path.read_bytes()).hexdigest()
    return Vehicle(
        name=file.name,
        airframe=airframe,
        gains=gains_from(values, source),
        mix=mix,
        unmix=unmix,
        filter_gains=design_filter(assumed),
        noise=noise,
        air_speed_max_mps=file.air_speed_max_mps,
        sha256=digest,
    )
