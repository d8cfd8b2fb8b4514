"""The command line: every verb parses, calls one function of the library and prints."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from sar_core.errors import InputError, RunError, SarError
from sar_eval import __version__
from sar_eval.cli.analysis import adr149, analyze, detectable, draw, efficiency, prereg_app, report, tiergap
from sar_eval.cli.campaign import erratum, merge, pack, publish, stage2
from sar_eval.cli.compiling import compile_
from sar_eval.cli.console import stop
from sar_eval.cli.episodes import episodes_app
from sar_eval.cli.evaluation import evaluate
from sar_eval.cli.files import bag_app, export_app, world_app
from sar_eval.cli.fly import fly, run
from sar_eval.cli.graph import graph
from sar_eval.cli.interfaces import msgs_app
from sar_eval.cli.machine import bench, doctor
from sar_eval.cli.reference import reference
from sar_eval.cli.sitl import sitl
from sar_eval.cli.stage1 import fit_observations, median_seeds, stage1
from sar_eval.cli.studies import calibrate, field, gate_study, missions, reliability, sweep, views
from sar_eval.cli.swarm import encounters, patterns, replay

# Typer brings its own click or uses the installed one; its exceptions lead to the right base either way.
UsageError: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")

INTERRUPTED = 130
"""What Typer makes of a KeyboardInterrupt."""

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Fly seeded search-and-rescue drone swarms, record them as rosbag2 (MCAP) and score them.\n\n"
    "Start with: sar-eval run --world village --out runs/first\n\n"
    "Exit codes: 0 ok, 1 bad input, 2 a check or contract failed, 3 the run failed, 4 data missing, "
    "5 an optional dependency is missing.",
)
Verb = Callable[..., None] | typer.Typer
PANELS: dict[str, dict[str, Verb]] = {
    "Fly": {"run": run, "graph": graph, "replay": replay, "fly": fly, "sitl": sitl},
    "Campaigns": {
        **{"eval": evaluate, "stage1": stage1, "median-seeds": median_seeds, "stage2": stage2},
        **{"merge": merge, "pack": pack, "publish": publish},
    },
    "Analyse": {
        **{"analyze": analyze, "report": report, "draw": draw, "tiergap": tiergap, "efficiency": efficiency},
        **{"adr149": adr149, "erratum": erratum, "detectable": detectable, "prereg": prereg_app},
    },
    "Studies": {
        **{"missions": missions, "patterns": patterns, "encounters": encounters, "sweep": sweep},
        **{
            "gate-study": gate_study,
            "reliability": reliability,
            "views": views,
            "field": field,
            "calibrate": calibrate,
        },
        **{"fit-observations": fit_observations, "reference": reference},
    },
    "Files": {"world": world_app, "bag": bag_app, "export": export_app, "episodes": episodes_app},
    "This machine": {"doctor": doctor, "compile": compile_, "bench": bench, "msgs": msgs_app},
}
"""Every verb by its name, in the panels in which the help shows them."""
for panel, verbs in PANELS.items():
    for name, verb in verbs.items():
        if isinstance(verb, typer.Typer):
            app.add_typer(verb, name=name, rich_help_panel=panel)
        else:
            app.command(name, rich_help_panel=panel)(verb)


def _version(show: bool) -> None:
    if show:
        print(f"sar-eval {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options before the verb."""


def main() -> None:
    """Run a verb; every expected failure is one line on stderr and its exit code."""
    try:
        code = app(standalone_mode=False)
    except typer.Exit as ending:
        code = ending.exit_code
    except UsageError as error:
        if text := error.format_message():  # empty where no verb was given and the help has been shown
            verb = next((word for word in sys.argv[1:2] if any(word in verbs for verbs in PANELS.values())), "")
            where = f"sar-eval {verb} --help" if verb else "sar-eval --help"
            print(f"error: {' '.join(text.split())} (see {where})", file=sys.stderr)
        code = InputError.exit_code
    except (typer.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except SarError as error:
        print(f"error: {error}", file=sys.stderr)
        code = error.exit_code
    except BrokenPipeError:
        # The reader of our output has gone; nothing is left to tell it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = RunError.exit_code
    except OSError as error:
        print(f"error: {error.filename or 'output'}: {error.strerror or error}", file=sys.stderr)
        code = RunError.exit_code
    interrupted = code == INTERRUPTED
    if interrupted:
        print("error: interrupted", file=sys.stderr)
        code = RunError.exit_code
    if stop.reason or interrupted:
        # Python's shutdown restores the default handlers, and one more signal would then replace the exit code; and it
        # dies of SIGINT itself if the interrupt once passed through code that an extension module ran.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code or 0)
    sys.exit(code)
