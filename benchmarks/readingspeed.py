"""How fast bags are read and analysed, beside the reference reader's decoded iteration, in one run.

python -m benchmarks.readingspeed BAG
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rosbags.highlevel import AnyReader

from sar_analysis.bags.reader import read_bag
from sar_analysis.metrics.metrics import episode_metrics

ROUNDS = 3


@dataclass(frozen=True)
class ReadingSpeed:
    """Best of three, in seconds, for the same bag; messages counts all in the bag."""

    messages: int
    read_s: float
    analyse_s: float
    rosbags_s: float

    @property
    def read_ratio(self) -> float:
        """How many times faster than rosbags the bag is read into arrays."""
        return self.rosbags_s / self.read_s

    @property
    def analyse_ratio(self) -> float:
        """How many times faster than rosbags iterates all metrics are computed, reading included."""
        return self.rosbags_s / self.analyse_s


def iterate_decoded(folder: Path) -> int:
    """What a script with rosbags does: every message, decoded."""
    count = 0
    with AnyReader([folder]) as reader:
        for connection, _, raw in reader.messages():
            reader.deserialize(raw, connection.msgtype)
            count += 1
    return count


def reading_speed(folder: Path) -> ReadingSpeed:
    """Time one bag; the turns alternate, so that a slower moment of the machine meets all three."""
    messages = iterate_decoded(folder)
    episode_metrics(folder)
    read, analyse, peer = [], [], []
    for _ in range(ROUNDS):
        read.append(_seconds(lambda: read_bag(folder)))
        analyse.append(_seconds(lambda: episode_metrics(folder)))
        peer.append(_seconds(lambda: iterate_decoded(folder)))
    return ReadingSpeed(messages, min(read), min(analyse), min(peer))


def _seconds(task: Callable[[], object]) -> float:
    began = time.perf_counter()
    task()
    return time.perf_counter() - began


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures of one bag as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.readingspeed", description=__doc__.split("\n")[0])
    parser.add_argument("bag", type=Path, help="folder of one episode")
    speed = reading_speed(parser.parse_args(arguments).bag)
    ratios = {"read_ratio": speed.read_ratio, "analyse_ratio": speed.analyse_ratio}
    print(json.dumps(asdict(speed) | ratios, indent=1))


if __name__ == "__main__":
    main()
