"""PX4's rules as a client meets them, asked of one vehicle on the ground: refusals, OFFBOARD, stream loss, landing.

    python tests/integration/px4rules.py 14540

prints each question with what was expected and what came. The expectations were seen on PX4 v1.17.0 with SIH; the same
are asked of `sar-eval sitl`, and of a real PX4 wherever one runs.
"""

from __future__ import annotations

import math
import os
import struct
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("MAVLINK20", "1")

from pymavlink import mavutil

ACCEPTED, REJECTED, DENIED, UNSUPPORTED, FAILED = range(5)
HEIGHT_M = 3.0
POSITION_ONLY = 0x9F8
ARMED = 128
INT32 = 6
STREAM_S = 0.05


class Client:
    """A ground station on one UDP port, talking to whoever sends there."""

    def __init__(self, port: int) -> None:
        self.link = mavutil.mavlink_connection(
            f"udpin:127.0.0.1:{port}", source_system=245, source_component=190, dialect="common"
        )
        heartbeat = self.link.wait_heartbeat(timeout=20)
        assert heartbeat is not None, f"nobody talks on UDP port {port}"
        self.system = heartbeat.get_srcSystem()
        self.height_m = 0.0
        self.streaming = False
        self.texts: list[str] = []
        self._sent_at = 0.0

    def close(self) -> None:
        self.link.close()

    def wait(self, seconds: float, happened: Callable[[Any], bool] = lambda _: False) -> Any:
        """Listen, and stream setpoints if told to; returns the first message that will do, None if time runs out."""
        give_up = time.monotonic() + seconds
        while time.monotonic() < give_up:
            if self.streaming and time.monotonic() - self._sent_at > STREAM_S:
                self._sent_at = time.monotonic()
                self.setpoint()
            message = self.link.recv_match(blocking=True, timeout=0.01)
            if message is None or message.get_srcSystem() != self.system:
                continue
            if message.get_type() == "STATUSTEXT":
                self.texts.append(message.text)
            if happened(message):
                return message
        return None

    def setpoint(self) -> None:
        place = (0.0, 0.0, -self.height_m)
        self.link.mav.set_position_target_local_ned_send(
            0, self.system, 1, mavutil.mavlink.MAV_FRAME_LOCAL_NED, POSITION_ONLY, *place, *([0.0] * 8)
        )

    def command(self, number: int, *numbers: float) -> list[int]:
        """The results of all acknowledgements within 0.3 s of the first."""
        self.link.mav.command_long_send(self.system, 1, number, 0, *numbers, *([0.0] * (7 - len(numbers))))

        def is_answer(message: Any) -> bool:
            return message.get_type() == "COMMAND_ACK" and bool(message.command == number)

        results = []
        answer = self.wait(3.0, is_answer)
        while answer is not None:
            results.append(int(answer.result))
            answer = self.wait(0.3, is_answer)
        return results

    def mode(self, seconds: float = 3.0) -> str:
        """The flight mode of the next heartbeat."""
        return mavutil.mode_string_v10(self.heartbeat(seconds))

    def heartbeat(self, seconds: float = 3.0, happened: Callable[[Any], bool] = lambda _: True) -> Any:
        found = self.wait(seconds, lambda message: message.get_type() == "HEARTBEAT" and happened(message))
        assert found is not None, f"no such heartbeat within {seconds} s; texts were {self.texts}"
        return found

    def parameter(self, name: str, value: int | None = None) -> int | None:
        """Read an integer parameter, or write it first; None if nobody answers."""
        if value is None:
            self.link.mav.param_request_read_send(self.system, 1, name.encode(), -1)
        else:
            coded = struct.unpack("<f", struct.pack("<i", value))[0]
            self.link.mav.param_set_send(self.system, 1, name.encode(), coded, INT32)
        answer = self.wait(2.0, lambda message: message.get_type() == "PARAM_VALUE" and message.param_id == name)
        return None if answer is None else int(struct.unpack("<i", struct.pack("<f", answer.param_value))[0])


def on_the_ground(c: Client) -> dict[str, tuple[Any, Any]]:
    """Each question with what PX4 answers and what came."""
    m, nan = mavutil.mavlink, math.nan
    asked: dict[str, tuple[Any, Any]] = {
        "mode at the start": ("LOITER", c.mode()),
        "unknown command": ([UNSUPPORTED], c.command(31000)),
        "heartbeat interval": ([FAILED], c.command(511, m.MAVLINK_MSG_ID_HEARTBEAT, 1e6)),
        "unknown interval": ([FAILED], c.command(511, 9999, 1e6)),
        "interval of the truth": ([ACCEPTED], c.command(511, m.MAVLINK_MSG_ID_HIL_STATE_QUATERNION, 50_000)),
        "unknown message": ([DENIED], c.command(512, 9999)),
        "version": ([ACCEPTED], c.command(512, m.MAVLINK_MSG_ID_AUTOPILOT_VERSION)),
        "version, the old way": ([ACCEPTED], c.command(520, 1)),
        "disarm, disarmed": ([ACCEPTED], c.command(400, 0)),
        "reposition without its flag": ([UNSUPPORTED], c.command(192, -1, 0, 0, nan, nan, nan, nan)),
        "home nowhere": ([DENIED], c.command(179, 0, 0, 0, 0, nan, nan, nan)),
        "ninth motor off": ([UNSUPPORTED], c.command(420, m.FAILURE_UNIT_SYSTEM_MOTOR, m.FAILURE_TYPE_OFF, 9)),
        "motors ok": ([ACCEPTED], c.command(420, m.FAILURE_UNIT_SYSTEM_MOTOR, m.FAILURE_TYPE_OK, 0)),
        "OFFBOARD without a stream": ([ACCEPTED, ACCEPTED], c.command(176, 1, 6)),
        "its mode": ("OFFBOARD", c.mode()),
        "arm without a stream": ([REJECTED], c.command(400, 1)),
        "arm by force": ([REJECTED], c.command(400, 1, 21196)),
        "land, disarmed": ([ACCEPTED], c.command(21)),
        "arm in LAND": ([REJECTED], c.command(400, 1)),
        "hold": ([ACCEPTED, ACCEPTED], c.command(176, 1, 4, 3)),
        "hold on stream loss": (5, c.parameter("COM_OBL_RC_ACT", 5)),
        "read again": (5, c.parameter("COM_OBL_RC_ACT")),
        "unknown parameter": (None, c.parameter("NO_SUCH_THING")),
    }
    return asked


def in_the_air(c: Client) -> dict[str, tuple[Any, Any]]:
    """The same for one flight in OFFBOARD, 3 m up."""
    asked: dict[str, tuple[Any, Any]] = {}
    c.height_m = HEIGHT_M
    c.streaming = True
    c.wait(1.2)
    asked["OFFBOARD with a stream"] = ([ACCEPTED, ACCEPTED], c.command(176, 1, 6))
    asked["arm with a stream"] = ([ACCEPTED], c.command(400, 1))
    asked["arm again"] = ([ACCEPTED], c.command(400, 1))
    up = c.wait(20.0, lambda message: message.get_type() == "LOCAL_POSITION_NED" and message.z < -HEIGHT_M + 0.8)
    asked["climbs"] = (True, up is not None)
    asked["disarm in the air"] = ([REJECTED], c.command(400, 0))
    asked["a mission that is not there"] = ([ACCEPTED, REJECTED], c.command(176, 1, 4, 4))
    asked["mode while streaming"] = ("OFFBOARD", c.mode())
    c.streaming = False
    lost = c.heartbeat(20.0, lambda message: mavutil.mode_string_v10(message) != "OFFBOARD")
    asked["mode without the stream"] = ("LOITER", mavutil.mode_string_v10(lost))
    asked["its state"] = (mavutil.mavlink.MAV_STATE_CRITICAL, lost.system_status)
    asked["OFFBOARD in the air without a stream"] = ([ACCEPTED, REJECTED], c.command(176, 1, 6))
    c.streaming = True
    back = c.heartbeat(20.0, lambda message: mavutil.mode_string_v10(message) == "OFFBOARD")
    asked["its state with the stream again"] = (mavutil.mavlink.MAV_STATE_ACTIVE, back.system_status)
    c.streaming = False
    asked["land"] = ([ACCEPTED], c.command(21))
    asked["mode in landing"] = ("LAND", c.mode())
    down = c.heartbeat(60.0, lambda message: not message.base_mode & ARMED)
    asked["mode after landing"] = ("OFFBOARD", mavutil.mode_string_v10(down))
    return asked


def wrong(asked: dict[str, tuple[Any, Any]]) -> dict[str, tuple[Any, Any]]:
    return {question: answers for question, answers in asked.items() if answers[0] != answers[1]}


if __name__ == "__main__":
    client = Client(int(sys.argv[1]))
    every = {**on_the_ground(client), **in_the_air(client)}
    for name, (right, came) in every.items():
        print(f"{'ok   ' if right == came else 'WRONG'} {name}: {came}" + ("" if right == came else f", not {right}"))
    sys.exit(1 if wrong(every) else 0)
