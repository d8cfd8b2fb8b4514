"""The command line as a stranger meets it: help that teaches, one line of JSON for machines, plain words for people."""

from __future__ import annotations

import csv
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sar_eval as package
from sar_eval.scenario.resources import names, world_path

FLYING_VERBS = (
    "run",
    "eval",
    "fly",
    "calibrate",
    "missions",
    "sweep",
    "gate-study",
    "reliability",
    "patterns",
    "encounters",
    "views",
    "replay",
)
VERBS = (*FLYING_VERBS, "sitl", "draw", "doctor", "bench", "world check", "bag check", "bag repair")
WITHOUT_MATPLOTLIB = "import sys; sys.modules['matplotlib'] = None; from sar_eval.cli.app import main; main()"
SHORT = ("run", "--world", "village", "--drones", "2", "--duration-s", "3", "--seed", "4", "--episode", "1")

RESULT_FIELDS = {
    "episode_id": str,
    "tier": str,
    "seed": int,
    "episode": int,
    "config_sha256": str,
    "num_drones": int,
    "area_w": float,
    "area_h": float,
    "valid": bool,
    "invalid_reason": type(None),
    "coverage_240s": float,
    "coverage_curve": list,
    "collisions": int,
    "near_misses": int,
    "overlap_ratio": float,
    "events": list,
    "drones": list,
    "victims": list,
    "detections": int,
    "issues": int,
    "displaced": int,
    "decoys": list,
    "issue_events": list,
    "adr149": dict,
    "false_alarms": int,
    # Nothing is found in so short a flight.
    "localization_error_m": type(None),
    "gdop": type(None),
    "time_to_first_detection_s": type(None),
}
DRONE_FIELDS = {"id", "x", "y", "z", "vx", "vy", "vz", "hdg", "batt", "det"}


@pytest.fixture(scope="module")
def flown(warm, sar_eval, tmp_path_factory) -> tuple[subprocess.CompletedProcess[str], Path]:
    """One short episode for machines, and where it was told to go."""
    out = tmp_path_factory.mktemp("flown")
    return sar_eval(*SHORT, "--out", out, "--json"), out


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_teaches_by_an_example_that_parses(verb, sar_eval):
    done = sar_eval(*verb.split(), "--help", env={"COLUMNS": "200"})
    assert done.returncode == 0
    assert done.stderr == ""
    (example,) = re.findall(r"Example: (sar-eval .*?)\s*$", done.stdout, flags=re.MULTILINE)
    assert example.startswith(f"sar-eval {verb}")
    offered = set(re.findall(r"--[a-z][a-z-]*", done.stdout.replace(example, "")))
    assert set(re.findall(r"--[a-z][a-z-]*", example)) <= offered


def test_help_lists_every_verb_and_the_exit_codes(sar_eval):
    done = sar_eval("--help")
    assert done.returncode == 0
    for verb in VERBS:
        assert f" {verb.split()[0]} " in done.stdout
    for code in ("0 ok", "1 bad input", "2 a check", "3 the run", "4 data", "5 an optional"):
        assert code in done.stdout


def test_no_verb_shows_the_help_and_no_empty_error(sar_eval):
    done = sar_eval()
    assert done.returncode == 1
    assert "Usage: sar-eval" in done.stdout
    assert done.stderr == ""


def test_version(sar_eval):
    done = sar_eval("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"sar-eval {package.__version__}\n", "")


def test_json_is_one_line_and_keeps_the_schema(flown):
    done, out = flown
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1
    record = json.loads(done.stdout, parse_constant=pytest.fail)
    assert list(record) == ["schema_version", "result", "run"]
    assert record["schema_version"] == 2
    result, run = record["result"], record["run"]
    assert {key: kind for key, kind in RESULT_FIELDS.items() if type(result[key]) is not kind} == {}
    assert [set(drone) >= DRONE_FIELDS for drone in result["drones"]] == [True, True]
    assert (result["tier"], result["seed"], result["episode"], result["num_drones"]) == ("embedded", 4, 1, 2)
    assert not any(name in json.dumps(result) for name in ("rtf", "wall", str(out)))
    assert run["rtf"] > 1
    assert run["compile_s"] >= 0
    bag = Path(run["bag"])
    assert bag.parent == out
    assert bag.name == result["episode_id"]
    assert run["bag_bytes"] == next(bag.glob("*.mcap")).stat().st_size


def test_the_table_tells_the_tier_and_the_whole_path_of_the_bag(sar_eval, warm, tmp_path):
    """Not a terminal: no progress bar in the log, and a path that can be copied however long it is."""
    deep = tmp_path / ("a_rather_long_name_" * 6) / "runs"
    done = sar_eval(*SHORT, "--out", deep)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Stage 2 (embedded): village" in done.stdout
    (bag,) = deep.iterdir()
    assert f"bag: {bag}\n" in done.stdout
    assert "coverage at 3 s" in done.stdout


def test_a_terminal_gets_a_progress_bar_and_a_pipe_gets_json(warm, tmp_path):
    """stderr is a terminal, stdout is not: the bar goes to one, exactly the JSON to the other."""
    leader, follower = pty.openpty()
    command = [Path(sys.executable).with_name("sar-eval"), *SHORT, "--out", tmp_path, "--json"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=follower, env=environment)
    os.close(follower)
    shown = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(leader)
    printed, _ = process.communicate()
    assert process.returncode == 0
    assert json.loads(printed)["result"]["valid"]
    assert "coverage" in shown.decode()


def test_no_bag_writes_nothing(warm, sar_eval, tmp_path):
    done = sar_eval(*SHORT, "--no-bag", "--json", "--backend", "auto", cwd=tmp_path)
    assert done.returncode == 0
    assert json.loads(done.stdout)["run"]["bag"] is None
    assert len(done.stderr.splitlines()) == 1
    assert "backend auto: embedded" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_scenario_file_says_what_the_options_say(flown, warm, sar_eval, tmp_path):
    (tmp_path / "mission.yaml").write_text("world: village\ndrones: 2\nduration_s: 99\n")
    options = ("--config", tmp_path / "mission.yaml", "--duration-s", "3", "--seed", "4", "--episode", "1")
    done = sar_eval("run", *options, "--no-bag", "--json")
    assert json.loads(done.stdout)["result"] == json.loads(flown[0].stdout)["result"]


def test_bag_check_passes_what_run_wrote(flown, sar_eval):
    (bag,) = flown[1].iterdir()
    told = sar_eval("bag", "check", bag)
    assert (told.returncode, told.stderr) == (0, "")
    assert f"{bag}: ok; " in told.stdout
    (entry,) = json.loads(sar_eval("bag", "check", bag, "--json").stdout)
    assert (entry["ok"], entry["findings"]) == (True, [])


def test_bag_check_fails_a_damaged_bag_and_repair_saves_it(flown, sar_eval, tmp_path):
    (bag,) = flown[1].iterdir()
    whole = next(bag.glob("*.mcap")).read_bytes()
    damaged = tmp_path / "damaged.mcap"
    damaged.write_bytes(whole[: len(whole) // 2])
    told = sar_eval("bag", "check", damaged)
    assert told.returncode == 2
    assert "no_summary" in told.stdout
    saved = sar_eval("bag", "repair", damaged, "--out", tmp_path / "saved")
    assert saved.returncode == 0
    assert "read back" in saved.stdout
    assert sar_eval("bag", "check", tmp_path / "saved").returncode == 0


def test_doctor_tells_what_is_there(sar_eval):
    done = sar_eval("doctor", "--json")
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)
    told = json.loads(done.stdout)
    assert told["healthy"] is True
    found = {probe["name"]: probe for probe in told["probes"]}
    assert found["numba"]["found"]
    assert all(probe["purpose"] for probe in told["probes"])
    assert all(probe["how_to_get"] for probe in told["probes"] if not probe["found"])
    assert f"highest tier found: {told['best_tier']}" in sar_eval("doctor").stdout


def test_world_check_passes_the_shipped_worlds_and_says_what_did_not_run(sar_eval, tmp_path):
    without_tools = {"PATH": str(tmp_path)}
    done = sar_eval("world", "check", env=without_tools)
    assert (done.returncode, done.stderr) == (0, "")
    assert "4 worlds checked, 0 with findings" in done.stdout
    assert "libsdformat's own check did not run; to add it: " in done.stdout
    told = json.loads(sar_eval("world", "check", "--json", env=without_tools).stdout)
    assert told["libsdformat"] is False
    assert {Path(entry["world"]).stem for entry in told["worlds"]} == set(names("worlds", ".sdf"))
    assert all(entry["findings"] == [] for entry in told["worlds"])


def test_world_check_fails_a_broken_world_and_says_where(sar_eval, tmp_path):
    text = world_path("forest").read_text(encoding="utf-8")
    broken = tmp_path / "broken.sdf"
    broken.write_text(text.replace("<gravity>", "<gravitty>").replace("</gravity>", "</gravitty>"))
    done = sar_eval("world", "check", broken)
    assert (done.returncode, done.stderr) == (2, "")
    assert re.search(rf"{re.escape(str(broken))}: error: line \d+: .*gravitty", done.stdout)
    assert "1 worlds checked, 1 with findings" in done.stdout


def test_fly_writes_the_same_times_and_columns(warm, sar_eval, tmp_path):
    script = tmp_path / "s.csv"
    rows = [f"{0.04 * k:.2f},0,0,-20,3,0,-20,nan,nan,nan,0.5" for k in range(150)]
    script.write_text("\n".join(("t,x,y,z,sp_x,sp_y,sp_z,sp_vx,sp_vy,sp_vz,sp_yaw", *rows)) + "\n")
    for name in ("a.csv", "b.csv"):
        done = sar_eval("fly", script, "--out", tmp_path / "traces" / name, "--seed", "3")
        assert (done.returncode, done.stderr) == (0, "")
        assert "150 rows over 6.0 s, vehicle sihsim_quadx (embedded)" in done.stdout
    assert (tmp_path / "traces/a.csv").read_bytes() == (tmp_path / "traces/b.csv").read_bytes()
    with (tmp_path / "traces/a.csv").open(newline="") as file:
        trace = list(csv.DictReader(file))
    assert [float(row["t"]) for row in trace] == [round(0.04 * k, 3) for k in range(150)]
    assert float(trace[0]["gt_x"]) == pytest.approx(0.0, abs=1.0)
    assert float(trace[-1]["gt_x"]) == pytest.approx(3.0, abs=1.0)
    assert {row["sp_vx"] for row in trace} == {"nan"}


def test_draw_makes_a_picture(flown, sar_eval, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is missing: pip install 'sar-eval[report]'")
    (bag,) = flown[1].iterdir()
    done = sar_eval("draw", bag, "--out", tmp_path / "mission.png")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "mission.png").read_bytes().startswith(b"\x89PNG")


def test_draw_without_matplotlib_says_how_to_get_it(flown, tmp_path):
    (bag,) = flown[1].iterdir()
    command = [sys.executable, "-c", WITHOUT_MATPLOTLIB, "draw", bag, "--out", tmp_path / "mission.png"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 5
    assert len(done.stderr.splitlines()) == 1
    assert "matplotlib" in done.stderr
    assert "pip install" in done.stderr
    assert list(tmp_path.iterdir()) == []
