"""The ledger as a file: what is written, what damage is noticed, and that never more than one line is cut off."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sar_analysis.bags.textfiles import write_compressed
from sar_core.errors import ContractError
from sar_eval.campaign.ledger import LEDGER, PACKED, Ledger, read_ledger
from sar_eval.episode.record import Record


def record(key: str = "a", **result: Any) -> Record:
    return Record({"episode_id": key, "collisions": 0, "coverage": 0.5, **result}, {"wall_s": 1.5})


def flown(folder: Path, count: int = 3) -> Path:
    ledger = Ledger(folder)
    for number in range(count):
        ledger.append(record(f"m{number}"))
    return ledger.path


def test_every_line_carries_its_checksum(tmp_path: Path) -> None:
    lines = flown(tmp_path).read_text().splitlines()
    assert all(len(json.loads(line)["sha256"]) == 16 for line in lines)
    assert read_ledger(tmp_path / LEDGER) == {f"m{n}": record(f"m{n}") for n in range(3)}


@pytest.mark.parametrize("changed", ['"collisions": 9', '"collisions": NaN'])
def test_a_changed_figure_is_no_result(tmp_path: Path, changed: str) -> None:
    path = flown(tmp_path)
    path.write_text(path.read_text().replace('"collisions": 0', changed, 1))
    with pytest.raises(ContractError, match=r"episodes\.jsonl:1: not an episode record"):
        Ledger(tmp_path)


def test_lines_of_an_older_ledger_are_read_and_gone_on_with(tmp_path: Path) -> None:
    older = json.dumps(record("older", version="0.0.9").as_dict()) + "\n"
    (tmp_path / LEDGER).write_text(older)
    ledger = Ledger(tmp_path)
    ledger.append(record("newer"))
    assert (tmp_path / LEDGER).read_text().startswith(older)
    assert list(read_ledger(tmp_path / LEDGER)) == ["older", "newer"]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_number_is_not_written(tmp_path: Path, value: float) -> None:
    path = flown(tmp_path)
    before = path.read_bytes()
    with pytest.raises(ContractError, match="m9: its record holds what is no number"):
        Ledger(tmp_path).append(record("m9", coverage=value))
    assert path.read_bytes() == before


@pytest.mark.parametrize("value", ["NaN", "-Infinity", "1e999"])
def test_what_is_no_number_is_not_read(tmp_path: Path, value: str) -> None:
    (tmp_path / LEDGER).write_text(json.dumps(record().as_dict()).replace("0.5", value) + "\n")
    with pytest.raises(ContractError, match="no number"):
        read_ledger(tmp_path / LEDGER)


@pytest.mark.parametrize("ends", [b"\r", b"", b"\x00"])
def test_a_ledger_without_line_feeds_is_refused_and_left_as_it_is(tmp_path: Path, ends: bytes) -> None:
    path = flown(tmp_path)
    damaged = path.read_bytes().replace(b"\n", ends)
    path.write_bytes(damaged)
    with pytest.raises(ContractError, match="more than one line after its last line feed"):
        Ledger(tmp_path)
    assert path.read_bytes() == damaged


@given(kept=st.integers(0, 250))
@settings(max_examples=25)
def test_a_torn_line_costs_that_line_only(tmp_path_factory: pytest.TempPathFactory, kept: int) -> None:
    folder = tmp_path_factory.mktemp("torn")
    path = flown(folder)
    whole = path.read_bytes()
    cut = whole.rstrip(b"\n").rfind(b"\n") + 1
    path.write_bytes(whole[: min(cut + kept, len(whole) - 1)])
    assert list(Ledger(folder).records) == ["m0", "m1"]
    assert path.read_bytes() == whole[:cut]


@pytest.mark.parametrize(
    "odd",
    [
        '{"schema_version": 2, "result": {}, "run": {}}',
        '{"schema_version": 2, "result": [], "run": {}}',
        "7",
        "[" * 9999,
    ],
)
def test_a_line_that_is_no_record_is_refused_by_its_number(tmp_path: Path, odd: str) -> None:
    (tmp_path / LEDGER).write_text(odd + "\n")
    with pytest.raises(ContractError, match=r"episodes\.jsonl:1: not an episode record"):
        read_ledger(tmp_path / LEDGER)


def test_a_compressed_ledger_is_read_and_unpacked_when_it_is_opened(tmp_path: Path) -> None:
    path = flown(tmp_path)
    text = path.read_text()
    write_compressed(tmp_path / PACKED, text)
    path.unlink()
    assert len(read_ledger(path)) == 3 and not path.exists()
    ledger = Ledger(tmp_path)
    assert path.read_text() == text
    ledger.append(record("m3"))
    assert len(read_ledger(path)) == 4, "the plain one counts where both are there"


@given(at=st.integers(0, 10_000), bit=st.integers(0, 7))
@settings(max_examples=200)
def test_no_flipped_bit_of_a_compressed_ledger_goes_unnoticed(
    tmp_path_factory: pytest.TempPathFactory, at: int, bit: int
) -> None:
    folder = tmp_path_factory.mktemp("flip")
    older = "".join(json.dumps(record(f"m{n}").as_dict()) + "\n" for n in range(3))
    write_compressed(folder / PACKED, older)
    damaged = bytearray((folder / PACKED).read_bytes())
    damaged[at % len(damaged)] ^= 1 << bit
    (folder / PACKED).write_bytes(damaged)
    try:
        found = read_ledger(folder / LEDGER)
    except ContractError:
        return
    assert found == {f"m{n}": record(f"m{n}") for n in range(3)}
