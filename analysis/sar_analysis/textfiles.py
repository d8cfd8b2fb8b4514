"""Text files of records, plain or compressed: thousands of lines that say nearly the same are small with zstd."""

from __future__ import annotations

from pathlib import Path

import zstandard

COMPRESSED = ".zst"


def read_text(path: Path) -> str:
    """A file's text, unpacked where its name ends in .zst; OSError or ValueError where it cannot be read as text."""
    if path.suffix != COMPRESSED:
        return path.read_text(encoding="utf-8")
    try:
        with path.open("rb") as packed, zstandard.ZstdDecompressor().stream_reader(packed) as stream:
            return stream.read().decode("utf-8")
    except zstandard.ZstdError as error:
        raise ValueError(f"not whole as zstd: {error}") from error


def write_compressed(path: Path, text: str) -> None:
    """The text as a .zst file, packed as small as is sensible."""
    path.write_bytes(zstandard.ZstdCompressor(level=19).compress(text.encode("utf-8")))
