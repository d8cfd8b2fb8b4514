"""Lines of JSON that know whether they are whole: each ends with a checksum of the rest of it."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any, NoReturn

KEY = "sha256"


def seal(plain: dict[str, Any]) -> str:
    """An object as one line, without its end of line. What is no number (NaN, infinity) is a ValueError."""
    text = json.dumps(plain, allow_nan=False)
    return f"{text[:-1]}{_ending(text)}"


def unseal(line: str) -> dict[str, Any]:
    """The object of a line, less its checksum; ValueError where it is damaged. A line without a checksum is taken."""
    try:
        row = json.loads(line, parse_constant=_refuse, parse_float=_finite)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    if not isinstance(row, dict):
        raise ValueError(f"expected an object, found {type(row).__name__}")
    if row.pop(KEY, None) is not None:
        body, comma, _ = line.rpartition(f', "{KEY}": ')
        if not comma or line.rstrip() != body + _ending(body + "}"):
            raise ValueError("its checksum is not that of the line: it was changed or damaged")
    return row


def _ending(text: str) -> str:
    """What stands in place of the last brace: 64 bits of SHA-256 of the whole text."""
    return f', "{KEY}": "{hashlib.sha256(text.encode()).hexdigest()[:16]}"}}'


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number; an undefined value is null")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)
