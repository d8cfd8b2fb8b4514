"""A pattern of one's own, by one call or one entry point, is known wherever patterns are, and no module is touched."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from sar_eval.campaign.plan import CampaignChoice, make_plan
from sar_eval.episode.briefing import briefing_of, make_plans
from sar_eval.episode.flight import fly_episode
from sar_eval.scenario.model import Scenario, load_scenario
from sar_eval.scenario.prepare import prepare
from sar_eval.stage1.kinematics import fly, task_of
from sar_eval.stage1.matrix import default_observations, fly_matrix, plan
from sar_swarm.piloting import patternlist
from sar_swarm.piloting.patternlist import Pattern, find, register
from sar_swarm.planning.routes import Area

Run = Callable[..., "subprocess.CompletedProcess[str]"]

SCENARIO = Scenario(episode_set="village-v2")
PACKAGE = """
import numpy as np
from sar_swarm.piloting.patternlist import Pattern

def route(area, drones, index, swath_m, overlap):
    x = area[0] + (index + 0.5) * (area[2] - area[0]) / drones
    return np.array([[x, area[1] + 20.0], [x, area[3] - 20.0]])

COLUMNS = Pattern("columns", "one column each", route=route)
"""


def columns(area: Area, drones: int, index: int, swath_m: float, overlap: float) -> NDArray[np.float64]:
    x = area[0] + (index + 0.5) * (area[2] - area[0]) / drones
    return np.array([[x, area[1] + 20.0], [x, area[3] - 20.0]])


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(patternlist, "_PATTERNS", dict(patternlist._PATTERNS))
    return register(Pattern("columns", "one column each", route=columns)).name


def test_one_call_and_it_flies_in_both_stages(own: str) -> None:
    scenario, _ = load_scenario(None, {"pattern": own, "world": "village", "duration_s": 20.0, "radio": None})
    episode = prepare(scenario, 0, 0)
    assert np.array_equal(
        make_plans(briefing_of(episode))[1].mission.routes[1], columns(episode.world.area, 4, 1, 0, 0)
    )
    result = fly_episode(episode, None).result
    assert result["valid"] and result["episode_id"].startswith("village-columns-4x")
    rows = list(fly_matrix(plan(SCENARIO, [own], [0], [0], default_observations()), 1, lambda _: None))
    assert [row["policy"] for row in rows] == [own] and rows[0]["coverage_240s"] > 0.1
    choice = CampaignChoice(SCENARIO, ("village",), (own, "spiral"), "present", (0,), (0,), "v2")
    assert [task.scenario.pattern for task in make_plan(choice).tasks] == [own, "spiral"]
    assert "| columns | one column each |" in patternlist.table()


@pytest.mark.parametrize("name", ["pheromone", "potential_field", "levy_flight", "random_walk"])
def test_a_decision_without_a_compiled_copy_flies_stage_1_by_its_own_code(
    name: str, own: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shipped ones asked that way fly as their copies do; where the last digit differs a way may part later on."""
    task = task_of(prepare(Scenario(episode_set="village-v2", pattern=name, duration_s=60.0), 1, 3))
    copy = fly(task)
    pattern = find(name)
    monkeypatch.setitem(patternlist._PATTERNS, name, Pattern(name, pattern.rule, decide=pattern.decide))
    asked = fly(task)
    assert np.array_equal(asked.times_s, copy.times_s)
    assert np.allclose(asked.positions, copy.positions, atol=1e-6)


def test_an_installed_package_is_found_by_every_verb(sar_eval: Run, tmp_path: Path) -> None:
    """Help, a flight, Stage 1 in worker processes, a campaign's plan; and it changes no default."""
    info = tmp_path / "site" / "columns-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: columns\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[sar_eval.patterns]\ncolumns = mypatterns:COLUMNS\n")
    (info.parent / "mypatterns.py").write_text(PACKAGE)
    env = {"PYTHONPATH": os.pathsep.join([str(info.parent), os.environ.get("PYTHONPATH", "")])}
    wide = {**env, "COLUMNS": "300"}
    assert "columns, or policy" in sar_eval("run", "--help", env=wide).stdout
    short = ("--world", "village", "--duration-s", "5", "--no-bag", "--json")
    done = sar_eval("run", "--pattern", "columns", *short, env=env)
    assert done.returncode == 0, done.stderr
    assert "columns" in json.loads(done.stdout)["result"]["episode_id"]
    file = tmp_path / "stage1.jsonl"
    options = ("--seeds", "0-1", "--episodes", "0", "--workers", "2")
    done = sar_eval("stage1", "--policy", "columns", *options, "--out", file, env=env)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["policy"] for line in file.read_text().splitlines()] == ["columns"] * 2
    plan_of = ("stage2", "--seeds", "0", "--episodes", "0", "--victims", "present", "--dry-run", "--json")
    for given, missions in ((("--pattern", "columns"), 1), ((), 8)):
        done = sar_eval(*plan_of, *given, "--out", tmp_path / "campaign", env=env)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["planned"] == missions
