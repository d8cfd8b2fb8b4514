"""The lowest versions `make floors` installs are those pyproject.toml allows."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "floors.py"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]


def printed(*words: str) -> dict[str, str]:
    done = subprocess.run([sys.executable, SCRIPT, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(line.split("==") for line in done.stdout.splitlines())


def test_every_lower_bound_is_a_floor_and_nothing_else_is() -> None:
    lines = [Requirement(line) for line in [*PROJECT["dependencies"], *(x for extra in EXTRAS.values() for x in extra)]]
    bounds = {r.name: s.version for r in lines for s in r.specifier if s.operator == ">="}
    assert printed(",".join(EXTRAS)) == bounds
    assert set(printed()) == {Requirement(line).name for line in PROJECT["dependencies"]}


def test_numpy_is_the_one_of_ubuntu_24_04() -> None:
    assert printed()["numpy"] == "1.26.4" and printed()["scipy"] == "1.11.4"


def test_a_bound_with_an_upper_one_and_a_dependency_without_any() -> None:
    floors = runpy.run_path(str(SCRIPT))["floors"]
    project = {"dependencies": ["b>=1.2,<3", "A >= 2"], "optional-dependencies": {"x": ["c<3", "b>=1.2"]}}
    assert floors(project, ["x"]) == ["A==2", "b==1.2"]


def test_what_is_tested_is_no_older_than_the_floors() -> None:
    lines = re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    tested = {canonicalize_name(name): Version(version) for name, version in lines}
    for name, floor in printed(",".join(EXTRAS)).items():
        assert Version(floor) <= tested[canonicalize_name(name)], name


@pytest.mark.parametrize(("words", "said"), [(["nope"], "no extra nope"), (["dev", "px4"], "usage")])
def test_a_wrong_call_is_refused(words: list[str], said: str) -> None:
    done = subprocess.run([sys.executable, SCRIPT, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and said in done.stderr
