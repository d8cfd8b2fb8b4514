"""How much of the machine a campaign's workers reach, and whether they stay slim.

python -m benchmarks.campaignbench            two workers beside two bare loops, in one run
python -m benchmarks.campaignbench --flat     memory and open files of a worker over 500 short missions
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from collections import deque
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from sar_eval.campaign.plan import CampaignChoice, CampaignPlan, MissionTask, make_plan
from sar_eval.campaign.workers import MissionJob, WorkerCrew
from sar_eval.episode.flight import fly_episode
from sar_eval.episode.kernels import compile_kernels
from sar_eval.scenario.model import Scenario

LOOPS = 2
ROUNDS = 3


def _plan(scenario: Scenario, episodes: int) -> CampaignPlan:
    return make_plan(
        CampaignChoice(scenario, (scenario.world,), (scenario.pattern,), "present", (1,), tuple(range(episodes)))
    )


def _loop(tasks: list[MissionTask], ready: Barrier, done: Barrier) -> None:
    """A bare loop: prepare, fly, next. One mission before the clock starts, to load what is compiled."""
    fly_episode(tasks[0].prepare(), None)
    ready.wait()
    for task in tasks:
        fly_episode(task.prepare(), None)
    done.wait()


def bare(tasks: list[MissionTask]) -> float:
    """Seconds for all tasks in two loops side by side."""
    context = multiprocessing.get_context("spawn")
    ready, done = context.Barrier(LOOPS + 1), context.Barrier(LOOPS + 1)
    loops = [context.Process(target=_loop, args=(tasks[k::LOOPS], ready, done)) for k in range(LOOPS)]
    for loop in loops:
        loop.start()
    ready.wait()
    began = time.perf_counter()
    done.wait()
    taken = time.perf_counter() - began
    for loop in loops:
        loop.join()
    return taken


def crewed(tasks: list[MissionTask]) -> float:
    """Seconds for all tasks by two workers, from the moment both have flown one."""
    queue = deque([MissionJob(tasks[0])] * LOOPS)
    taken = 0.0
    began = time.perf_counter()
    for flown, _ in enumerate(WorkerCrew(LOOPS).fly(lambda: queue.popleft() if queue else None, lambda: None), start=1):
        if flown == LOOPS:
            queue.extend(MissionJob(task) for task in tasks)
            began = time.perf_counter()
        taken = time.perf_counter() - began
    return taken


def speed(episodes: int = 16) -> dict[str, Any]:
    """Bare loops and workers in turns, best of three each; the ratio is what the target of 0.9 is held to."""
    plan = _plan(Scenario(world="village"), episodes)
    compile_kernels(plan.samples[0])
    rounds = [(bare(list(plan.tasks)), crewed(list(plan.tasks))) for _ in range(ROUNDS)]
    best_bare, best_crew = (min(times) for times in zip(*rounds, strict=True))
    return {
        "episodes": episodes,
        "bare_s": [round(b, 2) for b, _ in rounds],
        "workers_s": [round(w, 2) for _, w in rounds],
        "ratio": round(best_bare / best_crew, 3),
        "target": 0.9,
    }


def rss_and_files(pid: int) -> tuple[int, int]:
    """Resident memory in bytes and open files of a process (Linux)."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE"), len(os.listdir(f"/proc/{pid}/fd"))


def flatness(episodes: int = 500) -> dict[str, Any]:
    """Resident memory and open files of one worker, after each tenth of the missions."""
    scenario = Scenario(world="village", drones=2, duration_s=1.0)
    plan = _plan(scenario, episodes)
    compile_kernels(plan.samples[0])
    crew = WorkerCrew(1)
    queue = deque(MissionJob(task) for task in plan.tasks)
    samples = []
    for flown, _ in enumerate(crew.fly(lambda: queue.popleft() if queue else None, lambda: None), start=1):
        if flown % max(1, episodes // 10) == 0 and crew.pids:
            memory, files = rss_and_files(crew.pids[0])
            samples.append({"flown": flown, "rss_mb": round(memory / 1e6, 1), "files": files})
    return {"episodes": episodes, "lost_workers": crew.lost, "samples": samples}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flat", action="store_true", help="memory and open files instead of speed")
    parser.add_argument("--episodes", type=int, default=None, help="missions to fly; default: 16, or 500 with --flat")
    given = parser.parse_args()
    figures = flatness(given.episodes or 500) if given.flat else speed(given.episodes or 16)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
