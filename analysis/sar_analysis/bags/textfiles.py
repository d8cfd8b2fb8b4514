"""Text files of records, plain or compressed: thousands of lines that say nearly the same are small with zstd."""

from __future__ import annotations

from pathlib import Path

import zstandard

COMPRESSED = ".zst"


def read_text(path: Path) -> str:
    """A file's text, unpacked where its name ends in .zst; OSError or ValueError where it cannot be read as text."""
    if path.suffix != COMPRESSED:
        return path.read_text(encoding="utf-8")
    frame = zstandard.ZstdDecompressor().decompressobj()
    try:
        unpacked: bytes = frame.decompress(path.read_bytes())
    except zstandard.ZstdError as error:
        raise ValueError(f"no zstd: {error}") from error
    if not frame.eof or frame.unused_data:
        raise ValueError("zstd that ends too soon, or goes on after its end")
    return unpacked.decode("utf-8")


def write_compressed(path: Path, text: str) -> None:
    """The text as a .zst file, packed as small as is sensible; a checksum tells who reads it whether it is whole."""
    path.write_bytes(zstandard.ZstdCompressor(level=19, write_checksum=True).compress(text.encode("utf-8")))
