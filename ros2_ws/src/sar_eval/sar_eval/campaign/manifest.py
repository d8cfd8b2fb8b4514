"""What a campaign is: a manifest whose identity covers everything that decides its results, and nothing else.

Number of workers, shard, order, host, bags and the package's version are not part of it: they change no result. What
autopilots say they are is known only once they fly; records are held to it one by one, as to the inputs.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sar_core.errors import ContractError, InputError
from sar_core.names import checked_name
from sar_eval import __version__
from sar_eval.campaign.ledger import plain, write_whole
from sar_eval.campaign.plan import CampaignPlan
from sar_eval.campaign.sources import code, leaves, stage1_sources
from sar_eval.episode.conduct import indices
from sar_eval.scenario.model import SET_DECIDES, Episode
from sar_eval.scenario.resources import share_dir
from sar_eval.scenario.tiers import OWN, piloted, tier_named
from sar_swarm.piloting.patternlist import LEARNED, STANDARD, pattern_file

MANIFEST = "manifest.json"
SCHEMA_VERSION = 1
RULE = 3
"""What is hashed, and how: code file by file, all that flies, and every input. Rule 2 lacked the constants of the
indices among the inputs. A manifest that names no rule was hashed by the first one, package by package and one level
deep. Manifests of earlier rules can be read, merged and published, but not flown on."""
CHOSEN = ("world", "pattern", "victim_absent", "episode_set")
"""Keys of a scenario that differ between the conditions of a campaign."""


@dataclass(frozen=True)
class Stage1:
    """Where the seeds came from: the Stage-1 file's name and hash, and how the seeds were chosen."""

    file: str
    sha256: str
    rule: str


@dataclass(frozen=True)
class Manifest:
    """``decides`` is hashed into ``identity``; ``host`` tells where it was begun and is never compared.

    ``files`` has the SHA-256 of each file that lies beside the manifest of a packed campaign or of published results.
    """

    decides: dict[str, Any]
    episodes: tuple[str, ...]
    host: dict[str, Any]
    files: dict[str, str] = field(default_factory=dict)

    @property
    def rule(self) -> int:
        """By which rule its code was hashed."""
        return int(self.decides.get("identity_rule", 1))

    @property
    def identity(self) -> str:
        return _digest([self.decides, self.episodes])

    def write(self, folder: Path) -> None:
        """Last of all that makes a folder a campaign; the episodes stand at the end, for readers of the rest."""
        body = {
            "schema_version": SCHEMA_VERSION,
            "identity": self.identity,
            **self.decides,
            "host": self.host,
            **({"files": self.files} if self.files else {}),
            "episodes": list(self.episodes),
        }
        write_whole(folder / MANIFEST, json.dumps(body, indent=1) + "\n")


def make_manifest(plan: CampaignPlan, stage1: Stage1 | None = None) -> Manifest:
    """The manifest of a plan on this machine."""
    choice = plan.choice
    scenario = {
        key: value
        for key, value in plan.samples[0].plain_scenario().items()
        if key not in CHOSEN and not (key in SET_DECIDES and choice.episode_set is not None)
    }
    paced = {"sim_speed": choice.speed} if piloted(choice.tier) else {}
    decides = {
        "identity_rule": RULE,
        "configuration": {
            "tier": choice.tier,
            **paced,
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
            "conditions": {_condition(sample): input_hashes(sample) for sample in plan.samples},
            "stage1": None if stage1 is None else _stage1_inputs(stage1),
        },
    }
    host = fingerprint()
    if stage1 is not None:
        host["stage1_file"] = Path(stage1.file).name
    return Manifest(plain(decides), plan.keys, host)


def condition_name(world: str, pattern: str, absent: bool) -> str:
    """What a condition is called in the manifest."""
    return f"{world}-{pattern}{'-absent' if absent else ''}"


def _condition(sample: Episode) -> str:
    return condition_name(sample.world.name, sample.scenario.pattern, sample.scenario.victim_absent)


def input_hashes(episode: Episode) -> dict[str, Any]:
    """Hashes of the files an episode is flown with, and judged by."""
    resolved = episode.resolved()
    found = {key: value for key, value in resolved.items() if key.endswith("_sha256") or key == "episode_set"}
    found |= index_hashes(indices().sha256)
    if episode.tier == "gazebo":
        folder = share_dir("models")
        models = {f.relative_to(folder).as_posix(): file_sha256(f) for f in folder.rglob("*") if f.is_file()}
        found["models_sha256"] = _digest(models)
    if episode.scenario.pattern not in (*STANDARD, LEARNED):
        found["pattern_sha256"] = file_sha256(pattern_file(episode.scenario.pattern))
    tier = tier_named(episode.tier)
    if tier not in OWN and not tier.backend.startswith("sar_gazebo."):
        found["tier_sha256"] = file_sha256(tier.file)
    return found


def index_hashes(files: Mapping[str, str]) -> dict[str, str]:
    """Of the constants of the indices, as a record names them by file."""
    return {f"{Path(name).stem}_sha256": digest for name, digest in files.items()}


def _stage1_inputs(stage1: Stage1) -> dict[str, Any]:
    """The file decides which seeds are flown; it is made again where the code of Stage 1 is another one."""
    return {"sha256": stage1.sha256, "rule": stage1.rule, "code": _digest(stage1_sources())}


def _digest(plain: Any) -> str:
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def file_sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def fingerprint() -> dict[str, Any]:
    """This machine, as results tell of it; its name is nobody's business."""
    return {
        "sar_eval": __version__,
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


def read_manifest(folder: Path, only: Container[str] | None = None) -> Manifest | None:
    """The manifest in a folder; None where there is none yet.

    Files whose hash it has must be what they were; with ``only``, those of these names.
    """
    path = folder / MANIFEST
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise ContractError(f"{path}: cannot read the manifest ({error})") from error
    if not isinstance(body, dict) or body.get("schema_version") != SCHEMA_VERSION:
        raise ContractError(f"{path}: not a campaign manifest of schema_version {SCHEMA_VERSION}")
    try:
        decides = {key: dict(body[key]) for key in ("configuration", "code", "inputs")}
        if "identity_rule" in body:
            decides = {"identity_rule": body["identity_rule"], **decides}
        episodes = tuple(checked_name(name, str(path)) for name in body["episodes"])
        files = {str(name): str(digest) for name, digest in body.get("files", {}).items()}
        host = {key: value for key, value in body["host"].items() if key != "hostname"}
        manifest = Manifest(decides, episodes, host, files)
        identity = body["identity"]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ContractError(f"{path}: the manifest lacks {error}") from error
    if manifest.identity != identity:
        raise ContractError(f"{path}: the manifest was changed; its identity is no longer the one written in it")
    if decides.get("identity_rule", 1) not in range(1, RULE + 1):
        raise ContractError(f"{path}: identity_rule is {decides['identity_rule']}; this version knows 1 to {RULE}")
    for name, digest in files.items():
        for part in name.split("/"):
            checked_name(part, str(path))
        held = only is None or name in only
        if held and (folder / name).is_file() and file_sha256(folder / name) != digest:
            raise ContractError(f"{folder / name}: is not the file that {MANIFEST} was written with: damaged or edited")
    return manifest


def check_same(here: Manifest, wanted: Manifest, where: Path) -> None:
    """Refuse to mix two campaigns, naming what differs: first key, both values, and how many more."""
    if here.identity == wanted.identity:
        return
    if here.rule != wanted.rule:
        raise InputError(
            f"{where}: holds a campaign that was hashed by rule {here.rule}, this version hashes by rule "
            f"{wanted.rule}; choose another folder, or go on with the version it was begun with"
        )
    old, new = dict(leaves(here.decides)), dict(leaves(wanted.decides))
    keys = [key for key in {**old, **new} if old.get(key, "absent") != new.get(key, "absent")] or ["episodes"]
    told = "; ".join(f"{key} is {_short(old.get(key))} there, {_short(new.get(key))} now" for key in keys[:3])
    if keys == ["episodes"]:
        told = f"episodes: {len(here.episodes)} are planned there, {len(wanted.episodes)} or other ones now"
    more = f" and {len(keys) - 3} more keys" if len(keys) > 3 else ""
    if keys == ["code.openblas"]:
        more = f" (OPENBLAS_CORETYPE={old[keys[0]]} takes the same kernels, where this CPU has them)"
    raise InputError(f"{where}: holds another campaign: {told}{more}; choose another folder, or the old settings")


def _short(value: Any) -> str:
    text = "absent" if value is None else json.dumps(value)
    return text if len(text) <= 40 else f"{text[:36]} ..."
