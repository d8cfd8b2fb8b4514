"""What a vehicle does with each message and command it gets, and what it answers: after PX4 v1.17's receiver."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from sar_core.geodesy import Origin
from sar_eval.sitl import commander
from sar_eval.sitl.commander import MODE_OF_WORD, CommandResult, FlightMode, Severity, Text
from sar_eval.sitl.craft import FIRST_WORDS, HIGHEST_M, Craft
from sar_eval.sitl.link import Address, MavlinkLink
from sar_eval.sitl.paramtable import from_wire, to_wire
from sar_sim.vehicle.autopilot import SETPOINT

FORCE = 21196
"""The magic number that disarms in the air."""
NOT_A_PLACE = 0x7FFFFFFF
COMPONENT = 1
MOTORS = 4
MOST_MESSAGES = 0xFFFF
"""Ids that MESSAGE_INTERVAL can tell of."""


class Body(Protocol):
    """What failures act on; a fleet."""

    def lose_gps(self, index: int, lost: bool) -> None: ...

    def weaken_motors(self, index: int, left: Any) -> None: ...


@dataclass(frozen=True)
class MessageOrder:
    """A command, however it came: seven numbers, of which 5 and 6 may be degrees."""

    number: int
    p: tuple[float, float, float, float, float, float, float]


@dataclass
class Talk:
    """One message from one peer: who is asked, by whom, on which link."""

    craft: Craft
    link: MavlinkLink
    peer: Address
    body: Body
    index: int

    def reply(self, *messages: Any) -> None:
        self.link.reply(list(messages), self.peer)


def receive(talk: Talk, message: Any) -> None:
    """Handle one decoded message."""
    if talk.link.meet(talk.peer):
        talk.reply(talk.craft.status_text(Text(Severity.WARNING, FIRST_WORDS)))
    handler = _MESSAGES.get(message.get_type())
    if handler is not None and _is_for(talk.craft, message):
        handler(talk, message)


def wanted_messages(m: Any) -> frozenset[int]:
    """Ids of the messages worth decoding."""
    return frozenset(int(getattr(m, f"MAVLINK_MSG_ID_{name}")) for name in ("HEARTBEAT", *_MESSAGES))


_BROADCAST = (519, 520)
"""Requests for versions, which PX4 answers also when they are for every system and whatever component."""
_OFTEN_BROADCAST = ("SET_POSITION_TARGET_LOCAL_NED", "TIMESYNC", "HEARTBEAT")


def _is_for(craft: Craft, message: Any) -> bool:
    system = getattr(message, "target_system", 0)
    component = getattr(message, "target_component", 0)
    if getattr(message, "command", None) in _BROADCAST:
        return system in (0, craft.system)
    if message.get_type() in _OFTEN_BROADCAST and system == 0:
        return True
    return system == craft.system and component in (0, COMPONENT)


def _command_long(talk: Talk, message: Any) -> None:
    numbers = (message.param1, message.param2, message.param3, message.param4, message.param5, message.param6)
    _obey(talk, message, MessageOrder(message.command, (*numbers, message.param7)))


def _command_int(talk: Talk, message: Any) -> None:
    place = (message.x * 1e-7, message.y * 1e-7)
    if message.x == message.y == NOT_A_PLACE:
        place = (math.nan, math.nan)
    numbers = (message.param1, message.param2, message.param3, message.param4, *place, message.z)
    _obey(talk, message, MessageOrder(message.command, numbers))


def _obey(talk: Talk, message: Any, order: MessageOrder) -> None:
    action = COMMANDS.get(order.number)
    try:
        result = CommandResult.UNSUPPORTED if action is None else action(talk, order)
    except (ValueError, OverflowError):  # NaN or infinity where a whole number belongs
        result = CommandResult.DENIED
    if order.number == talk.craft.m.MAV_CMD_DO_SET_MODE:
        _acknowledge(
            talk, message, order.number, CommandResult.ACCEPTED
        )  # PX4's link does, before its commander is asked
    _acknowledge(talk, message, order.number, result)


def _acknowledge(talk: Talk, message: Any, number: int, result: CommandResult) -> None:
    source = message.get_srcSystem(), message.get_srcComponent()
    talk.reply(talk.craft.m.MAVLink_command_ack_message(number, int(result), 0, 0, *source))


def _arm(talk: Talk, order: MessageOrder) -> CommandResult:
    craft = talk.craft
    if not math.isfinite(order.p[0]) or round(order.p[0]) not in (0, 1):
        return CommandResult.UNSUPPORTED
    was_armed = craft.state.armed
    if round(order.p[0]) == 1:
        answer = commander.arm(craft.state, craft.condition, craft.rules)
    else:
        answer = commander.disarm(craft.state, craft.condition, order.p[1] == FORCE)
    craft.state = answer.state
    if craft.state.armed and not was_armed:
        craft.home = craft.sight.position
    craft.say(answer.text)
    return answer.result


def _set_mode(talk: Talk, order: MessageOrder) -> CommandResult:
    custom_mode_enabled = 1
    if not int(order.p[0]) & custom_mode_enabled:
        return CommandResult.TEMPORARILY_REJECTED
    return _enter_word(talk.craft, int(order.p[1]) << 16 | int(order.p[2]) << 24)


def _enter_word(craft: Craft, word: int) -> CommandResult:
    mode = MODE_OF_WORD.get(word)
    if mode is None:
        craft.say(Text(Severity.CRITICAL, f"Mode denied: only {', '.join(known.name for known in FlightMode)}"))
        return CommandResult.TEMPORARILY_REJECTED
    return craft.enter(mode).result


def _set_mode_message(talk: Talk, message: Any) -> None:
    _acknowledge(talk, message, talk.craft.m.MAV_CMD_DO_SET_MODE, _enter_word(talk.craft, message.custom_mode))


def _take_off(talk: Talk, order: MessageOrder) -> CommandResult:
    return talk.craft.enter(FlightMode.TAKEOFF, talk.craft.take_off_goal(order.p[6])).result


def _land(talk: Talk, _: MessageOrder) -> CommandResult:
    return talk.craft.enter(FlightMode.LAND).result


def _return(talk: Talk, _: MessageOrder) -> CommandResult:
    return talk.craft.enter(FlightMode.RTL).result


def _reposition(talk: Talk, order: MessageOrder) -> CommandResult:
    """PX4 takes it only with the flag that changes the mode; altitude is above sea level."""
    craft = talk.craft
    if order.p[1] != 1.0:
        return CommandResult.UNSUPPORTED
    here = craft.global_of(craft.sight.position)
    stay = all(math.isnan(number) for number in order.p[4:7])
    wanted = Origin(*(now if math.isnan(number) else number for number, now in zip(order.p[4:7], here, strict=True)))
    if not _is_place(*wanted):
        return CommandResult.DENIED
    return craft.enter(FlightMode.HOLD, None if stay else craft.place_of(*wanted)).result


def _is_place(latitude: float, longitude: float, altitude_m: float) -> bool:
    """On the Earth, in its oceans or not far above; nothing is where any of them is NaN."""
    return abs(latitude) <= 90.0 and abs(longitude) <= 180.0 and abs(altitude_m) <= HIGHEST_M


def _set_home(talk: Talk, order: MessageOrder) -> CommandResult:
    craft = talk.craft
    if order.p[0] > 0.5:
        craft.home = craft.sight.position
    elif _is_place(*order.p[4:7]):
        craft.home = craft.place_of(*order.p[4:7])
    else:
        return CommandResult.DENIED
    return CommandResult.ACCEPTED


def _set_interval(talk: Talk, order: MessageOrder) -> CommandResult:
    number, interval = int(order.p[0] + 0.5), order.p[1]
    unknown = number == talk.craft.m.MAVLINK_MSG_ID_HEARTBEAT or number not in talk.link.schedule
    if unknown or not math.isfinite(interval):
        return CommandResult.FAILED
    talk.link.schedule.set_interval(number, interval)
    return CommandResult.ACCEPTED


def _tell_interval(talk: Talk, number: int) -> CommandResult:
    if not 0 <= number <= MOST_MESSAGES:
        return CommandResult.DENIED
    talk.reply(talk.craft.m.MAVLink_message_interval_message(number, talk.link.schedule.interval_us(number)))
    return CommandResult.ACCEPTED


def _get_interval(talk: Talk, order: MessageOrder) -> CommandResult:
    return _tell_interval(talk, int(order.p[0] + 0.5))


def _request(talk: Talk, order: MessageOrder) -> CommandResult:
    number = round(order.p[0])
    if number == talk.craft.m.MAVLINK_MSG_ID_MESSAGE_INTERVAL:
        return _tell_interval(talk, int(order.p[1] + 0.5))
    return _send_once(talk, number)


def _send_once(talk: Talk, number: int) -> CommandResult:
    message = talk.craft.message(number)
    if message is None:
        return CommandResult.DENIED
    talk.reply(message)
    return CommandResult.ACCEPTED


def _request_version(talk: Talk, _: MessageOrder) -> CommandResult:
    return _send_once(talk, talk.craft.m.MAVLINK_MSG_ID_AUTOPILOT_VERSION)


def _request_home(talk: Talk, _: MessageOrder) -> CommandResult:
    return _send_once(talk, talk.craft.m.MAVLINK_MSG_ID_HOME_POSITION)


def _reboot(_: Talk, order: MessageOrder) -> CommandResult:
    return CommandResult.ACCEPTED if order.p[0] == 0.0 else CommandResult.DENIED


def _inject(talk: Talk, order: MessageOrder) -> CommandResult:
    """GPS, battery and motors, off and ok again; unlike PX4 it never accepts what it does not do."""
    m, craft = talk.craft.m, talk.craft
    if not craft.table["SYS_FAILURE_EN"]:
        return CommandResult.DENIED
    unit, kind, number = (int(value + 0.5) for value in order.p[0:3])
    if kind not in (m.FAILURE_TYPE_OK, m.FAILURE_TYPE_OFF):
        return CommandResult.UNSUPPORTED
    broken = kind == m.FAILURE_TYPE_OFF
    if unit == m.FAILURE_UNIT_SENSOR_GPS and number in (0, 1):
        talk.body.lose_gps(talk.index, broken)
    elif unit == m.FAILURE_UNIT_SYSTEM_BATTERY and number == 0:
        craft.battery_failed = broken
    elif unit == m.FAILURE_UNIT_SYSTEM_MOTOR and 0 <= number <= MOTORS:
        chosen = range(MOTORS) if number == 0 else (number - 1,)
        for motor in chosen:
            craft.motors_left[motor] = 0.0 if broken else 1.0
        talk.body.weaken_motors(talk.index, craft.motors_left.copy())
    else:
        return CommandResult.UNSUPPORTED
    craft.say(Text(Severity.WARNING, f"Failure injected: unit {unit} {'off' if broken else 'ok'}"))
    return CommandResult.ACCEPTED


def _follow(talk: Talk, message: Any) -> None:
    """A setpoint for OFFBOARD; it counts for the stream in any mode."""
    craft, m = talk.craft, talk.craft.m
    if message.coordinate_frame != m.MAV_FRAME_LOCAL_NED:
        craft.say(Text(Severity.CRITICAL, f"Setpoint refused: frame {message.coordinate_frame}, not LOCAL_NED"))
        return
    row = setpoint_row(message)
    if not np.isfinite(row[0:9]).any():
        craft.say(Text(Severity.CRITICAL, "Setpoint refused: nothing is commanded"))
        return
    craft.stream_row = craft.from_local(row)
    craft.stream_at_s = craft.sight.time_s


def setpoint_row(message: Any) -> Any:
    """SET_POSITION_TARGET_LOCAL_NED as a row; bits of the mask say what not to follow."""
    row = np.array(
        [
            *(message.x, message.y, message.z),
            *(message.vx, message.vy, message.vz),
            *(message.afx, message.afy, message.afz),
            *(message.yaw, message.yaw_rate),
        ]
    )
    force_bit = 9
    bits = [bit for bit in range(12) if bit != force_bit]
    ignored = [bool(message.type_mask >> bit & 1) for bit in bits]
    assert len(ignored) == SETPOINT
    row[ignored] = np.nan
    return row


def _set_origin(talk: Talk, message: Any) -> None:
    """PX4 takes a new origin at any time; the vehicle stays where it is and counts from elsewhere."""
    latitude, longitude = message.latitude * 1e-7, message.longitude * 1e-7
    if _is_place(latitude, longitude, message.altitude * 1e-3):
        talk.craft.origin = Origin(latitude, longitude, message.altitude * 1e-3)
    _send_once(talk, talk.craft.m.MAVLINK_MSG_ID_GPS_GLOBAL_ORIGIN)


def _parameter(craft: Craft, name: str) -> Any:
    parameter = craft.table.parameter(name)
    index = craft.table.names.index(name)
    return craft.m.MAVLink_param_value_message(
        name.encode(), to_wire(parameter), parameter.mavlink_type, len(craft.table), index
    )


def _list_parameters(talk: Talk, _: Any) -> None:
    talk.reply(*(_parameter(talk.craft, name) for name in talk.craft.table))


def _read_parameter(talk: Talk, message: Any) -> None:
    names = talk.craft.table.names
    index = message.param_index
    wanted = [message.param_id] if index < 0 else names[index : index + 1]
    talk.reply(*(_parameter(talk.craft, name) for name in wanted if name in talk.craft.table))


def _write_parameter(talk: Talk, message: Any) -> None:
    """Answered by the value that holds, changed or not; an unknown name or a wrong type by a text only."""
    craft, name = talk.craft, message.param_id
    if name not in craft.table or craft.table.parameter(name).mavlink_type != message.param_type:
        craft.say(Text(Severity.WARNING, f"{name}: unknown parameter or wrong type"))
        return
    problem = craft.table.set(name, from_wire(message.param_value, message.param_type))
    craft.parameters_changed()
    talk.reply(_parameter(craft, name))
    if problem:
        craft.say(Text(Severity.WARNING, problem))


def _list_mission(talk: Talk, message: Any) -> None:
    """There are no missions; ground stations ask and wait for the answer."""
    source = message.get_srcSystem(), message.get_srcComponent()
    talk.reply(talk.craft.m.MAVLink_mission_count_message(*source, 0, message.mission_type))


def _sync(talk: Talk, message: Any) -> None:
    if message.tc1 == 0:
        talk.reply(talk.craft.m.MAVLink_timesync_message(round(talk.craft.clock_s * 1e9), message.ts1))


_MESSAGES: dict[str, Callable[[Talk, Any], None]] = {
    "COMMAND_LONG": _command_long,
    "COMMAND_INT": _command_int,
    "SET_MODE": _set_mode_message,
    "SET_POSITION_TARGET_LOCAL_NED": _follow,
    "SET_GPS_GLOBAL_ORIGIN": _set_origin,
    "PARAM_REQUEST_LIST": _list_parameters,
    "PARAM_REQUEST_READ": _read_parameter,
    "PARAM_SET": _write_parameter,
    "MISSION_REQUEST_LIST": _list_mission,
    "TIMESYNC": _sync,
}
COMMANDS: dict[int, Callable[[Talk, MessageOrder], CommandResult]] = {
    20: _return,
    21: _land,
    22: _take_off,
    176: _set_mode,
    179: _set_home,
    192: _reposition,
    246: _reboot,
    400: _arm,
    410: _request_home,
    420: _inject,
    510: _get_interval,
    511: _set_interval,
    512: _request,
    520: _request_version,
}
