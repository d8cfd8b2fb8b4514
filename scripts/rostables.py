"""Writes the tables of docs/ros.md from the code: topics, parameters and launch arguments.

    python scripts/rostables.py docs/ros.md

Each table stands between two comments that name it; the rest of the page is left as it is.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from itertools import product
from pathlib import Path

from sar_eval.ros.launchargs import EPISODE, MEDIAN_SEEDS, NOISE_SWEEP, Argument
from sar_eval.ros.nodetable import ANSWERING, NODES, PARAMETERS, topic_table

LAUNCH_FILES = {"episode": EPISODE, "median_seeds": MEDIAN_SEEDS, "noise_sweep": NOISE_SWEEP}


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def topics() -> str:
    rows = []
    for wire in topic_table(1, csi=True):
        readers = [r for r in wire.subscribers if r != "recorder" or not wire.recorded]
        rows.append(
            (
                wire.topic.replace("/uav_1/", "/uav_i/"),
                wire.msgtype.replace("/msg/", "/"),
                _listed(wire.publishers),
                _listed(tuple(readers)),
                "yes" if wire.latched else "",
                "yes" if wire.recorded else "",
            )
        )
    return table(("topic", "type", "from", "to", "latched", "in the bag"), sorted(rows))


def parameters() -> str:
    rows = []
    for p in PARAMETERS:
        span = "" if p.low is None or p.high is None else f"{p.low} to {p.high}"
        rows.append((f"`{p.name}`", f"`{p.default!r}`", span, _listed(p.nodes), p.description))
    return table(("parameter", "default", "range", "nodes", "what it is"), rows)


def arguments() -> str:
    """One row per argument that reads the same in every launch file that takes it."""
    takers: dict[Argument, list[str]] = {}
    for name, taken in LAUNCH_FILES.items():
        for argument in taken:
            takers.setdefault(argument, []).append(name)
    rows = []
    for argument, names in takers.items():
        given = "all" if len(names) == len(LAUNCH_FILES) else ", ".join(names)
        allowed = ", ".join(choice for choice in argument.choices if choice)
        default = f"`{argument.default}`" if argument.default else ""
        rows.append((f"`{argument.name}`", default, allowed, given, argument.description))
    return table(("argument", "default", "allowed", "launch files", "what it is"), rows)


def nodes() -> str:
    """What flows between the nodes in a tick, as a diagram; what everyone says or hears is left out."""
    edges: dict[tuple[str, str], list[str]] = {}
    for wire in topic_table(1):
        if not wire.recorded and max(len(wire.publishers), len(wire.subscribers)) < len(ANSWERING):
            for ends in product(wire.publishers, wire.subscribers):
                edges.setdefault(ends, []).append(wire.topic)
    lines = [f'    {a} -->|"{"<br/>".join(topics)}"| {b}' for (a, b), topics in sorted(edges.items())]
    return "\n".join(["```mermaid", "flowchart LR", *lines, "```"])


TABLES = {"nodes": nodes, "topics": topics, "parameters": parameters, "arguments": arguments}


def filled(page: str) -> str:
    """The page with every table written anew."""
    for name, made in TABLES.items():
        block = re.compile(rf"(<!-- {name}: .*?-->\n).*?(<!-- end of {name} -->)", re.DOTALL)
        page, count = block.subn(rf"\1{made().replace(chr(92), chr(92) * 2)}\n\2", page)
        if count != 1:
            raise SystemExit(
                f"the page needs one block <!-- {name}: ... --> ... <!-- end of {name} -->, it has {count}"
            )
    return page


def _listed(nodes: tuple[str, ...]) -> str:
    return "all" if set(nodes) == set(NODES) else ", ".join(nodes)


def main() -> None:
    page = Path(sys.argv[1])
    page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
