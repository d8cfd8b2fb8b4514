"""Kill a campaign again and again, give the same command each time, and compare with one that nobody disturbed.

    python -m tests.soak.killcheck --kills 20 --out runs/killcheck

Each kill is a SIGKILL to the whole process group at a random moment: while starting, flying or writing.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from sar_core.errors import ContractError, InputError, RunError
from sar_core.streams import stream
from sar_eval.campaign.campaign import RESULTS
from sar_eval.campaign.ledger import LEDGER

SCENARIO = "name: killcheck\ndrones: 2\nduration_s: 5.0\n"
OPTIONS = ("--world", "village", "--pattern", "boustrophedon", "--pattern", "random_walk", "--seeds", "1,4,7")
COMMAND = "from sar_eval.cli.app import main; main()"
LIMIT_S = 3600.0


@dataclass(frozen=True)
class Survival:
    """What a killed campaign came to: kills that hit a running process, records after each, and whether it is equal."""

    kills: int
    records_after_kill: tuple[int, ...]
    missions: int
    identical: bool


def result_part(folder: Path) -> bytes:
    """The bytes of results.json that may not depend on how a campaign was flown."""
    text = (folder / RESULTS).read_bytes()
    begin, end = text.index(b'"result": '), text.rindex(b'"run": ')
    return text[begin:end]


def start(options: list[str], folder: Path) -> subprocess.Popen[bytes]:
    """The stage2 command in a process group of its own."""
    command = [sys.executable, "-c", COMMAND, "stage2", *options, "--out", str(folder)]
    with (folder.parent / f"{folder.name}.log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


def finish(options: list[str], folder: Path) -> None:
    """Let the command end by itself."""
    code = start(options, folder).wait(LIMIT_S)
    if code != 0:
        raise RunError(f"{folder}: the campaign ended with exit code {code}; see {folder}.log")


def lines(folder: Path) -> int:
    """Whole records in a ledger that may be growing."""
    path = folder / LEDGER
    return path.read_bytes().count(b"\n") if path.exists() else 0


def disturb(options: list[str], folder: Path, kills: int, seed: int) -> list[int]:
    """Start and kill; every second kill waits for a record first, so that the campaign gets on between kills."""
    dice = stream("killcheck", seed)
    after: list[int] = []
    while len(after) < kills:
        process = start(options, folder)
        before, until = lines(folder), time.monotonic() + float(dice.uniform(0.1, 3.0))
        if len(after) % 2:
            while lines(folder) == before and process.poll() is None:
                time.sleep(0.01)
            until = time.monotonic() + float(dice.uniform(0.0, 1.0))
        while time.monotonic() < until and process.poll() is None:
            time.sleep(0.005)
        if process.poll() is not None:
            raise RunError(
                f"{folder}: the campaign was over after {len(after)} of {kills} kills; give it more missions"
            )
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        after.append(lines(folder))
    return after


def check(out: Path, kills: int, episodes: int, workers: int, seed: int, scenario: str = SCENARIO) -> Survival:
    """Fly the same small campaign twice below ``out``, one of them killed so often."""
    if out.exists():
        raise InputError(f"{out}: exists already; choose another folder")
    out.mkdir(parents=True)
    config = out / "scenario.yaml"
    config.write_text(scenario, encoding="utf-8")
    options = [*OPTIONS, "--episodes", f"0-{episodes - 1}", "--config", str(config), "--workers", str(workers)]
    killed, calm = out / "killed", out / "calm"
    after = disturb(options, killed, kills, seed)
    finish(options, killed)
    finish(options, calm)
    same = result_part(killed) == result_part(calm)
    return Survival(len(after), tuple(after), lines(killed), same)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--episodes", type=int, default=20, help="episode indices; 12 missions each")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0, help="of the moments of the kills")
    parser.add_argument("--out", type=Path, default=Path("runs/killcheck"))
    given = parser.parse_args()
    survival = check(given.out, given.kills, given.episodes, given.workers, given.seed)
    print(json.dumps(vars(survival)))
    if not survival.identical:
        sys.exit(ContractError.exit_code)


if __name__ == "__main__":
    main()
