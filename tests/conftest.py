"""What all tests share: property tests that draw the same examples in every run, and bags read by other libraries.

``--hypothesis-profile=explore`` looks for other examples.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from mcap.reader import make_reader
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

pytest.register_assert_rewrite("tests.packaging.published")
settings.register_profile("house", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("house")
ROOT = Path(__file__).parent
ALONE = (
    "graph/test_autopilots.py",
    "graph/test_command.py",
    "graph/test_endings.py",
    "graph/test_strangers.py",
    "launch/",
    "px4/",
    "integration/test_sitl.py",
    "unit/sar_gazebo/test_flight.py",
)
"""Tests that fly a process per node against the wall clock."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.relative_to(ROOT).as_posix().startswith(ALONE):
            item.add_marker(pytest.mark.alone)


@dataclass(frozen=True)
class Message:
    """One recorded message: its place in the bag and every field down to the last bit."""

    topic: str
    sequence: int
    log_time: int
    publish_time: int
    decoded: Any

    @property
    def bits(self) -> tuple[Any, ...]:
        return (self.topic, self.sequence, self.log_time, self.publish_time, fields_of(self.decoded))


def fields_of(value: Any) -> Any:
    """A decoded value as something that compares equal only if it is the same bit for bit, NaN included."""
    if dataclasses.is_dataclass(value):
        return tuple((f.name, fields_of(getattr(value, f.name))) for f in dataclasses.fields(value))
    if isinstance(value, np.ndarray):
        return (str(value.dtype), value.shape, value.tobytes())
    if isinstance(value, (list, tuple)):
        return tuple(fields_of(item) for item in value)
    if isinstance(value, float):
        return np.float64(value).tobytes()
    return (type(value).__name__, value)


@dataclass(frozen=True)
class Bag:
    """A bag's messages in the order of the file, and its metadata records."""

    messages: tuple[Message, ...]
    metadata: dict[str, dict[str, str]]

    def difference(self, other: Bag) -> str | None:
        """The first message in which two bags are not the same bit for bit; None if there is none."""
        for here, there in zip(self.messages, other.messages, strict=False):
            if here.bits != there.bits:
                return f"{here} is not {there}"
        if len(self.messages) != len(other.messages):
            return f"{len(self.messages)} messages are not {len(other.messages)}"
        return None

    def topic(self, name: str) -> list[Message]:
        return [message for message in self.messages if message.topic == name]

    @property
    def configuration(self) -> dict[str, Any]:
        return dict(json.loads(self.metadata["sar_eval"]["configuration"]))


@pytest.fixture(scope="session")
def read_bag() -> Callable[[Path], Bag]:
    """Read with the mcap library, in file order, and decode with the definitions the bag itself carries."""

    def read(folder: Path) -> Bag:
        (file,) = folder.glob("*.mcap")
        messages = []
        with file.open("rb") as stream:
            reader = make_reader(stream, validate_crcs=True)
            stores: dict[int, Any] = {}
            for schema, channel, message in reader.iter_messages(log_time_order=False):
                assert schema is not None
                if schema.id not in stores:
                    stores[schema.id] = get_typestore(Stores.EMPTY)
                    stores[schema.id].register(get_types_from_msg(schema.data.decode(), schema.name))
                decoded = stores[schema.id].deserialize_cdr(message.data, schema.name)
                messages.append(
                    Message(channel.topic, message.sequence, message.log_time, message.publish_time, decoded)
                )
            metadata = {record.name: dict(record.metadata) for record in reader.iter_metadata()}
        return Bag(tuple(messages), metadata)

    return read
