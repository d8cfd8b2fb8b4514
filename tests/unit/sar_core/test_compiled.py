"""The kernel cache: a changed callee in another file must never be answered with the old machine code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
sys.path.insert(0, {root!r})
from sar_sim.outer import doubled_shift
print(doubled_shift(1.0))
"""
OUTER = """
from sar_core.compiled import compiled
from sar_sim.{inner} import shift

@compiled
def doubled_shift(x):
    return 2.0 * shift(x)
"""
INNER = """
from sar_core.compiled import compiled

@compiled
def shift(x):
    return x + {amount}
"""


def run(root: Path, cache: Path) -> str:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", PROGRAM.format(root=str(root))]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("inner", ["inner", "room.inner"])
def test_a_change_in_a_called_file_is_noticed(tmp_path: Path, inner: str) -> None:
    package = tmp_path / "src" / "sar_sim"
    called = package.joinpath(*inner.split(".")).with_suffix(".py")
    called.parent.mkdir(parents=True)
    for folder in {package, called.parent}:
        (folder / "__init__.py").write_text("")
    (package / "outer.py").write_text(OUTER.format(inner=inner))
    called.write_text(INNER.format(amount="1.0"))
    cache = tmp_path / "cache"
    assert run(tmp_path / "src", cache) == "4.0"
    assert run(tmp_path / "src", cache) == "4.0"
    assert any(cache.glob("sar_sim-*/**/*.nbc")), "the second run was not served from the cache"
    called.write_text(INNER.format(amount="5.0"))
    assert run(tmp_path / "src", cache) == "12.0"
