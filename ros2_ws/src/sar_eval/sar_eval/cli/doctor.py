"""What the doctor found, for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from sar_eval.backends.machine import Probe


def as_table(probes: Sequence[Probe]) -> Table:
    """For people: one row per probe, the remedy only where something is lacking."""
    table = Table(title="What this machine has", title_justify="left")
    for header in ("", "what", "seen", "for", "how to get it"):
        table.add_column(header, overflow="fold")
    for p in probes:
        mark = "[green]yes[/green]" if p.found else "[red]no[/red]" if p.required else "[yellow]no[/yellow]"
        table.add_row(mark, *map(escape, (p.name, p.version, p.purpose, "" if p.found else p.how_to_get)))
    return table
