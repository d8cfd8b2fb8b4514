"""Make a world from a shipped one, have it checked, and fly round what stands in it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from sar_eval.episode.flight import fly_episode
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare
from sar_eval.scenario.resources import world_path
from sar_sim.world.worldlint import lint_world

TOWER = Path(__file__).with_name("tower.sdf")

with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "tower_field.sdf"
    text = world_path("open_field").read_text(encoding="utf-8").replace('name="open_field"', 'name="tower_field"')
    file.write_text(text.replace("  </world>", TOWER.read_text(encoding="utf-8") + "  </world>"), encoding="utf-8")
    for finding in lint_world(file):
        print(finding)
    episode = prepare(Scenario(world=str(file), drones=2, duration_s=60.0, radio=None), seed=0, index=0)
    result = fly_episode(episode, bag=None).result
    print(f"{episode.world.name}: flown at {episode.altitude_m:g} m, {len(episode.world.obstacles)} solid body")
    print(f"Stage 2 (embedded)  {result['coverage']:.1%} covered in 60 s, {result['collisions']} collisions")
