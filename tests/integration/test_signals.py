"""A run that is stopped, asked politely or not, loses at most the last simulated second and never lies about it."""

from __future__ import annotations

import json
import signal
import struct
import subprocess
from pathlib import Path

import pytest

from sar_eval.bag.check import check_bag
from sar_eval.bag.repair import repair_bag

SECOND_NS = 1_000_000_000
DONE = 4

# One slow drone over the whole area: an episode of most of an hour, which no test waits for.
LONG = ("run", "--world", "open_field", "--drones", "1", "--speed-mps", "2", "--duration-s", "3600", "--json")

# The command itself, noting after every tick how far it has come in a page of memory that outlives the process.
NOTING = """
import mmap, struct, sys
from sar_eval.cli import app as cli
from sar_eval.episode import flight as episode

with open(sys.argv.pop(1), "r+b") as file:
    page = mmap.mmap(file.fileno(), 8)
advance = episode.Flight.advance

def noting(flight):
    advance(flight)
    struct.pack_into("<q", page, 0, round(flight.score.time_s * 1e9))

episode.Flight.advance = noting
cli.main()
"""


def recorded_bytes(out: Path) -> int:
    """Size of the unfinished bag so far."""
    return sum(file.stat().st_size for file in out.glob("*.partial/*.mcap"))


@pytest.fixture
def flying(warm, launch, wait_for, tmp_path):
    """A process that is in the middle of an episode: its bag has been growing for a while."""

    def start(*options: str) -> subprocess.Popen[str]:
        process = launch(*LONG, *options, "--out", tmp_path)
        wait_for(lambda: recorded_bytes(tmp_path) > 200_000, process, "the bag grew")
        return process

    return start


def end_of(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def check_interrupted(outcome: tuple[int, str, str], out: Path, read_bag) -> None:
    """Exit code 3, a record that says INVALID(interrupted), and under its final name a whole bag that says so too."""
    code, printed, complaint = outcome
    assert code == 3, complaint
    assert len(complaint.splitlines()) == 1
    assert "INVALID (interrupted)" in complaint
    record = json.loads(printed)
    assert (record["result"]["valid"], record["result"]["invalid_reason"]) == (False, "interrupted")
    folders = [item.name for item in out.iterdir()]
    assert folders == [record["result"]["episode_id"]]
    report = check_bag(out / folders[0])
    assert report.ok, report.findings
    assert report.end_ns == round(record["result"]["flight_time_s"] * SECOND_NS)
    assert report.messages == record["run"]["bag_messages"]
    last = read_bag(out / folders[0]).topic("/episode/status")[-1]
    assert (last.log_time, last.decoded.phase) == (report.end_ns, DONE)
    assert (last.decoded.valid, last.decoded.invalid_reason) == (False, "interrupted")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_polite_stop_ends_in_a_whole_bag_that_says_interrupted(number, flying, read_bag, tmp_path):
    process = flying()
    process.send_signal(number)
    check_interrupted(end_of(process), tmp_path, read_bag)


def test_signals_sent_again_and_again_change_nothing(flying, read_bag, tmp_path):
    """A whole process group gets Ctrl-C twice; an impatient user sends more, until the process is gone."""
    process = flying()
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
    check_interrupted(end_of(process), tmp_path, read_bag)


def test_a_stopped_run_without_a_bag_is_invalid_too(warm, launch, wait_for, tmp_path):
    page = tmp_path / "reached"
    page.write_bytes(bytes(8))
    process = launch(page, *LONG, "--no-bag", script=NOTING)
    wait_for(lambda: struct.unpack("<q", page.read_bytes())[0] > 5 * SECOND_NS, process, "five seconds were flown")
    process.send_signal(signal.SIGTERM)
    code, printed, complaint = end_of(process)
    assert code == 3
    assert json.loads(printed)["result"]["invalid_reason"] == "interrupted"
    assert "bag" not in complaint
    assert [item.name for item in tmp_path.iterdir()] == ["reached"]


@pytest.fixture
def killed(warm, launch, wait_for, tmp_path):
    """Kill a run without warning after so many simulated seconds: its unfinished bag and the time it had reached."""

    def kill(reach_s: float) -> tuple[Path, int]:
        page, out = tmp_path / "reached", tmp_path / "out"
        page.write_bytes(bytes(8))

        def reached_ns() -> int:
            return int(struct.unpack("<q", page.read_bytes())[0])

        process = launch(page, *LONG, "--out", out, script=NOTING)
        wait_for(lambda: reached_ns() >= reach_s * SECOND_NS, process, f"{reach_s} s were flown")
        process.kill()
        assert process.wait() == -signal.SIGKILL
        (left,) = out.iterdir()
        return left, reached_ns()

    return kill


@pytest.mark.parametrize("reach_s", [2.5, 9.9, 40.0])
def test_a_kill_loses_at_most_the_last_second(reach_s, killed, read_bag, tmp_path):
    left, reached = killed(reach_s)
    repair_bag(left, tmp_path / "saved")
    report = check_bag(tmp_path / "saved")
    assert report.ok, report.findings
    assert reached - SECOND_NS <= report.end_ns <= reached + SECOND_NS // 10
    truth = read_bag(tmp_path / "saved").topic("/truth/state")
    assert [m.log_time for m in truth] == [-(-k * 25 // 2) * 4_000_000 for k in range(len(truth))]
    assert truth[-1].log_time == report.end_ns


def test_what_a_kill_leaves_is_named_mended_and_never_overwritten(killed, sar_eval, tmp_path):
    left, _ = killed(5.0)
    assert left.suffix == ".partial"
    told = sar_eval("bag", "check", left)
    assert told.returncode == 2
    assert f"partial: {left}: the recording was not finished" in told.stdout
    assert "bag repair" in told.stdout
    mended = sar_eval("bag", "repair", left, "--out", tmp_path / "saved")
    assert mended.returncode == 0, mended.stderr
    assert check_bag(tmp_path / "saved").ok
    again = sar_eval(*LONG, "--out", left.parent)
    assert again.returncode == 1
    assert f"{left}: exists already" in again.stderr
