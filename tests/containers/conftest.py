"""One project on the engine for all tests: kernels are compiled once, and nothing is left in the end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from tests.containers.engine import IMAGE, ROOT, SHORT, STANDIN, Stack, base_image, built_on, call

USER = 1000


@pytest.fixture(scope="session")
def base() -> str:
    return base_image()


@pytest.fixture(scope="session", autouse=True)
def swept(base: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing of an earlier run in the way, nothing left for the next one."""
    stack = Stack(tmp_path_factory.mktemp("sweep"), {"PYTHON_IMAGE": base})
    stack.down(volumes=True)
    yield
    stack.down(volumes=True)
    left = call("docker", "volume", "ls", "--quiet", "--filter", "name=sar-eval-test").stdout
    assert not stack.containers(everyone=True) and not left.split(), "something is left behind"


@pytest.fixture
def stack(base: str, tmp_path: Path) -> Iterator[Callable[..., Stack]]:
    """Makes a stack whose results belong to the ordinary user inside; it is taken down after the test."""
    made: list[Stack] = []

    def make(**settings: str) -> Stack:
        runs = tmp_path / "runs"
        runs.mkdir(exist_ok=True)
        os.chown(runs, USER, USER)
        made.append(Stack(runs, {"PYTHON_IMAGE": base, **settings}))
        return made[-1]

    yield make
    for each in made:
        each.down()


@pytest.fixture
def standin(stack: Callable[..., Stack], tmp_path: Path) -> Callable[..., Stack]:
    """The default profile with our own MAVLink vehicle at PX4's path; its kernels are the evaluator's."""
    assert stack().compose("sih", "build").returncode == 0
    folder = tmp_path / "standin"
    folder.mkdir()
    (folder / "px4").write_text('#!/bin/sh\nexec sar-eval sitl --vehicles 1 --instance "$3"\n')
    (folder / "px4").chmod(0o755)
    built_on(STANDIN, IMAGE, ["USER root", "COPY px4 /opt/px4/bin/px4", "USER 1000:1000"], folder)
    override = tmp_path / "kernels.yaml"
    cache = "/var/cache/sar_eval"
    vehicle = {"environment": {"NUMBA_CACHE_DIR": cache + "/${SAR_UID:-1000}"}, "volumes": [f"kernels:{cache}"]}
    override.write_text(yaml.safe_dump({"services": {f"px4-{i}": vehicle for i in (1, 2, 3, 4)}}))

    def make(**settings: str) -> Stack:
        made = stack(**{**SHORT, "PX4_IMAGE": STANDIN, "SAR_SEEDS": "1", "SAR_DURATION_S": "10", **settings})
        return Stack(made.runs, made.settings, (ROOT / "compose.yaml", override))

    return make
