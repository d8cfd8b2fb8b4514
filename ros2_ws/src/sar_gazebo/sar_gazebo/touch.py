"""What Gazebo's contact sensors say, as begin and end of touches between a drone and a body of the world.

Gazebo sends a message at every step while bodies touch and is silent otherwise. A touch is over after one second
without a message, as in :mod:`sar_sim.judging.referee`, whose judgement by geometry this is held against.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from sar_sim.judging.referee import EventPhase

REARM_NS = 1_000_000_000
_DRONE = re.compile(r"uav_([1-9][0-9]*)::")


@dataclass(frozen=True)
class Touch:
    """One touch. ``drone`` counts from 0; ``other`` is the second drone, -1 for a body; depths are in metres."""

    number: int
    phase: EventPhase
    drone: int
    other: int
    obstacle: str
    begin_ns: int
    end_ns: int
    depth_m: float
    position: tuple[float, float, float]


def drone_of(collision: str) -> int | None:
    """The drone a scoped collision name belongs to (``uav_2::base_link::hull`` is 1), None for anything else."""
    found = _DRONE.match(collision)
    return int(found.group(1)) - 1 if found else None


def obstacle_of(collision: str) -> str:
    """An obstacle as the world reader names it, from ``model::link::collision``."""
    return collision.replace("::", "/")


class Touches:
    """Feed it every contact message in the order of their stamps."""

    def __init__(self, obstacle_names: Iterable[str]) -> None:
        self._short = set(obstacle_names)
        self._open: dict[tuple[int, int, str], Touch] = {}
        self._count = 0

    def observe(self, stamp_ns: int, contacts: Iterable[Any]) -> list[Touch]:
        """Touches that begin with this message or were over before it; ``contacts`` are gz.msgs.Contact."""
        said = self.settle(stamp_ns)
        for contact in contacts:
            key = self._key(contact.collision1.name, contact.collision2.name)
            if key is None:
                continue
            deepest, at = _deepest(contact)
            before = self._open.get(key)
            if before is None:
                self._count += 1
                touch = Touch(self._count, EventPhase.BEGIN, *key, stamp_ns, stamp_ns, deepest, at)
                said.append(touch)
            elif deepest > before.depth_m:
                touch = replace(before, end_ns=stamp_ns, depth_m=deepest, position=at)
            else:
                touch = replace(before, end_ns=stamp_ns)
            self._open[key] = touch
        return said

    def settle(self, now_ns: int) -> list[Touch]:
        """End what has been silent for a second."""
        over = [key for key, touch in self._open.items() if now_ns - touch.end_ns > REARM_NS]
        return [replace(self._open.pop(key), phase=EventPhase.END) for key in over]

    def finish(self) -> list[Touch]:
        """End what is still open."""
        ended = [replace(touch, phase=EventPhase.END) for touch in self._open.values()]
        self._open.clear()
        return ended

    def _key(self, first: str, second: str) -> tuple[int, int, str] | None:
        """Who touched whom; None where no drone takes part. The lower drone comes first."""
        drones = [drone for drone in (drone_of(first), drone_of(second)) if drone is not None]
        if not drones:
            return None
        if len(drones) == 2:
            return (min(drones), max(drones), "") if drones[0] != drones[1] else None
        body = obstacle_of(second if drone_of(first) is not None else first)
        model = body.partition("/")[0]
        return drones[0], -1, model if model in self._short else body


def _deepest(contact: Any) -> tuple[float, tuple[float, float, float]]:
    """Depth and place of a contact's deepest point; a contact without points counts as a bare touch."""
    points = list(zip(contact.depth, contact.position, strict=False))
    if not points:
        return 0.0, (0.0, 0.0, 0.0)
    depth, at = max(points, key=lambda point: float(point[0]))
    return float(depth), (float(at.x), float(at.y), float(at.z))
