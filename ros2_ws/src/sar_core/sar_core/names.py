"""Names that were read from a file and become names of files: nothing in them may lead out of a folder."""

from __future__ import annotations

import re

from sar_core.errors import ContractError

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")


def checked_name(name: object, where: str) -> str:
    """The name, refused where it is none; ``where`` says what it was read from."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ContractError(
            f"{where}: name {str(name)[:80]!r}: it becomes the name of a file; allowed are letters, digits, _ . and -, "
            "and no dot in front"
        )
    return name
