"""What the ROS shell costs: the same mission in one process, as separate processes and composed in one.

    python -m benchmarks.graphbench [--duration-s 60] [--repeats 3]

prints, for four drones over the village, the best of the repeats: speed over real time with a bag, CPU per tick, and
what the shell adds to the in-process run per tick and per message.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sar_eval.episode.flight import fly_episode
from sar_eval.episode.kernels import compile_kernels
from sar_eval.episode.record import Record
from sar_eval.ros.graph import fly_graph
from sar_eval.scenario.model import Episode, Scenario
from sar_eval.scenario.prepare import prepare
from sar_sim.vehicle.fleet import TICKS_PER_SECOND

DRONES = 4
TARGETS = {"separate": 10.0, "composed": 12.0}
"""Speed over real time that a graph is to reach."""
PATIENCE_S = 60.0


@dataclass(frozen=True)
class Cost:
    """One flight: simulated over wall time, CPU seconds, ticks, messages in the bag."""

    rtf: float
    cpu_s: float
    ticks: int
    messages: int

    @property
    def cpu_ms(self) -> float:
        """Per tick, over all processes."""
        return 1e3 * self.cpu_s / self.ticks


def cpu_s() -> float:
    """CPU time of this process and of all its children that have ended."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def measure(fly: Callable[[Path], Record]) -> Cost:
    """Fly once and see what it took."""
    with tempfile.TemporaryDirectory(prefix="sar_eval-bench-") as folder:
        before = cpu_s()
        record = fly(Path(folder, "bag"))
        used = cpu_s() - before
    if not record.result["valid"]:
        raise SystemExit(f"the flight is INVALID ({record.result['invalid_reason']}); nothing was measured")
    ticks = round(record.result["flight_time_s"] * TICKS_PER_SECOND)
    return Cost(record.run["rtf"], used, ticks, record.run["bag_messages"])


def measure_all(episode: Episode, repeats: int) -> dict[str, Cost]:
    """The best of the repeats for each way of flying."""
    ways: dict[str, Callable[[Path], Record]] = {
        "in process": lambda bag: fly_episode(episode, bag),
        "separate": lambda bag: fly_graph(episode, bag, lockstep_timeout_s=PATIENCE_S),
        "composed": lambda bag: fly_graph(episode, bag, composed=True, lockstep_timeout_s=PATIENCE_S),
    }
    costs = {}
    for way, fly in ways.items():
        costs[way] = max((measure(fly) for _ in range(repeats)), key=lambda cost: cost.rtf)
    return costs


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.graphbench", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--duration-s", type=float, default=60.0, help="search time of the mission")
    parser.add_argument("--repeats", type=int, default=3, help="flights of each kind, of which the fastest counts")
    given = parser.parse_args(arguments)
    episode = prepare(Scenario(world="village", drones=DRONES, duration_s=given.duration_s), 0, 0)
    compile_kernels(episode)
    began = time.perf_counter()
    costs = measure_all(episode, given.repeats)
    base = costs["in process"]
    for way, cost in costs.items():
        line = f"{way:10}  {cost.rtf:6.1f} x real time  {cost.cpu_ms:6.3f} ms CPU per tick"
        if way in TARGETS:
            more = cost.cpu_s - base.cpu_s
            line += f"  (target {TARGETS[way]:g} x)  shell: {1e3 * more / cost.ticks:.3f} ms CPU per tick, "
            line += f"{1e6 * more / cost.messages:.1f} us per message recorded"
        print(line)
    print(f"{DRONES} drones, {base.ticks} ticks, {base.messages} messages; {time.perf_counter() - began:.0f} s in all")


if __name__ == "__main__":
    main(sys.argv[1:])
