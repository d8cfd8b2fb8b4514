"""What was wrong with a file, in one line, where a model refused it."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError


def describe_validation(path: Path, error: ValidationError) -> str:
    """The first problem pydantic found, as one line: file, key, value, what is allowed.

    A misspelt key is missing under its right name and unknown under the one given, which helps more.
    """
    problems = error.errors()
    first = problems[0]
    if first["type"] == "missing":
        first = next((p for p in problems if p["type"] == "extra_forbidden"), first)
    key = ".".join(str(part) for part in first["loc"]) or "(top level)"
    given = first.get("input")
    if first["type"] == "extra_forbidden":
        return f"{path}: unknown key {key!r} (value {given!r}); remove it or correct its name"
    if first["type"] == "missing":
        return f"{path}: key {key!r} is missing"
    said = first["msg"].removeprefix("Value error, ")
    return f"{path}: {key} = {given!r}: {said[0].lower()}{said[1:]}"
