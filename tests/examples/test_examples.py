"""Every example runs as its page says, and its page is short."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from sar_swarm.piloting.patternlist import GROUP

EXAMPLES = Path(__file__).parents[2] / "examples"
FOLDERS = sorted(script.parent.name for script in EXAMPLES.glob("*/run.py"))
SCREEN = 50
"""Lines of a page that is read without scrolling far."""


def run(script: Path, folder: Path, **env: str) -> str:
    """What it prints, run from anywhere; 300 s are for a machine that compiles first."""
    done = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=folder,
        env={**os.environ, **env},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_folder_is_an_example_and_is_listed() -> None:
    assert sorted(place.name for place in EXAMPLES.iterdir() if place.is_dir()) == FOLDERS
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert all(f"[{name}]({name}/README.md)" in listed for name in FOLDERS)


@pytest.mark.parametrize("name", FOLDERS)
def test_an_example_runs_and_leaves_nothing_behind(name: str, tmp_path: Path) -> None:
    before = sorted(EXAMPLES.rglob("*"))
    told = run(EXAMPLES / name / "run.py", tmp_path, PYTHONDONTWRITEBYTECODE="1")
    assert "covered" in told and "0 collisions" in told
    assert sorted(EXAMPLES.rglob("*")) == before and not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", FOLDERS)
def test_its_page_fits_a_screen_and_says_how_to_run_it(name: str) -> None:
    page = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
    assert f"python examples/{name}/run.py" in page
    assert len(page.splitlines()) <= SCREEN


def test_the_pattern_is_offered_as_its_package_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLES / "pattern")
    from expanding_square import EXPANDING_SQUARE  # type: ignore[import-not-found]

    project = tomllib.loads((EXAMPLES / "pattern" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"][GROUP] == {EXPANDING_SQUARE.name: "expanding_square:EXPANDING_SQUARE"}
