"""The pages about Gazebo, containers and extensions: their commands can be given, their links lead somewhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from sar_eval.cli.app import app
from sar_gazebo.main import stage

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "docs" / f"{name}.md" for name in ("gazebo", "containers", "extending", "troubleshooting")]


def commands(program: str) -> list[tuple[str, str]]:
    """(page, command) for every command of a program in blocks and between backticks."""
    found = []
    for page in PAGES:
        text = page.read_text()
        blocks = [
            line.strip() for block in re.findall(r"```bash\n(.*?)```", text, re.DOTALL) for line in block.splitlines()
        ]
        for line in [*blocks, *re.findall(r"`([^`\n]+)`", text)]:
            line = line.partition(" && ")[2] or line
            if line.startswith(f"{program} "):
                found.append((page.stem, line))
    return sorted(set(found))


@pytest.mark.parametrize(("page", "line"), commands("sar-eval"))
def test_sar_eval_takes_the_commands(page: str, line: str) -> None:
    words = shlex.split(line)[1:]
    if words[-1].startswith("--") or len(words) == 1:
        assert words[0] in typer.main.get_command(app).commands
        return
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    command.make_context("verb", words)


@pytest.mark.parametrize(("page", "line"), commands("docker compose"))
def test_compose_has_the_profiles_and_services(page: str, line: str) -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    words = shlex.split(line)
    if "--profile" in words:
        assert words[words.index("--profile") + 1] in {"*", *(p for s in services.values() for p in s["profiles"])}
    named = [w for w in words if w in services and words[words.index(w) - 1] != "--profile"]
    scaled = [w.partition("=")[0] for w in words if "=" in w]
    assert set(named + scaled) <= set(services)
    if "run" in words:
        assert named == words[-1:]


def test_the_stage_command_works_as_written(tmp_path: Path) -> None:
    lines = [line for _, line in commands("ros2 run sar_gazebo stage")]
    assert len(lines) == 1
    words = shlex.split(lines[0])[4:]
    words[words.index("/tmp/stage")] = str(tmp_path)
    assert stage(words) == 0
    assert (tmp_path / "stage.sdf").is_file() and (tmp_path / "stage.json").is_file()


def test_executables_are_installed() -> None:
    setup = (ROOT / "ros2_ws" / "src" / "sar_gazebo" / "setup.py").read_text()
    for _, line in commands("ros2 run sar_gazebo"):
        assert f'"{line.split()[3]} = sar_gazebo.main:{line.split()[3]}"' in setup


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_the_page_says_what_flew_and_what_did_not() -> None:
    text = (ROOT / "docs" / "gazebo.md").read_text()
    state = text[text.index("## What flew") : text.index("## What is there")]
    assert "gz-sim 8." in state and "PX4 v1.17" in state
    assert "not flown" in state.lower()
