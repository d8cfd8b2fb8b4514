"""What both ends of a MAVLink link to a PX4-like vehicle must agree on: ports, ids, modes, masks, the dialect."""

from __future__ import annotations

import os
from typing import Any

from sar_core.errors import MissingDependencyError
from sar_core.geodesy import Origin

OFFBOARD_PORT = 14540
"""Where vehicle i (from 0) talks to its onboard computer: 14540 + i; PX4 gives all beyond the tenth one port."""
VEHICLE_PORT = 14580
"""Where vehicle i listens to its onboard computer: 14580 + i."""
GCS_PORT = 14550
"""Where every vehicle looks for a ground station."""
VEHICLE_GCS_PORT = 18570
"""Where vehicle i listens to ground stations: 18570 + i."""

PX4_MAIN_MODES = {"manual": 1, "altctl": 2, "posctl": 3, "auto": 4, "acro": 5, "offboard": 6, "stabilized": 7}
PX4_AUTO_MODES = {"ready": 1, "takeoff": 2, "loiter": 3, "mission": 4, "rtl": 5, "land": 6}

ORIGIN = Origin(47.397742, 8.545594, 489.4)
"""The zero of every world's local frame on the Earth: where PX4's own simulator starts by default."""
EMBEDDED_MARK = b"sar_eval"
"""AUTOPILOT_VERSION.flight_custom_version of our own vehicle, by which it is told from a PX4."""


def dialect() -> Any:
    """pymavlink's common dialect of MAVLink 2; imported when first needed, for it is an extra."""
    os.environ.setdefault("MAVLINK20", "1")
    try:
        from pymavlink.dialects.v20 import common
    except ImportError as error:
        raise MissingDependencyError("MAVLink needs pymavlink: pip install 'sar-eval[px4]'") from error
    return common


def custom_mode(main: str, sub: str | None = None) -> int:
    """PX4's custom_mode word for a flight mode."""
    return PX4_MAIN_MODES[main] << 16 | (PX4_AUTO_MODES[sub] << 24 if sub else 0)


def mode_name(word: int) -> str:
    """The flight mode in a custom_mode word, as PX4's documentation calls it: offboard, auto.land, ..."""
    main, sub = word >> 16 & 0xFF, word >> 24 & 0xFF
    name = next((name for name, value in PX4_MAIN_MODES.items() if value == main), str(main))
    if name != "auto":
        return name
    return f"auto.{next((label for label, value in PX4_AUTO_MODES.items() if value == sub), str(sub))}"
