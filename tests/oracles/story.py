"""The story that a rebuilt house must still tell: fingerprints of flown episodes and of a Stage-1 file.

    python tests/oracles/story.py --out story.json        # fly all of it, ten minutes on two cores
    python tests/oracles/story.py --against story.json    # the same, and say what differs; exit code 2 if anything

24 episodes (four worlds by six patterns, with sensing, two of them with faults) and the Stage-1 file of village-v2.
Only the command line is used, and bags are decoded by a library that did not write them, so that no module of ours has
to be where it was. Positions depend on OpenBLAS's choice of kernels in their last digits: compare on one machine.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from rosbags.highlevel import AnyReader

WORLDS = ("open_field", "forest", "village", "collapsed_block")
PATTERNS = ("partitioned_lawnmower", "boustrophedon", "spiral", "pheromone", "potential_field", "levy_flight")
FAULTS = {
    "forest-spiral": [{"kind": "gps_loss", "drone": 2, "begin_s": 30.0, "end_s": 33.0}],
    "village-pheromone": [{"kind": "link_loss", "drone": 1, "begin_s": 20.0, "end_s": 50.0}],
}
DURATION_S = 120.0
VERSION_KEYS = ("version", "sar_eval_version")
"""Of the package, which is no part of what was flown."""


def sar_eval(*words: object) -> str:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
    command = [sys.executable, "-m", "sar_eval", *map(str, words)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=plain).stdout


def episode(number: int, folder: Path) -> tuple[str, dict[str, str]]:
    """Fly one; hashes of its result and of every field in its bag."""
    world, pattern = WORLDS[number % len(WORLDS)], PATTERNS[number // len(WORLDS)]
    name = f"{world}-{pattern}"
    scenario = {"world": world, "pattern": pattern, "duration_s": DURATION_S, "faults": FAULTS.get(name, [])}
    config = folder / f"{name}.yaml"
    config.write_text(yaml.safe_dump(scenario))
    words = ("--config", config, "--episode-set", f"{world}-v2", "--seed", number, "--episode", number)
    line = sar_eval("run", *words, "--out", folder, "--json")
    record = json.loads(line)
    result = {key: value for key, value in record["result"].items() if key not in VERSION_KEYS}
    return name, {
        "result": hashlib.sha256(json.dumps(result, sort_keys=True).encode()).hexdigest(),
        "bag": bag_hash(Path(record["run"]["bag"])),
    }


def bag_hash(bag: Path) -> str:
    """Over topic, time and every field of every message, in the order of the bag."""
    digest = hashlib.sha256()
    with AnyReader([bag]) as reader:
        for connection, stamp, raw in reader.messages():
            digest.update(f"{connection.topic} {connection.msgtype} {stamp}\n".encode())
            feed(digest, reader.deserialize(raw, connection.msgtype))
    return digest.hexdigest()


def feed(digest: Any, value: Any) -> None:
    if is_dataclass(value):
        for field in fields(value):
            digest.update(field.name.encode())
            feed(digest, getattr(value, field.name))
    elif isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(f"{value.dtype.str}{value.shape}".encode() + value.tobytes())
    elif isinstance(value, list | np.ndarray):
        digest.update(f"[{len(value)}".encode())
        for item in value:
            feed(digest, item)
    else:
        digest.update(repr(value).encode())


def tell() -> dict[str, Any]:
    """The whole story."""
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(os.cpu_count()) as pool:
        folder = Path(place)
        sar_eval("stage1", "--out", folder / "stage1.jsonl")
        stage1 = hashlib.sha256((folder / "stage1.jsonl").read_bytes()).hexdigest()
        numbers = range(len(WORLDS) * len(PATTERNS))
        flown = {}
        for name, hashes in pool.map(lambda number: episode(number, folder), numbers):
            flown[name] = hashes
            print(f"{len(flown)} of {len(numbers)}: {name}", file=sys.stderr)
    return {"stage1": stage1, "episodes": flown}


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    found = [] if before["stage1"] == now["stage1"] else ["the Stage-1 file"]
    for name, hashes in before["episodes"].items():
        found += [f"{name}: {part}" for part, digest in hashes.items() if now["episodes"][name][part] != digest]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--out", type=Path, help="write the fingerprints there")
    chosen.add_argument("--against", type=Path, help="fingerprints written before")
    given = parser.parse_args()
    now = tell()
    if given.out is not None:
        given.out.write_text(json.dumps(now, indent=1) + "\n")
        return
    other = differences(json.loads(given.against.read_text()), now)
    print("\n".join(other) or f"the same story: {len(now['episodes'])} episodes and the Stage-1 file")
    sys.exit(2 if other else 0)


if __name__ == "__main__":
    main()
