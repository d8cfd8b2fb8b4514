"""What a campaign is: a manifest whose identity covers everything that decides its results, and nothing else.

Number of workers, shard, order, host and bags are not part of it: they change no result.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sar_core.errors import ContractError, InputError
from sar_eval import __version__
from sar_eval.campaign.ledger import plain, write_whole
from sar_eval.campaign.plan import Plan
from sar_eval.scenario.model import SET_DECIDES, Episode

MANIFEST = "manifest.json"
SCHEMA_VERSION = 1
ROOMS = ("sar_core", "sar_sim", "sar_swarm")
LIBRARIES = ("numpy", "numba", "llvmlite", "scipy")
"""Libraries whose version may change bits of a result."""
CHOSEN = ("world", "pattern", "victim_absent", "episode_set")
"""Keys of a scenario that differ between the conditions of a campaign."""
FLYING = "episode"
"""The module of sar_eval that flies; what it imports within sar_eval flies too."""


@cache
def code() -> dict[str, str]:
    """Hashes of all sources that decide what an episode comes to, and versions of the libraries under them."""
    versions = {name: importlib.metadata.version(name) for name in LIBRARIES}
    return {**sources(_folder), **versions, "python": ".".join(platform.python_version_tuple()[:2])}


def sources(folder_of: Callable[[str], Path]) -> dict[str, str]:
    """Hash of each package's sources that fly, wherever a copy of them lies."""
    hashes = {room: _digest_files(sorted(folder_of(room).glob("*.py"))) for room in ROOMS}
    return {**hashes, "sar_eval": _digest_files(flying_modules(folder_of("sar_eval")))}


def flying_modules(folder: Path | None = None) -> list[Path]:
    """Files of sar_eval, this one or a copy, that ``episode`` needs, found by following its imports."""
    folder = _folder("sar_eval") if folder is None else folder
    found: dict[str, Path] = {}
    waiting = [FLYING]
    while waiting:
        name = waiting.pop()
        path = folder / f"{name}.py"
        if name in found or not path.is_file():
            continue
        found[name] = path
        waiting += _imported(ast.parse(path.read_text(encoding="utf-8")))
    return [found[name] for name in sorted(found)]


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            package, _, module = node.module.partition(".")
            if package == "sar_eval":
                yield from [module] if module else [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            yield from (a.name.split(".")[1] for a in node.names if a.name.startswith("sar_eval."))


def _folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


def _digest_files(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        body = file.read_bytes()
        digest.update(f"{file.name} {len(body)}\n".encode() + body)
    return digest.hexdigest()


@dataclass(frozen=True)
class Stage1:
    """Where the seeds came from: the Stage-1 file's name and hash, and how the seeds were chosen."""

    file: str
    sha256: str
    rule: str


@dataclass(frozen=True)
class Manifest:
    """``decides`` is hashed into ``identity``; ``host`` tells where it was begun and is never compared."""

    decides: dict[str, Any]
    episodes: tuple[str, ...]
    host: dict[str, Any]

    @property
    def identity(self) -> str:
        text = json.dumps([self.decides, self.episodes], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def write(self, folder: Path) -> None:
        """Last of all that makes a folder a campaign; the episodes stand at the end, for readers of the rest."""
        body = {
            "schema_version": SCHEMA_VERSION,
            "identity": self.identity,
            **self.decides,
            "host": self.host,
            "episodes": list(self.episodes),
        }
        write_whole(folder / MANIFEST, json.dumps(body, indent=1) + "\n")


def make_manifest(plan: Plan, stage1: Stage1 | None = None) -> Manifest:
    """The manifest of a plan on this machine."""
    choice = plan.choice
    scenario = {
        key: value
        for key, value in plan.samples[0].plain_scenario().items()
        if key not in CHOSEN and not (key in SET_DECIDES and choice.episode_set is not None)
    }
    decides = {
        "configuration": {
            "tier": choice.tier,
            "worlds": list(choice.worlds),
            "patterns": list(choice.patterns),
            "victims": choice.victims,
            "seeds": list(choice.seeds),
            "episode_set": choice.episode_set,
            "episodes": len(choice.episodes),
            "scenario": scenario,
        },
        "code": code(),
        "inputs": {
            "conditions": {_condition_name(sample): _inputs(sample) for sample in plan.samples},
            "stage1": None if stage1 is None else {"sha256": stage1.sha256, "rule": stage1.rule},
        },
    }
    host = fingerprint()
    if stage1 is not None:
        host["stage1_file"] = stage1.file
    return Manifest(plain(decides), plan.keys, host)


def _condition_name(sample: Episode) -> str:
    absent = "-absent" if sample.scenario.victim_absent else ""
    return f"{sample.world.name}-{sample.scenario.pattern}{absent}"


def _inputs(sample: Episode) -> dict[str, Any]:
    """Hashes of the files a condition is flown with."""
    resolved = sample.resolved()
    return {key: value for key, value in resolved.items() if key.endswith("_sha256") or key == "episode_set"}


def fingerprint() -> dict[str, Any]:
    """This machine, as results name it."""
    return {
        "sar_eval": __version__,
        "hostname": socket.gethostname(),
        "image": os.environ.get("SAR_IMAGE"),
        "platform": platform.platform(),
        "python": sys.version.split()[0],
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest in a folder; None where there is none yet."""
    path = folder / MANIFEST
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ContractError(f"{path}: cannot read the manifest ({error})") from error
    if not isinstance(body, dict) or body.get("schema_version") != SCHEMA_VERSION:
        raise ContractError(f"{path}: not a campaign manifest of schema_version {SCHEMA_VERSION}")
    try:
        decides = {key: body[key] for key in ("configuration", "code", "inputs")}
        manifest = Manifest(decides, tuple(body["episodes"]), dict(body["host"]))
        identity = body["identity"]
    except (KeyError, TypeError, ValueError) as error:
        raise ContractError(f"{path}: the manifest lacks {error}") from error
    if manifest.identity != identity:
        raise ContractError(f"{path}: the manifest was changed; its identity is no longer the one written in it")
    return manifest


def check_same(here: Manifest, wanted: Manifest, where: Path) -> None:
    """Refuse to mix two campaigns, naming what differs: first key, both values, and how many more."""
    if here.identity == wanted.identity:
        return
    old, new = dict(_leaves(here.decides)), dict(_leaves(wanted.decides))
    keys = [key for key in {**old, **new} if old.get(key, "absent") != new.get(key, "absent")] or ["episodes"]
    told = "; ".join(f"{key} is {_short(old.get(key))} there, {_short(new.get(key))} now" for key in keys[:3])
    if keys == ["episodes"]:
        told = f"episodes: {len(here.episodes)} are planned there, {len(wanted.episodes)} or other ones now"
    more = f" and {len(keys) - 3} more keys" if len(keys) > 3 else ""
    raise InputError(f"{where}: holds another campaign: {told}{more}; choose another folder, or the old settings")


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else str(key))
    else:
        yield path, value


def _short(value: Any) -> str:
    text = "absent" if value is None else json.dumps(value)
    return text if len(text) <= 40 else f"{text[:36]} ..."
