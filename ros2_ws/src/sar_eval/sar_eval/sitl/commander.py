"""Who may fly what when: modes, arming, failsafes. Pure functions over one frozen state, after PX4 v1.17's commander.

A mode is what the user intends; a failsafe overrides it for as long as its cause lasts, so a stream that comes back
gives OFFBOARD back. Time is the vehicle's own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, IntEnum
from typing import NamedTuple

from sar_eval.px4.mavlink import custom_mode


class FlightMode(Enum):
    """The flight modes there are, as PX4's main mode and sub mode."""

    HOLD = ("auto", "loiter")
    TAKEOFF = ("auto", "takeoff")
    LAND = ("auto", "land")
    RTL = ("auto", "rtl")
    OFFBOARD = ("offboard", None)

    @property
    def word(self) -> int:
        """custom_mode of the heartbeat."""
        return custom_mode(*self.value)


MODE_OF_WORD = {mode.word: mode for mode in FlightMode}
PREVENT_ARMING = (FlightMode.LAND, FlightMode.RTL)


class CommandResult(IntEnum):
    """MAV_RESULT."""

    ACCEPTED = 0
    TEMPORARILY_REJECTED = 1
    DENIED = 2
    UNSUPPORTED = 3
    FAILED = 4


class Severity(IntEnum):
    """MAV_SEVERITY."""

    CRITICAL = 2
    WARNING = 4
    INFO = 6


class Text(NamedTuple):
    """A STATUSTEXT to send."""

    severity: Severity
    text: str


class BatteryLevel(IntEnum):
    """How empty the battery is, by BAT_LOW_THR, BAT_CRIT_THR and BAT_EMERGEN_THR."""

    NONE = 0
    LOW = 1
    CRITICAL = 2
    EMERGENCY = 3


@dataclass(frozen=True)
class CommanderRules:
    """What the parameters say about arming and failsafes; PX4's names in the comments of the table."""

    stream_loss_s: float = 1.0
    stream_loss_action: int = 5
    manual_loss_action: int = 2
    disarm_landed_s: float = 2.0
    disarm_preflight_s: float = 10.0
    spoolup_s: float = 1.0
    low_battery_action: int = 3
    refuse_arming: bool = False


@dataclass(frozen=True)
class Condition:
    """What the vehicle knows of itself at one moment."""

    time_s: float
    landed: bool = True
    position_ok: bool = True
    stream_at_s: float | None = None
    """When the last setpoint that OFFBOARD could fly arrived; None if there never was one."""
    battery: BatteryLevel = BatteryLevel.NONE


@dataclass(frozen=True)
class CommanderState:
    """The commander's memory."""

    armed: bool = False
    intended: FlightMode = FlightMode.HOLD
    after_disarming: FlightMode = FlightMode.HOLD
    failsafe: FlightMode | None = None
    armed_at_s: float = 0.0
    flown: bool = False
    landed_at_s: float | None = None
    battery: BatteryLevel = BatteryLevel.NONE

    @property
    def mode(self) -> FlightMode:
        return self.failsafe or self.intended


class Answer(NamedTuple):
    """What a request came to."""

    state: CommanderState
    result: CommandResult
    text: Text | None = None


def stream_is_fresh(now: Condition, rules: CommanderRules) -> bool:
    return now.stream_at_s is not None and now.time_s < now.stream_at_s + rules.stream_loss_s


def can_run(mode: FlightMode, now: Condition, rules: CommanderRules) -> bool:
    """Landing always can; without a position it becomes a descent."""
    if mode is FlightMode.LAND:
        return True
    return now.position_ok and (mode is not FlightMode.OFFBOARD or stream_is_fresh(now, rules))


def can_arm(state: CommanderState, now: Condition, rules: CommanderRules) -> bool:
    """What is told beforehand; a refusal that a test asked for is not."""
    mode = state.mode
    fit = mode not in PREVENT_ARMING and can_run(mode, now, rules)
    return fit and now.battery < BatteryLevel.CRITICAL


def request_mode(state: CommanderState, mode: FlightMode, now: Condition, rules: CommanderRules) -> Answer:
    """Disarmed, every mode is taken, even OFFBOARD without a stream: it then refuses to arm."""
    if state.armed and not can_run(mode, now, rules):
        text = Text(Severity.CRITICAL, f"{mode.name} denied: {_why_not(mode, now, rules)}")
        return Answer(state, CommandResult.TEMPORARILY_REJECTED, text)
    lasting = mode not in PREVENT_ARMING and mode is not FlightMode.TAKEOFF
    after = mode if lasting else state.after_disarming
    return Answer(replace(state, intended=mode, failsafe=None, after_disarming=after), CommandResult.ACCEPTED)


def _why_not(mode: FlightMode, now: Condition, rules: CommanderRules) -> str:
    if not now.position_ok:
        return "no valid position"
    if mode is FlightMode.OFFBOARD and not stream_is_fresh(now, rules):
        return "no setpoint stream"
    return f"not from mode {mode.name}"


def arm(state: CommanderState, now: Condition, rules: CommanderRules) -> Answer:
    """PX4 checks an arming command that comes over MAVLink even if it is sent with the magic number of force."""
    if state.armed:
        return Answer(state, CommandResult.ACCEPTED)
    if rules.refuse_arming or not can_arm(state, now, rules):
        if rules.refuse_arming:
            why = "SAR_REFUSE_ARM is set"
        elif now.battery >= BatteryLevel.CRITICAL:
            why = "battery too low"
        else:
            why = _why_not(state.mode, now, rules)
        return Answer(state, CommandResult.TEMPORARILY_REJECTED, Text(Severity.CRITICAL, f"Arming denied: {why}"))
    armed = replace(state, armed=True, armed_at_s=now.time_s, flown=False, landed_at_s=None, battery=now.battery)
    return Answer(armed, CommandResult.ACCEPTED, Text(Severity.INFO, "Armed by external command"))


def disarm(state: CommanderState, now: Condition, forced: bool, why: str = "external command") -> Answer:
    if not state.armed:
        return Answer(state, CommandResult.ACCEPTED)
    if not (now.landed or forced):
        text = Text(Severity.CRITICAL, "Disarming denied: not landed")
        return Answer(state, CommandResult.TEMPORARILY_REJECTED, text)
    off = replace(state, armed=False, flown=False, failsafe=None, intended=state.after_disarming, landed_at_s=None)
    return Answer(off, CommandResult.ACCEPTED, Text(Severity.INFO, f"Disarmed by {why}"))


def watch(state: CommanderState, now: Condition, rules: CommanderRules) -> tuple[CommanderState, list[Text]]:
    """What happens by itself as time goes on: failsafes begin and end, a vehicle that stands on the ground disarms."""
    if not state.armed:
        return state, []
    state, texts = _mind_battery(state, now, rules)
    state, more = _mind_mode(state, now, rules)
    texts += more
    if state.armed:
        state, more = _mind_ground(state, now, rules)
        texts += more
    return state, texts


def _mind_battery(state: CommanderState, now: Condition, rules: CommanderRules) -> tuple[CommanderState, list[Text]]:
    """COM_LOW_BAT_ACT, when a level is first reached; whoever asks for another mode afterwards takes over."""
    if now.battery <= state.battery:
        return state, []
    texts = [Text(Severity.CRITICAL, f"Battery level: {now.battery.name}")]
    state = replace(state, battery=now.battery)
    mode = None
    if now.battery >= BatteryLevel.CRITICAL and rules.low_battery_action in (2, 3):
        land = rules.low_battery_action == 2 or now.battery is BatteryLevel.EMERGENCY
        mode = FlightMode.LAND if land else FlightMode.RTL
    if mode is not None and can_run(mode, now, rules) and state.intended is not FlightMode.LAND:
        texts.append(Text(Severity.CRITICAL, f"Failsafe: battery, {mode.name}"))
        state = replace(state, intended=mode, failsafe=None)
    return state, texts


def _mind_mode(state: CommanderState, now: Condition, rules: CommanderRules) -> tuple[CommanderState, list[Text]]:
    """A mode that cannot run is replaced until it can."""
    intended = state.intended
    if can_run(intended, now, rules):
        if state.failsafe is None:
            return state, []
        return replace(state, failsafe=None), [Text(Severity.INFO, f"Failsafe over: {intended.name}")]
    lost_stream = intended is FlightMode.OFFBOARD and not stream_is_fresh(now, rules)
    instead = _after_stream_loss(rules) if lost_stream else FlightMode.RTL
    if instead is None:
        stopped = disarm(state, now, forced=True, why="failsafe: OFFBOARD stream lost")
        return stopped.state, [stopped.text] if stopped.text else []
    if not can_run(instead, now, rules):
        instead = FlightMode.LAND
    if instead is state.failsafe:
        return state, []
    cause = "OFFBOARD stream lost" if lost_stream else "position lost"
    return replace(state, failsafe=instead), [Text(Severity.CRITICAL, f"Failsafe: {cause}, {instead.name}")]


_STREAM_LOSS = {3: FlightMode.RTL, 4: FlightMode.LAND, 5: FlightMode.HOLD, 6: None, 7: None}
_MANUAL_LOSS = {1: FlightMode.HOLD, 2: FlightMode.RTL, 3: FlightMode.LAND, 5: None, 6: None}


def _after_stream_loss(rules: CommanderRules) -> FlightMode | None:
    """COM_OBL_RC_ACT; for its manual modes (0 to 2) there is no pilot, so NAV_RCL_ACT decides. None: motors off."""
    if rules.stream_loss_action in _STREAM_LOSS:
        return _STREAM_LOSS[rules.stream_loss_action]
    return _MANUAL_LOSS.get(rules.manual_loss_action, FlightMode.RTL)


def _mind_ground(state: CommanderState, now: Condition, rules: CommanderRules) -> tuple[CommanderState, list[Text]]:
    """COM_DISARM_LAND after a flight, COM_DISARM_PRFLT before one; 0 switches either off."""
    if not now.landed:
        return replace(state, flown=True, landed_at_s=None), []
    if state.flown:
        if state.landed_at_s is None:
            return replace(state, landed_at_s=now.time_s), [Text(Severity.INFO, "Landing detected")]
        limit, since, why = rules.disarm_landed_s, state.landed_at_s, "landing"
        wait = limit
    else:
        limit, since, why = rules.disarm_preflight_s, state.armed_at_s, "auto preflight disarming"
        wait = limit + rules.spoolup_s
    if limit <= 0.0 or now.time_s - since < wait:
        return state, []
    off = disarm(state, now, forced=False, why=why)
    return off.state, [off.text] if off.text else []
