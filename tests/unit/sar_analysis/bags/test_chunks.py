"""The bytes of a file: every message is found, and every wrong byte is noticed and named."""

import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_analysis.bags import chunks
from sar_analysis.bags.reader import read_bag
from sar_core.errors import ContractError, SarError
from tests.unit.sar_analysis.bagmaker import Made, straight


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = straight(3.0, np.array([[2.5, 52.5, 30.0]]), np.array([[8.0, 0.0, 0.0]]))
    return Made(path, begin_s=1.0, end_s=2.0, devices=[]).write(tmp_path_factory.mktemp("bags") / "good")


def copy(folder: Path, target: Path) -> Path:
    shutil.copytree(folder, target)
    (file,) = target.glob("*.mcap")
    return file


def test_every_changed_byte_is_noticed(folder: Path, tmp_path: Path) -> None:
    """Flip one byte anywhere: the bag is refused, whatever the byte was for."""
    file = copy(folder, tmp_path / "b")
    data = file.read_bytes()
    for at in np.linspace(0, len(data) - 1, 60).astype(int).tolist():
        broken = bytearray(data)
        broken[at] ^= 0x55
        file.write_bytes(broken)
        with pytest.raises(SarError):
            read_bag(tmp_path / "b")


def test_every_cut_is_noticed(folder: Path, tmp_path: Path) -> None:
    file = copy(folder, tmp_path / "b")
    data = file.read_bytes()
    for size in np.linspace(1, len(data) - 1, 25).astype(int).tolist():
        file.write_bytes(data[:size])
        with pytest.raises(ContractError):
            read_bag(tmp_path / "b")


@given(st.lists(st.tuples(st.sampled_from([3, 4, 5]), st.binary(max_size=60)), max_size=8), st.integers(0, 200))
def test_messages_are_found_in_any_row_of_records(records: list[tuple[int, bytes]], cut: int) -> None:
    """Against a plain walk; a row cut short, or with a message too short to be one, is refused."""
    data = b"".join(struct.pack("<BQ", opcode, len(body)) + body for opcode, body in records)[: max(1, cut)]
    expected: dict[int, list[list[int]]] = {}
    at, whole = 0, True
    while at < len(data) and whole:
        whole = len(data) - at >= 9
        if whole:
            opcode, length = struct.unpack_from("<BQ", data, at)
            whole = at + 9 + length <= len(data) and not (opcode == 5 and length < 22)
            if whole and opcode == 5:
                (channel,) = struct.unpack_from("<H", data, at + 9)
                expected.setdefault(channel, []).append([at + 31, at + 9 + length])
            at += 9 + length
    if whole:
        found = chunks._places(Path("x"), data)
        assert {channel: spans.tolist() for channel, spans in found.items()} == expected
    else:
        with pytest.raises(ContractError, match="inside a record"):
            chunks._places(Path("x"), data)


@pytest.mark.parametrize("length", [2**63 - 1, 2**64 - 1, 2**63, 50])
def test_a_length_beyond_all_bounds(length: int) -> None:
    with pytest.raises(ContractError, match="inside a record"):
        chunks._places(Path("x"), struct.pack("<BQ", 5, length) + bytes(40))


def test_chunk_checksums_count_where_the_file_has_none_of_its_own(folder: Path, tmp_path: Path) -> None:
    """Other recorders leave the checksum over all data out; then each chunk's own is looked at."""
    file = copy(folder, tmp_path / "b")
    data = bytearray(file.read_bytes())
    (summary_at,) = struct.unpack_from("<Q", data, len(data) - 8 - 20)
    data[summary_at - 4 : summary_at] = bytes(4)
    file.write_bytes(data)
    read_bag(tmp_path / "b")
    crc_at = data.index(b"\x04\x00\x00\x00zstd") - 4
    data[crc_at] ^= 1
    file.write_bytes(data)
    with pytest.raises(ContractError, match="wrong size or checksum"):
        read_bag(tmp_path / "b")
