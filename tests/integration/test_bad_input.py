"""What cannot be flown is refused in one line naming file, key, value and what is allowed; nothing is left behind."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sar_core.errors import RunError
from sar_eval.bag.check import check_bag
from sar_eval.campaign.ledger import Ledger
from sar_eval.cli import app as cli
from sar_eval.episode.record import Record
from sar_eval.scenario.resources import params_path, world_path
from sar_eval.studies import fly

Outcome = tuple[int, str]

SETPOINT_HEADER = "t,x,y,z,sp_x,sp_y,sp_z,sp_vx,sp_vy,sp_vz,sp_yaw"
SETPOINT_ROWS = ("0,0,0,-5,0,0,-5,nan,nan,nan,0", "0.1,0,0,-5,0,0,-5,nan,nan,nan,0", "0.2,0,0,-5,1,0,-5,nan,nan,nan,0")


@pytest.fixture
def sar_eval_here(monkeypatch, capsys) -> Callable[..., Outcome]:
    """The same main() in this process: exit code and stderr. For the long tables, where a process each is too slow."""

    def run(*arguments: str | Path) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["sar-eval", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        printed = capsys.readouterr()
        assert printed.out == ""
        return int(end.value.code or 0), printed.err

    return run


@pytest.fixture
def in_tmp(tmp_path, monkeypatch) -> Path:
    """Relative names in commands lie in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check_refused(outcome: Outcome, code: int, words: tuple[str, ...]) -> None:
    found, complaint = outcome
    assert len(complaint.splitlines()) == 1, complaint
    assert complaint.startswith("error: ")
    assert [word for word in words if word not in complaint] == [], complaint
    assert found == code, complaint


def edited_world(old: str, new: str) -> str:
    text = world_path("village").read_text(encoding="utf-8")
    assert old in text
    return text.replace(old, new, 1)


def edited_params(change: Callable[[list[str]], list[str]]) -> str:
    lines = params_path("sihsim_quadx").read_text(encoding="utf-8").splitlines()
    return "\n".join(change(lines)) + "\n"


# What a user gets wrong, each through the real command: files to make, the command, exit code, words of the one line.
REAL = {
    "unknown key": (
        {"mission.yaml": "world: village\nspeed_kmh: 30\n"},
        ("run", "--config", "mission.yaml"),
        1,
        ("mission.yaml", "'speed_kmh'", "30", "speed_mps"),
    ),
    "unit confusion: kilometres per hour": (
        {"mission.yaml": "speed_mps: 28.8\n"},
        ("run", "--config", "mission.yaml"),
        1,
        ("mission.yaml", "speed_mps = 28.8", "30.8 m/s", "x500 reaches 12 m/s"),
    ),
    "wind beyond the vehicle": (
        {},
        ("run", "--wind-mps", "15"),
        1,
        ("command line", "wind_mps = 15", "needs 23 m/s", "x500 reaches 12 m/s"),
    ),
    "missing world": ({}, ("run", "--world", "vilage"), 1, ("world 'vilage'", "village", "forest", ".sdf")),
    "overlapping spawn": (
        {"twin.sdf": edited_world("<sar:spawn>3 -210 0", "<sar:spawn>-3 -210.5 0")},
        ("run", "--world", "twin.sdf"),
        1,
        ("twin.sdf:56", "spawn", "0.50 m", "allowed is 3 m"),
    ),
    "garbled parameter file": (
        {"my.params": "1 1 MPC_XY_P 0.95 9\n", "s.csv": "\n".join((SETPOINT_HEADER, *SETPOINT_ROWS))},
        ("fly", "s.csv", "--params", "my.params", "--out", "trace.csv"),
        1,
        ("my.params:1", "5 tab-separated fields"),
    ),
    "output folder is a file": (
        {"taken": "here"},
        ("run", "--out", "taken/bags"),
        1,
        ("taken/bags", "cannot create the output folder", "Not a directory"),
    ),
    "no such option": ({}, ("run", "--drone-count", "3"), 1, ("--drone-count", "--help")),
    "no such verb": ({}, ("rum",), 1, ("'rum'", "'run'")),
}


@pytest.mark.parametrize("case", REAL)
def test_refused_in_one_line_with_nothing_left_behind(case, sar_eval, in_tmp):
    files, command, code, words = REAL[case]
    for name, text in files.items():
        (in_tmp / name).write_text(text, encoding="utf-8")
    done = sar_eval(*command)
    check_refused((done.returncode, done.stderr), code, words)
    assert done.stdout == ""
    assert {item.name for item in in_tmp.iterdir()} == set(files)


SCENARIOS = {
    "drones: many": ("drones = 'many'", "integer"),
    "drones: '4'": ("drones = '4'", "integer"),
    "drones: true": ("drones = True", "integer"),
    "drones: 4.5": ("drones = 4.5", "integer"),
    "drones: 0": ("drones = 0", "greater than or equal to 1"),
    "drones: 65": ("drones = 65", "less than or equal to 64"),
    "speed_mps: 8 m/s": ("speed_mps = '8 m/s'", "number"),
    "speed_mps: yes": ("speed_mps = True", "number"),
    "speed_mps: -1": ("speed_mps = -1", "greater than 0"),
    "speed_mps: .inf": ("speed_mps = inf", "finite"),
    "duration_s: 0": ("duration_s = 0", "greater than 0"),
    "duration_s: 240000": ("duration_s = 240000", "3600"),
    "altitude_m: 30000": ("altitude_m = 30000", "10 m below the ceiling", "120 m"),
    "altitude_m: 0.03": ("altitude_m = 0.03", "greater than or equal to 2"),
    "overlap: 10": ("overlap = 10", "0.9"),
    "overlap: .nan": ("overlap = nan", "0.9"),
    "wind_mps: [1, 2]": ("wind_mps = [1, 2]", "number"),
    "pattern: zigzag": ("pattern = 'zigzag'", "allowed: partitioned_lawnmower"),
    "vehicle: x600": ("vehicle 'x600'", "x500", "sihsim_quadx"),
    "name: ../up": ("name = '../up'", "a-z0-9_"),
    "link: {loss: 5}": ("link.loss = 5", "less than or equal to 1"),
    "link: {lost: 0.1}": ("'link.lost'", "loss, latency_s, jitter_s"),
    "link: 0.1": ("link = 0.1",),
    "7: drones": ("'7'", "drones"),
    "drones: 3\ndrones: 4": ("'drones'", "2 times", "once"),
    "- drones": ("mapping", "list"),
    "drones: [": ("cannot read", "line 2"),
    "!!python/object/apply:os.getcwd []": ("cannot read", "python/object"),
}


@pytest.mark.parametrize("text", SCENARIOS)
def test_a_scenario_is_refused_by_file_key_value_and_what_is_allowed(text, sar_eval_here, in_tmp):
    (in_tmp / "mission.yaml").write_text(text + "\n", encoding="utf-8")
    outcome = sar_eval_here("run", "--config", "mission.yaml", "--out", "out")
    check_refused(outcome, 1, ("mission.yaml: ", *SCENARIOS[text]))
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--drones", "99"), ("drones = 99", "64")),
        (("--drones", "many"), ("--drones", "integer")),
        (("--seed", "-1"), ("seed = -1", "0 or more")),
        (("--seed", str(1 << 64)), ("seed", "below 18446744073709551616")),
        (("--episode", str(1 << 32)), ("episode", "below 4294967296")),
        (("--config", "none.yaml"), ("none.yaml", "no such scenario file")),
        (("--config", "."), ("cannot read the scenario", "directory")),
        (("--world", "none.sdf"), ("'none.sdf'", "collapsed_block")),
        (("--backend", "gazeebo"), ("'gazeebo'", "embedded")),
        (("--speed-mps", "13"), ("speed_mps = 13", "x500 reaches 12 m/s")),
        (("--vehicle", "../x500"), ("'../x500'", "sihsim_quadx")),
    ],
)
def test_an_option_is_refused(options, words, sar_eval_here, in_tmp):
    check_refused(sar_eval_here("run", *options, "--out", "out"), 1, words)
    assert list(in_tmp.iterdir()) == []


def test_an_option_wins_over_the_file_and_is_named_as_such(sar_eval_here, in_tmp):
    (in_tmp / "mission.yaml").write_text("drones: 3\nwind_mps: 1\n")
    check_refused(sar_eval_here("run", "--config", "mission.yaml", "--drones", "70"), 1, ("command line: drones = 70",))
    check_refused(
        sar_eval_here("run", "--config", "mission.yaml", "--speed-mps", "12"), 1, ("command line: ", "wind_mps = 1 ")
    )


WORLDS = {
    "name leads out of the folder": ('<world name="village"', '<world name="../../village"', "letters, digits"),
    "spawn in a wall": ("<sar:spawn>3 -210 0", "<sar:spawn>3 -199000 0", "spawn"),
    "spawn is short": ("<sar:spawn>3 -210 0 1.5707963267948966", "<sar:spawn>3 -210 0", "exactly 4"),
    "not XML": ("</sdf>", "", "not well-formed"),
    "unknown version": ('version="1.9"', 'version="3.1"', "1.9"),
}


@pytest.mark.parametrize("case", WORLDS)
def test_a_world_that_cannot_be_flown_is_refused(case, sar_eval_here, in_tmp):
    old, new, word = WORLDS[case]
    (in_tmp / "bad.sdf").write_text(edited_world(old, new), encoding="utf-8")
    check_refused(sar_eval_here("run", "--world", "bad.sdf", "--out", "out"), 1, ("bad.sdf", word))
    assert [item.name for item in in_tmp.iterdir()] == ["bad.sdf"]


PARAMETERS: dict[str, tuple[bytes | str | None, tuple[str, ...]]] = {
    "absent": (None, ("my.params", "no such file or name", "x500")),
    "not text": (b"\xff\xfe\x00garbage\x00", ("cannot read the parameter file",)),
    "empty": ("# nothing\n", ("no parameters",)),
    "a name missing": (edited_params(lambda ls: [x for x in ls if "\tMC_ROLL_P\t" not in x]), ("MC_ROLL_P", "missing")),
    "a value that is no number": (
        edited_params(lambda ls: [x.replace("\t9", "O\t9") if "\tMC_ROLL_P\t" in x else x for x in ls]),
        ("MC_ROLL_P", "not a number"),
    ),
    "a value that is not finite": (edited_params(lambda ls: [*ls, "1\t1\tMY_P\tinf\t9"]), ("MY_P = inf", "finite")),
    "given twice": (edited_params(lambda ls: [*ls, ls[-1]]), ("given twice",)),
    "unknown type": (edited_params(lambda ls: [*ls, "1\t1\tMY_P\t1\t5"]), ("'5'", "allowed: 6 (int32) or 9 (float)")),
    "five rotors": (
        edited_params(lambda ls: [x.replace("\t4\t6", "\t5\t6") if "CA_ROTOR_COUNT" in x else x for x in ls]),
        ("CA_ROTOR_COUNT = 5", "4"),
    ),
}


@pytest.mark.parametrize("case", PARAMETERS)
def test_a_parameter_file_is_refused(case, sar_eval_here, in_tmp):
    content, words = PARAMETERS[case]
    Path("s.csv").write_text("\n".join((SETPOINT_HEADER, *SETPOINT_ROWS)))
    if content is not None:
        Path("my.params").write_bytes(content if isinstance(content, bytes) else content.encode())
    outcome = sar_eval_here("fly", "s.csv", "--params", "my.params", "--out", "trace.csv")
    check_refused(outcome, 1, ("my.params", *words))
    assert not Path("trace.csv").exists()


SETPOINTS: dict[str, tuple[str | None, tuple[str, ...]]] = {
    "absent": (None, ("No such file",)),
    "column missing": ("\n".join(("t,sp_x,sp_y", "0,0,0", "1,0,0")), ("'sp_z' is missing", "sp_yaw")),
    "one row": ("\n".join((SETPOINT_HEADER, SETPOINT_ROWS[0])), ("1 rows", "at least 2")),
    "a word": ("\n".join((SETPOINT_HEADER, SETPOINT_ROWS[0], "0.1,0,0,-5,0,0,-5,fast,nan,nan,0")), ("row 2", "'fast'")),
    "a short row": ("\n".join((SETPOINT_HEADER, *SETPOINT_ROWS, "0.3,0,0")), ("row 4", "sp_x = ''", "nan")),
    "millimetres": (
        "\n".join((SETPOINT_HEADER, SETPOINT_ROWS[0], "0.1,0,0,-5,0,0,-500000,0,0,0,0")),
        ("row 2", "sp_z"),
    ),
    "infinite": ("\n".join((SETPOINT_HEADER, SETPOINT_ROWS[0], "0.1,0,0,-5,inf,0,-5,0,0,0,0")), ("row 2", "sp_x")),
    "time runs back": ("\n".join((SETPOINT_HEADER, SETPOINT_ROWS[1], SETPOINT_ROWS[0])), ("row 2, t = 0", "grow")),
    "time in milliseconds": (
        "\n".join((SETPOINT_HEADER, SETPOINT_ROWS[0], "90000000,0,0,-5,0,0,-5,0,0,0,0")),
        ("row 2, t = 9e+07", "100000"),
    ),
    "no start": ("\n".join((SETPOINT_HEADER, "0,,,,nan,nan,nan,1,0,0,0", SETPOINT_ROWS[1])), ("row 1",)),
}


@pytest.mark.parametrize("case", SETPOINTS)
def test_a_setpoint_file_is_refused(case, sar_eval_here, in_tmp):
    text, words = SETPOINTS[case]
    if text is not None:
        Path("s.csv").write_text(text)
    check_refused(sar_eval_here("fly", "s.csv", "--out", "trace.csv"), 1, ("s.csv", *words))
    assert not Path("trace.csv").exists()


def test_a_flight_that_leaves_the_numbers_is_a_failed_run(sar_eval_here, in_tmp, monkeypatch):
    """Whatever makes the state overflow, no trace is passed off as a flight."""
    monkeypatch.setattr(fly, "_observe", lambda fleet, script, k: np.full(len(fly.COLUMNS), np.nan if k else 0.0))
    Path("s.csv").write_text("\n".join((SETPOINT_HEADER, *SETPOINT_ROWS)))
    outcome = sar_eval_here("fly", "s.csv", "--out", "trace.csv")
    check_refused(outcome, 3, ("sihsim_quadx", "not finite at t = 0.1 s"))
    assert [item.name for item in in_tmp.iterdir()] == ["s.csv"]


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (("bag", "check", "none"), 4, ("none", "no such bag")),
        (("bag", "repair", "none", "--out", "x"), 4, ("none", "no such bag")),
        (("bag", "repair", "noise", "--out", "x"), 4, ("noise",)),
        (("bag", "repair", "none"), 1, ("--out",)),
        (("world", "check", "none"), 1, ("'none'", "village")),
        (("draw", "none", "--out", "x.png"), 1, ("none",)),
        (("fly", "s.csv"), 1, ("--out",)),
        (("fly", "s.csv", "--out", "folder"), 1, ("folder", "is a folder")),
        (("fly", "s.csv", "--out", "noise/trace.csv"), 1, ("noise", "cannot create the output folder")),
        (("fly", "s.csv", "--out", "t.csv", "--seed", "-3"), 1, ("seed = -3", "0 or more")),
    ],
)
def test_other_verbs_refuse_in_one_line_too(command, code, words, sar_eval_here, in_tmp):
    Path("s.csv").write_text("\n".join((SETPOINT_HEADER, *SETPOINT_ROWS)))
    Path("folder").mkdir()
    Path("noise").write_bytes(b"no bag at all")
    check_refused(sar_eval_here(*command), code, words)
    assert {item.name for item in in_tmp.iterdir()} == {"s.csv", "folder", "noise"}


def test_a_bag_is_never_overwritten(warm, sar_eval, in_tmp):
    command = ("run", "--drones", "1", "--duration-s", "1", "--out", "out", "--json")
    first = sar_eval(*command)
    bag = Path(json.loads(first.stdout)["run"]["bag"])
    before = {file.name: file.read_bytes() for file in bag.iterdir()}
    second = sar_eval(*command)
    check_refused((second.returncode, second.stderr), 1, (str(bag), "exists already", "another --out"))
    assert second.stdout == ""
    assert {file.name: file.read_bytes() for file in bag.iterdir()} == before
    assert [item.name for item in Path("out").iterdir()] == [bag.name]


def file_limit(size: int) -> Callable[[], None]:
    """A disk that is full after so many bytes of one file, for a child process."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def check_full_disk(done: subprocess.CompletedProcess[str], out: Path, reason: str) -> None:
    """Exit code 3, one line, nothing under a final name, and the visible rest can be told and saved."""
    check_refused((done.returncode, done.stderr), 3, (".partial", "cannot write", reason))
    assert done.stdout == ""
    (left,) = out.iterdir()
    assert left.suffix == ".partial"
    assert {finding.code for finding in check_bag(left).findings} >= {"partial", "no_summary"}


def test_a_disk_that_fills_during_the_flight_fails_the_run(warm, sar_eval, in_tmp):
    out = in_tmp / "out"
    done = sar_eval("run", "--drones", "2", "--out", "out", "--json", preexec_fn=file_limit(400_000))
    check_full_disk(done, out, "File too large")
    (left,) = out.iterdir()
    saved = sar_eval("bag", "repair", left, "--out", "saved")
    assert saved.returncode == 0, saved.stderr
    assert check_bag(Path("saved")).ok
    whole = sar_eval("bag", "repair", left, "--out", "saved_too", preexec_fn=file_limit(100_000))
    check_refused((whole.returncode, whole.stderr), 3, ("saved_too", "cannot write", "File too large"))
    assert {item.name for item in in_tmp.iterdir()} == {"out", "saved"}


@pytest.fixture
def tiny_disk(tmp_path):
    """A real file system of 300 kB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = f"mount -t tmpfs -o size=300k tmpfs '{disk}'"
    mount = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    if mount.returncode != 0:
        pytest.skip(f"a tmpfs cannot be mounted, run as root to try a really full disk: {mount.stderr.strip()}")
    yield disk
    subprocess.run(["umount", disk], check=True)


def test_a_file_system_without_space_fails_the_run(warm, sar_eval, tiny_disk):
    done = sar_eval("run", "--drones", "2", "--out", tiny_disk / "out", "--json")
    check_full_disk(done, tiny_disk / "out", "No space left on device")
    assert "free" in done.stderr


def test_a_trace_that_does_not_fit_is_not_left_half(warm, sar_eval, in_tmp):
    rows = [f"{0.01 * k:.2f},0,0,-5,0,0,-5,nan,nan,nan,0" for k in range(300)]
    Path("s.csv").write_text("\n".join((SETPOINT_HEADER, *rows)))
    Path("trace.csv").write_text("an older trace")
    done = sar_eval("fly", "s.csv", "--out", "trace.csv", preexec_fn=file_limit(20_000))
    check_refused((done.returncode, done.stderr), 3, ("trace.csv", "cannot write the trace", "File too large"))
    assert Path("trace.csv").read_text() == "an older trace"
    assert {item.name for item in in_tmp.iterdir()} == {"s.csv", "trace.csv"}


def test_a_record_that_does_not_fit_leaves_only_whole_lines(in_tmp):
    path = in_tmp / "episodes.jsonl"
    record = Record({"episode_id": "x" * 100}, {})
    Ledger(in_tmp).append(record)
    whole = path.read_bytes()
    child = os.fork()
    if child == 0:
        file_limit(len(whole) + 10)()
        try:
            Ledger(in_tmp).append(Record({"episode_id": "y" * 100}, {}))
        except RunError as error:
            os._exit(0 if "episodes.jsonl" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert path.read_bytes() == whole


def test_output_that_cannot_be_printed_is_a_failed_run(warm, sar_eval, in_tmp):
    command = [Path(sys.executable).with_name("sar-eval"), "doctor", "--json"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    check_refused((done.returncode, done.stderr), 3, ("No space left on device",))
