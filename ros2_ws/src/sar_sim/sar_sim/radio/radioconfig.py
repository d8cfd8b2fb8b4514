"""The link budget as data: read from YAML, checked, and hashed so that what was calibrated on it can be bound to it."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sar_core.errors import InputError
from sar_core.radio import LIGHT_MPS
from sar_core.validation import describe_validation
from sar_sim.world.materials import RADIO_MATERIALS

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Nonnegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Decibel = Annotated[float, Field(ge=-200, le=200)]

_BOLTZMANN = 1.380649e-23


class TrafficConfig(BaseModel):
    """How phones come to be heard, and how often then; the YAML gives each key's source."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    handshake_frames: Annotated[int, Field(ge=1, le=32)]
    handshake_tries: Annotated[int, Field(ge=1, le=32)]
    forget_s: Positive
    burst_share: Annotated[float, Field(ge=0, le=1)]
    burst_gap_s: tuple[Positive, Positive]
    pause_s: Positive
    pause_mean_s: Nonnegative
    spell_s: tuple[Positive, Positive]


class RadioConfig(BaseModel):
    """Everything about the radio that is neither geometry nor a noise knob; the YAML gives each key's source."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")]
    device_eirp_dbm: Decibel
    drone_antenna_dbi: Decibel
    victim_extra_loss_db: Nonnegative
    power_spread_db: Nonnegative
    noise_temperature_k: Positive
    bandwidth_hz: Positive
    noise_figure_db: Nonnegative
    detection_snr_db: Decibel
    detection_width_db: Positive
    packet_loss: Annotated[float, Field(ge=0, lt=1)]
    shadowing_db: Nonnegative
    shadowing_distance_m: Positive
    fading_db: Nonnegative
    bearing_bias_rad: Annotated[float, Field(ge=0, le=1)]
    traffic: TrafficConfig
    sto_range_s: Annotated[float, Field(ge=0, le=1e-6)]
    agc_step_db: Positive
    csi_level: Annotated[float, Field(gt=1, le=90)]
    rssi_step_db: Positive
    max_reflections: Annotated[int, Field(ge=0, le=16)]
    reflection_reach_m: Nonnegative
    refresh_ticks: Annotated[int, Field(ge=1, le=100)]
    materials: Literal["itu_p2040_4"]
    interference_dbm: Decibel

    @property
    def noise_dbm(self) -> float:
        """Noise power in the channel without interference."""
        return 10.0 * math.log10(_BOLTZMANN * self.noise_temperature_k * self.bandwidth_hz * 1e3) + self.noise_figure_db

    @property
    def phone_dbm(self) -> float:
        """What a usual phone radiates, with the drone's antenna gain already added."""
        return self.device_eirp_dbm + self.drone_antenna_dbi

    @property
    def victim_dbm(self) -> float:
        """The same of a victim's phone as it lies: what the swarm is told to expect of whom it looks for."""
        return self.phone_dbm - self.victim_extra_loss_db

    @property
    def detection_midpoint_db(self) -> float:
        """SNR at which half of the packets are received: the 90 % point less ln 9 widths of the logistic curve."""
        return self.detection_snr_db - self.detection_width_db * math.log(9.0)


def load_radio(path: Path) -> RadioConfig:
    """A link budget from its file; ``base: name`` starts from the file of that name in the same folder."""
    raw = _read(path)
    base = raw.pop("base", None)
    if base is not None:
        raw = {**_read(path.with_name(f"{base}.yaml")), **raw}
    try:
        return RadioConfig.model_validate(raw)
    except ValidationError as error:
        raise InputError(describe_validation(path, error)) from error


def _read(path: Path) -> dict[str, Any]:
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise InputError(f"{path}: cannot read the radio file ({' '.join(str(error).split())})") from error
    if not isinstance(raw, dict):
        raise InputError(f"{path}: a radio file is a mapping of keys to values, found {type(raw).__name__}")
    return raw


def config_sha256(config: RadioConfig) -> str:
    """A hash of every number that shapes the channel: the link budget and the world's radio materials."""
    materials = {name: asdict(m) | {"source": ""} for name, m in RADIO_MATERIALS.items()}
    text = json.dumps([config.model_dump(mode="json", exclude={"name"}), materials], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


class Budget(NamedTuple):
    """The link budget in the units of the kernels."""

    noise_mw: float
    midpoint_db: float
    width_db: float
    packet_loss: float
    shadowing_db: float
    shadowing_distance_m: float
    fading_db: float
    bearing_bias_rad: float
    tries: int
    handshake: int
    forget_s: float
    burst_share: float
    burst_low_s: float
    burst_high_s: float
    pause_s: float
    pause_mean_s: float
    sto_range_m: float
    agc_step_db: float
    csi_level: float
    rssi_step_db: float
    refresh_ticks: int


def make_budget(config: RadioConfig) -> Budget:
    return Budget(
        noise_mw=10.0 ** (config.noise_dbm / 10.0),
        midpoint_db=config.detection_midpoint_db,
        width_db=config.detection_width_db,
        packet_loss=config.packet_loss,
        shadowing_db=config.shadowing_db,
        shadowing_distance_m=config.shadowing_distance_m,
        fading_db=config.fading_db,
        bearing_bias_rad=config.bearing_bias_rad,
        tries=config.traffic.handshake_tries,
        handshake=config.traffic.handshake_frames,
        forget_s=config.traffic.forget_s,
        burst_share=config.traffic.burst_share,
        burst_low_s=config.traffic.burst_gap_s[0],
        burst_high_s=config.traffic.burst_gap_s[1],
        pause_s=config.traffic.pause_s,
        pause_mean_s=config.traffic.pause_mean_s,
        sto_range_m=config.sto_range_s * LIGHT_MPS,
        agc_step_db=config.agc_step_db,
        csi_level=config.csi_level,
        rssi_step_db=config.rssi_step_db,
        refresh_ticks=config.refresh_ticks,
    )
