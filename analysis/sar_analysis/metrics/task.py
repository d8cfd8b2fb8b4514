"""What an episode asks of whoever flies it, apart from how it is flown: the same task may be compared, another may not.

A configuration mixes the two. The task is where, with what, how long, against which wind, among which transmitters and
over which links; seed, episode index and noise level are left out because references hold a return for each.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

TASK = (
    "tier",
    "world_sha256",
    "vehicle_sha256",
    "radio_sha256",
    "episode_set",
    "drones",
    "altitude_m",
    "speed_mps",
    "turn_rate_dps",
    "acceleration_mps2",
    "duration_s",
    "thrust_variation",
    "victims",
    "decoys",
    "victim_absent",
    "link",
    "faults",
)


def task_of(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """The task within a resolved configuration; of the wind its strength, for its direction belongs to the episode."""
    wind = configuration.get("wind_mps")
    strength = math.hypot(*wind) if isinstance(wind, list | tuple) else wind
    return {
        **{key: configuration.get(key) for key in TASK},
        "wind_mps": None if strength is None else round(float(strength), 6),
    }


def task_sha256(configuration: Mapping[str, Any]) -> str:
    """The task's hash, by which a bag and a reference know that they speak of the same one."""
    return hashlib.sha256(json.dumps(task_of(configuration), sort_keys=True).encode()).hexdigest()
