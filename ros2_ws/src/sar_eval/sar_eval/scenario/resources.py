"""Where the shared folders lie: worlds, PX4 parameters, configurations, launch files, messages and Gazebo models.

They are committed once, at the top of the repository. A wheel carries them as data of this package, a colcon
install has them under ``<prefix>/share/sar_eval``. Data that belongs to this very code wins over anything an
environment variable points to, so that two installs on one machine never mix.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from sar_core.errors import InputError, MissingDataError

PACKAGE = "sar_eval"
# Name of each shared folder and its place in a checkout.
CHECKOUT_PLACES = {
    "worlds": "worlds",
    "px4_params": "px4_params",
    "configs": "configs",
    "launch": "launch",
    "sar_msgs": "ros2_ws/src/sar_msgs",
    "models": "ros2_ws/src/sar_gazebo/models",
}
_AMENT_MARKER = Path("share", "ament_index", "resource_index", "packages", PACKAGE)


def share_dir(name: str) -> Path:
    """The folder of that name, in a wheel, a checkout or a colcon install."""
    if name not in CHECKOUT_PLACES:
        raise InputError(f"unknown shared folder {name!r}; known are {', '.join(CHECKOUT_PLACES)}")
    places = list(dict.fromkeys(_places(name, Path(__file__).resolve().parents[1])))
    for place in places:
        if place.is_dir():
            return place
    looked_at = ", ".join(str(p) for p in places)
    raise MissingDataError(f"shared folder {name!r} not found; looked at {looked_at}: install sar-eval again")


def checkout() -> Path | None:
    """The top of the source tree this code lies in, if it is not installed."""
    package = Path(__file__).resolve().parents[1]
    return package.parents[3] if package.parts[-4:] == ("ros2_ws", "src", PACKAGE, PACKAGE) else None


def world_path(name_or_path: str | os.PathLike[str]) -> Path:
    """The SDF file of a world given by its bare name ("village") or by a path."""
    return _named_file("world", "worlds", ".sdf", name_or_path)


def params_path(name_or_path: str | os.PathLike[str]) -> Path:
    """The PX4 parameter file given by its bare name ("x500") or by a path."""
    return _named_file("PX4 parameters", "px4_params", ".params", name_or_path)


def vehicle_path(name: str) -> Path:
    """The file of a vehicle given by name."""
    folder = share_dir("configs") / "vehicles"
    path = folder / f"{name}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in folder.glob("*.yaml")))
        raise InputError(f"vehicle {name!r} is not known; allowed: {known}")
    return path


def names(folder: str, suffix: str) -> list[str]:
    """Bare names of the files of one kind in a shared folder, sorted."""
    return sorted(f.stem for f in share_dir(folder).glob(f"*{suffix}"))


def _places(name: str, package: Path) -> Iterator[Path]:
    """Candidates, best first, given the folder this package's code lies in."""
    yield package / "share" / name
    if package.parts[-4:] == ("ros2_ws", "src", PACKAGE, PACKAGE):
        yield package.parents[3] / CHECKOUT_PLACES[name]
    for prefix in package.parents:
        if (prefix / _AMENT_MARKER).is_file():
            yield prefix / "share" / PACKAGE / name
    for overlay in map(Path, filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep))):
        if (overlay / _AMENT_MARKER).is_file():
            yield overlay / "share" / PACKAGE / name


def _named_file(kind: str, folder: str, suffix: str, name_or_path: str | os.PathLike[str]) -> Path:
    given = Path(name_or_path)
    is_path = given.suffix == suffix or len(given.parts) > 1
    if is_path and given.is_file():
        return given
    if given.name == os.fspath(name_or_path):
        shared = share_dir(folder) / f"{given.name.removesuffix(suffix)}{suffix}"
        if shared.is_file():
            return shared
    known = ", ".join(names(folder, suffix))
    raise InputError(
        f"{kind} {os.fspath(name_or_path)!r}: no such file or name; give a {suffix} file or one of {known}"
    )
