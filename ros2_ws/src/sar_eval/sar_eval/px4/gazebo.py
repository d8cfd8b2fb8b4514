"""What the gazebo tier needs on a machine, and where it is. Imports nothing of Gazebo."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

from sar_core.errors import MissingDependencyError
from sar_eval.px4.binary import find_px4

MODULES = ("gz.math7", "gz.msgs10", "gz.sim8", "gz.transport13", "sdformat14")
X500 = Path("x500", "model.sdf")


class Parts(NamedTuple):
    """What a flight in Gazebo is made of: Gazebo's and PX4's commands, PX4's models."""

    gz: Path
    px4: Path
    models: Path


def find_parts() -> Parts:
    """All of it; what is missing is named."""
    px4 = find_px4()
    return Parts(find_gazebo(), px4, find_models(px4))


def find_gazebo() -> Path:
    """The ``gz`` command; Gazebo's Python modules must be there too."""
    found = shutil.which("gz")
    if found is None:
        raise MissingDependencyError("gz is not on PATH: install Gazebo Harmonic (gz-sim8); docs/gazebo.md says how")
    missing = missing_modules()
    if missing:
        raise MissingDependencyError(
            f"{sys.executable} has no module {', '.join(missing)}: Gazebo's Python modules belong to the system's "
            "Python; docs/gazebo.md says how to install them and sar-eval beside them"
        )
    return Path(found)


def missing_modules() -> list[str]:
    """Python modules of the tier that this Python does not have; none is imported."""
    return [name for name in (*MODULES, "sar_gazebo") if not _importable(name)]


def _importable(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def find_models(px4: Path) -> Path:
    """PX4's Gazebo models: PX4_GZ_MODELS, else beside the binary as PX4's package or its source tree has them."""
    given = os.environ.get("PX4_GZ_MODELS")
    near = [px4.parent.parent / "share" / "gz" / "models"]
    near += [above / "Tools" / "simulation" / "gz" / "models" for above in px4.parents]
    places = [Path(given)] if given else near
    for place in places:
        if (place / X500).is_file():
            return place
    raise MissingDependencyError(
        f"PX4's Gazebo model x500 was not found in {', '.join(map(str, places[:2]))}: "
        "set PX4_GZ_MODELS to the folder of PX4's models"
    )
