"""Register a pattern in one call and fly it in both stages, beside a shipped one."""

from __future__ import annotations

from expanding_square import EXPANDING_SQUARE

from sar_eval.episode.flight import fly_episode
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare
from sar_eval.stage1.matrix import default_observations, fly_matrix, plan
from sar_swarm.piloting.patternlist import register

register(EXPANDING_SQUARE)
both = (EXPANDING_SQUARE.name, "partitioned_lawnmower")

matrix = plan(Scenario(episode_set="village-v2"), both, seeds=[0], episodes=[0], data=default_observations())
for row in fly_matrix(matrix, 1, lambda _: None):
    print(f"Stage 1             {row['policy']:22} {row['coverage_240s']:6.1%} covered in 240 s")

for name in both:
    scenario = Scenario(world="open_field", pattern=name, duration_s=60.0, radio=None)
    result = fly_episode(prepare(scenario, seed=0, index=0), bag=None).result
    print(f"Stage 2 (embedded)  {name:22} {result['coverage']:6.1%} covered in 60 s, {result['collisions']} collisions")
