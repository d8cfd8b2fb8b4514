"""Verbs about this machine: what it has, its compiled kernels, its speed."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from sar_core.errors import MissingDependencyError
from sar_eval.backends import machine
from sar_eval.cli.console import Json, out
from sar_eval.cli.console import bar as bar_of
from sar_eval.scenario.resources import checkout


def doctor(as_json: Json = False) -> None:
    """Say what this machine has and lacks, what each thing is for and how to get it.

    Example: sar-eval doctor --json
    """
    probes = machine.diagnose()
    if as_json:
        print(machine.as_json(probes))
    else:
        out.print(probe_table(probes))
        tier, why = machine.best_tier(probes)
        out.print(f"highest tier found: {tier} ({why})")
    if not machine.healthy(probes):
        raise typer.Exit(5)


def bench(
    as_json: Json = False,
    quick: Annotated[bool, typer.Option(help="Shorter runs; for a look, not for quoting.")] = False,
) -> None:
    """Measure every speed figure, best of 3, with its peer and ratio in the same run.

    Example: sar-eval bench --json
    """
    root = checkout()
    if root is None or not (root / "benchmarks").is_dir():
        raise MissingDependencyError(
            "benchmarks are no part of an installed sar-eval: get its sources, and give this there"
        )
    sys.path.insert(0, str(root))
    from benchmarks.bench import as_table, measure

    with bar_of("{task.fields[note]}") as bar:
        task = bar.add_task("measuring", total=None, note="")
        figures = measure(quick, lambda name: bar.update(task, note=name))
    if as_json:
        print(json.dumps([vars(figure) for figure in figures]))
    else:
        out.print(as_table(figures))


def probe_table(probes: Sequence[machine.Probe]) -> Table:
    """For people: one row per probe, the remedy only where something is lacking."""
    table = Table(title="What this machine has", title_justify="left")
    for header in ("", "what", "seen", "for", "how to get it"):
        table.add_column(header, overflow="fold")
    for p in probes:
        mark = "[green]yes[/green]" if p.found else "[red]no[/red]" if p.required else "[yellow]no[/yellow]"
        table.add_row(mark, *map(escape, (p.name, p.version, p.purpose, "" if p.found else p.how_to_get)))
    return table
