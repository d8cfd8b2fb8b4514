"""A git repository of the packages as they are, for tests that ask which commit flew."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
PACKAGES = tuple(
    f"ros2_ws/src/{name}/{name}" for name in ("sar_core", "sar_sim", "sar_swarm", "sar_eval", "sar_gazebo")
)


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=nobody", "-c", "user.email=nobody@localhost", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", "-C", str(folder), *who, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def committed_sources(folder: Path) -> Path:
    """A repository with one commit: the packages as they are."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "as they are")
    return folder
