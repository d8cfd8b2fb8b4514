"""Fixed, versioned episode sets: layouts of a world and noise levels, committed as data with a hash.

A set flies ten layouts at each of five levels: episode ``index`` is layout ``index // 5`` at level ``index % 5``. A
wide set flies many layouts once: episode ``index`` is layout ``index`` at level ``index % 5``. Both are the same for
every seed and condition. A mission without victims is the same episode with the victims' devices left out and nothing
else changed. A set never changes: another layout, level or rule is another version under another name. Text and hash:
docs/stage1.md.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sar_core.errors import ContractError, InputError
from sar_core.streams import stream
from sar_core.validation import describe_validation
from sar_eval.scenario.resources import share_dir, world_path
from sar_eval.scenario.splits import SETS, WIDE_SETS
from sar_sim.radio.devices import Device, DeviceKind, layout_key, make_devices
from sar_sim.world.world import load_world

RULES = 2
"""Newest rules by which a set is made; a set of a later version has other draws by the same rules."""
LEVELS_OF = {
    1: ((0.02, 16.0), (0.05, 8.0), (0.1, 4.0), (0.2, 2.0), (0.4, 1.0)),
    2: ((0.0, 1e4), (0.05, 8.0), (0.1, 4.0), (0.2, 2.0), (0.4, 1.0)),
}
"""(sigma, kappa) by rules. In version 2: clean (0.01 rad, less than the receiver's own floor), two inside the gate's
envelope, one at its edge, one beyond: the phase gate opens above kappa = 2.01 and closes below 1.74."""
LEVELS = LEVELS_OF[RULES]
SET_VERSION = f"v{RULES}"
"""Of the sets that Stage 1, campaigns and `eval` fly where no other is named."""
LAYOUTS, WIDE_LAYOUTS = 10, 200
VICTIMS, DECOYS = 2, 3
"""As many of each as the missions that the confidence was calibrated on."""

Number = Annotated[float, Field(allow_inf_nan=False)]


class SetLevel(BaseModel):
    """A noise level: Gaussian amplitude (relative) and von Mises phase concentration (both dimensionless)."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    sigma: Annotated[Number, Field(ge=0)]
    kappa: Annotated[Number, Field(ge=0)]


class _Device(BaseModel):
    """One transmitter as the file holds it; track rows are time s, x, y, z in ENU metres, windows are s on the air."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    address: Annotated[int, Field(ge=0, lt=1 << 48)]
    kind: str
    track: Annotated[tuple[tuple[Number, Number, Number, Number], ...], Field(min_length=1)]
    beacon: bool
    power_db: Number
    duty: Annotated[Number, Field(ge=0, le=1)]
    windows: tuple[tuple[Number, Number], ...]


class _Handset(_Device):
    """A transmitter of schema 2: also how often it scans (s), whether its address is made up anew, its share of sleep,
    and whether the swarm is told its address."""

    scan_interval_s: Annotated[Number, Field(gt=0)]
    randomises: bool
    sleep_share: Annotated[Number, Field(ge=0, le=1)]
    listed: bool | None


class _Layout(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    wind_rad: Annotated[Number, Field(ge=-math.pi, le=math.pi)]
    devices: tuple[_Device, ...]


class _HandsetLayout(_Layout):
    devices: tuple[_Handset, ...]


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    schema_version: Literal[1, 2]
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_]+-v[0-9]+$")]
    version: Annotated[int, Field(ge=1)]
    world: str
    world_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    levels: Annotated[tuple[SetLevel, ...], Field(min_length=1)]
    layouts: Annotated[tuple[_Layout, ...], Field(min_length=1)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

    @property
    def one_level_each(self) -> bool:
        """Whether it flies each layout once, not at every level."""
        return False


class _HandsetFile(_File):
    missions: Literal["every_level", "one_level"]
    layouts: Annotated[tuple[_HandsetLayout, ...], Field(min_length=1)]

    @property
    def one_level_each(self) -> bool:
        return self.missions == "one_level"


@dataclass(frozen=True, eq=False)
class EpisodeLayout:
    """Who transmits, where and when, and where the mean wind blows to (rad, counter-clockwise from east)."""

    wind_rad: float
    devices: tuple[Device, ...]

    def count(self, *, victims: bool) -> int:
        """How many of its devices are victims', or are not."""
        return sum((device.kind is DeviceKind.VICTIM) == victims for device in self.devices)


@dataclass(frozen=True, eq=False)
class EpisodeSet:
    """A checked set. ``len`` is its number of episodes."""

    name: str
    version: int
    world: str
    world_sha256: str
    levels: tuple[SetLevel, ...]
    layouts: tuple[EpisodeLayout, ...]
    sha256: str
    one_level_each: bool = False
    """A wide set: each layout is flown once, at one of the levels in turn."""

    def __len__(self) -> int:
        return len(self.layouts) * self.missions_each

    @property
    def missions_each(self) -> int:
        """How many of its episodes fly one layout, one after the other."""
        return 1 if self.one_level_each else len(self.levels)

    def _checked(self, index: int) -> int:
        if not 0 <= index < len(self):
            raise InputError(f"episode = {index}: {self.name} has {len(self)} episodes, 0 to {len(self) - 1}")
        return index

    def layout(self, index: int) -> EpisodeLayout:
        """The layout of an episode."""
        return self.layouts[self.layout_number(index)]

    def layout_number(self, index: int) -> int:
        """Which of its layouts an episode flies."""
        return self._checked(index) // self.missions_each

    def level(self, index: int) -> SetLevel:
        """The noise level of an episode."""
        return self.levels[self._checked(index) % len(self.levels)]

    def devices(self, index: int, victim_absent: bool) -> tuple[Device, ...]:
        """The transmitters of an episode, or of its twin without victims."""
        devices = self.layout(index).devices
        return tuple(d for d in devices if not (victim_absent and d.kind is DeviceKind.VICTIM))


def set_path(name_or_path: str | os.PathLike[str]) -> Path:
    """The file of a set given by name ("village-v2") or by a path."""
    given = Path(name_or_path)
    if given.suffix == ".json" and given.is_file():
        return given
    folder = share_dir("configs") / "episodes"
    path = folder / f"{given.name}.json"
    if given.name != os.fspath(name_or_path) or not path.is_file():
        known = ", ".join(sorted(p.stem for p in folder.glob("*.json")))
        raise InputError(f"episode set {os.fspath(name_or_path)!r} is not known; give a .json file or one of {known}")
    return path


def load_set(name_or_path: str | os.PathLike[str]) -> EpisodeSet:
    """A set, refused where it is not what its hash says or where its world is another one than it was made for."""
    path = set_path(name_or_path)
    found = read_set(path)
    digest = hashlib.sha256(world_path(found.world).read_bytes()).hexdigest()
    if digest != found.world_sha256:
        raise ContractError(
            f"{path}: made for world {found.world} with sha256 {found.world_sha256[:12]}..., but that world is now "
            f"{digest[:12]}...; make a set of another version for it: sar-eval episodes make --world {found.world}"
        )
    return found


def read_set(path: Path) -> EpisodeSet:
    """A set as its file has it; content that does not match its own hash is refused."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        told = raw.get("schema_version") if isinstance(raw, dict) else None
        file = (_HandsetFile if told == 2 else _File).model_validate(raw)
    except (OSError, ValueError) as error:
        if isinstance(error, ValidationError):
            raise ContractError(describe_validation(path, error)) from error
        raise InputError(f"{path}: cannot be read as an episode set ({' '.join(str(error).split())})") from error
    digest = content_sha256(raw)
    if digest != file.sha256:
        raise ContractError(
            f"{path}: its content has sha256 {digest[:12]}..., but it says {file.sha256[:12]}...; "
            "a set is never edited: make another version"
        )
    expected = set_name(file.world, file.version, file.one_level_each)
    if file.name != expected:
        raise ContractError(f"{path}: name = {file.name!r}: expected {expected}")
    layouts = tuple(
        EpisodeLayout(item.wind_rad, tuple(_device(path, d) for d in item.devices)) for item in file.layouts
    )
    head = (file.name, file.version, file.world, file.world_sha256, file.levels)
    return EpisodeSet(*head, layouts, file.sha256, file.one_level_each)


def set_name(world_name: str, version: int, one_level_each: bool) -> str:
    """What a set is called, which is also its file's name."""
    return f"{world_name}{'_wide' if one_level_each else ''}-v{version}"


def _device(path: Path, d: _Device) -> Device:
    kinds = {kind.name.lower(): kind for kind in DeviceKind}
    if d.kind not in kinds:
        raise ContractError(f"{path}: device kind {d.kind!r}: allowed: {', '.join(kinds)}")
    device = Device(d.address, kinds[d.kind], np.array(d.track), d.beacon, d.power_db, d.duty, d.windows)
    if not isinstance(d, _Handset):
        return device
    added = {key: getattr(d, key) for key in _Handset.model_fields if key not in _Device.model_fields}
    return replace(device, **added)


def content_sha256(raw: dict[str, Any]) -> str:
    """Hash of everything but the hash itself: JSON with sorted keys and no spaces."""
    content = {key: value for key, value in raw.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def make_set(world_name: str, version: int = RULES, one_level_each: bool = False) -> dict[str, Any]:
    """The set of a world by the rules, as its file's content; the same on every machine.

    Version 1 has lengths in mm and times in ms, later ones in cm and hundredths of a second.
    """
    if version < 1:
        raise InputError(f"version = {version}: must be 1 or more")
    rules = min(version, RULES)
    if rules == 1 and one_level_each:
        raise InputError(f"version = {version}: its rules know no wide sets; allowed: 2 or more")
    world = load_world(world_path(world_name))
    number = (WIDE_SETS if one_level_each else SETS) + version
    layouts = []
    for k in range(WIDE_LAYOUTS if one_level_each else LAYOUTS):
        angle = float(stream("wind", *layout_key(world.name, number, k)).uniform(-math.pi, math.pi))
        devices = make_devices(world, number, k, VICTIMS, DECOYS)
        layouts.append({"wind_rad": round(angle, 6), "devices": [_plain(device, rules) for device in devices]})
    content: dict[str, Any] = {
        "schema_version": rules,
        "name": set_name(world.name, version, one_level_each),
        "version": version,
        "world": world.name,
        "world_sha256": world.sha256,
        "levels": [{"sigma": sigma, "kappa": kappa} for sigma, kappa in LEVELS_OF[rules]],
        **({} if rules == 1 else {"missions": "one_level" if one_level_each else "every_level"}),
        "layouts": layouts,
    }
    return {**content, "sha256": content_sha256(content)}


def _plain(device: Device, schema: int) -> dict[str, Any]:
    digits = 3 if schema == 1 else 2
    plain: dict[str, Any] = {
        "address": device.address,
        "kind": device.kind.name.lower(),
        "track": [[round(float(v), digits) for v in row] for row in device.track],
        "beacon": device.beacon,
        "power_db": round(device.power_db, 2),
        "duty": device.duty,
        "windows": [[round(float(v), digits) for v in span] for span in device.windows],
    }
    if schema > 1:
        plain |= {
            "scan_interval_s": round(device.scan_interval_s, 1),
            "randomises": device.randomises,
            "sleep_share": device.sleep_share,
            "listed": device.listed,
        }
    return plain


def as_text(content: dict[str, Any]) -> str:
    """A set as its file is written: one line per key, one per device, from schema 2 on without spaces."""
    spaces = (", ", ": ") if content["schema_version"] == 1 else (",", ":")
    lines = []
    for key, value in content.items():
        if key != "layouts":
            lines.append(f" {json.dumps(key)}: {json.dumps(value)}")
            continue
        blocks = []
        for layout in value:
            devices = ",\n".join(f"   {json.dumps(device, separators=spaces)}" for device in layout["devices"])
            blocks.append(f'  {{"wind_rad": {json.dumps(layout["wind_rad"])}, "devices": [\n{devices}\n  ]}}')
        lines.append(' "layouts": [\n' + ",\n".join(blocks) + "\n ]")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write_set(content: dict[str, Any], path: Path) -> bool:
    """Write a set; False if the very same is there already. A different one under the same name is never replaced."""
    text = as_text(content)
    if path.exists():
        if path.read_text(encoding="utf-8") == text:
            return False
        raise InputError(
            f"{path}: holds a different set; a change is a new version: give --version {content['version'] + 1}"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.partial")
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, path)
    except OSError as error:
        raise InputError(f"{path}: cannot write the episode set ({error.strerror})") from error
    return True
