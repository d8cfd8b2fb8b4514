"""Register a tier in one call and fly the same episode on it and on the embedded one."""

from __future__ import annotations

from surveyed import SURVEYED

from sar_eval.episode.attempts import fly
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare
from sar_eval.scenario.tiers import register

register(SURVEYED)
for tier in ("embedded", SURVEYED.name):
    result = fly(prepare(Scenario(duration_s=60.0, radio=None), seed=0, index=0, tier=tier), bag=None).result
    told = f"{result['coverage']:6.1%} covered in 60 s, {result['collisions']} collisions"
    print(f"Stage 2 ({tier}): {told}, drones at least {result['min_separation_m']:.2f} m apart")
