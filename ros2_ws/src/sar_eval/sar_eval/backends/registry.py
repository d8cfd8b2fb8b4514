"""Which tier ``auto`` means here, and the world a tier flies an episode in."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sar_eval.backends.backend import Simulator, Stop, World, never
from sar_eval.backends.receiver import Receiving, receiver_for
from sar_eval.cli.console import note
from sar_eval.cli.doctor import best_tier, diagnose
from sar_eval.px4.mavlink import dialect
from sar_eval.scenario.model import Episode
from sar_eval.scenario.tiers import AUTOPILOTS, check_tier

if TYPE_CHECKING:
    from sar_eval.px4.launcher import Launcher
    from sar_eval.px4.world import Px4World


def choose_tier(backend: str) -> tuple[str, str]:
    """The tier to fly on and, for ``auto``, a sentence on why; else an empty one."""
    if backend != "auto":
        check_tier(backend)
        return backend, ""
    tier, why = best_tier(diagnose())
    return tier, f"backend auto: {tier} ({why})"


def tier_of(backend: str) -> str:
    """The tier to fly on; what auto chose is said, and what the tier lacks here before anything is started."""
    tier, why = choose_tier(backend)
    if why:
        note(why)
    require(tier)
    return tier


def require(tier: str) -> None:
    """Refuse a tier for which something is missing on this machine, and name it."""
    if tier in AUTOPILOTS:
        dialect()
    if tier == "gazebo":
        from sar_eval.px4.gazebo import find_parts

        find_parts()
    elif tier in AUTOPILOTS:
        _launcher(tier)


def receiver_of(episode: Episode) -> Receiving | None:
    """What hears for the drones of an episode, apart from its world: our receivers, or Gazebo's CSI system."""
    if episode.tier != "gazebo":
        return receiver_for(episode)
    from sar_gazebo.ears import Ears

    return Ears(episode.scenario.drones)


def _launcher(tier: str) -> Launcher:
    """What brings the vehicles of a tier to life: containers that wait for orders, or processes of our own."""
    from sar_eval.px4.binary import find_px4
    from sar_eval.px4.hangar import Hangar
    from sar_eval.px4.launcher import Processes

    hangar = os.environ.get("SAR_HANGAR")
    if tier in ("sih", "sitl") and hangar:
        return Hangar(Path(hangar))
    return Processes(find_px4() if tier == "sih" else None)


def _piloted_world(episode: Episode, speed: float, stop: Stop) -> Px4World:
    if episode.tier == "gazebo":
        from sar_gazebo.spectator import Spectator
        from sar_gazebo.theatre import Theatre
        from sar_gazebo.world import GazeboWorld

        spectator = Spectator(episode.scenario.drones, tuple(episode.world.obstacle_names), speed)
        return GazeboWorld(episode, Theatre(episode, spectator, stop), spectator, speed, stop)
    from sar_eval.px4.world import Px4World

    return Px4World(episode, _launcher(episode.tier), speed, stop)


@contextmanager
def world_of(episode: Episode, speed: float = 1.0, stop: Stop = never) -> Generator[World, None, None]:
    """The world of an episode's tier, ready for its first tick and ended afterwards.

    Real autopilots fly at ``speed`` times real time; the embedded simulator as fast as it goes. A reason from ``stop``
    ends the wait for them.
    """
    if episode.tier not in AUTOPILOTS:
        yield Simulator(episode)
        return
    world = _piloted_world(episode, speed, stop)
    world.open()
    try:
        yield world
    finally:
        world.close()
