"""Lines that notice damage."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_core.sealed import KEY, seal, unseal

PLAIN = {"schema_version": 1, "result": {"collisions": 0, "coverage": 0.25, "name": "Zoë"}, "run": {}}


def test_a_line_comes_back_and_is_plain_json() -> None:
    line = seal(PLAIN)
    assert unseal(line) == PLAIN
    assert {key: value for key, value in json.loads(line).items() if key != KEY} == PLAIN
    assert "\n" not in line


def test_a_line_without_a_checksum_is_taken_as_it_is() -> None:
    assert unseal(json.dumps(PLAIN)) == PLAIN


@given(at=st.integers(0, len(seal(PLAIN)) - 1), bit=st.integers(0, 6))
def test_no_flipped_bit_changes_a_value_unnoticed(at: int, bit: int) -> None:
    line = seal(PLAIN)
    damaged = line[:at] + chr(ord(line[at]) ^ 1 << bit) + line[at + 1 :]
    try:
        found = unseal(damaged)
    except ValueError:
        return
    assert {key: found[key] for key in PLAIN} == PLAIN, "only the name of the checksum may be hurt"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_neither_written_nor_read(value: float) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        seal({"x": value})
    with pytest.raises(ValueError, match="no number"):
        unseal(json.dumps({"x": [value]}))


@pytest.mark.parametrize("line", ['{"x": 1e999}', "[1]", "{", "[" * 100_000, ""])
def test_a_line_that_is_no_object_of_numbers_is_refused(line: str) -> None:
    with pytest.raises(ValueError):
        unseal(line)
