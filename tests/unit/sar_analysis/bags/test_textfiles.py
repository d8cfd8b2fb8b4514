"""Records and rows read the same whether they are compressed or not, and a damaged file is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from sar_analysis.bags.textfiles import read_text, write_compressed
from sar_analysis.stage1.rows import read_stage1
from sar_analysis.table import analyze
from sar_core.errors import InputError, MissingDataError

ROWS = "".join(
    f'{{"policy": "spiral", "seed": {seed}, "episode": {episode}, "return": {seed + 0.5}}}\n'
    for seed in range(3)
    for episode in range(40)
)


def test_compressed_rows_are_the_same_rows_and_smaller(tmp_path: Path) -> None:
    plain, packed = tmp_path / "stage1.jsonl", tmp_path / "stage1.jsonl.zst"
    plain.write_text(ROWS)
    write_compressed(packed, ROWS)
    assert read_text(packed) == read_text(plain) == ROWS
    assert read_stage1(packed) == read_stage1(plain)
    assert packed.stat().st_size < plain.stat().st_size / 10


@pytest.mark.parametrize("content", [b"no zstd", b""])
def test_what_is_no_compressed_text_is_refused(tmp_path: Path, content: bytes) -> None:
    packed = tmp_path / "stage1.jsonl.zst"
    packed.write_bytes(content)
    with pytest.raises(InputError, match=r"stage1\.jsonl\.zst: "):
        read_stage1(packed)
    with pytest.raises(MissingDataError, match=r"stage1\.jsonl\.zst: "):
        analyze(packed)


def test_a_compressed_file_cut_short_is_refused(tmp_path: Path) -> None:
    packed = tmp_path / "stage1.jsonl.zst"
    write_compressed(packed, ROWS)
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(InputError, match="ends too soon"):
        read_stage1(packed)
