"""What an image installs beside sar-eval itself: ``requirements.py pyproject.toml EXTRA...``, a requirement per line.

Only the standard library, so that it can run before anything is installed.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path


def requirements(project: Path, extras: Sequence[str]) -> list[str]:
    """Of the project, of some of its extras, and of its build."""
    table = tomllib.loads(project.read_text(encoding="utf-8"))
    optional = table["project"]["optional-dependencies"]
    wanted = [line for extra in extras for line in optional[extra]]
    return [*table["project"]["dependencies"], *wanted, *table["build-system"]["requires"]]


if __name__ == "__main__":
    print("\n".join(line.replace(" ", "") for line in requirements(Path(sys.argv[1]), sys.argv[2:])))
