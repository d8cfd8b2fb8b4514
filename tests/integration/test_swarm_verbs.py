"""Patterns, policies, faults and replay as a user meets them: through the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.untrained import random_actor
from sar_swarm.piloting.patternlist import STANDARD, names

SHORT = ("--drones", "2", "--duration-s", "8", "--no-bag", "--json")


@pytest.mark.parametrize("pattern", STANDARD)
def test_every_pattern_takes_off_searches_and_comes_home(warm, sar_eval, pattern):
    done = sar_eval("run", "--world", "village", "--pattern", pattern, *SHORT)
    result = json.loads(done.stdout)["result"]
    assert done.returncode == 0 and result["valid"]
    assert result["landed"] == 2 and result["collisions"] == 0
    assert 0.0 < result["coverage"] < 0.5
    assert result["pattern"] == pattern


def test_aliases_are_taken_and_unknown_names_refused(warm, sar_eval):
    done = sar_eval("run", "--pattern", "levy", *SHORT)
    assert json.loads(done.stdout)["result"]["pattern"] == "levy_flight"
    done = sar_eval("run", "--pattern", "zigzag", *SHORT)
    assert done.returncode == 1
    assert "zigzag" in done.stderr and all(name in done.stderr for name in names())


def test_a_policy_flies_from_its_weights_and_says_so_without(warm, sar_eval, tmp_path):
    done = sar_eval("run", "--pattern", "policy", *SHORT)
    assert done.returncode == 1 and "--policy" in done.stderr and "npz" in done.stderr
    missing = sar_eval("run", "--pattern", "policy", "--policy", tmp_path / "none.npz", *SHORT)
    assert missing.returncode == 4 and "none.npz" in missing.stderr
    actor = random_actor(tmp_path / "actor.npz", 3)
    done = sar_eval("run", "--pattern", "policy", "--policy", actor, *SHORT)
    result = json.loads(done.stdout)["result"]
    assert result["valid"] and result["landed"] == 2
    assert result["path_m"] > 2 * 60.0
    spare = sar_eval("run", "--policy", actor, *SHORT)
    assert spare.returncode == 1 and "pattern" in spare.stderr


def test_faults_come_from_the_scenario_and_bad_ones_are_named(warm, sar_eval, tmp_path):
    scenario = tmp_path / "faults.yaml"
    scenario.write_text("faults:\n  - {kind: gps_loss, drone: 2, begin_s: 1.0}\n")
    done = sar_eval("run", "--config", scenario, *SHORT)
    result = json.loads(done.stdout)["result"]
    assert {"drone": 2, "state": "controlled_descent"} in [
        {"drone": row["drone"], "state": row["state"]} for row in result["failsafes"]
    ]
    assert "-e000-gps_loss2-" in result["episode_id"]
    for line, told in (
        ("{kind: gps_lost, drone: 2, begin_s: 1.0}", "gps_loss"),
        ("{kind: gps_loss, drone: 3, begin_s: 1.0}", "2 drones"),
        ("{kind: gps_loss, drone: 2, begin_s: 1.0, size: 3.0}", "size"),
        ("{kind: motor_loss, drone: 2, begin_s: 5.0, end_s: 4.0}", "end_s"),
    ):
        scenario.write_text(f"faults:\n  - {line}\n")
        done = sar_eval("run", "--config", scenario, *SHORT)
        assert done.returncode == 1 and told in done.stderr and str(scenario) in done.stderr
        assert done.stderr.count("\n") == 1


@pytest.fixture(scope="module")
def missions(warm, sar_eval, tmp_path_factory) -> Path:
    """Two short missions with a fault, kept as results."""
    folder = tmp_path_factory.mktemp("missions")
    scenario = folder / "short.yaml"
    scenario.write_text(
        "duration_s: 6.0\ndrones: 2\nkappa: .inf\nfaults:\n  - {kind: drone_lost, drone: 1, begin_s: 2.0}\n"
    )
    done = sar_eval("missions", "--config", scenario, "--missions", "2", "--workers", "1", "--out", folder / "m.jsonl")
    assert done.returncode == 0, done.stderr
    return folder / "m.jsonl"


def test_a_mission_with_a_collision_is_flown_again_by_its_id(missions, sar_eval, tmp_path):
    first = json.loads(missions.read_text().splitlines()[1])
    assert first["collisions"] == 1
    done = sar_eval("replay", missions, first["episode_id"], "--out", tmp_path / "again", "--json")
    again = json.loads(done.stdout)
    assert done.returncode == 0 and again["same"] and again["changed"] == []
    assert again["result"]["events"] == first["events"]
    assert Path(again["run"]["bag"]).is_dir()


def test_a_replay_that_comes_out_differently_says_where(missions, sar_eval, tmp_path):
    rows = [json.loads(line) for line in missions.read_text().splitlines()]
    rows[0]["collisions"] = 5
    changed = tmp_path / "changed.jsonl"
    changed.write_text("\n".join(map(json.dumps, rows)))
    done = sar_eval("replay", changed, rows[0]["episode_id"], "--out", tmp_path / "bags")
    assert done.returncode == 2 and "collisions" in done.stderr


def test_an_unknown_episode_or_a_broken_file_is_named(missions, sar_eval, tmp_path):
    done = sar_eval("replay", missions, "nowhere-s000", "--out", tmp_path)
    assert done.returncode == 4 and "nowhere-s000" in done.stderr and "2 results" in done.stderr
    broken = tmp_path / "broken.jsonl"
    broken.write_text("{}\nnot json\n")
    done = sar_eval("replay", broken, "nowhere-s000", "--out", tmp_path)
    assert done.returncode == 1 and "broken.jsonl:2" in done.stderr


def test_the_table_of_patterns_and_its_files(warm, sar_eval, tmp_path):
    out = tmp_path / "patterns"
    given = ("--world", "open_field", "--pattern", "partitioned_lawnmower", "--missions", "1", "--unlimited", "1")
    done = sar_eval("patterns", *given, "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert row["reached_95"] == 1 and 150.0 < row["time_to_95_s"]["value"] < 240.0
    assert row["coverage_240s"]["value"] > 0.95
    for figure in ("coverage_240s", "overlap"):
        assert (row[figure]["low"], row[figure]["high"]) == (0.0, 1.0) and row[figure]["notes"], (
            "one mission: all is possible"
        )
    assert row["time_to_95_s"]["notes"], "one mission says nothing of others"
    assert {file.name for file in out.iterdir()} == {"patterns.json", "missions.jsonl", "patterns.png"}
    again = sar_eval("patterns", *given, "--out", out)
    assert again.returncode == 1 and "exists" in again.stderr
