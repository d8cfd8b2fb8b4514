"""Which tier ``auto`` means here, and the world a tier flies an episode in."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sar_eval.config import Episode
from sar_eval.console import note
from sar_eval.doctor import best_tier, diagnose
from sar_eval.mavlink import dialect
from sar_eval.simulator import Simulator, World
from sar_eval.tiers import AUTOPILOTS, TIERS, check_tier

if TYPE_CHECKING:
    from sar_eval.px4.launcher import Launcher


def choose_tier(backend: str) -> tuple[str, str]:
    """The tier to fly on and, for ``auto``, a sentence on why; else an empty one."""
    if backend != "auto":
        check_tier(backend)
        return backend, ""
    found, why = best_tier(diagnose())
    tier = found if found in TIERS else "sih"
    return tier, f"backend auto: {tier} ({why})"


def tier_of(backend: str) -> str:
    """The tier to fly on; what auto chose is said, and what the tier lacks here before anything is started."""
    tier, why = choose_tier(backend)
    if why:
        note(why)
    if tier in AUTOPILOTS:
        dialect()
        _launcher(tier)
    return tier


def _launcher(tier: str) -> Launcher:
    """What brings the vehicles of a tier to life: containers that wait for orders, or processes of our own."""
    from sar_eval.px4.hangar import Hangar
    from sar_eval.px4.launcher import Processes, find_px4

    hangar = os.environ.get("SAR_HANGAR")
    if tier == "sih" and hangar:
        return Hangar(Path(hangar))
    return Processes(find_px4() if tier == "sih" else None)


@contextmanager
def world_of(episode: Episode, speed: float = 1.0) -> Generator[World, None, None]:
    """The world of an episode's tier, ready for its first tick and ended afterwards.

    Real autopilots fly at ``speed`` times real time; the embedded simulator as fast as it goes.
    """
    if episode.tier not in AUTOPILOTS:
        yield Simulator(episode)
        return
    from sar_eval.px4.world import Px4World

    world = Px4World(episode, _launcher(episode.tier), speed)
    world.open()
    try:
        yield world
    finally:
        world.close()
