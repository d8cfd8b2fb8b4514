"""A container engine as tests use it: is there one, our images on it, and one project of ours on compose.yaml."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
PROJECT = "sar-eval-test"
IMAGE = "sar-eval:0.1.0"
STANDIN = "sar-eval-test-standin:1"
SHORT = {"SAR_EPISODES": "0", "SAR_PATTERN": "partitioned_lawnmower", "SAR_DURATION_S": "30"}
"""One short mission of each kind instead of a default's many."""
WAIT_S = 900.0
"""So long at most for what should take seconds or minutes: a busy machine fails no test."""


def call(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; what it said is kept."""
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=WAIT_S, **options)


def missing() -> str | None:
    """What these tests lack here, in words; None if they can run."""
    if shutil.which("docker") is None or call("docker", "info").returncode:
        return 'no container engine answers `docker info`: eval "$(scripts/engine.sh start FOLDER)" gets one on Debian'
    if call("docker", "compose", "version").returncode:
        return 'no `docker compose`: eval "$(scripts/engine.sh start FOLDER)" gets one on Debian'
    if os.geteuid() or shutil.which("debootstrap") is None:
        return "the base image is made by debootstrap, as root: apt-get install debootstrap"
    return None


def require() -> None:
    """Leave the tests of a module out, by one skip that says what is missing."""
    lacking = missing()
    if lacking is not None:
        pytest.skip(lacking, allow_module_level=True)


def base_image() -> str:
    """The tag of the base that stands in for Python's own image, made if it is not there."""
    wanted = call(
        sys.executable, "docker/requirements.py", "pyproject.toml", "report", "cluster", "px4", cwd=ROOT
    ).stdout
    decides = [wanted, *(file.read_text() for file in (ROOT / "constraints.txt", HERE / "base.sh"))]
    tag = f"sar-eval-test-base:{hashlib.sha256(''.join(decides).encode()).hexdigest()[:12]}"
    if not image_id(tag):
        made = call("bash", str(HERE / "base.sh"), tag, sys.executable)
        assert made.returncode == 0, made.stderr
    return tag


def image_id(tag: str) -> str:
    return call("docker", "image", "ls", "--quiet", tag).stdout.strip()


def built_on(tag: str, base: str, lines: Sequence[str], folder: Path) -> None:
    """A small image for a test: a Dockerfile of these lines on a base, in a folder that is its context."""
    (folder / "Dockerfile").write_text("\n".join([f"FROM {base}", *lines]) + "\n")
    done = call("docker", "build", "--quiet", "--tag", tag, str(folder))
    assert done.returncode == 0, done.stderr


@dataclass(frozen=True)
class Stack:
    """Our compose file with a folder for results and variables of its own."""

    runs: Path
    settings: Mapping[str, str]
    files: tuple[Path, ...] = field(default=(ROOT / "compose.yaml",))

    def words(self, profile: str, *words: str) -> list[str]:
        files = [word for file in self.files for word in ("--file", str(file))]
        return ["docker", "compose", "--project-name", PROJECT, *files, "--profile", profile, *words]

    @property
    def environment(self) -> dict[str, str]:
        plain = {k: v for k, v in os.environ.items() if not k.startswith(("SAR_", "PX4_", "COMPOSE_"))}
        return {**plain, "SAR_RUNS": str(self.runs), **self.settings}

    def compose(self, profile: str, *words: str) -> subprocess.CompletedProcess[str]:
        return call(*self.words(profile, *words), cwd=ROOT, env=self.environment)

    def evaluate(self, profile: str, service: str | None = None) -> subprocess.CompletedProcess[str]:
        """As the docs say: the exit code is the evaluation's."""
        return self.compose(profile, "run", "--rm", "-T", service or profile)

    def begin(self, profile: str, *words: str) -> subprocess.Popen[str]:
        """The same in the background; what it says goes into a file beside the results."""
        log = (self.runs.parent / "compose.log").open("w")
        return subprocess.Popen(
            self.words(profile, *words), cwd=ROOT, env=self.environment, stdout=log, stderr=log, text=True
        )

    @property
    def said(self) -> str:
        return (self.runs.parent / "compose.log").read_text()

    def containers(self, service: str | None = None, everyone: bool = False) -> list[str]:
        """Ids of this project's containers that run, or of all."""
        wanted = ["--filter", f"label=com.docker.compose.project={PROJECT}"]
        if service is not None:
            wanted += ["--filter", f"label=com.docker.compose.service={service}"]
        return call("docker", "ps", "--quiet", *(["--all"] if everyone else []), *wanted).stdout.split()

    def down(self, volumes: bool = False) -> None:
        """All of it away; compiled kernels stay for the next test unless the volumes go too."""
        done = self.compose("*", "down", "--remove-orphans", *(["--volumes"] if volumes else []))
        assert done.returncode == 0, done.stderr


def until(true: Callable[[], object], what: str, process: subprocess.Popen[str] | None = None) -> None:
    """Wait for something; a process that ends before that is an error."""
    give_up = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < give_up, f"{what}: not within {WAIT_S:g} s"
        assert process is None or process.poll() is None, f"{what}: it ended with {process and process.poll()} before"
        time.sleep(0.2)
