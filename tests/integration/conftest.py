"""The command as users have it: own process, real exit code, real output; and bags read by other libraries."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcap.reader import make_reader
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

COMMAND = Path(sys.executable).with_name("sar-eval")
TIMEOUT_S = 300.0

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def plain_environment() -> dict[str, str]:
    """No terminal, no colours, no width but the default: what a log file sees."""
    noisy = ("COLUMNS", "FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE")
    return {key: value for key, value in os.environ.items() if key not in noisy}


@pytest.fixture(scope="session")
def sar_eval() -> Run:
    """Run the installed command to its end."""
    if not COMMAND.is_file():
        pytest.fail(f"{COMMAND} is missing: install the project (pip install -e .) into this environment")

    def run(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
        environment = plain_environment() | options.pop("env", {})
        command = [COMMAND, *map(str, arguments)]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S, env=environment, **options
        )

    return run


@pytest.fixture(scope="session")
def warm(sar_eval: Run) -> None:
    """Compile the simulator once, so that later processes find it in the cache and take off at once."""
    done = sar_eval("run", "--no-bag", "--drones", "2", "--duration-s", "1", "--json")
    assert done.returncode == 0, done.stderr


@pytest.fixture
def launch() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start the command, or a Python script around it, and leave it running; whatever is left at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str | Path, script: str | None = None) -> subprocess.Popen[str]:
        head = [str(COMMAND)] if script is None else [sys.executable, "-c", script]
        process = subprocess.Popen(
            [*head, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=plain_environment(),
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def wait_until(happened: Callable[[], bool], process: subprocess.Popen[str], what: str) -> None:
    """Look again and again until something has happened; fail if the process ends or time runs out before."""
    give_up = time.monotonic() + TIMEOUT_S
    while not happened():
        assert process.poll() is None, f"the process ended before {what}: {process.communicate()}"
        assert time.monotonic() < give_up, f"waited {TIMEOUT_S} s for {what}"
        time.sleep(0.002)


@pytest.fixture(scope="session")
def wait_for() -> Callable[[Callable[[], bool], subprocess.Popen[str], str], None]:
    return wait_until


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
