"""The tiers an episode can be flown on, and which one ``auto`` means here."""

from __future__ import annotations

from sar_core.errors import InputError
from sar_eval.doctor import best_tier, diagnose

FLOWN = ("embedded",)
"""Tiers this version flies, lowest first."""


def choose_tier(backend: str) -> tuple[str, str]:
    """The tier to fly on and, for ``auto``, a sentence on why; else an empty one."""
    if backend == "auto":
        _, why = best_tier(diagnose())
        return FLOWN[-1], f"backend auto: {FLOWN[-1]}, the only tier this version flies ({why})"
    if backend not in FLOWN:
        raise InputError(f"backend {backend!r} is not known; allowed: {', '.join(FLOWN)}, auto")
    return backend, ""
