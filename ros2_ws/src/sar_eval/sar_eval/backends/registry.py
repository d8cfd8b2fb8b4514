"""Opens what an episode's tier flies it in, and says which tier ``auto`` means here."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from sar_eval.backends.backend import Backend, Receiving, Stop, never
from sar_eval.backends.machine import best_tier, diagnose
from sar_eval.scenario.model import Episode
from sar_eval.scenario.tiers import tier_named


def choose_tier(backend: str) -> tuple[str, str]:
    """The tier to fly on and, for ``auto``, a sentence on why; else an empty one."""
    if backend != "auto":
        return tier_named(backend).name, ""
    tier, why = best_tier(diagnose())
    return tier, f"backend auto: {tier} ({why})"


def require(tier: str) -> None:
    """Refuse a tier for which something is missing on this machine, and name it."""
    if tier_named(tier).needs:
        tier_named(tier).open("needs")(tier)


def receiver_of(episode: Episode) -> Receiving | None:
    """What hears for the drones of an episode, apart from its backend: our receivers, or Gazebo's CSI system."""
    receiver: Receiving | None = tier_named(episode.tier).open("receiver")(episode)
    return receiver


@contextmanager
def backend_of(episode: Episode, speed: float = 1.0, stop: Stop = never) -> Generator[Backend, None, None]:
    """What an episode's tier flies it in, ready for its first tick and ended afterwards.

    Real autopilots fly at ``speed`` times real time; the embedded simulator as fast as it goes. A reason from ``stop``
    ends the wait for them.
    """
    backend: Backend = tier_named(episode.tier).open("backend")(episode, speed, stop)
    try:
        yield backend
    finally:
        backend.close()
