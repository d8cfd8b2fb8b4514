"""Measured missions of an episode set with two noise levels, made up from one that was measured."""

from __future__ import annotations

import dataclasses
from typing import Any

from sar_analysis.metrics.findings import Victim
from sar_analysis.metrics.metrics import EpisodeMetrics

LEVELS = ((0.02, 16.0), (0.4, 1.0))
FOUND = Victim(
    *(1.0, 2.0, True),
    issued_s=30.0,
    error_m=2.0,
    confidence=0.9,
    path_gdop=1.2,
    constellation_gdop=1.5,
    information_dop_m=3.0,
    views=3,
    settled_s=30.0,
    final_error_m=1.0,
)
MISSED = Victim(5.0, 6.0, False)


def flown(base: EpisodeMetrics, pattern: str, seed: int, layout: int, level: int, **more: Any) -> EpisodeMetrics:
    """A mission of a set with two levels: episode 2 * layout + level, victims where the layout has them."""
    sigma, kappa = LEVELS[level]
    places = tuple(dataclasses.replace(v, x_m=v.x_m + 10.0 * layout) for v in base.victims)
    facts: dict[str, Any] = {
        "pattern": pattern,
        "seed": seed,
        "episode": 2 * layout + level,
        "sigma": sigma,
        "kappa": kappa,
        "episode_set": "field-v1",
        "episode_id": f"{pattern}-s{seed}-e{2 * layout + level}",
        "config_sha256": f"{pattern}-{seed}-{layout}-{level}-{more.get('victim_absent', False)}",
        "victims": places,
        "coverage_240s": 0.5 + 0.02 * ((3 * seed + 5 * layout) % 7) + 0.001 * seed,
        "false_alarms": (seed + layout + level) % 2,
    }
    return dataclasses.replace(base, **(facts | more))


def campaign(base: EpisodeMetrics, pattern: str, better: float = 0.0, layouts: int = 4, **more: Any) -> list[Any]:
    """Three seeds over some layouts at both levels, no two with the same coverage."""
    slots = [(seed, layout, level) for seed in (1, 2, 3) for layout in range(layouts) for level in (0, 1)]
    missions = [flown(base, pattern, *slot, **more) for slot in slots]
    wobble = [0.002 * ((5 * k + len(pattern) * (k // 2)) % 7) for k in range(len(missions))]
    return [
        dataclasses.replace(e, coverage_240s=(e.coverage_240s or 0.0) + better + w)
        for e, w in zip(missions, wobble, strict=True)
    ]
