"""What the pages say can be done: their commands run or parse, their links lead somewhere, their lines fit a screen."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer
from markdown_it import MarkdownIt

from sar_eval.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [ROOT / "README.md", *DOCS, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
WORLDS, ORACLES = ROOT / "worlds" / "README.md", ROOT / "tests" / "oracles" / "README.md"
EXAMPLES = [ROOT / "examples" / "README.md", *sorted((ROOT / "examples").glob("*/README.md"))]
PUBLISHED = sorted((ROOT / "results").glob("*.md"))
RUN = [ROOT / "README.md", ROOT / "docs" / "tutorial.md"]
COLUMNS = 120
MARKDOWN = MarkdownIt("commonmark").enable("table")

NOT_RUN = (
    "README.md: make eval",
    "README.md: make test",
    "README.md: docker compose up",
    "README.md: ros2 launch sar_eval median_seeds.launch.py",
    "tutorial.md: make eval",
    "tutorial.md: sar-eval run --world village --seed 7 --backend sih --out runs/sih",
    "tutorial.md: sar-eval run --world village --seed 7 --backend gazebo --out runs/gazebo",
    "tutorial.md: sar-eval graph --world village --seed 7 --out runs/graph",
)
"""Commands of README and tutorial that are read only: they take minutes, or need an engine, ROS 2 or a PX4."""
BEYOND = re.compile(r"^(?:make|docker|ros2)\b|--backend (?:sih|gazebo)\b|^sar-eval graph\b")

PLACEHOLDER = re.compile(r"^[A-Z]$")
"""A number the reader puts in."""


@dataclass(frozen=True)
class Block:
    """Code of a page: its language ("" where it is indented only), its first line's number, and its text."""

    page: Path
    language: str
    line: int
    text: str

    @property
    def commands(self) -> list[str]:
        """Each command on one line, without its comment."""
        lines = self.text.replace("\\\n", " ").splitlines()
        found = (shlex.join(shlex.split(line, comments=True)).replace("'*'", "*") for line in lines)
        return [command for command in found if command]

    @property
    def left_out(self) -> bool:
        return any(BEYOND.search(command) for command in self.commands)


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@cache
def blocks(page: Path) -> tuple[Block, ...]:
    tokens = MARKDOWN.parse(page.read_text(encoding="utf-8"))
    return tuple(
        Block(page, token.info.strip(), (token.map or [0])[0] + 1, token.content)
        for token in tokens
        if token.type in ("fence", "code_block")
    )


def shell_blocks(page: Path) -> Iterator[Block]:
    """Fenced ones say so; of the indented ones those that name our command."""
    for block in blocks(page):
        if block.language == "bash" or (not block.language and "sar-eval" in block.text):
            yield block


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty checkout as far as commands can tell: nothing in it but the environment."""
    environment = Path(sys.prefix)
    if not (environment / "bin" / "activate").is_file():
        pytest.skip("the pages begin with . .venv/bin/activate; this Python is not of a virtual environment: make test")
    (tmp_path / ".venv").symlink_to(environment)
    (tmp_path / "runs").mkdir()
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN, ids=name)
def test_every_command_of_the_page_runs(page: Path, folder: Path) -> None:
    """In order, in one folder, as a reader gives them."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for block in blocks(page):
        assert block.language in ("bash", "python"), f"{name(page)}:{block.line}: say what it is: ```bash or ```python"
        if block.left_out:
            continue
        command = ["bash", "-euo", "pipefail", "-c"] if block.language == "bash" else [sys.executable, "-c"]
        done = subprocess.run([*command, block.text], cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{name(page)}:{block.line}\n{block.text}\n{done.stdout}\n{done.stderr}"
        promised = [found for c in block.commands if "--dry-run" not in c for found in re.findall(r"--out (\S+)", c)]
        assert not [place for place in promised if not (folder / place).exists()]
    assert (folder / "runs" / "first" / "report" / "report.html").is_file()


def test_what_is_not_run_is_listed() -> None:
    found = [
        f"{page.name}: {command}"
        for page in RUN
        for block in blocks(page)
        if block.left_out
        for command in block.commands
    ]
    print("not run:", *found, sep="\n  ")
    assert tuple(found) == NOT_RUN


@pytest.mark.parametrize("page", [*PAGES, WORLDS, *EXAMPLES], ids=name)
def test_every_verb_and_option_exists(page: Path) -> None:
    """Also of commands that are not run here."""
    for block in shell_blocks(page):
        for command in re.findall(r"(?<![\w/-])sar-eval [^#|&;>\n]+", block.text.replace("\\\n", " ")):
            try:
                parse([PLACEHOLDER.sub("1", word) for word in shlex.split(command)[1:]])
            except Exception as error:
                if not isinstance(error, refusal()):
                    raise
                pytest.fail(f"{name(page)}:{block.line}: {command}: {error.format_message()}")


def refusal() -> type[Any]:
    """Typer brings its own click or uses the installed one; its exceptions lead to the right base either way."""
    return next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")


def parse(words: list[str]) -> None:
    """Read a command as the command line does, without calling it."""
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands") and words:
        verb, *words = words
        assert verb in command.commands, f"no verb {verb}"
        command = command.commands[verb]
    if "..." not in words and "[OPTIONS]" not in words:
        command.make_context("sar-eval", words)


def test_a_wrong_option_is_seen() -> None:
    with pytest.raises(refusal()):
        parse(["run", "--worlds", "village"])
    with pytest.raises(AssertionError, match="no verb"):
        parse(["runs"])


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_module_named_for_python_is_there(page: Path) -> None:
    """What notebooks import and what ``python -m`` starts."""
    text = page.read_text(encoding="utf-8")
    missing = [module for module in re.findall(r"python -m ((?:sar_|tests)[\w.]+)", text) if not find_spec(module)]
    for module, things in re.findall(r"^from (sar_[\w.]+) import ([\w, ]+)$", text, flags=re.MULTILINE):
        found = import_module(module)
        missing += [f"{module}.{thing}" for thing in things.split(", ") if not hasattr(found, thing)]
    assert not missing


@pytest.mark.parametrize("page", [*PAGES, WORLDS, *EXAMPLES, ORACLES, *PUBLISHED], ids=name)
def test_every_link_resolves(page: Path) -> None:
    broken = []
    for target in links(page):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        place = (page.parent / path).resolve() if path else page
        if not place.exists() or (anchor and anchor not in anchors(place)):
            broken.append(target)
    assert not broken


@cache
def links(page: Path) -> tuple[str, ...]:
    tokens = MARKDOWN.parse(page.read_text(encoding="utf-8"))
    inner = [child for token in tokens for child in token.children or ()]
    found = [child.attrGet("href") or child.attrGet("src") for child in inner if child.type in ("link_open", "image")]
    return tuple(str(target) for target in found)


@cache
def anchors(page: Path) -> frozenset[str]:
    """As GitHub makes them of headings."""
    tokens = MARKDOWN.parse(page.read_text(encoding="utf-8"))
    found: list[str] = []
    for before, token in pairwise(tokens):
        if before.type == "heading_open":
            text = "".join(child.content for child in token.children or ())
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            twins = sum(re.fullmatch(rf"{re.escape(slug)}(-\d+)?", other) is not None for other in found)
            found.append(f"{slug}-{twins}" if twins else slug)
    return frozenset(found)


def test_a_broken_link_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A `b`, c\n\n[x](other.md) [y](#a-b-c) ![z](z.png)\n", encoding="utf-8")
    assert links(page) == ("other.md", "#a-b-c", "z.png")
    assert anchors(page) == {"a-b-c"}


@pytest.mark.parametrize("page", [*PAGES, WORLDS, *EXAMPLES, ORACLES, *PUBLISHED], ids=name)
def test_text_fits_a_screen(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    beside = {
        number
        for token in MARKDOWN.parse(text)
        if token.type in ("fence", "code_block", "table_open") and token.map
        for number in range(token.map[0], token.map[1])
    }
    long = [n + 1 for n, line in enumerate(text.splitlines()) if len(line) > COLUMNS and n not in beside]
    assert not long, f"{name(page)}: lines over {COLUMNS} columns outside tables and code: {long}"


def test_the_first_screen_stays_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= COLUMNS


@pytest.mark.parametrize(
    ("script", "function", "written"),
    [("clidocs.py", "page", "docs/cli.md"), ("housedrawing.py", "drawing", "docs/images/house.svg")],
)
def test_what_a_script_writes_is_up_to_date(script: str, function: str, written: str) -> None:
    made: str = runpy.run_path(str(ROOT / "scripts" / script))[function]()
    assert (ROOT / written).read_text(encoding="utf-8") == made, f"run: python scripts/{script}"


def test_the_page_of_verbs_does_not_depend_on_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "clidocs.py"))
    wide = script["page"]()
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERMINAL_WIDTH", "40")
    assert script["page"]() == wide


def test_every_page_is_listed() -> None:
    listed = {(ROOT / "docs" / target).resolve() for target in links(ROOT / "docs" / "README.md")}
    assert not [name(page) for page in DOCS if page.name != "README.md" and page not in listed]


def test_files_that_the_walk_through_the_house_names_are_there() -> None:
    files = {file.as_posix() for top in ("ros2_ws/src", "analysis") for file in (ROOT / top).rglob("*.py")}
    named = re.findall(r"`([\w/]+\.py)`", (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))
    assert named and not [path for path in named if not any(file.endswith("/" + path) for file in files)]
