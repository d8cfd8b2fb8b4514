"""All that flies is compiled before anything flies, whatever flies."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

LOOK = """
import json, sys
from numba.core.dispatcher import Dispatcher
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare
from sar_eval.episode.flight import fly_episode
from sar_eval.stage1.kernels import compile_everything

def known():
    rooms = ("sar_core", "sar_sim", "sar_swarm", "sar_eval")
    modules = [m for name, m in list(sys.modules.items()) if name.partition(".")[0] in rooms]
    kernels = {id(v): v for m in modules for v in vars(m).values() if isinstance(v, Dispatcher)}
    return {(k.py_func.__module__ + "." + k.py_func.__name__, str(s)) for k in kernels.values() for s in k.signatures}

groups = compile_everything()
before = known()
flown = []
for given in json.loads(sys.argv[1]):
    index = given.pop("index", 0)
    flown.append(fly_episode(prepare(Scenario(**given), 1, index), None).result["valid"])
print(json.dumps({"groups": groups, "kernels": len(before), "flown": flown, "late": sorted(known() - before)}))
"""
CASES = (
    {"world": "village", "episode_set": "village-v2", "duration_s": 20.0},
    {"world": "village", "pattern": "potential_field", "drones": 1, "pursuit": "on", "duration_s": 20.0},
    {"world": "open_field", "index": 3, "drones": 2, "victims": 0, "duration_s": 40.0},
    {"world": "forest", "pattern": "levy_flight", "drones": 3, "pursuit": "on", "duration_s": 10.0},
    {"world": "open_field", "pattern": "pheromone", "radio": None, "duration_s": 10.0},
    {"world": "collapsed_block", "pattern": "boustrophedon_triangulation", "sigma": 0.0, "duration_s": 20.0},
)


@pytest.mark.slow
def test_nothing_is_compiled_or_loaded_in_flight() -> None:
    """By signatures, which a kernel gets when it is compiled or loaded: so a warm cache hides nothing."""
    command = [sys.executable, "-c", LOOK, json.dumps(CASES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["flown"] == [True] * len(CASES)
    assert told["kernels"] > 30
    assert told["late"] == []
