"""Processes that fly missions for a campaign: replaced when they die, retried when the simulator fails.

The parent hands out one mission at a time over a pipe and is told its outcome; workers write nothing but bags.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import time
import traceback
import uuid
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from sar_core.errors import InputError, RunError, SarError
from sar_eval.bag.store import is_url, send_bag
from sar_eval.bag.writer import partial_of
from sar_eval.campaign.manifest import input_hashes
from sar_eval.campaign.plan import MissionTask
from sar_eval.campaign.sources import code
from sar_eval.episode.attempts import fly
from sar_eval.episode.flight import FlightProgress
from sar_eval.episode.record import Record
from sar_eval.scenario.tiers import repeats
from sar_eval.start import Stopper

RETRIES = 1
"""How often a mission is flown again after the simulator raised."""
LOSSES = 3
"""How often a mission is flown again after its worker died."""
POLL_S = 0.5
LEAVE_S = 10.0
"""Wall time a worker has to end its flight: real autopilots are ended with it."""


@dataclass(frozen=True)
class MissionJob:
    """A mission to fly, and where to: with ``scratch``, a folder or URL, a bag is left in a folder of its own there."""

    task: MissionTask
    scratch: str | None = None
    again: bool = False


@dataclass(frozen=True)
class MissionOutcome:
    """What became of a job: a record, or the reason why there is none and the message for the log.

    ``fatal`` is an error of the host (a full disk): no other worker would do better. ``code`` is what the worker's
    sources were after the flight, ``inputs`` the hashes of the files then, where vehicles read some by themselves.
    """

    job: MissionJob
    record: Record | None = None
    bag: str | None = None
    reason: str | None = None
    message: str = ""
    fatal: bool = False
    code: dict[str, Any] | None = None
    inputs: dict[str, Any] | None = None


def fly_job(
    job: MissionJob, stop: Callable[[], str | None] | None = None, tell: Callable[[str], None] | None = None
) -> MissionOutcome:
    """Fly one mission and look at what it was flown with; what a worker process or a cluster's worker calls.

    ``tell`` hears of attempts that were spoilt and, where a mission takes minutes, how far it is.
    """
    outcome = _fly(job, stop, tell)
    if outcome.fatal:
        return outcome
    try:
        inputs = None if outcome.record is None or repeats(job.task.tier) else input_hashes(job.task.prepare())
        return replace(outcome, code=code(), inputs=inputs)
    except SarError as error:
        return MissionOutcome(job, reason="host_error", message=str(error), fatal=True)


def _fly(job: MissionJob, stop: Callable[[], str | None] | None, tell: Callable[[str], None] | None) -> MissionOutcome:
    """Fly one mission, once more if the simulator raises."""
    if job.scratch is not None and is_url(job.scratch):
        return _fly_and_send(job, stop, tell)
    told = None if tell is None else lambda text: tell(f"{job.task.key}: {text}")
    for attempt in range(1 + RETRIES):
        bag = None if job.scratch is None else Path(job.scratch) / uuid.uuid4().hex / job.task.key
        episode = None
        try:
            episode = job.task.prepare()
            watch = None if told is None or repeats(job.task.tier) else Milestones(job.task.scenario.duration_s, told)
            record = fly(episode, bag, watch, stop, speed=job.task.speed, tell=told)
            break
        except Exception as error:
            unreadable = episode is None and isinstance(error, SarError)
            unwritable = bag is not None and isinstance(error, (RunError, OSError))
            if unreadable or unwritable:
                return MissionOutcome(job, reason="host_error", message=str(error), fatal=True)
            if attempt == RETRIES:
                return MissionOutcome(job, bag=_left(bag), reason="simulator_error", message=traceback.format_exc())
    if record.run.get("final"):
        message = f"{record.result['invalid_reason']}: {record.run['invalid_detail']}"
        return MissionOutcome(job, reason=record.result["invalid_reason"], message=message, fatal=True)
    run = {**record.run, "bag": None, "worker": os.getpid()}
    return MissionOutcome(job, Record(record.result, run), None if record.run["bag"] is None else str(bag))


class Milestones:
    """Tells how far a mission is: when its search begins, and every minute of it."""

    EVERY_S = 60.0

    def __init__(self, duration_s: float, tell: Callable[[str], None]) -> None:
        self._duration_s, self._tell = duration_s, tell
        self._next_s = 0.0

    def __call__(self, now: FlightProgress) -> None:
        if now.time_s < 2.0:
            self._next_s = 0.0  # another attempt
        if now.search_time_s <= self._next_s:
            return
        self._next_s = self.EVERY_S * (now.search_time_s // self.EVERY_S + 1.0)
        self._tell(
            f"{now.search_time_s:.0f} of {self._duration_s:.0f} s searched, coverage {now.coverage:.0%}, "
            f"collisions {now.collisions}"
        )


def _fly_and_send(
    job: MissionJob, stop: Callable[[], str | None] | None, tell: Callable[[str], None] | None = None
) -> MissionOutcome:
    """Record on this machine, then take the bag to where the campaign wants it."""
    assert job.scratch is not None
    with tempfile.TemporaryDirectory(prefix="sar-eval.") as here:
        outcome = _fly(replace(job, scratch=here), stop, tell)
        try:
            bag = None if outcome.bag is None else send_bag(Path(outcome.bag), job.scratch)
        except (OSError, SarError) as error:
            return MissionOutcome(job, reason="host_error", message=f"{job.scratch}: {error}", fatal=True)
        return replace(outcome, job=job, bag=bag)


def _left(bag: Path | None) -> str | None:
    """What a failed recording left behind."""
    if bag is None:
        return None
    partial = partial_of(bag)
    return str(partial) if partial.exists() else None


def _serve(pipe: Connection) -> None:
    """A worker's life: jobs in, outcomes out, until the pipe closes or the parent is gone.

    SIGTERM ends what it flies, and autopilots with it; what came of it is not told.
    """
    told_to_stop = Stopper()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, told_to_stop.hear)
    parent = os.getppid()

    def stop() -> str | None:
        if os.getppid() != parent:
            os._exit(1)
        return told_to_stop()

    while told_to_stop() is None:
        try:
            job = pipe.recv()
            outcome = fly_job(job, stop, pipe.send)
            if told_to_stop() is None:
                pipe.send(outcome)
        except (EOFError, OSError):
            return


@dataclass
class _Worker:
    process: BaseProcess
    pipe: Connection
    job: MissionJob | None = None


class WorkerCrew:
    """So many worker processes; ``fly`` yields outcomes as they come, ``tell`` hears what workers say meanwhile."""

    def __init__(self, size: int, tell: Callable[[str], None] = lambda text: None) -> None:
        if size < 1:
            raise InputError(f"workers = {size}: must be 1 or more")
        self.size = size
        self.tell = tell
        self.lost = 0
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["sar_eval.campaign.workers"])
        self._workers: list[_Worker] = []

    @property
    def processes(self) -> list[BaseProcess]:
        return [worker.process for worker in self._workers]

    @property
    def pids(self) -> list[int]:
        return [process.pid or 0 for process in self.processes]

    def _hire(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(theirs,), name="sar-eval worker", daemon=True)
        process.start()
        theirs.close()
        return _Worker(process, ours)

    def fly(
        self, more: Callable[[], MissionJob | None], stop: Callable[[], str | None]
    ) -> Generator[MissionOutcome, None, None]:
        """Outcomes in the order they arrive. A worker has its next job before its last outcome is handed on.

        ``more`` is asked whenever a worker is free; after a None it is asked again once something has been flown.
        """
        losses: dict[str, int] = {}
        waiting: deque[MissionJob] = deque()

        def next_job() -> MissionJob | None:
            return waiting.popleft() if waiting else more()

        try:
            while stop() is None:
                self._staff(next_job)
                busy = [worker for worker in self._workers if worker.job is not None]
                if not busy:
                    return
                for ready in wait([worker.pipe for worker in busy], timeout=POLL_S):
                    worker = next(w for w in busy if w.pipe is ready)
                    job = worker.job
                    assert job is not None
                    outcome = self._hear(worker)
                    if isinstance(outcome, str):
                        self.tell(outcome)
                        continue
                    if outcome is None:
                        losses[job.task.key] = losses.get(job.task.key, 0) + 1
                        if losses[job.task.key] <= LOSSES:
                            waiting.append(job)
                            continue
                        message = f"its worker process ended without a word {losses[job.task.key]} times"
                        outcome = MissionOutcome(job, reason="worker_lost", message=message)
                    self._staff(next_job)
                    yield outcome
        finally:
            self.close()

    def _staff(self, next_job: Callable[[], MissionJob | None]) -> None:
        """Give every idle worker a job, and hire while there are jobs and places."""
        while True:
            idle = next((worker for worker in self._workers if worker.job is None), None)
            if idle is None and len(self._workers) >= self.size:
                return
            job = next_job()
            if job is None:
                return
            if idle is None:
                idle = self._hire()
                self._workers.append(idle)
            idle.job = job
            try:
                idle.pipe.send(job)
            except OSError:
                continue  # it has died; reading from its pipe will say so

    def _hear(self, worker: _Worker) -> MissionOutcome | str | None:
        """What a worker says, its job's outcome or a remark; None if it has died, and then it is let go."""
        try:
            outcome: MissionOutcome | str = worker.pipe.recv()
        except (EOFError, OSError):
            self.lost += 1
            worker.pipe.close()
            worker.process.join()
            self._workers.remove(worker)
            return None
        if not isinstance(outcome, str):
            worker.job = None
        return outcome

    def close(self) -> None:
        """End all workers soon; what they were flying is lost and will be flown again."""
        for worker in self._workers:
            worker.process.terminate()
            worker.pipe.close()
        give_up = time.monotonic() + LEAVE_S
        for worker in self._workers:
            worker.process.join(max(give_up - time.monotonic(), 0.0))
            worker.process.kill()
            worker.process.join()
        self._workers.clear()
