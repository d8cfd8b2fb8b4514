"""Prints the lowest versions pyproject.toml allows as constraints: ``name==lower`` for every ``name>=lower``.

    python scripts/floors.py [EXTRA,EXTRA...]

For the default dependencies and those of the extras named. What has no lower bound is left to pip.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
BOUND = re.compile(r"([\w.-]+)\s*>=\s*([\w.]+)")


def floors(project: dict[str, Any], extras: Iterable[str]) -> list[str]:
    """Constraints, sorted by name; an extra the project does not have is refused."""
    optional = project.get("optional-dependencies", {})
    asked = list(extras)
    if unknown := sorted(set(asked) - set(optional)):
        raise SystemExit(
            f"floors: no extra {', '.join(unknown)} in pyproject.toml: it has {', '.join(sorted(optional))}"
        )
    lines = [*project["dependencies"], *(line for extra in asked for line in optional[extra])]
    bounds = (BOUND.match(line) for line in lines)
    return sorted({f"{bound[1]}=={bound[2]}" for bound in bounds if bound}, key=str.lower)


def main() -> None:
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    if len(sys.argv) > 2:
        raise SystemExit("usage: floors.py [EXTRA,EXTRA...]")
    extras = sys.argv[1].split(",") if len(sys.argv) == 2 else []
    print("\n".join(floors(project, extras)))


if __name__ == "__main__":
    main()
