"""One vehicle as its onboard computer sees it: what it tells, what it was asked and has not answered, its setpoint."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sar_core.frames import swap_world, swap_yaw
from sar_core.geodesy import Origin
from sar_eval.px4.mavlink import PX4_MAIN_MODES, dialect
from sar_eval.px4.parameters import Settling
from sar_eval.px4.telemetry import Telemetry
from sar_eval.px4.wire import VehicleWire
from sar_swarm.piloting.controller import Command

Floats = NDArray[np.float64]

STREAM_HZ = 50.0
STREAMS = {
    "HIL_STATE_QUATERNION": STREAM_HZ,
    "LOCAL_POSITION_NED": STREAM_HZ,
    "ATTITUDE_QUATERNION": STREAM_HZ,
    "EXTENDED_SYS_STATE": 5.0,
    "GPS_RAW_INT": 5.0,
    "ESTIMATOR_STATUS": 2.0,
    "SYS_STATUS": 2.0,
    "BATTERY_STATUS": 1.0,
}
"""Streams asked for, in vehicle time."""
UNUSED = (
    *("ATTITUDE", "ATTITUDE_TARGET", "ACTUATOR_CONTROL_TARGET", "ALTITUDE", "GIMBAL_DEVICE_ATTITUDE_STATUS"),
    *("GLOBAL_POSITION_INT", "HIGHRES_IMU", "ODOMETRY", "POSITION_TARGET_LOCAL_NED", "POSITION_TARGET_GLOBAL_INT"),
    *("SCALED_IMU", "SERVO_OUTPUT_RAW", "TIMESYNC", "VFR_HUD", "VIBRATION", "WIND_COV", "DISTANCE_SENSOR"),
    *("OPTICAL_FLOW_RAD", "ESC_INFO", "ESC_STATUS", "RC_CHANNELS", "SYSTEM_TIME", "UTM_GLOBAL_POSITION"),
    *("MANUAL_CONTROL", "NAV_CONTROLLER_OUTPUT", "PING", "LINK_NODE_STATUS", "CURRENT_MODE", "GPS2_RAW"),
)
"""Streams switched off: what is sent for nothing costs both ends time."""
ANSWERS = (
    *("HEARTBEAT", "COMMAND_ACK", "STATUSTEXT", "AUTOPILOT_VERSION", "GPS_GLOBAL_ORIGIN"),
    *("PARAM_VALUE", "PARAM_ERROR"),
)
ASK_AGAIN_S = 0.2
"""Wall time after which an unanswered request is made again: a missing answer is not a refusal."""
ARM_APART_S = 0.25
"""Vehicles arm one after another: all at once they are most likely to lose a timer on a host with few cores."""
_IGNORE = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_IGNORE_YAW_RATE = 2048
_STAND = np.array([math.nan] * 3 + [0.0] * 3 + [math.nan] * 3)


def message_ids(names: tuple[str, ...]) -> list[int]:
    mavlink = dialect()
    return [getattr(mavlink, f"MAVLINK_MSG_ID_{name}") for name in names if hasattr(mavlink, f"MAVLINK_MSG_ID_{name}")]


def wanted_ids() -> frozenset[int]:
    return frozenset(message_ids((*STREAMS, *ANSWERS)))


def setpoint_of(command: Command) -> tuple[Floats, int, float]:
    """A command as PX4 takes it: nine numbers in NED, the mask of those not commanded, the yaw.

    A drone that is told nothing stands still: a stream that commands nothing is no stream to PX4.
    """
    row = np.concatenate([swap_world(command.position), swap_world(command.velocity), swap_world(command.acceleration)])
    if np.isnan(row).all():
        row = _STAND.copy()
    mask = _IGNORE_YAW_RATE + sum(bit for bit, value in zip(_IGNORE, row, strict=True) if math.isnan(value))
    return np.nan_to_num(row), mask, float(swap_yaw(command.yaw))


@dataclass
class Request:
    """A COMMAND_LONG that wants an answer. ``must``: a refusal spoils the start."""

    command: int
    parameters: tuple[float, ...]
    must: bool = False
    asked_s: float = -math.inf
    tries: int = 0


class PilotedVehicle:
    """Everything about one vehicle; ``listen`` and ``talk`` never wait."""

    def __init__(self, instance: int, origin: Origin) -> None:
        self.instance = instance
        self.name = f"vehicle {instance + 1}"
        self.told = Telemetry(origin)
        self.wire = VehicleWire(instance, wanted_ids())
        self.requests: deque[Request] = deque()
        self.refused: list[str] = []
        self.settling = Settling({})
        self.want_armed = False
        self.wanted_since_s = -math.inf
        self.arm_asked_s = -math.inf
        self.arm_answer: str | None = None
        self._mavlink = dialect()
        self._beat_s = -math.inf

    @property
    def target(self) -> tuple[int, int]:
        return self.instance + 1, 1

    def listen(self) -> None:
        """Take in what has come."""
        for arrival_s, message in self.wire.receive():
            if message.get_srcSystem() != self.instance + 1:
                continue
            self.told.take(arrival_s, message)
            if message.get_type() == "COMMAND_ACK":
                self._answered(message)
            elif message.get_type() == "PARAM_VALUE":
                self._settle(message)
            elif message.get_type() == "PARAM_ERROR":
                self.settling.refuse(message)

    def _answered(self, ack: Any) -> None:
        accepted = ack.result == self._mavlink.MAV_RESULT_ACCEPTED
        if ack.command == self._mavlink.MAV_CMD_COMPONENT_ARM_DISARM:
            self.arm_answer = _result_name(self._mavlink, ack.result)
            if accepted:
                self.told.armed = self.want_armed
            return
        if self.requests and self.requests[0].command == ack.command:
            if ack.result == self._mavlink.MAV_RESULT_IN_PROGRESS:
                return
            done = self.requests.popleft()
            if done.must and not accepted:
                self.refused.append(f"command {done.command}: {_result_name(self._mavlink, ack.result)}")

    def _settle(self, message: Any) -> None:
        setting = self.settling.take(message)
        if setting is not None:
            self.wire.codec.param_set_send(*self.target, setting.name.encode(), setting.value, setting.kind)

    def ask(self, command: int, *parameters: float, must: bool = False) -> None:
        """Queue a request; the next is made when this one is answered."""
        self.requests.append(Request(command, parameters, must))

    def ask_streams(self) -> None:
        """The streams an episode needs."""
        interval = self._mavlink.MAV_CMD_SET_MESSAGE_INTERVAL
        for name, rate in STREAMS.items():
            self.ask(interval, getattr(self._mavlink, f"MAVLINK_MSG_ID_{name}"), 1e6 / rate, must=True)

    def silence_others(self) -> None:
        """Ask for nothing else, once what is needed flows: an answer does not say to which of such requests it is."""
        for number in message_ids(UNUSED):
            self._command(self._mavlink.MAV_CMD_SET_MESSAGE_INTERVAL, (number, -1.0), 0)

    def ask_identity(self) -> None:
        self.ask(self._mavlink.MAV_CMD_REQUEST_MESSAGE, self._mavlink.MAVLINK_MSG_ID_AUTOPILOT_VERSION)

    def ask_offboard(self) -> None:
        self.ask(self._mavlink.MAV_CMD_DO_SET_MODE, 1, PX4_MAIN_MODES["offboard"], must=True)

    def set_origin(self) -> None:
        """Give the local frame its zero; PX4 answers with GPS_GLOBAL_ORIGIN."""
        o = self.told.origin
        place = round(o.latitude * 1e7), round(o.longitude * 1e7), round(o.altitude_m * 1e3)
        self.wire.codec.set_gps_global_origin_send(self.target[0], *place)

    def talk(self, now_s: float) -> None:
        """Once a second a heartbeat, and what was asked and not answered again."""
        if now_s - self._beat_s >= 1.0:
            self._beat_s = now_s
            m = self._mavlink
            self.wire.codec.heartbeat_send(
                m.MAV_TYPE_ONBOARD_CONTROLLER, m.MAV_AUTOPILOT_INVALID, 0, 0, m.MAV_STATE_ACTIVE
            )
        if self.requests and now_s - self.requests[0].asked_s >= ASK_AGAIN_S:
            head = self.requests[0]
            head.asked_s = now_s
            self._command(head.command, head.parameters, head.tries)
            head.tries += 1
        for name in self.settling.due(now_s):
            self.wire.codec.param_request_read_send(*self.target, name.encode(), -1)
        turn_s = self.wanted_since_s + ARM_APART_S * self.instance
        if self.want_armed != self.told.armed and now_s >= turn_s and now_s - self.arm_asked_s >= ASK_AGAIN_S:
            self.arm_asked_s = now_s
            self._command(self._mavlink.MAV_CMD_COMPONENT_ARM_DISARM, (float(self.want_armed),), 0)

    def _command(self, command: int, parameters: tuple[float, ...], tries: int) -> None:
        padded = (*parameters, *([0.0] * (7 - len(parameters))))
        self.wire.codec.command_long_send(*self.target, command, min(tries, 255), *padded)

    def fly(self, command: Command, now_s: float) -> None:
        """Send a setpoint, and see to it that the motors are as asked."""
        if command.armed != self.want_armed:
            self.want_armed, self.wanted_since_s, self.arm_answer = command.armed, now_s, None
        row, mask, yaw = setpoint_of(command)
        frame = self._mavlink.MAV_FRAME_LOCAL_NED
        boot_ms = int(1000.0 * self.told.clock.reading_s) if self.told.clock.readings else 0
        self.wire.codec.set_position_target_local_ned_send(
            boot_ms, *self.target, frame, mask, *(float(v) for v in row), yaw, 0.0
        )

    def close(self) -> None:
        self.wire.close()


def _result_name(mavlink: Any, result: int) -> str:
    entry = mavlink.enums["MAV_RESULT"].get(result)
    name: str = entry.name if entry is not None else str(result)
    return name.removeprefix("MAV_RESULT_").lower()
