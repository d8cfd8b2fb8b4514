"""A vehicle without sockets: what it is told goes in as messages, what it says comes out as messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sar_eval.px4.mavlink import ORIGIN, dialect
from sar_eval.scenario.resources import params_path
from sar_eval.sitl.craft import Craft, Sight
from sar_eval.sitl.datagram import messages
from sar_eval.sitl.inbox import Talk, receive, wanted_messages
from sar_eval.sitl.link import MavlinkLink
from sar_eval.sitl.paramtable import ParamTable, all_parameters
from sar_eval.sitl.telemetry import GROUND_RATES, ONBOARD_RATES

HERE = ("127.0.0.1", 14540)
ELSEWHERE = ("127.0.0.1", 50000)
LEVEL = (1.0, 0.0, 0.0, 0.0)
STILL = (0.0, 0.0, 0.0)


def sight(**changes: Any) -> Sight:
    """A vehicle that stands on the ground, where it believes to be."""
    ground = (10.0, 20.0, 0.0)
    standing = Sight(0.0, ground, STILL, LEVEL, STILL, ground, STILL, LEVEL, 0.0, True, 0.0, 1.0, True)
    return replace(standing, **changes)


class FakeBody:
    """Remembers what was broken."""

    def __init__(self) -> None:
        self.gps_lost = False
        self.motors_left = [1.0] * 4

    def lose_gps(self, index: int, lost: bool) -> None:
        self.gps_lost = lost

    def weaken_motors(self, index: int, left: Any) -> None:
        self.motors_left = list(left)


class Bench:
    """A craft on the bench: tell it something, see what it answers."""

    def __init__(self, system: int = 1) -> None:
        self.m = dialect()
        self.sent: list[tuple[bytes, tuple[str, int]]] = []
        self.body = FakeBody()
        self.craft = Craft(
            self.m, system, ParamTable(all_parameters(params_path("sihsim_quadx"))), ORIGIN, sight(), lambda: 0.5
        )
        for remote, rates in ((HERE, ONBOARD_RATES), (("127.0.0.1", 14550), GROUND_RATES)):
            self.craft.connect(
                MavlinkLink(self.m, system, remote, rates, lambda data, peer: self.sent.append((data, peer)))
            )
        self.link = self.craft.links[0]
        self._client = self.m.MAVLink(None, 245, 190)

    def heard(self, *types: str, peer: tuple[str, int] | None = None) -> list[Any]:
        """The messages sent since the last look, of some types and to one peer if wanted."""
        decoder = self.m.MAVLink(None)
        every = frozenset(self.m.mavlink_map)
        found = []
        for data, to in self.sent:
            if peer is None or to == peer:
                found += list(messages(decoder, every, data, self.m.MAVError))
        self.sent.clear()
        return [message for message in found if not types or message.get_type() in types]

    def tell(self, message: Any, peer: tuple[str, int] = HERE) -> list[Any]:
        """Pack, unpack and handle a message; returns the answers."""
        data = message.pack(self._client)
        (decoded,) = messages(self.m.MAVLink(None), wanted_messages(self.m), bytes(data), self.m.MAVError)
        receive(Talk(self.craft, self.link, peer, self.body, 0), decoded)
        for link in self.craft.links:
            link.flush()
        return self.heard()

    def command(self, number: int, *numbers: float) -> int:
        """Send a COMMAND_LONG; returns the result in its acknowledgement."""
        filled = [*numbers, *([0.0] * (7 - len(numbers)))]
        answers = self.tell(self.m.MAVLink_command_long_message(1, 1, number, 0, *filled))
        *first, ack = [answer for answer in answers if answer.get_type() == "COMMAND_ACK"]
        assert [early.result for early in first] == ([0] if number == 176 else [])  # PX4 acknowledges modes twice
        assert (ack.command, ack.target_system, ack.target_component) == (number, 245, 190)
        return int(ack.result)

    def setpoint(self, x: float = 0.0, y: float = 0.0, z: float = -5.0, mask: int = 0x9F8, frame: int = 1) -> None:
        self.tell(self.m.MAVLink_set_position_target_local_ned_message(0, 1, 1, frame, mask, x, y, z, *([0.0] * 8)))

    def wait(self, time_s: float, **changes: Any) -> Any:
        """Let the vehicle look again at a later moment; returns the setpoint it flies."""
        row = self.craft.think(replace(self.craft.sight, time_s=time_s, **changes))
        for link in self.craft.links:
            link.flush()
        return row


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def make_sight() -> Callable[..., Sight]:
    return sight
