"""Messages in columns are the same bytes as messages one by one."""

import re
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sar_core.errors import ContractError, MissingDataError
from sar_eval.bag.messages import MessageLayout, blank, load_typestore, serialise, type_hash, typestore
from sar_eval.scenario.resources import share_dir

PROTOTYPES = {
    "rosgraph_msgs/msg/Clock": {},
    "nav_msgs/msg/Odometry": {"header.frame_id": "world", "child_frame_id": "uav_12/base_link"},
    "nav_msgs/msg/OccupancyGrid": {"header.frame_id": "wörld", "data": 7},
    "sar_msgs/msg/Setpoint": {"header.frame_id": "w"},
    "sar_msgs/msg/TruthState": {"position": 3, "velocity": 3, "orientation": 3, "angular_velocity": 3},
    "sar_msgs/msg/UavStatus": {"header.frame_id": "ab", "uav": 4},
    "sar_msgs/msg/EpisodeInfo": {"world": "village", "tier": "embedded"},
    "sar_msgs/msg/EpisodeStatus": {"invalid_reason": "clock_jump"},
    "sar_msgs/msg/CollisionEvent": {"obstacle": "house_3"},
}


def put(message, path, value):
    """Set one number deep inside a message, the slow way."""
    *parents, leaf = path.split(".")
    for name in parents:
        message = message[int(name)] if name.isdigit() else getattr(message, name)
    if leaf.isdigit():
        message[int(leaf)] = value
    else:
        setattr(message, leaf, value)


def extremes(dtype, rows, rng):
    """Numbers of a type with its limits, zeros of both signs, infinities, NaN and random bit patterns among them."""
    if dtype.kind == "b":
        return rng.integers(0, 2, rows).astype(bool)
    drawn = np.frombuffer(rng.bytes(rows * dtype.itemsize), dtype).copy()
    if dtype.kind == "f":
        limits = np.finfo(dtype)
        special = [0.0, -0.0, np.inf, -np.inf, np.nan, limits.max, limits.min, limits.smallest_subnormal]
        drawn[np.isnan(drawn)] = np.nan
    else:
        special = [0, np.iinfo(dtype).min, np.iinfo(dtype).max]
    special = np.array(special, dtype)
    return np.where(rng.random(rows) < 0.5, rng.choice(special, rows), drawn)


@pytest.mark.parametrize("msgtype", PROTOTYPES)
@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(1, 4))
def test_columns_serialise_like_single_messages(msgtype, seed, rows):
    store, rng = typestore(), np.random.default_rng(seed)
    layout = MessageLayout(store, blank(store, msgtype, PROTOTYPES[msgtype]))
    columns = {path: extremes(dtype, rows, rng) for path, (_, dtype) in layout.offsets.items()}
    with warnings.catch_warnings(action="error"):
        encoded = layout.encode(columns)
    assert encoded.shape == (rows, layout.size)
    for k in range(rows):
        message = blank(store, msgtype, PROTOTYPES[msgtype])
        for path, column in columns.items():
            put(message, path, column[k].item())
        assert encoded[k].tobytes() == serialise(store, message)
        decoded = store.deserialize_cdr(encoded[k].tobytes(), msgtype)
        assert serialise(store, decoded) == encoded[k].tobytes()


def test_whole_vectors_and_times_can_be_given_at_once():
    store = typestore()
    layout = MessageLayout(store, blank(store, "nav_msgs/msg/Odometry", {"child_frame_id": "uav_1"}))
    stamps = np.array([0, 52_000_000, 3_100_000_001])
    position = np.arange(9.0).reshape(3, 3)
    covariance = np.arange(108.0).reshape(3, 6, 6)
    encoded = layout.encode({"header.stamp": stamps, "pose.pose.position": position, "twist.covariance": covariance})
    for k, stamp in enumerate(stamps.tolist()):
        message = store.deserialize_cdr(encoded[k].tobytes(), "nav_msgs/msg/Odometry")
        assert message.header.stamp.sec * 10**9 + message.header.stamp.nanosec == stamp
        assert message.child_frame_id == "uav_1"
        assert [message.pose.pose.position.x, message.pose.pose.position.y, message.pose.pose.position.z] == list(
            position[k]
        )
        np.testing.assert_array_equal(message.twist.covariance, covariance[k].ravel())


def test_a_sequence_over_drones_is_one_array():
    store = typestore()
    layout = MessageLayout(store, blank(store, "sar_msgs/msg/TruthState", {"position": 2, "orientation": 2}))
    position = np.arange(12.0).reshape(2, 2, 3)
    orientation = np.arange(16.0).reshape(2, 2, 4)
    encoded = layout.encode({"position": position, "orientation": orientation, "orientation.1.w": [7.0, 8.0]})
    message = store.deserialize_cdr(encoded[1].tobytes(), "sar_msgs/msg/TruthState")
    assert [(p.x, p.y, p.z) for p in message.position] == [(6.0, 7.0, 8.0), (9.0, 10.0, 11.0)]
    assert (message.orientation[1].x, message.orientation[1].w) == (12.0, 8.0)
    assert len(message.velocity) == 0


def test_no_rows_give_no_messages():
    store = typestore()
    layout = MessageLayout(store, blank(store, "sar_msgs/msg/Setpoint"))
    assert layout.encode({"header.stamp": np.empty(0, np.int64), "position": np.empty((0, 3))}).shape == (
        0,
        layout.size,
    )


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"pose.pose.altitude": [1.0]}, "no numbers under 'pose.pose.altitude'"),
        ({"header": [[1, 2]]}, "mixes"),
        ({"pose.pose.position": [[1.0, 2.0]]}, "does not hold 3 numbers"),
        ({"pose.pose.position.x": [1.0], "pose.pose.position.y": [1.0, 2.0]}, "common number of rows"),
        ({"header.stamp.sec": [2**31]}, "do not fit int32"),
        ({"header.stamp.sec": [0.5]}, "do not fit int32"),
        ({"header.stamp": [-(2**31 + 1) * 10**9]}, "do not fit int32"),
    ],
)
def test_columns_that_do_not_fit_are_refused(columns, words):
    store = typestore()
    layout = MessageLayout(store, blank(store, "nav_msgs/msg/Odometry"))
    with pytest.raises(ContractError, match=re.escape(words)):
        layout.encode(columns)


def test_a_prototype_names_only_fields_that_exist():
    with pytest.raises(ContractError, match=r"sar_msgs/msg/Setpoint has no field header\.frame"):
        blank(typestore(), "sar_msgs/msg/Setpoint", {"header.frame": "world"})


def test_a_folder_without_definitions_is_missing_data(tmp_path):
    with pytest.raises(MissingDataError, match=r"no \.msg files"):
        load_typestore(tmp_path)


def test_type_hashes_are_those_of_ros():
    """The values that ROS 2 Jazzy itself gives for these types."""
    store = typestore()
    assert (
        type_hash(store, "nav_msgs/msg/Odometry")
        == "RIHS01_3cc97dc7fb7502f8714462c526d369e35b603cfc34d946e3f2eda2766dfec6e0"
    )
    assert (
        type_hash(store, "rosgraph_msgs/msg/Clock")
        == "RIHS01_692f7a66e93a3c83e71765d033b60349ba68023a8c689a79e48078bcb5c58564"
    )


@pytest.mark.parametrize("file", sorted((share_dir("sar_msgs") / "msg").glob("*.msg")), ids=lambda file: file.stem)
def test_every_field_says_what_it_is_and_cmake_builds_it(file):
    fields = [line for line in file.read_text().splitlines() if line and not line.startswith("#") and "=" not in line]
    assert fields
    assert [line for line in fields if "#" not in line] == []
    assert f'"msg/{file.name}"' in (share_dir("sar_msgs") / "CMakeLists.txt").read_text()
