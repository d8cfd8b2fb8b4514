"""Damaged bags: the repair saves exactly what is whole, and the check has named what is wrong."""

import random
import re
import shutil
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rosbags.highlevel import AnyReader

from sar_core.errors import InputError, MissingDataError
from sar_eval.bag import repair as bagrepair
from sar_eval.bag.check import check_bag
from sar_eval.bag.files import MAGIC
from sar_eval.bag.repair import repair_bag
from tests.unit.sar_eval.bag.madebag import METADATA, codes, recorded


def saved_messages(file, target):
    """What a repair saves, and that it says the same itself; nothing for a file beyond repair."""
    try:
        report = repair_bag(file, target)
    except MissingDataError:
        assert not target.exists()
        assert not target.with_name(target.name + ".partial").exists()
        return []
    messages = recorded(target)
    assert report.recording.messages == len(messages)
    shutil.rmtree(target)
    return messages


def test_cut_anywhere_the_check_complains_and_the_repair_saves_every_complete_chunk(bag, tmp_path):
    rng = random.Random(11)
    ends = [end for _, end, _ in bag.chunks]
    offsets = {0, 1, 7, 8, 9, len(bag.data) - 1, len(bag.data) - 8, len(bag.data) - 9}
    offsets |= {at + shift for at in ends for shift in (-1, 0, 1)}
    offsets |= set(rng.sample(bag.boundaries, 30))
    offsets |= {rng.randrange(len(bag.data)) for _ in range(70)}
    assert len(offsets) >= 100
    file, target = tmp_path / "cut.mcap", tmp_path / "saved"
    for offset in sorted(offsets):
        file.write_bytes(bag.data[:offset])
        report = check_bag(file)
        assert {"no_summary", "damage"} & {finding.code for finding in report.findings}, offset
        expected = bag.whole(lambda start, end, offset=offset: end <= offset)
        assert report.messages == len(expected), offset
        assert saved_messages(file, target) == expected, offset
    assert file.read_bytes() == bag.data[:offset]


def test_one_flipped_bit_is_always_noticed_and_costs_one_chunk_at_most(bag, tmp_path):
    rng = random.Random(12)
    file, target = tmp_path / "flip.mcap", tmp_path / "saved"
    places = {rng.randrange(len(bag.data)) for _ in range(60)}
    places |= {at + rng.randrange(9) for at in rng.sample(bag.boundaries, 40)}
    for place in sorted(places):
        data = bytearray(bag.data)
        data[place] ^= 1 << rng.randrange(8)
        file.write_bytes(data)
        assert not check_bag(file).ok, place
        saved = saved_messages(file, target)
        hit = bag.whole(lambda start, end, place=place: start <= place < end)
        rest = bag.whole(lambda start, end, place=place: not start <= place < end)
        assert saved in (rest, sorted(rest + hit, key=lambda message: (message[1], message[0], message[2]))), place


def test_a_hole_in_the_middle_costs_the_chunks_it_touches(bag, tmp_path):
    rng = random.Random(13)
    file, target = tmp_path / "hole.mcap", tmp_path / "saved"
    for _ in range(20):
        first = rng.randrange(len(bag.data))
        size = rng.choice([1, 100, 10_000])
        data = bag.data[:first] + rng.randbytes(size) + bag.data[first + size :]
        file.write_bytes(data)
        assert not check_bag(file).ok
        saved = saved_messages(file, target)
        if saved:
            assert saved == bag.whole(lambda start, end, a=first, b=first + size: end <= a or start >= b), first


def test_a_length_that_skips_a_chunk_does_not_hide_it(bag, tmp_path):
    """The record before a chunk claims to reach to the record after it: each record alone looks possible."""
    start, end, _ = bag.chunks[2]
    before = max(at for at in bag.boundaries if at < start)
    file = tmp_path / "skip.mcap"
    file.write_bytes(bag.data[: before + 1] + struct.pack("<Q", end - before - 9) + bag.data[before + 9 :])
    assert "damage" in codes(file)
    assert saved_messages(file, tmp_path / "saved") == bag.whole(lambda start, end: True)


def test_definitions_without_a_valid_checksum_are_not_believed(bag, tmp_path):
    data = bytearray(bag.data)
    start, end, _ = bag.chunks[0]
    data[(start + end) // 2] ^= 1
    file = tmp_path / "first.mcap"
    file.write_bytes(data)
    rest = bag.whole(lambda first, _: first != start)
    assert saved_messages(file, tmp_path / "saved") == rest
    data[data.rindex(b"float64 yaw_rate")] ^= 1
    file.write_bytes(data)
    assert saved_messages(file, tmp_path / "saved") == []


def test_a_repaired_bag_is_a_good_bag_that_says_what_it_lost(bag, tmp_path):
    file = tmp_path / "cut.mcap"
    _, end, _ = bag.chunks[2]
    file.write_bytes(bag.data[: end + 5])
    report = repair_bag(file, tmp_path / "saved")
    assert (report.chunks, report.lost_bytes, report.lost_messages, report.complete) == (3, 5, 0, False)
    checked = check_bag(tmp_path / "saved")
    assert checked.findings == ()
    assert checked.repaired
    assert checked.metadata["repaired"] == {
        "source": "cut.mcap",
        "source_bytes": str(end + 5),
        "lost_bytes": "5",
        "lost_messages": "0",
        "recovered_chunks": "3",
        "recovered_messages": str(report.recording.messages),
        "last_stamp_ns": "2952000000",
        "metadata_verified": "false",
    }
    for name, values in METADATA.items():
        assert checked.metadata[name] == values
    with AnyReader([tmp_path / "saved"]) as reader:
        assert sum(1 for c, _, raw in reader.messages() if reader.deserialize(raw, c.msgtype)) == checked.messages


def test_repairing_a_good_bag_copies_it(bag, tmp_path):
    report = repair_bag(bag.folder, tmp_path / "copy")
    assert report.complete
    assert recorded(tmp_path / "copy") == bag.whole(lambda start, end: True)


def test_a_repair_overwrites_nothing(bag, tmp_path):
    (tmp_path / "there").mkdir()
    with pytest.raises(InputError, match="exists already"):
        repair_bag(bag.folder, tmp_path / "there")
    with pytest.raises(InputError, match="exists already"):
        repair_bag(bag.folder, bag.folder)
    assert not any((tmp_path / "there").iterdir())


def test_a_repair_that_fails_leaves_nothing(bag, tmp_path, monkeypatch):
    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(bagrepair, "_topic", fail)
    with pytest.raises(KeyboardInterrupt):
        repair_bag(bag.folder, tmp_path / "saved")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("content", [b"", b"x", MAGIC, MAGIC * 2, b"PK\x03\x04" * 100, bytes(5000)])
def test_what_is_no_bag_is_called_so(tmp_path, content):
    file = tmp_path / "thing.mcap"
    file.write_bytes(content)
    assert "no_summary" in codes(file)
    with pytest.raises(MissingDataError, match="nothing can be recovered") as caught:
        repair_bag(file, tmp_path / "saved")
    assert caught.value.exit_code == 4
    assert [path.name for path in tmp_path.iterdir()] == ["thing.mcap"]


def test_missing_and_ambiguous_paths_are_named(tmp_path):
    assert codes(tmp_path / "nowhere") == {"not_a_bag"}
    assert codes(tmp_path) == {"not_a_bag"}
    with pytest.raises(MissingDataError, match="no such bag"):
        repair_bag(tmp_path / "nowhere", tmp_path / "saved")
    for name in ("a.mcap", "b.mcap"):
        (tmp_path / name).write_bytes(b"")
    assert "2 .mcap files" in check_bag(tmp_path).findings[0].text
    with pytest.raises(InputError, match=re.escape("2 .mcap files")):
        repair_bag(tmp_path, tmp_path / "saved")


@settings(max_examples=100)
@given(edits=st.lists(st.tuples(st.integers(0, 2**31), st.binary(min_size=1, max_size=12)), min_size=1, max_size=6))
def test_no_edit_upsets_check_or_repair_nor_invents_a_message(bag, tmp_path_factory, edits):
    folder = tmp_path_factory.getbasetemp()
    data = bytearray(bag.data)
    for place, patch in edits:
        place %= len(data)
        data[place : place + len(patch)] = patch
    file = folder / "edited.mcap"
    file.write_bytes(data)
    assert check_bag(file).ok == (bytes(data) == bag.data)
    real = set(bag.whole(lambda start, end: True))
    assert set(saved_messages(file, folder / "edited_saved")) <= real


def test_a_folder_without_its_description_is_repaired(bag, tmp_path):
    shutil.copytree(bag.folder, tmp_path / "bag")
    (tmp_path / "bag" / "metadata.yaml").unlink()
    assert codes(tmp_path / "bag") == {"no_metadata_yaml"}
    assert repair_bag(tmp_path / "bag", tmp_path / "saved").recording.messages == check_bag(bag.folder).messages
    assert check_bag(tmp_path / "saved").ok
