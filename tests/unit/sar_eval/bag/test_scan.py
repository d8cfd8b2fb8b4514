"""A walk through a bag's bytes: what is whole is found with its place, and damage is told with where it ends."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_core.errors import InputError, MissingDataError
from sar_eval.bag.files import MAGIC
from sar_eval.bag.scan import Damage, McapRecord, locate, scan, survey, survey_file
from tests.unit.sar_eval.bag.madebag import SECONDS, TOPICS, Intact


def walked(data: bytes) -> list[McapRecord | Damage]:
    return list(scan(io.BytesIO(data), len(data)))


def test_a_sound_file_is_records_without_gap_from_magic_to_magic(bag: Intact) -> None:
    found = walked(bag.data)
    assert not [item for item in found if isinstance(item, Damage)]
    assert [item.offset for item in found] == bag.boundaries[:-1]
    assert [item.end for item in found] == bag.boundaries[1:]


def test_a_survey_knows_all_of_it(bag: Intact) -> None:
    seen: list[int] = []
    found = survey_file(bag.folder / "bag_0.mcap", lambda facts, data, messages: seen.append(len(messages)))
    assert (found.damage, found.notes, found.lost_bytes) == ([], [], 0)
    assert found.finished and found.data_verified and found.profile == "ros2"
    assert [(chunk.offset, chunk.end, chunk.messages) for chunk in found.chunks] == [
        (start, end, len(messages)) for start, end, messages in bag.chunks
    ]
    assert seen == [len(messages) for _, _, messages in bag.chunks] and len(seen) == SECONDS
    assert {channel.topic for channel in found.channels.values()} == set(TOPICS)
    assert {("Channel", number) for number in found.channels} <= found.sealed


@pytest.mark.parametrize("size", [1, 60])
def test_noise_between_two_records_costs_itself_alone(size: int, bag: Intact) -> None:
    start, _, _ = bag.chunks[1]
    noise = b"\xee" * size
    data = bag.data[:start] + noise + bag.data[start:]
    found = survey(io.BytesIO(data), len(data))
    assert [(damage.offset, damage.end) for damage in found.damage] == [(start, start + size)]
    assert found.lost_bytes == size and len(found.chunks) == SECONDS


def test_a_file_cut_off_is_not_finished_and_ends_in_damage(bag: Intact) -> None:
    _, end, _ = bag.chunks[0]
    data = bag.data[: end + 5]
    found = survey(io.BytesIO(data), len(data))
    assert not found.finished and not found.data_verified and len(found.chunks) == 1
    assert (found.damage[0].offset, found.lost_bytes) == (end, 5)


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_are_walked_to_their_end_without_overlap(content: bytes, magic: bool) -> None:
    data = MAGIC * magic + content
    at = 0
    for item in walked(data):
        assert at <= item.offset <= item.end <= len(data)
        at = item.end
    found = survey(io.BytesIO(data), len(data))
    assert not found.finished and found.lost_bytes <= len(data)


def test_a_bag_is_its_folder_or_its_one_file(bag: Intact, tmp_path: Path) -> None:
    file = bag.folder / "bag_0.mcap"
    assert locate(file) == locate(bag.folder) == file
    with pytest.raises(MissingDataError, match=r"nowhere: no such bag"):
        locate(tmp_path / "nowhere")
    with pytest.raises(MissingDataError, match=r"no \.mcap file inside"):
        locate(tmp_path)
    for name in ("a.mcap", "b.mcap"):
        (tmp_path / name).touch()
    with pytest.raises(InputError, match=r"2 \.mcap files inside; name the one that is meant"):
        locate(tmp_path)
