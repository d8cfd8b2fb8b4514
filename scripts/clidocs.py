"""Writes docs/cli.md from the command line itself: every verb with its help, its arguments and its options.

    python scripts/clidocs.py

The page depends on the code alone: not on the width of the terminal, the number of cores or the environment.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from sar_eval.cli.app import app

PAGE = Path(__file__).resolve().parents[1] / "docs" / "cli.md"
COLUMNS = 120
PROGRAM = "sar-eval"
ALL_VERBS = "Verbs"
"""Heading of verbs that belong to no panel of the help."""
WORDS = {"str": "text", "int": "whole number", "float": "number", "Path": "path"}
OF_THE_MACHINE = {"--workers": "one per core"}
"""Options whose default is counted on the machine that is asked."""
HEAD = """\
# The command line

Written by `python scripts/clidocs.py` from the command line itself; a test holds this page to it. Every verb has
`--help`, which says the same.
"""


def page() -> str:
    """The whole page."""
    root = typer.main.get_command(app)
    panels: dict[str, list[tuple[str, Any]]] = {}
    for name, command in listed(root):
        for words, verb in verbs(name, command):
            panels.setdefault(panel(command), []).append((words, verb))
    parts = [HEAD, *prose(root.help)]
    for title, members in panels.items():
        rows: list[tuple[str, ...]] = [(f"[{words}](#{anchor(words)})", plain(first(verb))) for words, verb in members]
        parts += [f"## {title}", table(("verb", "what it does"), rows)]
        for words, verb in members:
            parts += section(words, verb)
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def listed(root: Any) -> list[tuple[str, Any]]:
    """Verbs and groups of verbs: as the help orders them where it has panels, else by name."""
    commands = [(name, command) for name, command in root.commands.items() if not command.hidden]
    return commands if any(panel(c) != ALL_VERBS for _, c in commands) else sorted(commands, key=lambda c: c[0])


def verbs(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """The verbs below a command, each with all of its words: a group is no verb itself."""
    if not hasattr(command, "commands"):
        yield name, command
        return
    for inner, verb in command.commands.items():
        if not verb.hidden:
            yield from verbs(f"{name} {inner}", verb)


def panel(command: Any) -> str:
    found = command.rich_help_panel
    found = getattr(found, "value", found)
    return found if isinstance(found, str) else ALL_VERBS


def anchor(words: str) -> str:
    return f"{PROGRAM} {words}".replace(" ", "-")


def first(verb: Any) -> str:
    """What a verb does: the first paragraph of its help."""
    return " ".join(str(verb.help).split("\n\n")[0].split())


def section(words: str, verb: Any) -> list[str]:
    shown = [p for p in verb.params if not p.hidden]
    arguments = [p for p in shown if p.param_type_name == "argument"]
    options = [p for p in shown if p.param_type_name == "option"]
    usage = " ".join([PROGRAM, words, *(["[OPTIONS]"] if options else []), *(argument(p) for p in arguments)])
    parts = [f"### {PROGRAM} {words}", f"`{usage}`", *prose(verb.help)]
    context = typer.Context(verb)
    rows: list[tuple[str, ...]] = [
        (
            f"`{named(p)}`" + (" (required)" if p.required else ""),
            value(p, context),
            default(p),
            plain(" ".join((p.help or "").split())),
        )
        for p in (*arguments, *options)
    ]
    return [*parts, table(("option", "value", "default", "what it is"), rows)] if rows else parts


def argument(parameter: Any) -> str:
    name = str(parameter.name).upper() + ("" if parameter.nargs == 1 else "...")
    return name if parameter.required else f"[{name}]"


def named(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return argument(parameter)
    return " / ".join((*parameter.opts, *parameter.secondary_opts))


def value(parameter: Any, context: Any) -> str:
    """What is given behind an option, in words; nothing behind a flag."""
    if getattr(parameter, "is_flag", False):
        return ""
    kind = re.sub(r"[<>]| range", "", parameter.display_type(context))
    many = re.fullmatch(r"list\[(.*)\]", kind)
    kind = many[1] if many else kind
    kind = WORDS.get(kind, kind)
    low, high = parameter.min, parameter.max
    if low is not None and high is not None:
        kind += f", {low} to {high}"
    elif low is not None or high is not None:
        kind += f", at least {low}" if high is None else f", at most {high}"
    told = re.search("repeated|several", parameter.help or "")
    return plain(kind + (", may be repeated" if parameter.multiple and not told else ""))


def default(parameter: Any) -> str:
    given = parameter.default
    if given is None or callable(given):
        return ""
    if parameter.opts[0] in OF_THE_MACHINE:
        return OF_THE_MACHINE[parameter.opts[0]]
    if isinstance(given, bool):
        off, on = parameter.secondary_opts, parameter.opts
        return f"`{(on if given else off)[0]}`" if off else ""
    return f"`{given}`"


def prose(text: str | None) -> Iterator[str]:
    """Help as Markdown: paragraphs wrapped, examples as code."""
    code: list[str] = []
    for paragraph in (text or "").split("\n\n"):
        example = re.fullmatch(r"Example: (.*)", paragraph)
        if example or paragraph.startswith("  "):
            code += [f"    {line.strip()}" for line in (example[1] if example else paragraph).splitlines()]
            continue
        if code:
            yield "\n".join(code)
            code = []
        if paragraph.strip() and paragraph != "Examples:":
            yield wrapped(plain(" ".join(paragraph.split())))
    if code:
        yield "\n".join(code)


def wrapped(text: str) -> str:
    return textwrap.fill(text, COLUMNS, break_long_words=False, break_on_hyphens=False)


def plain(text: str) -> str:
    """Text that Markdown leaves as it is."""
    return re.sub(r"([<*\[\]])", r"\\\1", text)


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
