"""Folders to write into, checked before anything is flown."""

from __future__ import annotations

import os
from pathlib import Path

from sar_core.errors import InputError


def ready_folder(folder: Path) -> None:
    """Create a folder to write into, or say why that cannot be, before anything is flown."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "a file of this name exists" if isinstance(error, FileExistsError) else error.strerror
        raise InputError(f"{folder}: cannot create the output folder ({reason})") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{folder}: the output folder is not writable")
