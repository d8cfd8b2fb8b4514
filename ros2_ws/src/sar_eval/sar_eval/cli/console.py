"""What every verb shares: where text goes, how waiting looks, and how a stop is heard."""

from __future__ import annotations

import math
import os
import shlex
import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from sar_eval.start import Stopper
from sar_swarm.piloting.patternlist import LEARNED, names

out = Console()
err = Console(stderr=True)

PATTERN_HELP = f"{', '.join(names()[:-1])}, or {LEARNED} (a learned one)."
BACKEND_HELP = (
    "embedded; sih: real PX4 with its own simulator (px4 on PATH or PX4_BIN); gazebo: real PX4 in Gazebo; "
    "sitl: our own vehicle behind MAVLink; or auto: the highest tier found."
)
SimSpeed = Annotated[
    float, typer.Option("--sim-speed", min=0.1, max=8.0, help="Simulated over wall time of gazebo, sih and sitl.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one line of JSON for machines instead of text.")]


stop = Stopper()


def bar(*columns: str, threaded: bool = True) -> Progress:
    """A progress bar on a terminal; nothing at all in a log file. Not threaded, for who forks: it waits for updates."""
    text = [TextColumn("{task.description}"), BarColumn(), *(TextColumn(c) for c in columns), TimeElapsedColumn()]
    return Progress(*text, console=err, disable=not err.is_terminal, auto_refresh=threaded)


def command_line() -> str:
    """What to type to go on: this command, or what stands around it, such as docker compose."""
    return os.environ.get("SAR_COMMAND") or shlex.join(["sar-eval", *sys.argv[1:]])


def note(text: str) -> None:
    """A remark on stderr, as it is."""
    err.print(text, markup=False, highlight=False, soft_wrap=True)


def say(text: str) -> None:
    """A line on stdout, as it is."""
    out.print(text, markup=False, highlight=False, soft_wrap=True)


def with_ends(found: Any, form: str) -> str:
    """An interval's value and ends, each in this form; where it has none, that."""
    if math.isnan(found.low) or math.isnan(found.high):
        return f"{found.value:{form}} (no interval)"
    return f"{found.value:{form}} ({found.low:{form}}-{found.high:{form}})"


def tier_of(backend: str) -> str:
    """The tier to fly on; what auto chose is said, and what the tier lacks here before anything is started."""
    from sar_eval.backends.registry import choose_tier, require

    tier, why = choose_tier(backend)
    if why:
        note(why)
    require(tier)
    return tier


def scenario_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Of a verb's options those that were given and are keys of a scenario."""
    from sar_eval.scenario.model import Scenario

    return {key: value for key, value in given.items() if key in Scenario.model_fields and value is not None}
