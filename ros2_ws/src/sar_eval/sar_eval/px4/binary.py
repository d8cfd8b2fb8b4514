"""Where PX4 is."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from sar_core.errors import MissingDependencyError


def find_px4() -> Path:
    """The px4 binary: PX4_BIN, else px4 on PATH."""
    wanted = os.environ.get("PX4_BIN") or "px4"
    found = shutil.which(wanted)
    if found is None:
        named = f"PX4_BIN={wanted} is not an executable" if os.environ.get("PX4_BIN") else "px4 is not on PATH"
        raise MissingDependencyError(
            f"{named}: install PX4's px4 package, or set PX4_BIN to a px4 binary; docs/px4.md says how"
        )
    return Path(found).resolve()
