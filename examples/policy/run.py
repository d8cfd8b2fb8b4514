"""Write a policy's weights, fly them, and show that the file's hash is in the record's configuration."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from sar_eval.episode.flight import fly_episode
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare
from sar_swarm.piloting.policy import ACTIONS, OBSERVATIONS, OWN, TASK

TURN, CLIMB, SPEED, _SCAN = range(ACTIONS)
OWN_Z, TARGET_Z = OWN.start + 2, TASK.start + 2


def write_weights(path: Path) -> None:
    """One linear layer: turn steadily, hold the search altitude, fly fast."""
    w = np.zeros((ACTIONS, OBSERVATIONS), np.float32)
    b = np.zeros(ACTIONS, np.float32)
    b[TURN] = 0.2
    w[CLIMB, TARGET_Z], w[CLIMB, OWN_Z] = 50.0, -50.0
    b[SPEED] = 3.0
    np.savez(path, w1=w, b1=b, label=np.array("example: circles, made by hand"))


with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "circles.npz"
    write_weights(file)
    scenario = Scenario(world="open_field", drones=3, pattern="policy", policy=str(file), duration_s=60.0, radio=None)
    episode = prepare(scenario, seed=0, index=0)
    assert episode.actor is not None
    print(f"policy {episode.actor.label!r}, sha256 {episode.actor.sha256[:12]}...")
    result = fly_episode(episode, bag=None).result
    print(f"Stage 2 (embedded)  {result['coverage']:.1%} covered in 60 s, {result['collisions']} collisions")
