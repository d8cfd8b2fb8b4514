"""The tree of an SDF file and its readers; what a whole world makes of them is tested with worlds and their linter."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from sar_core.errors import InputError
from sar_sim.world import sdf
from sar_sim.world.sdf import SAR_NAMESPACE, Node, compose, numbers, parse_sdf, read_pose, read_shape

lengths = st.floats(-500, 500)
poses = st.tuples(lengths, lengths, lengths, st.floats(-math.pi, math.pi))


class Told:
    """A report that remembers."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, str]] = []

    def __call__(self, node: Node, text: str) -> None:
        self.lines.append((node.line, text))


def parsed(folder: Path, text: str) -> Node:
    path = folder / "some.sdf"
    path.write_text(text, encoding="utf-8")
    return parse_sdf(path)[0]


def test_elements_remember_their_line_and_the_way_to_them(tmp_path: Path) -> None:
    path = tmp_path / "some.sdf"
    path.write_text(
        f'<sdf xmlns:s="{SAR_NAMESPACE}">\n <world name="w">\n  <s:spawn s:k="1">a\nb</s:spawn>\n  <link/>\n'
        " </world>\n</sdf>"
    )
    top, digest = parse_sdf(path)
    assert digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert [(node.tag, node.line, node.where) for node in top.walk()] == [
        ("sdf", 1, "sdf"),
        ("world", 2, "world 'w'"),
        ("sar:spawn", 3, "world 'w'/sar:spawn"),
        ("link", 5, "world 'w'/link"),
    ]
    spawn = top.children[0].all("sar:spawn")[0]
    assert (spawn.text, spawn.attributes) == ("a\nb", {"sar:k": "1"})


@pytest.mark.parametrize("lure", ["<!DOCTYPE sdf>", '<!DOCTYPE sdf [<!ENTITY a "aaaa">]>'])
def test_a_doctype_is_refused_by_its_line(lure: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"some\.sdf:2: DOCTYPE and entities are not allowed"):
        parsed(tmp_path, f"<?xml version='1.0'?>\n{lure}\n<sdf/>")


def test_a_file_too_large_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdf, "MAX_FILE_BYTES", 10)
    with pytest.raises(InputError, match="11 bytes; a world file may have 10"):
        parsed(tmp_path, "<sdf></sdf>")


@given(st.binary(max_size=60))
def test_no_bytes_give_anything_but_a_tree_or_a_refusal(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.sdf"
    path.write_bytes(data)
    try:
        parse_sdf(path)
    except InputError as error:
        assert "not well-formed XML" in str(error) or "DOCTYPE" in str(error)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=6))
def test_numbers_come_back_bit_for_bit(values: list[float]) -> None:
    told = Told()
    text = " ".join(map(repr, values))
    assert numbers(text, None, Node("size", {}, 1, "size"), "size", told) == tuple(values)
    assert told.lines == []


@pytest.mark.parametrize("word", ["nan", "inf", "1e999", "1_0", "0x10", "", "٣"])
def test_what_is_no_finite_number_is_named(word: str) -> None:
    told = Told()
    assert numbers(f"1 {word or 'a'} 2", 3, Node("size", {}, 7, "size"), "size", told) is None
    assert told.lines == [(7, f"size has {word or 'a'!r}, which is not a finite number")]


@given(poses, poses, st.tuples(lengths, lengths, lengths))
def test_poses_compose_as_rotations_do(outer: sdf.Pose, inner: sdf.Pose, point: tuple[float, float, float]) -> None:
    def place(pose: sdf.Pose, at: np.ndarray) -> np.ndarray:
        return Rotation.from_euler("z", pose[3]).apply(at) + pose[:3]

    both = place(compose(outer, inner), np.array(point))
    assert both == pytest.approx(place(outer, place(inner, np.array(point))), abs=1e-9)


def test_no_pose_is_the_identity_and_a_tilted_one_is_refused(tmp_path: Path) -> None:
    told = Told()
    bare, empty, tilted, twice = parsed(
        tmp_path,
        "<sdf><a/><a><pose/></a><a>\n<pose>1 2 3 0.1 0 0</pose></a><a>\n<pose/><pose/></a></sdf>",
    ).children
    assert read_pose(bare, told) == read_pose(empty, told) == (0.0, 0.0, 0.0, 0.0)
    assert told.lines == []
    assert read_pose(tilted, told) is None and read_pose(twice, told) is None
    assert [text.partition(":")[0] for _, text in told.lines] == [
        "roll 0.1 and pitch 0",
        "<pose> appears 2 times, allowed is once",
    ]
    assert [line for line, _ in told.lines] == [2, 2]


@pytest.mark.parametrize(
    ("geometry", "found"),
    [
        ("<box><size>1 2 3</size></box>", ("box", (1.0, 2.0, 3.0))),
        ("<cylinder><length>8</length><radius>0.5</radius></cylinder>", ("cylinder", (0.5, 8.0))),
        ("<plane><normal>0 0 1</normal></plane>", ("plane", ())),
    ],
)
def test_a_shape_has_its_sizes_in_one_order(
    geometry: str, found: tuple[str, tuple[float, ...]], tmp_path: Path
) -> None:
    told = Told()
    assert read_shape(parsed(tmp_path, f"<c><geometry>{geometry}</geometry></c>"), told) == found
    assert told.lines == []


@pytest.mark.parametrize(
    ("geometry", "said"),
    [
        ("<box><size>1 0 3</size></box>", "size 0 is not positive"),
        ("<box><size>1 2</size></box>", "size has 2 values, allowed is exactly 3"),
        ("<sphere/>", "geometry is sphere; allowed is exactly one of box, cylinder, plane"),
        ("<box/><box/>", "geometry is box, box; allowed is exactly one of box, cylinder, plane"),
        ("", "geometry is none; allowed is exactly one of box, cylinder, plane"),
        ("<cylinder><radius>1</radius></cylinder>", "<length> is missing"),
        ("<plane><normal>0 1 0</normal></plane>", "only a horizontal plane (normal 0 0 1) is allowed"),
    ],
)
def test_another_shape_is_told_and_left_out(geometry: str, said: str, tmp_path: Path) -> None:
    told = Told()
    read_shape(parsed(tmp_path, f"<c><geometry>{geometry}</geometry></c>"), told)
    assert [text for _, text in told.lines] == [said]
