"""The shared folders are found, whole and unchanged, from a checkout, a wheel and a colcon install."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from sar_eval.scenario import resources

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "ros2_ws" / "src"
COMMITTED = {
    "worlds": ROOT / "worlds",
    "px4_params": ROOT / "px4_params",
    "configs": ROOT / "configs",
    "launch": ROOT / "launch",
    "sar_msgs": SOURCES / "sar_msgs",
    "models": SOURCES / "sar_gazebo" / "models",
}
PACKAGES = ("sar_core", "sar_sim", "sar_swarm", "sar_analysis", "sar_eval", "sar_gazebo")
WITHOUT_GAZEBO = ("stage", "csi", "touch", "truth", "partition")
"""Modules of sar_gazebo that need nothing of Gazebo."""

# Run by another interpreter, outside the checkout: where each folder was found and what its files hold.
REPORT = """
import hashlib, json, sys
from sar_eval.scenario import resources
found = {}
for name in sys.argv[1:]:
    folder = resources.share_dir(name)
    files = {str(f.relative_to(folder)): hashlib.sha256(f.read_bytes()).hexdigest()
             for f in folder.rglob("*") if f.is_file() and "__pycache__" not in f.parts}
    found[name] = [str(folder), files]
print(json.dumps(found))
"""
IMPORT = """
import importlib, sys
for name in sys.argv[1:]:
    print(importlib.import_module(name).__file__)
"""


def hashes(folder: Path) -> dict[str, str]:
    return {
        str(f.relative_to(folder)): hashlib.sha256(f.read_bytes()).hexdigest()
        for f in folder.rglob("*")
        if f.is_file() and "__pycache__" not in f.parts
    }


def run(command: list[str], cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs with no trace of the checkout or of ROS in the environment, except what is given."""
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "AMENT_PREFIX_PATH", "COLCON_PREFIX_PATH")}
    return subprocess.run(command, cwd=cwd, env={**clean, **environment}, capture_output=True, text=True, check=False)


def assert_all_found(done: subprocess.CompletedProcess[str], inside: Path) -> None:
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for name, committed in COMMITTED.items():
        place, files = found[name]
        assert Path(place).is_relative_to(inside), f"{name} was read from {place}, not from {inside}"
        assert files, f"{name} is empty"
        assert files == hashes(committed), name


def colcon_build(base: Path, *options: str) -> Path:
    """The pure Python packages, built and installed by colcon. sar_msgs needs ROS 2 itself."""
    colcon = Path(sys.executable).with_name("colcon")
    assert colcon.exists(), "colcon is part of the dev extra: pip install -e '.[dev]'"
    places = [
        "--base-paths",
        str(SOURCES),
        "--build-base",
        str(base / "build"),
        "--install-base",
        str(base / "install"),
    ]
    command = [
        str(colcon),
        "--log-base",
        str(base / "log"),
        "build",
        *places,
        "--packages-ignore",
        "sar_msgs",
        *options,
    ]
    done = run([*command, "--event-handlers", "console_direct+"], cwd=base)
    assert done.returncode == 0, done.stdout + done.stderr
    return base / "install"


@pytest.fixture(scope="module")
def colcon_install(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return colcon_build(tmp_path_factory.mktemp("colcon"))


def sourcing(install: Path) -> list[str]:
    """Start of a command line that runs what follows as a user does who sourced the install."""
    return ["sh", "-c", f'. "{install}/setup.sh" && exec "$@"', "sh"]


def site_packages(prefix: Path) -> str:
    (place,) = prefix.glob("lib/python3*/site-packages")
    return str(place)


def test_checkout() -> None:
    for name, committed in COMMITTED.items():
        assert resources.share_dir(name) == committed


def fresh_source(target: Path) -> Path:
    """A copy without earlier builds: setuptools would take files from their old lists and hide a missing one."""
    stale = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "install", "log")
    for name in ("ros2_ws", "analysis", "worlds", "px4_params", "configs", "launch"):
        shutil.copytree(ROOT / name, target / name, symlinks=True, ignore=stale)
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, target)
    return target


def python_files(folder: Path) -> list[str]:
    """Every Python file below a folder but those of the shared folders a wheel carries as data."""
    files = (file.relative_to(folder) for file in folder.rglob("*.py"))
    return sorted(file.as_posix() for file in files if file.parts[0] != "share")


def modules_of_the_tree() -> dict[str, list[str]]:
    return {package: python_files(SOURCES / package / package) for package in PACKAGES}


def with_a_room(source: Path) -> Path:
    """The source with a package in every package that no list of ours names."""
    for package in PACKAGES:
        room = source / "ros2_ws" / "src" / package / package / "annexe"
        room.mkdir()
        (room / "__init__.py").touch()
        (room / "desk.py").touch()
    return source


def test_every_module_of_the_tree_is_in_what_is_built(tmp_path: Path) -> None:
    """By pip from the top, and by colcon from each package's own setup.py."""
    source = with_a_room(fresh_source(tmp_path / "source"))
    rooms = {
        package: [*files, "annexe/__init__.py", "annexe/desk.py"] for package, files in modules_of_the_tree().items()
    }
    build = [sys.executable, "setup.py", "--quiet", "build_py", "--build-lib"]
    done = run([*build, str(tmp_path / "top")], source)
    assert done.returncode == 0, done.stderr
    for package in PACKAGES:
        done = run([*build, str(tmp_path / "own")], source / "ros2_ws" / "src" / package)
        assert done.returncode == 0, done.stderr
    for place in ("top", "own"):
        assert {package: python_files(tmp_path / place / package) for package in PACKAGES} == {
            package: sorted(files) for package, files in rooms.items()
        }
        assert {item.name for item in (tmp_path / place).iterdir()} == set(PACKAGES)


def test_wheel_built_from_the_sdist_in_a_clean_environment(tmp_path: Path) -> None:
    source = fresh_source(tmp_path / "source")
    build = run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path / "dist"), str(source)], tmp_path
    )
    assert build.returncode == 0, build.stdout + build.stderr
    (wheel,) = (tmp_path / "dist").glob("*.whl")

    venv = tmp_path / "venv"
    python = venv / "bin" / "python"
    assert run([sys.executable, "-m", "venv", "--without-pip", str(venv)], tmp_path).returncode == 0
    install = ["install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    done = run([sys.executable, "-m", "pip", "--python", str(python), *install], tmp_path)
    assert done.returncode == 0, done.stderr
    # The dependencies are borrowed by path: a plain line in a .pth does not switch on an editable install there.
    borrowed = Path(site_packages(venv)) / "borrowed.pth"
    borrowed.write_text(sysconfig.get_path("purelib") + "\n")

    report = run([str(python), "-I", "-c", REPORT, *COMMITTED], tmp_path)
    assert_all_found(report, inside=venv)
    modules = [*PACKAGES, *(f"sar_gazebo.{name}" for name in WITHOUT_GAZEBO)]
    imported = run([str(python), "-I", "-c", IMPORT, *modules], tmp_path)
    assert imported.returncode == 0, imported.stderr
    assert all(Path(file).is_relative_to(venv) for file in imported.stdout.split())
    assert (venv / "bin" / "sar-eval").exists()
    assert {package: python_files(Path(site_packages(venv)) / package) for package in PACKAGES} == modules_of_the_tree()
    for data in ("assets", "schemas"):
        carried = hashes(Path(site_packages(venv)) / "sar_analysis" / data)
        assert carried == hashes(ROOT / "analysis" / "sar_analysis" / data) != {}


@pytest.mark.parametrize("options", [[], ["--merge-install"]], ids=["isolated", "merged"])
def test_colcon_install_after_sourcing_it(tmp_path: Path, colcon_install: Path, options: list[str]) -> None:
    install = colcon_build(tmp_path, *options) if options else colcon_install
    assert_all_found(run([*sourcing(install), sys.executable, "-c", REPORT, *COMMITTED], tmp_path), inside=install)
    executables = install / "lib" if options else install / "sar_eval" / "lib"
    assert os.access(executables / "sar_eval" / "sar-eval", os.X_OK)
    found = run([*sourcing(install), "sh", "-c", "command -v sar-eval"], tmp_path)
    assert Path(found.stdout.strip()) == executables.parent / "bin" / "sar-eval"


def test_colcon_install_is_found_by_its_layout_alone(tmp_path: Path, colcon_install: Path) -> None:
    paths = os.pathsep.join(site_packages(colcon_install / p) for p in PACKAGES)
    assert_all_found(run([sys.executable, "-c", REPORT, *COMMITTED], tmp_path, PYTHONPATH=paths), inside=colcon_install)


def test_colcon_symlink_install_reads_the_checkout(tmp_path: Path) -> None:
    install = colcon_build(tmp_path, "--symlink-install")
    assert_all_found(run([*sourcing(install), sys.executable, "-c", REPORT, *COMMITTED], tmp_path), inside=ROOT)
    for name, committed in COMMITTED.items():
        assert hashes(install / "sar_eval" / "share" / "sar_eval" / name) == hashes(committed)


def test_code_without_data_uses_the_ament_prefix_and_else_says_where_it_looked(
    tmp_path: Path, colcon_install: Path
) -> None:
    bare = tmp_path / "bare"
    for package in ("sar_core", "sar_eval"):
        shutil.copytree(SOURCES / package / package, bare / package, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-c", REPORT, *COMMITTED]
    prefixes = os.pathsep.join(["/nowhere", str(colcon_install / "sar_eval")])
    assert_all_found(run(command, tmp_path, PYTHONPATH=str(bare), AMENT_PREFIX_PATH=prefixes), inside=colcon_install)

    lost = run(command, tmp_path, PYTHONPATH=str(bare))
    assert "MissingDataError" in lost.stderr
    assert str(bare / "sar_eval" / "share" / "worlds") in lost.stderr


def test_one_version_everywhere() -> None:
    import tomllib
    import xml.etree.ElementTree as ElementTree

    import yaml

    from sar_eval import __version__

    for package in (*PACKAGES, "sar_msgs"):
        assert ElementTree.parse(SOURCES / package / "package.xml").findtext("version") == __version__, package
    for package in PACKAGES:
        assert f'version="{__version__}"' in (SOURCES / package / "setup.py").read_text(), package
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == __version__
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dynamic"] == ["version"]
