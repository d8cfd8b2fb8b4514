"""The reporting card (after Gorsane et al. 2022, a standardised protocol for MARL evaluation) and the paper's row.

Hyperparameters, compute, versions and seeds are read from the bags; what bags cannot tell is said to be unknown.
"""

from __future__ import annotations

import importlib.metadata
import json
import math
import os
import platform
import re
import shlex
import sys
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from pydantic import JsonValue

from sar_analysis.metrics.metrics import EpisodeMetrics
from sar_analysis.results.conditions import policy_names
from sar_analysis.results.model import (
    Absent,
    CampaignHost,
    Compute,
    Draws,
    FlownVersions,
    Hyperparameters,
    PaperRow,
    ReportingCard,
    Run,
)
from sar_analysis.results.rows import Settings

MANIFEST = "manifest.json"
_PER_EPISODE = ("seed", "episode", "name", "tier", "episode_set")


def reporting_card(episodes: Sequence[EpisodeMetrics], resamples: int, seed: int) -> ReportingCard:
    """What another team needs to fly and analyse the same."""
    fixed, varied = _settings(episodes)
    valid = [e for e in episodes if e.valid]
    return ReportingCard(
        hyperparameters=Hyperparameters(fixed=fixed, varied=varied),
        compute=Compute(
            flight_hours=sum(e.flight_hours for e in episodes),
            simulated_hours=sum(e.flight_time_s for e in episodes) / 3600.0,
            missions=len(episodes),
            wall_time="not recorded in bags; the episode records (episodes.jsonl) hold it",
            training=_training(episodes),
        ),
        versions=FlownVersions(
            sar_eval=_distinct(e.version or "unknown" for e in episodes),
            episode_set=_distinct("unknown" if e.episode_set is None else e.episode_set for e in episodes),
            episode_set_sha256=_distinct(
                sha for e in episodes if (sha := e.configuration.get("episode_set_sha256")) is not None
            ),
            worlds={
                w: _distinct(e.world_sha256 or "unknown" for e in episodes if e.world == w) for w in _worlds(episodes)
            },
        ),
        seeds=sorted({e.seed for e in episodes}),
        episodes=sorted({e.episode for e in episodes}),
        seeds_with_valid_missions=sorted({e.seed for e in valid}),
        bootstrap=Draws(resamples=resamples, seed=seed),
    )


def host(folder: Path | None = None) -> Run:
    """Where and with what the analysis ran, and where the folder's campaign was flown; never compared."""
    return Run(
        command=shlex.join([*_program(Path(sys.argv[0])), *map(_placeless, sys.argv[1:])]),
        campaign=None if folder is None else campaign(folder),
        sar_eval=_installed("sar-eval"),
        python=platform.python_version(),
        numpy=np.__version__,
        scipy=scipy.__version__,
        platform=f"{platform.system()} {platform.machine()}",
        cpus=os.cpu_count(),
    )


def campaign(folder: Path) -> CampaignHost | None:
    """What the folder's manifest says of the campaign: its identity, command, commit, machine; None without one.

    Only published results know the command of the whole evaluation and the commit; else the command is the campaign's.
    """
    file = (folder if folder.is_dir() else folder.parent) / MANIFEST
    try:
        plain = json.loads(file.read_text(encoding="utf-8"))
        flown, machine = plain["configuration"], plain["host"]
        options = [("--seeds", ",".join(map(str, flown["seeds"]))), ("--episodes", _span(plain["episodes"]))]
        options += [("--world", world) for world in flown["worlds"]]
        options += [("--pattern", pattern) for pattern in flown["patterns"]]
        options += [("--victims", flown["victims"]), ("--episode-set", flown["episode_set"])]
        stage2 = shlex.join(["sar-eval", "stage2", *(str(part) for option in options for part in option)])
        return CampaignHost(
            identity=str(plain["identity"]),
            command=str(machine.get("command", stage2)),
            commit=machine.get("commit"),
            scenario=str(flown["scenario"]["name"]),
            machine=f"{machine['processor']}, {machine['cores']} cores, {machine['platform']}",
            python=str(machine["python"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _span(missions: Sequence[str]) -> str:
    """The episodes of these missions as the command takes them; a mission's id ends with its episode."""
    found = [re.search(r"-e(\d+)(-absent)?$", name) for name in missions]
    if not all(found):
        raise ValueError("an id names no episode")
    episodes = sorted({int(match[1]) for match in found if match})
    whole = len(episodes) > 1 and episodes == list(range(episodes[0], episodes[-1] + 1))
    return f"{episodes[0]}-{episodes[-1]}" if whole else ",".join(map(str, episodes))


def _program(started: Path) -> list[str]:
    """What was started, as a reader would start it: a command, or a module of a package and its sub-packages."""
    if started.suffix != ".py" or not started.with_name("__init__.py").exists():
        return [started.name]
    packages = takewhile(lambda folder: (folder / "__init__.py").exists(), started.parents)
    parts = [folder.name for folder in packages][::-1]
    return ["python", "-m", ".".join([*parts, *([] if started.stem == "__main__" else [started.stem])])]


def _placeless(argument: str) -> str:
    """An argument without the folders of this machine."""
    return Path(argument).name if Path(argument).is_absolute() else argument


def paper_rows() -> list[PaperRow]:
    """Wi2SAR's published headline figures: beside our own tables, never ranked with them."""
    return [
        PaperRow(
            name="Wi2SAR",
            localisation_error_m=5.0,
            area_m2=160_000,
            search_time_s=810.0,
            angle_of_arrival_median_deg=18.4,
            drones=1,
            source="arXiv 2604.09115 (MobiCom 2026), as quoted in ADR-148 and ADR-149; not checked against it",
            note="paper-to-paper, RSS only",
            caution="One drone, received signal strength with a lens, phones that reconnect, other sites: "
            "the figures do not compare like with like and are no leaderboard standing.",
        )
    ]


def not_computed(episodes: Sequence[EpisodeMetrics], against_oracle: bool, foretold: bool) -> list[Absent]:
    """What a reader may look for in vain, and why it is not here."""
    found = []
    if not against_oracle:
        found.append(Absent(what="optimality gap", why="no oracle's returns were given (--reference)"))
    if not foretold:
        found.append(Absent(what="Stage 1 against Stage 2", why="no Stage-1 results were given (--stage1)"))
    trained = any(e.configuration.get("policy") for e in episodes)
    why = "missions hold no evaluations made during training; sar-eval efficiency takes those"
    if not trained:
        why = "no learned policy was flown, so nothing was trained"
    return [*found, Absent(what="sample-efficiency curves", why=why)]


def _settings(episodes: Sequence[EpisodeMetrics]) -> tuple[Settings, dict[str, list[JsonValue]]]:
    """Settings all episodes share, and the others with every value they took."""
    fixed: Settings = {}
    varied: dict[str, list[JsonValue]] = {}
    names = sorted({name for e in episodes for name in e.configuration})
    policies = policy_names(episodes)
    for name in names:
        if name in _PER_EPISODE:
            continue
        found = policies if name == "policy" else [_setting(e, name) for e in episodes]
        values = {json.dumps(value, sort_keys=True) for value in found}
        if len(values) == 1:
            fixed[name] = json.loads(values.pop())
        else:
            varied[name] = [json.loads(value) for value in sorted(values)]
    return fixed, varied


def _setting(e: EpisodeMetrics, name: str) -> Any:
    value = e.configuration.get(name)
    if name == "wind_mps" and isinstance(value, (list, tuple)):
        return round(math.hypot(*value), 6)
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def _training(episodes: Sequence[EpisodeMetrics]) -> str:
    learned = sorted({name for name in policy_names(episodes) if name is not None})
    return f"policies {', '.join(learned)}; their training is not in the bags" if learned else "none: heuristics only"


def _worlds(episodes: Sequence[EpisodeMetrics]) -> list[str]:
    return sorted({e.world for e in episodes})


def _distinct(values: Any) -> list[Any]:
    return sorted(set(values), key=str)


def _installed(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "unknown: run from a source tree"
