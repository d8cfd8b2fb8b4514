"""The constants of every index as data: read from one YAML per system, checked, and named by the file's hash.

The YAML gives each constant's reason or source. Who computes an index is handed an :class:`Indices`; nothing else knows
where the files lie.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from sar_core.errors import InputError, MissingDataError
from sar_core.validation import describe_validation

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Nonnegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
Version = Annotated[int, Field(ge=1)]


class RuleWeights(BaseModel):
    """What breaking a rule costs: per collision, per red light or stop line, per m^2 s, per s and per m^2 s."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    nu: Positive
    gamma: Positive
    delta: Positive
    alpha: Positive
    beta: Positive

    @model_validator(mode="after")
    def _graver_costs_more(self) -> RuleWeights:
        if not self.nu > self.gamma > self.delta > max(self.alpha, self.beta):
            raise ValueError("weights must obey nu > gamma > delta > alpha, beta")
        return self


class FlightRules(BaseModel):
    """Rules of flight; each is reported by itself, whatever it weighs."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: Literal["flight_rules"]
    version: Version
    lane_safe_m: Nonnegative
    lane_max_m: Positive
    valid_direction_deg: Annotated[float, Field(gt=0, le=180)]
    moving_mps: Positive
    stop_margin_m: Positive
    stop_mps: Nonnegative
    return_s: Nonnegative
    home_m: Nonnegative
    hold_mps: Nonnegative
    hold_s: Nonnegative
    rearm_s: Nonnegative
    separation_safe_m: Positive
    airborne_m: Nonnegative
    weights: RuleWeights | None

    @model_validator(mode="after")
    def _lane_has_a_width(self) -> FlightRules:
        if self.lane_safe_m >= self.lane_max_m:
            raise ValueError(f"lane_safe_m must be less than lane_max_m = {self.lane_max_m:g}")
        return self


class QualityWeights(BaseModel):
    """Weights of the quality index: success is gained, all else is lost."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    success: Nonnegative
    time: Nonnegative
    collisions: Nonnegative
    near: Nonnegative
    comfort: Nonnegative
    force_exceed: Nonnegative
    jerk: Nonnegative
    false_alarms: Nonnegative


class Quality(BaseModel):
    """The quality index: thresholds of its terms, how they are normalised, and named weights."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: Literal["quality"]
    version: Version
    neighbour_m: Positive
    clearance_m: Nonnegative
    airborne_m: Nonnegative
    acceleration_mps2: Positive
    tilt_deg: Annotated[float, Field(gt=0, le=180)]
    debounce_s: Nonnegative
    low_quantile: Share
    high_quantile: Share
    normalised: tuple[str, ...]
    bounded: tuple[str, ...]
    stability_share: Share
    weights: dict[str, QualityWeights]

    @model_validator(mode="after")
    def _whole(self) -> Quality:
        if self.low_quantile >= self.high_quantile:
            raise ValueError(f"low_quantile must be less than high_quantile = {self.high_quantile:g}")
        if "default" not in self.weights:
            raise ValueError("weights must hold a preset named default")
        return self


class SafetyLimits(BaseModel):
    """What the safety layer assumes, and what counts as its doing."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: Literal["safety"]
    version: Version
    neighbour_age_s: Positive
    estimate_error_m: Positive
    tracking_mps: Positive
    changed_mps: Positive
    airborne_m: Nonnegative


@dataclass(frozen=True)
class Indices:
    """Every system's constants, and the SHA-256 of the files they were read from."""

    rules: FlightRules
    quality: Quality
    safety: SafetyLimits
    sha256: Mapping[str, str]


Model = TypeVar("Model", bound=BaseModel)


def load_indices(folder: Path) -> Indices:
    """The constants of a folder with ``flight_rules.yaml``, ``quality.yaml`` and ``safety.yaml``."""
    digests: dict[str, str] = {}
    return Indices(
        rules=_load(folder / "flight_rules.yaml", FlightRules, digests),
        quality=_load(folder / "quality.yaml", Quality, digests),
        safety=_load(folder / "safety.yaml", SafetyLimits, digests),
        sha256=digests,
    )


def _load(path: Path, model: type[Model], digests: dict[str, str]) -> Model:
    try:
        body = path.read_bytes()
        raw: Any = yaml.safe_load(body)
    except FileNotFoundError:
        raise MissingDataError(f"{path}: no such file; expected the constants of an index") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"{path}: cannot read the constants ({' '.join(str(error).split())})") from error
    digests[path.name] = hashlib.sha256(body).hexdigest()
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise InputError(describe_validation(path, error)) from error
