"""The list of patterns: one call adds one, the docs say the same, and what is wrong with an entry is said."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from sar_core.errors import InputError
from sar_swarm.piloting import patternlist
from sar_swarm.piloting.patternlist import STANDARD, Pattern, canonical, find, names, register, table
from sar_swarm.piloting.patterns import Place, Walk, fixed_route, next_waypoint, start_walk
from sar_swarm.planning.routes import Area, Point

DOCS = Path(__file__).parents[4] / "docs"
FIELD: Area = (-200.0, -200.0, 200.0, 200.0)
PLACE = Place(0, 2, FIELD, 28.0, (0.0, 0.0), np.full((2, 2), np.nan), (1, 2))


def zigzag(area: Area, drones: int, index: int, swath_m: float, overlap: float) -> NDArray[np.float64]:
    x = area[0] + (index + 0.5) * (area[2] - area[0]) / drones
    return np.array([[x, area[1]], [x, area[3]]])


def nowhere(walk: Walk, place: Place) -> tuple[Walk, Point]:
    return walk, (float("nan"), 0.0)


@pytest.fixture(autouse=True)
def untouched(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test its own list."""
    monkeypatch.setattr(patternlist, "_PATTERNS", dict(patternlist._PATTERNS))
    patternlist._offered.cache_clear()
    yield
    patternlist._offered.cache_clear()


def offer(monkeypatch: pytest.MonkeyPatch, folder: Path, lines: str, code: str) -> None:
    """A package that is installed as far as anybody can tell."""
    info = folder / "offering-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: offering\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{patternlist.GROUP}]\n{lines}\n")
    (folder / "offering.py").write_text(f"from sar_swarm.piloting.patternlist import Pattern\n{code}\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "offering", raising=False)


def test_one_call_adds_a_pattern() -> None:
    own = register(Pattern("zigzag", "up and down", route=zigzag, aliases=("zz",)))
    assert names() == (*STANDARD, "zigzag", "policy")
    assert find(" ZZ ") is own and own.kind == "fixed" and register(own) is own
    assert np.array_equal(fixed_route("zigzag", FIELD, 2, 1, 28.0, 0.1), [[100.0, -200.0], [100.0, 200.0]])  # type: ignore[arg-type]
    assert "| zigzag | up and down |" in table()


def test_the_docs_have_the_shipped_ones_word_for_word() -> None:
    found = re.search(r"^\| pattern \| rule \|\n(?:\|.*\n)+", (DOCS / "swarm.md").read_text(encoding="utf-8"), re.M)
    assert found is not None and found[0].strip() == table()


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (Pattern("spiral", "", route=zigzag), "'spiral' is registered already"),
        (Pattern("zigzag", "", route=zigzag, aliases=("levy",)), "'levy' is registered already"),
        (Pattern("random", "", route=zigzag), "'random' is registered already"),
        (Pattern("Zig-Zag", "", route=zigzag), "allowed are a-z, 0-9 and _"),
        (Pattern("zigzag", ""), "give either route or decide"),
        (Pattern("zigzag", "", route=zigzag, decide=nowhere), "give either route or decide"),
    ],
)
def test_a_pattern_that_cannot_be_is_refused(pattern: Pattern, message: str) -> None:
    with pytest.raises(InputError, match=message):
        register(pattern)
    assert names() == (*STANDARD, "policy")


def test_what_a_pattern_answers_is_looked_at() -> None:
    register(Pattern("nowhere", "", decide=nowhere))
    with pytest.raises(InputError, match=r"pattern 'nowhere': it sent drone 1 to \(nan, 0.0\)"):
        next_waypoint("nowhere", start_walk(2), PLACE)
    register(Pattern("flat", "", route=lambda *_: [1.0, 2.0]))
    with pytest.raises(InputError, match=r"pattern 'flat': drone 2's route is no finite array \[K, 2\]"):
        fixed_route("flat", FIELD, 2, 1, 28.0, 0.1)


def test_an_installed_package_offers_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code = "OWN = Pattern('own_way', 'my rule', route=lambda *_: [[0.0, 0.0]])"
    offer(monkeypatch, tmp_path, "own_way = offering:OWN", code)
    assert names() == (*STANDARD, "own_way", "policy") and canonical("own_way") == "own_way"
    assert "offering" not in sys.modules, "a name costs no import"
    assert find("own_way").rule == "my rule"


@pytest.mark.parametrize(
    ("lines", "code", "message"),
    [
        ("own = offering:OWN", "", "offering:OWN cannot be loaded .AttributeError"),
        ("own = offering:OWN", "1 / 0", "offering:OWN cannot be loaded .ZeroDivisionError"),
        ("own = offering:OWN", "OWN = 3", "offering:OWN is no Pattern of that name"),
        ("own = offering:OWN", "OWN = Pattern('other', '', route=len)", "offering:OWN is no Pattern of that name"),
    ],
)
def test_an_offer_that_is_none_is_named(
    lines: str, code: str, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    offer(monkeypatch, tmp_path, lines, code)
    with pytest.raises(InputError, match=f"pattern 'own': {message}"):
        find("own")


def test_no_package_takes_a_shipped_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    offer(monkeypatch, tmp_path, "spiral = offering:OWN", "")
    with pytest.warns(UserWarning, match="pattern 'spiral' of offering:OWN is left out: the name is taken"):
        assert names() == (*STANDARD, "policy")


def test_reading_the_list_is_quick() -> None:
    """Help texts read it, and a help text that first imports numba is a slow one."""
    script = "import sys; import sar_swarm.piloting.patternlist as p; p.names(); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "False"


def test_a_route_that_leaves_the_area_is_refused_with_its_waypoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patternlist, "_PATTERNS", dict(patternlist._PATTERNS))
    patternlist.register(Pattern("astray", "out", route=lambda *_: np.array([[1.0, 1.0], [250.0, 1.0]])))
    with pytest.raises(InputError, match=r"'astray': drone 1's waypoint 1 \(250, 1\) lies outside the area, 0 to 200"):
        fixed_route("astray", (0.0, 0.0, 200.0, 100.0), 1, 0, 28.0, 0.1)
