from __future__ import annotations

import shutil
import sysconfig
from pathlib import Path

import numpy as np
import pytest

from sar_core.errors import MissingDependencyError, RunError
from sar_eval.ros import interfaces
from sar_eval.scenario.resources import share_dir

# As a wheel has it, made where Python lies in /opt/python.
EXPORTED = (
    'INTERFACE_INCLUDE_DIRECTORIES "{python}/include/python3.11;'
    '{python}/lib/python3.11/site-packages/numpy/_core/include"\n'
)
MADE_IN = "/opt/python/cp311-cp311"


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """A made-up environment with the generators and one message package of the wheels."""
    (tmp_path / interfaces.GENERATORS).mkdir(parents=True)
    cmake = tmp_path / "share" / "std_msgs" / "cmake"
    cmake.mkdir(parents=True)
    (cmake / "std_msgsExport.cmake").write_text(EXPORTED.format(python=MADE_IN))
    return tmp_path


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Where a build was asked for; nothing is compiled."""
    asked: list[Path] = []

    def build(source: Path, build: Path, prefix: Path) -> None:
        (prefix / interfaces.STAMP).parent.mkdir(parents=True, exist_ok=True)
        asked.append(prefix)

    monkeypatch.setattr(interfaces, "_configure_build_install", build)
    return asked


def test_the_wheels_headers_become_this_machines(prefix: Path) -> None:
    assert interfaces.mend_wheels(prefix) == 1
    text = (prefix / "share" / "std_msgs" / "cmake" / "std_msgsExport.cmake").read_text()
    assert text == f'INTERFACE_INCLUDE_DIRECTORIES "{sysconfig.get_path("include")};{np.get_include()}"\n'
    assert interfaces.mend_wheels(prefix) == 0


def test_a_second_build_does_nothing(prefix: Path, builds: list[Path]) -> None:
    assert interfaces.build_messages(prefix)
    assert not interfaces.build_messages(prefix)
    assert builds == [prefix]
    assert interfaces.build_messages(prefix, force=True)
    assert len(builds) == 2


@pytest.mark.parametrize("changed", ["msg/Setpoint.msg", "msg/Added.msg", "CMakeLists.txt", "package.xml"])
def test_a_changed_definition_is_built_again(
    prefix: Path, builds: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    source = tmp_path / "source"
    shutil.copytree(share_dir("sar_msgs"), source)
    monkeypatch.setattr(interfaces, "share_dir", lambda name: source)
    interfaces.build_messages(prefix)
    with (source / changed).open("a") as file:
        file.write("# changed\n")
    assert interfaces.build_messages(prefix)


def test_a_broken_build_leaves_no_claim_to_be_up_to_date(
    prefix: Path, builds: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    interfaces.build_messages(prefix)

    def fail(source: Path, build: Path, prefix: Path) -> None:
        raise RunError("sar_msgs did not build")

    monkeypatch.setattr(interfaces, "_configure_build_install", fail)
    with pytest.raises(RunError):
        interfaces.build_messages(prefix, force=True)
    assert not (prefix / interfaces.STAMP).exists()


def test_what_the_compiler_said_is_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"ended with 3\nno such type"):
        interfaces._run(["sh", "-c", "echo no such type >&2; exit 3"], tmp_path)


def test_without_ros_the_remedy_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingDependencyError, match=r"make ros.*colcon"):
        interfaces.build_messages(tmp_path)
