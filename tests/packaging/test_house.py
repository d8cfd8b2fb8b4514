"""The house stays one a newcomer can find their way in: rooms of a size, a name for one thing, doors that hold."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
IN_WORKSPACE = ("sar_core", "sar_sim", "sar_swarm", "sar_eval", "sar_gazebo")
PACKAGES = (*(ROOT / "ros2_ws" / "src" / name / name for name in IN_WORKSPACE), ROOT / "analysis" / "sar_analysis")
MOST_MODULES = 22
MOST_PARAMETERS = 12
VERBS = ROOT / "ros2_ws" / "src" / "sar_eval" / "sar_eval" / "cli"
"""A verb takes a parameter per option, which typer reads from its signature."""
SHARED_NAMES: dict[str, str] = {}
"""Class names that stand in two modules, with the reason."""
BROKEN = {
    "sar_swarm/piloting/safety.py": "from sar_sim.world.world import World",
    "sar_sim/judging/referee.py": "import rclpy",
    "sar_eval/campaign/ledger.py": "from sar_eval.cli.console import say",
    "sar_eval/scenario/model.py": "from sar_eval.episode.flight import Flight",
    "sar_eval/backends/registry.py": "from sar_gazebo.tier import GAZEBO",
    "sar_eval/start.py": "import rich",
    "sar_gazebo/stage.py": "import typer",
}
"""A forbidden import for each kind of door."""

LEAST_LINES = 40
"""Shorter modules need no mirror."""
ELSEWHERE: dict[str, tuple[str, ...]] = {
    "tests/integration runs every verb as a user does": ("sar_eval/cli/", "sar_eval/start.py"),
    "tests/graph flies the nodes, tests/launch brings them up and down": ("sar_eval/ros/",),
    "tests/integration/test_sitl.py flies it, tests/px4 the real one": ("sar_eval/px4/", "sar_eval/sitl/"),
    "tests/unit/sar_gazebo/test_flight.py flies it before a puppet, tests/px4/test_gazebo.py before Gazebo": (
        "sar_gazebo/csilistener.py",
        "sar_gazebo/tier.py",
        "sar_gazebo/world.py",
    ),
    "kernels, tested where they are put together: test_autopilot.py, test_vehicle.py, test_referee.py": (
        "sar_sim/vehicle/positioncontrol.py",
        "sar_sim/vehicle/rigidbody.py",
        "sar_sim/world/contact.py",
    ),
    "one fit in three modules, tested by test_observations.py": (
        "sar_eval/stage1/fitcheck.py",
        "sar_eval/stage1/fitflights.py",
    ),
    "tests/unit/sar_analysis/results/test_optimality.py holds documents to an oracle": (
        "sar_analysis/results/oraclegap.py",
    ),
    "names and shapes of arrays, without behaviour": ("sar_analysis/bags/arrays.py",),
    "read and written with every document: test_model.py, test_document.py, test_intervals.py": (
        "sar_analysis/results/rows.py",
        "sar_analysis/stats/layouts.py",
    ),
    "parts of the catalogue's figures: test_metrics.py, test_catalogue.py and tests/oracles": (
        "sar_analysis/metrics/findings.py",
        "sar_analysis/metrics/goals.py",
    ),
    "parts of one document: test_document.py and test_degenerate.py build it whole": (
        "sar_analysis/results/conditions.py",
        "sar_analysis/results/contrasts.py",
        "sar_analysis/results/levels.py",
        "sar_analysis/results/registered.py",
        "sar_analysis/results/sections.py",
    ),
    "parts of one picture, page or text: test_figures.py, test_htmlpage.py, test_report.py, test_degenerate.py": (
        "sar_analysis/render/",
    ),
}
"""Why a module has no test module of its own name: rooms (with / at the end) and modules that are tested elsewhere."""


def modules() -> list[Path]:
    return [file for package in PACKAGES for file in package.rglob("*.py")]


def test_no_folder_is_a_drawer() -> None:
    sizes = Counter(file.parent for file in modules() if file.name != "__init__.py")
    assert {str(folder.relative_to(ROOT)): n for folder, n in sizes.items() if n > MOST_MODULES} == {}


def test_rooms_are_one_level_deep() -> None:
    deep = [file for package in PACKAGES for file in package.rglob("*.py") if len(file.relative_to(package).parts) > 2]
    assert not deep


def test_a_class_name_means_one_thing() -> None:
    found = defaultdict(set)
    for file in modules():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name].add(file.relative_to(ROOT).as_posix())
    twice = {name: sorted(files) for name, files in found.items() if len(files) > 1}
    assert {name: files for name, files in twice.items() if name not in SHARED_NAMES} == {}
    assert set(SHARED_NAMES) <= set(twice), "a reason that is no longer needed"


def mirror_of(module: str) -> str:
    """Where the tests of a module stand: ``sar_core/frames.py`` at ``tests/unit/sar_core/test_frames.py``."""
    room, _, name = module.rpartition("/")
    return f"tests/unit/{room}/test_{name}"


def test_every_module_has_a_mirror_or_a_reason() -> None:
    long = {
        file.relative_to(package.parent).as_posix()
        for package in PACKAGES
        for file in package.rglob("*.py")
        if len(file.read_text(encoding="utf-8").splitlines()) >= LEAST_LINES
    }
    bare = {module for module in long if not (ROOT / mirror_of(module)).is_file()}
    places = {place for group in ELSEWHERE.values() for place in group}
    excused = {place: {m for m in bare if m == place or (place[-1] == "/" and m.startswith(place))} for place in places}
    assert bare - set().union(*excused.values()) == set(), "write its mirror, or say in ELSEWHERE who tests it"
    assert [place for place, found in excused.items() if not found] == [], "a reason that is no longer needed"


def crowded(source: str) -> dict[str, int]:
    """Functions that take more than MOST_PARAMETERS, with how many; those of an outer function or a class as well."""
    found = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = node.args
            named = len(given.posonlyargs) + len(given.args) + len(given.kwonlyargs)
            count = named + (given.vararg is not None) + (given.kwarg is not None)
            if count > MOST_PARAMETERS:
                found[node.name] = count
    return found


def test_a_crowded_function_is_found() -> None:
    many = ", ".join(f"p{k}" for k in range(MOST_PARAMETERS))
    assert crowded(f"def full({many}): ...") == {}
    assert crowded(f"class A:\n    def over(self, {many}): ...") == {"over": 13}
    assert crowded(f"async def over(first, /, *rest, {many}, **more): ...") == {"over": 15}


def test_no_function_takes_a_crowd() -> None:
    """Whoever needs more names its groups: a NamedTuple, a frozen dataclass."""
    files = [file for file in modules() if file.parent != VERBS]
    assert len(files) < len(modules())
    found = {str(file.relative_to(ROOT)): crowded(file.read_text(encoding="utf-8")) for file in files}
    assert {file: names for file, names in found.items() if names} == {}


def borrowed(source: str) -> set[str]:
    """The test modules that a module imports, anywhere inside."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module or ''}.{alias.name}" for alias in node.names}
    return {name for name in found if any(part.startswith("test_") for part in name.split("."))}


@pytest.mark.parametrize(
    "line",
    [
        "from tests.unit.sar_analysis.test_table import rows",
        "from tests.unit.sar_analysis import test_table",
        "import tests.unit.sar_analysis.test_table",
        "from .test_table import rows",
        "from . import test_table",
        "def test() -> None:\n    from tests.unit.sar_analysis.test_table import rows",
    ],
)
def test_a_borrowed_helper_is_found(line: str) -> None:
    assert borrowed("import ast\nfrom tests.unit.sar_analysis.bagmaker import Made\n") == set()
    assert borrowed(f"import ast\n{line}\n")


def test_tests_share_through_builders_and_not_through_each_other() -> None:
    """What two test modules need is in a module beside them or in a conftest."""
    files = sorted((ROOT / "tests").rglob("*.py"))
    found = {str(file.relative_to(ROOT)): borrowed(file.read_text(encoding="utf-8")) for file in files}
    assert {file: names for file, names in found.items() if names} == {}


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    places = [str(folder / package.parent.relative_to(ROOT)) for package in PACKAGES]
    code = f"import sys; sys.path[:0] = {places!r}; from importlinter.cli import lint_imports; sys.exit(lint_imports())"
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    for package in PACKAGES:
        shutil.copytree(package, tmp_path / package.relative_to(ROOT), ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


@pytest.mark.parametrize("room", ["ros2_ws/src/sar_eval/sar_eval", "analysis/sar_analysis"])
def test_a_room_without_a_place_in_the_contracts_is_found(room: str, copied: Path) -> None:
    (copied / room / "attic").mkdir()
    (copied / room / "attic" / "__init__.py").touch()
    done = lint_imports(copied)
    assert done.returncode == 1 and f"{room.rpartition('/')[2]}.attic" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("edited", BROKEN)
def test_a_forbidden_import_is_found(edited: str, copied: Path) -> None:
    """That the contracts hold as they are, `make lint` says."""
    file = copied / "ros2_ws" / "src" / edited.partition("/")[0] / edited
    file.write_text(file.read_text(encoding="utf-8") + f"\n{BROKEN[edited]}\n", encoding="utf-8")
    done = lint_imports(copied)
    assert done.returncode == 1, done.stdout + done.stderr
    assert edited.removesuffix(".py").replace("/", ".") in done.stdout
