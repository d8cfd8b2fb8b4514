"""Vehicles that someone else starts, in containers: orders in a shared folder instead of child processes.

``vehicle-I.order`` holds the environment of a vehicle; while it is there, ``docker/vehicle.sh`` lets a fresh PX4 fly.
It keeps ``vehicle-I.flying`` meanwhile, and leaves ``vehicle-I.ended`` with the exit code if PX4 ended by itself.
"""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from sar_core.errors import RunError
from sar_core.geodesy import Origin
from sar_eval.backends.backend import SpoiltError
from sar_eval.px4.launcher import own_simulator, settings

LEAVE_S = 10.0
TAKE_S = 15.0
"""Wall time a vehicle's container has to take its order."""


class ContainerVehicles:
    """A folder in which vehicles stand and wait for orders."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0
        self._ordered_s = math.inf

    def start(self, homes: Sequence[Origin], parameters: Mapping[str, str], speed: float) -> None:
        if not self._folder.is_dir():
            raise RunError(f"SAR_HANGAR = {self._folder}: no such folder; the vehicles wait for orders there")
        self._count = len(homes)
        self._clear()
        for instance, home in enumerate(homes):
            environment = {**settings(parameters, speed), **own_simulator(home)}
            lines = [f"{key}={shlex.quote(value)}" for key, value in environment.items()]
            order = self._file(instance, "order")
            partial = order.with_suffix(".partial")
            partial.write_text("\n".join(lines) + "\n", encoding="utf-8")
            partial.replace(order)
        self._ordered_s = time.monotonic()

    def check(self) -> None:
        if time.monotonic() - self._ordered_s > TAKE_S:
            idle = [i + 1 for i in range(self._count) if not self._file(i, "flying").exists()]
            self._ordered_s = math.inf
            if idle:
                named = ", ".join(map(str, idle))
                raise SpoiltError(
                    "not_ready", f"no container took the order of vehicle {named}: does it run?", final=True
                )
        for instance in range(self._count):
            ended = self._file(instance, "ended")
            if ended.exists():
                code = ended.read_text(encoding="utf-8").strip()
                raise SpoiltError(
                    "vehicle_lost", f"vehicle {instance + 1} ended with {code}; its container's log says why"
                )

    def stop(self) -> None:
        """Take the orders back and wait until all have landed; safe to call again."""
        self._clear()
        self._count, self._ordered_s = 0, math.inf

    def _clear(self) -> None:
        for instance in range(self._count):
            for name in ("order", "ended"):
                self._file(instance, name).unlink(missing_ok=True)
        deadline = time.monotonic() + LEAVE_S
        while any(self._file(i, "flying").exists() for i in range(self._count)) and time.monotonic() < deadline:
            time.sleep(0.05)

    def _file(self, instance: int, name: str) -> Path:
        return self._folder / f"vehicle-{instance}.{name}"
