"""One episode in one process: world, swarm and referee in lockstep, as fast as the CPU goes."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sar_eval import __version__
from sar_eval.backends.backend import Backend, SimTick, SpoiltError
from sar_eval.backends.embedded import Simulator
from sar_eval.bag.encoders import REPORT_TICKS, STATUS_DONE
from sar_eval.bag.logbook import Logbook
from sar_eval.bag.tick import STATUS_TICKS, Heard, VictimReport
from sar_eval.bag.writer import Recording
from sar_eval.episode.briefing import briefing_of
from sar_eval.episode.operator import direct
from sar_eval.episode.outcome import COVERAGE_TIME_S, result_of
from sar_eval.episode.record import Record
from sar_eval.episode.score import Score
from sar_eval.episode.swarm import Swarm
from sar_eval.scenario.model import Episode
from sar_sim.judging.referee import Event
from sar_sim.judging.scoring import Judged
from sar_sim.radio.receiver import Frames
from sar_sim.vehicle.fleet import stamp_ns

__all__ = ["COVERAGE_TIME_S", "Flight", "FlightProgress", "fly_episode"]


@dataclass(frozen=True)
class FlightProgress:
    """What a watcher sees while an episode flies."""

    time_s: float
    search_time_s: float
    coverage: float
    collisions: int


class Flight:
    """An episode under way. ``advance`` flies one tick; the parts it holds know only what they may."""

    def __init__(self, episode: Episode, logbook: Logbook | None, world: Backend | None = None) -> None:
        """``world`` is what it flies in; the embedded simulator unless one is given."""
        self.episode = episode
        self.logbook = logbook
        self.simulator = Simulator(episode) if world is None else world
        self.trouble = ""
        self._reported = -1
        self.receiver = self.simulator.receiver()
        self.swarm = Swarm(briefing_of(episode))
        first = self.simulator.first()
        self.score = Score(episode, first, self.swarm.statuses)
        if logbook is not None:
            logbook.info(0)
        self._log(self.swarm.begin(first.state).heard, [], [], [])

    def advance(self) -> None:
        """One tick: move, judge, talk, decide, record."""
        score, swarm = self.score, self.swarm
        try:
            now = self.simulator.step(swarm.commands, score.orders.search_begin_s)
            frames = self._listen(now)
        except SpoiltError as error:
            self.trouble = error.detail
            score.spoil(error.reason)
            return
        events = score.observe(now)
        if score.orders.invalid_reason:
            return
        state = now.state
        orders = direct(score.orders, self.episode, now.time_s, float(state.est_position[:, 2].min()), score.statuses)
        made = swarm.step(now.tick, now.time_s, state, frames, now.delivered, orders.order)
        verdicts = score.note(orders, made.statuses, [found.report for found in made.reports], made.heard.hearings)
        score.follow(made.commands, made.beliefs)
        self._log(made.heard, made.reports, events, verdicts)

    def _listen(self, now: SimTick) -> list[Frames]:
        """What the drones' receivers hand over in a tick."""
        if self.receiver is None:
            return []
        return self.receiver.listen(stamp_ns(now.tick), now.tick, now.state.position, now.state.attitude)

    def _log(
        self, heard: Heard, reports: Sequence[VictimReport], events: Sequence[Event], verdicts: Sequence[Judged]
    ) -> None:
        book = self.logbook
        if book is None:
            return
        tick, stamp, state = self.score.tick, stamp_ns(self.score.tick), self.score.state
        book.tick(stamp, state, self.swarm.commands)
        if self.swarm.sensing is not None:
            book.sensing(stamp, heard, reports)
            if tick % REPORT_TICKS == 0:
                book.devices(stamp, self.score.time_s)
        for event in events:
            book.event(stamp, event)
        for judged in verdicts:
            book.verdict(stamp, judged)
        if tick % STATUS_TICKS == 0:
            delivery, age = self.simulator.air.take_delivery(), self.swarm.boxes.oldest_news_s(self.score.time_s)
            worst = self.swarm.worst()
            book.uav_status(stamp, self.score.statuses, self.swarm.commands, state.charge, delivery, age, worst)

    def report(self, phase: int | None = None) -> None:
        """Once a second: how far the episode is; from here on all that was logged survives this process."""
        book = self.logbook
        if book is None:
            return
        stamp = self._report_stamp_ns()
        self._reported = self.score.tick
        book.status(stamp, self.score.status(phase))
        book.coverage(stamp, self.score.scanned, self.score.coverage.config.cell_m)
        book.flush()

    def finish(self) -> None:
        """Close what is still open; the last status says how it ended."""
        events = self.score.referee.finish(self.score.time_s)
        if self.logbook is not None:
            for event in events:
                self.logbook.event(self._report_stamp_ns(), event)
        self.report(STATUS_DONE)

    def _report_stamp_ns(self) -> int:
        """Now; or the next tick, which was spoilt, where this one has been reported: a bag's time never goes back."""
        return stamp_ns(self.score.tick + (self._reported == self.score.tick))

    def result(self) -> dict[str, Any]:
        """The deterministic outcome, from the referee's truth alone."""
        return result_of(self.score, None if self.swarm.sensing is None else self.swarm.sensing.tally())


def fly_episode(
    episode: Episode,
    bag: Path | None,
    watch: Callable[[FlightProgress], None] | None = None,
    stop: Callable[[], str | None] | None = None,
    csi: bool = False,
    world: Backend | None = None,
) -> Record:
    """Fly one episode to its end and return its record; with ``bag``, leave a verified bag there.

    ``stop`` is asked once a simulated second; a reason ends the episode as INVALID with that reason and a good bag.
    ``csi`` puts raw frames into the bag too.
    ``world`` is flown in and left open; without one the embedded simulator is.
    ``watch`` is told once a simulated second, after all of that second was handed to the disk.
    While it flies, what was there before is kept from the garbage collector: the compiler's leavings take it longer
    than a tick to look through.
    """
    began = time.perf_counter()
    logbook = Logbook(episode, bag, csi) if bag is not None else None
    recording: Recording | None = None
    try:
        flight = Flight(episode, logbook, world)
        gc.freeze()
        looped = time.perf_counter()
        score = flight.score
        while not score.done:
            flight.advance()
            if score.tick % REPORT_TICKS == 0 and not flight.trouble:
                if stop is not None:
                    score.spoil(stop() or "")
                if not score.done:
                    flight.report()
                if watch is not None:
                    collisions = score.referee.summary().collisions
                    watch(FlightProgress(score.time_s, score.search_time_s, score.coverage.fraction, collisions))
        flight.finish()
        result = flight.result()
        if logbook is not None:
            recording = logbook.close()
    except SpoiltError:
        if logbook is not None:
            logbook.discard()
        raise
    except BaseException:
        if logbook is not None:
            logbook.abandon()
        raise
    finally:
        gc.unfreeze()
    ended = time.perf_counter()
    run: dict[str, Any] = {
        "version": __version__,
        "rtf": round(flight.score.time_s / (ended - looped), 2),
        "wall_s": round(ended - looped, 4),
        "setup_s": round(looped - began, 4),
        "bag": str(recording.path) if recording else None,
        "bag_bytes": recording.size_bytes if recording else None,
        "bag_messages": recording.messages if recording else None,
        **flight.simulator.facts(),
    }
    if flight.trouble:
        run["invalid_detail"] = flight.trouble
    return Record(result, run)
