"""Between the core's values and the messages that carry them from node to node, bit for bit."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sar_msgs.msg import CsiFrames, Orders, SimEstimates, SimTruth, SwarmTick

from sar_core.mailboxes import Delivered
from sar_core.radio import ANTENNAS, SUBCARRIERS
from sar_eval.backends.backend import SimTick, time_of, times_of
from sar_eval.bag.tick import Beliefs, DroneStatuses, dilutions
from sar_eval.episode import operator as core
from sar_eval.episode import swarm as core_swarm
from sar_eval.episode.sensing import Tally
from sar_sim.judging.scoring import Hearing, Report
from sar_sim.radio.receiver import Frames
from sar_sim.vehicle.fleet import FleetState, stamp_ns
from sar_swarm.piloting.controller import Command, Guard, Order, Phase
from sar_swarm.piloting.failsafe import Failsafe

Floats = NDArray[np.float64]
COMMAND = 16
REPORT = 9
_NONE = np.zeros(0)
_NO_FLAGS = np.zeros(0, dtype=np.bool_)


def _pack(code: str, values: Any, dtype: Any) -> Any:
    return array(code, np.ascontiguousarray(values, dtype).tobytes())


def doubles(values: Any) -> Any:
    return _pack("d", values, np.float64)


def flags(values: Any) -> Any:
    return _pack("B", values, np.uint8)


def longs(values: Any) -> Any:
    return _pack("q", values, np.int64)


def addresses(values: Any) -> Any:
    return _pack("Q", values, np.uint64)


def counts(values: Any) -> Any:
    return _pack("I", values, np.uint32)


def _rows(values: Any, width: int) -> Floats:
    return np.frombuffer(values, np.float64).reshape(-1, width)


def _flags(values: Any) -> NDArray[np.bool_]:
    return np.frombuffer(values, np.uint8).astype(np.bool_)


@dataclass(frozen=True)
class Told:
    """What the drones' autopilots tell them, as :class:`sar_eval.episode.swarm.Estimates` wants it."""

    est_position: Floats
    est_velocity: Floats
    est_attitude: Floats
    charge: Floats
    landed: NDArray[np.bool_]
    gps_age_s: Floats
    motors_ok: NDArray[np.bool_]
    tilt_rad: Floats


def truth_message(run: int, now: SimTick) -> SimTruth:
    state = now.state
    return SimTruth(
        run=run,
        tick=now.tick,
        track=doubles(now.track.transpose(1, 0, 2)),
        position=doubles(state.position),
        velocity=doubles(state.velocity),
        attitude=doubles(state.attitude),
        charge=doubles(state.charge),
        landed=flags(state.landed),
    )


def read_truth(message: SimTruth) -> SimTick:
    """The world as radio and referee see it: the truth, without what the drones believe."""
    position = _rows(message.position, 3)
    state = FleetState(
        position=position,
        velocity=_rows(message.velocity, 3),
        attitude=_rows(message.attitude, 4),
        rates=_NONE,
        est_position=_NONE,
        est_velocity=_NONE,
        est_attitude=_NONE,
        charge=np.frombuffer(message.charge, np.float64),
        landed=_flags(message.landed),
        gps_age_s=_NONE,
        motors_ok=_NO_FLAGS,
        tilt_rad=_NONE,
    )
    track = np.frombuffer(message.track, np.float64).reshape(len(position), -1, 3).transpose(1, 0, 2)
    silence = Delivered(0, np.zeros((0, 3), dtype=np.int64), _NO_FLAGS)
    return SimTick(message.tick, time_of(message.tick), times_of(message.tick), track, state, silence)


def estimates_message(run: int, now: SimTick, delivery: Floats | None) -> SimEstimates:
    state = now.state
    return SimEstimates(
        run=run,
        tick=now.tick,
        position=doubles(state.est_position),
        velocity=doubles(state.est_velocity),
        attitude=doubles(state.est_attitude),
        charge=doubles(state.charge),
        landed=flags(state.landed),
        gps_age_s=doubles(state.gps_age_s),
        motors_ok=flags(state.motors_ok),
        tilt_rad=doubles(state.tilt_rad),
        slot=now.delivered.slot,
        delivered=longs(now.delivered.rows),
        frozen=flags(now.delivered.frozen),
        delivery=doubles(_NONE if delivery is None else delivery),
    )


def read_estimates(message: SimEstimates) -> tuple[Told, Delivered]:
    told = Told(
        _rows(message.position, 3),
        _rows(message.velocity, 3),
        _rows(message.attitude, 4),
        np.frombuffer(message.charge, np.float64),
        _flags(message.landed),
        np.frombuffer(message.gps_age_s, np.float64),
        _flags(message.motors_ok),
        np.frombuffer(message.tilt_rad, np.float64),
    )
    rows = np.frombuffer(message.delivered, np.int64).reshape(-1, 3)
    return told, Delivered(message.slot, rows, _flags(message.frozen))


def read_delivery(message: SimEstimates) -> Floats:
    return np.frombuffer(message.delivery, np.float64)


def lowest_m(message: SimEstimates) -> float:
    """The estimated height of the lowest drone."""
    return float(_rows(message.position, 3)[:, 2].min())


def frames_message(run: int, tick: int, frames: Sequence[Frames]) -> CsiFrames:
    message = CsiFrames(run=run, tick=tick, count=counts([len(batch.address) for batch in frames]))
    if any(message.count):
        message.address = addresses(np.concatenate([batch.address for batch in frames]))
        message.beacon = flags(np.concatenate([batch.beacon for batch in frames]))
        message.rssi_dbm = doubles(np.concatenate([batch.rssi_dbm for batch in frames]))
        message.csi = _pack("b", np.concatenate([batch.csi for batch in frames]), np.int8)
    return message


def read_frames(message: CsiFrames) -> list[Frames]:
    address = np.frombuffer(message.address, np.uint64)
    beacon = _flags(message.beacon)
    rssi = np.frombuffer(message.rssi_dbm, np.float64)
    csi = np.frombuffer(message.csi, np.int8).reshape(-1, ANTENNAS, len(SUBCARRIERS), 2)
    frames, first = [], 0
    for count in message.count:
        part = slice(first, first + count)
        frames.append(Frames(stamp_ns(message.tick), address[part], beacon[part], rssi[part], csi[part]))
        first += count
    return frames


def orders_message(run: int, tick: int, orders: core.Orders) -> Orders:
    return Orders(
        run=run,
        tick=tick,
        order=int(orders.order),
        search_begin_s=orders.search_begin_s,
        search_end_s=orders.search_end_s,
        invalid_reason=orders.invalid_reason,
    )


def read_orders(message: Orders) -> core.Orders:
    return core.Orders(Order(message.order), message.search_begin_s, message.search_end_s, str(message.invalid_reason))


def swarm_message(run: int, tick: int, made: core_swarm.SwarmTick, tally: Tally | None) -> SwarmTick:
    rows, statuses = np.empty((len(made.commands), COMMAND)), made.statuses
    for row, command in zip(rows, made.commands, strict=True):
        row[0], row[1:4], row[4:7] = command.armed, command.position, command.velocity
        row[7], row[8:11] = command.yaw, command.acceleration
        guard = command.guard
        row[11:13], row[13:16] = guard.wanted, (guard.limit_excess_mps, guard.band, guard.fence)
    message = SwarmTick(
        run=run,
        tick=tick,
        commands=doubles(rows),
        beliefs=doubles(np.hstack(made.beliefs)),
        phase=array("B", statuses.phase),
        failsafe=array("B", statuses.failsafe),
        finished=array("B", statuses.finished),
    )
    if made.reports:
        message.reports = doubles([_report_row(found.report) for found in made.reports])
        message.reported = addresses([found.report.address for found in made.reports])
    message.heard = longs(made.heard.hearings)
    if tally is not None:
        message.gate, message.dropped = longs(tally.gate), longs(tally.dropped)
    return message


def _report_row(report: Report) -> tuple[float, ...]:
    known = (report.time_s, report.drone, report.x, report.y, report.confidence)
    return (*known, *dilutions(report), report.views)


def read_commands(message: SwarmTick) -> list[Command]:
    return [
        Command(bool(row[0]), row[1:4], row[4:7], float(row[7]), row[8:11], _guard(*row[11:].tolist()))
        for row in _rows(message.commands, COMMAND)
    ]


def _guard(wanted_x: float, wanted_y: float, excess_mps: float, band: float, fence: float) -> Guard:
    return Guard((wanted_x, wanted_y), excess_mps, int(band), int(fence))


def read_beliefs(message: SwarmTick) -> Beliefs:
    rows = _rows(message.beliefs, 3 + len(message.phase))
    return Beliefs(rows[:, :3], rows[:, 3:])


def read_statuses(message: SwarmTick) -> DroneStatuses:
    return DroneStatuses(
        tuple(Phase(code) for code in message.phase),
        tuple(Failsafe(code) for code in message.failsafe),
        tuple(bool(flag) for flag in message.finished),
    )


def read_reports(message: SwarmTick) -> list[Report]:
    """What was reported in the tick."""
    reports = []
    for row, address in zip(_rows(message.reports, REPORT).tolist(), message.reported, strict=True):
        time_s, drone, x, y, confidence, *diluted, views = row
        path, constellation, information = (None if math.isnan(value) else value for value in diluted)
        known = (time_s, int(drone), int(address), x, y, confidence)
        reports.append(Report(*known, path, constellation, information, int(views)))
    return reports


def read_heard(message: SwarmTick) -> list[Hearing]:
    """Who made an observation of whom in the tick."""
    rows = np.frombuffer(message.heard, np.int64).reshape(-1, 3).tolist()
    return [Hearing(drone, address, bool(usable)) for drone, address, usable in rows]


def read_tally(message: SwarmTick) -> Tally | None:
    if not len(message.gate):
        return None
    return Tally(np.frombuffer(message.gate, np.int64).reshape(2, -1), np.frombuffer(message.dropped, np.int64))
