"""The analysis stands alone: no simulator, no swarm, no evaluator, no ROS."""

import subprocess
import sys
from pathlib import Path

import sar_analysis

FORBIDDEN = ("sar_sim", "sar_swarm", "sar_eval", "rclpy")


def test_imports_with_everything_else_made_unimportable() -> None:
    names = sorted(file.stem for file in Path(sar_analysis.__file__).parent.glob("*.py") if file.stem != "__init__")
    script = (
        "import sys, importlib\n"
        f"sys.modules.update(dict.fromkeys({FORBIDDEN!r}))\n"
        f"for name in {names!r}: importlib.import_module('sar_analysis.' + name)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
