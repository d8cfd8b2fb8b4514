"""A Stage-2 campaign in its folder: fly what is missing, keep every record, end in one results file.

    manifest.json    what is flown, with what code and inputs; its identity is checked at every start
    episodes.jsonl   the ledger: one record per mission, in the order they were flown
    results.json     all results in the order of the plan, once the last mission is flown
    bags/ logs/      recorded missions, and what went wrong

Results depend on the plan alone: not on workers, order, interruptions or shards.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from sar_core.errors import ContractError, InputError, RunError
from sar_eval.bag.folders import ready_folder
from sar_eval.bag.store import BAGS, BagStore, open_bags
from sar_eval.campaign.acceptance import Acceptance
from sar_eval.campaign.ledger import LEDGER, PACKED, Ledger, Lock, write_whole
from sar_eval.campaign.manifest import MANIFEST, Manifest, check_same, read_manifest
from sar_eval.campaign.plan import MissionTask
from sar_eval.campaign.replay import differences
from sar_eval.campaign.workers import MissionJob, MissionOutcome
from sar_eval.episode.invalid import invalid_record
from sar_eval.episode.record import Record
from sar_eval.scenario.tiers import repeats

RESULTS = "results.json"
RESULTS_SCHEMA_VERSION = 1
LOGS = "logs"
BAG_MODES = ("none", "events", "all")


class Flyers(Protocol):
    """Whoever flies jobs: local processes or a cluster."""

    def fly(
        self, more: Callable[[], MissionJob | None], stop: Callable[[], str | None]
    ) -> Generator[MissionOutcome, None, None]: ...


@dataclass(frozen=True)
class CampaignProgress:
    """How far a campaign is; ``done`` of ``total`` missions have a record, ``rate`` is missions per second now."""

    done: int
    total: int
    rate: float
    eta_s: float | None
    collisions: int
    invalid: int
    bags: int


@dataclass(frozen=True)
class Ending:
    """How a start of a campaign ended."""

    planned: int
    recorded: int
    flown_now: int
    left: int
    bags_left: int
    invalid: dict[str, int]
    collisions: int
    differing: tuple[str, ...]
    results: Path | None
    stopped: bool


@contextmanager
def open_campaign(folder: Path, manifest: Manifest, bags_url: str | None = None) -> Iterator[Campaign]:
    """Lock the folder, make sure that it is this campaign's, and mend what a kill left."""
    store = open_bags(folder, bags_url)
    ready_folder(folder)
    with Lock(folder):
        found = read_manifest(folder)
        if found is None:
            taken = [name for name in (LEDGER, PACKED, RESULTS, BAGS, LOGS) if os.path.lexists(folder / name)]
            if taken:
                raise InputError(f"{folder}: holds {taken[0]} but no {MANIFEST}; choose another folder")
            manifest.write(folder)
        else:
            check_same(found, manifest, folder)
        yield Campaign(folder, found or manifest, store)


@dataclass
class Campaign:
    """A campaign whose folder this process has locked."""

    folder: Path
    manifest: Manifest
    bags: BagStore
    ledger: Ledger = field(init=False)
    door: Acceptance = field(init=False)
    differing: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.folder)
        self.door = Acceptance(self.manifest)
        self.door.check(self.ledger.records, self.ledger.path)
        if self.ledger.torn_bytes:
            self.log(f"cut {self.ledger.torn_bytes} bytes of an unfinished line off {LEDGER}")
        self.bags.clear()

    def log(self, text: str) -> None:
        """A line, or a traceback under one, in logs/campaign.log."""
        path = self.folder / LOGS / "campaign.log"
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        try:
            path.parent.mkdir(exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.write(f"{stamp} {text.rstrip()}\n")
        except OSError as error:
            raise RunError(f"{path}: cannot write the log ({error.strerror})") from error

    def refly_invalid(self, tasks: Iterable[MissionTask]) -> int:
        """Let INVALID missions be flown again; what was recorded of them stays in logs. How many these are."""
        records = self.ledger.records
        invalid = [t.key for t in tasks if t.key in records and not records[t.key].result["valid"]]
        for key in invalid:
            record = records[key]
            self.log(f"{key}: INVALID({record.result['invalid_reason']}), to be flown again: {json.dumps(record.run)}")
        return len(self.ledger.take_out(invalid))

    def missing(self, tasks: Iterable[MissionTask]) -> list[MissionTask]:
        """Those without a record, in the order given."""
        return [task for task in tasks if task.key not in self.ledger.records]

    def fly(
        self,
        tasks: list[MissionTask],
        flyers: Flyers,
        bags: str = "none",
        stop: Callable[[], str | None] = lambda: None,
        tell: Callable[[CampaignProgress], None] = lambda progress: None,
    ) -> Ending:
        """Fly the tasks without a record, then again those that lack a bag they should have; write results if whole."""
        check_bags(bags)
        missing = self.missing(tasks)
        scratch = self.bags.scratch
        queue = deque(MissionJob(task, scratch if bags == "all" else None) for task in missing)
        known = {task.key: task for task in tasks}
        for key, record in self.ledger.records.items():
            if key in known and self._wants_bag(record, bags):
                queue.append(MissionJob(known[key], scratch, again=True))
        before, began = len(self.ledger.records), time.monotonic()
        if queue:
            self.log(f"{len(missing)} missions to fly, {len(queue) - len(missing)} to fly again for their bags")
        with closing(flyers.fly(lambda: queue.popleft() if queue else None, stop)) as outcomes:
            for outcome in outcomes:
                fresh = self._accept(outcome)
                if fresh is not None and self._wants_bag(fresh, bags):
                    queue.append(MissionJob(outcome.job.task, scratch, again=True))
                flown = len(self.ledger.records) - before
                tell(self._progress(flown, time.monotonic() - began, len(missing), tasks))
        self.bags.clear()
        return self._end(tasks, bags, len(self.ledger.records) - before, stop() is not None)

    def _wants_bag(self, record: Record, mode: str) -> bool:
        result = record.result
        if not repeats(self.manifest.decides["configuration"]["tier"]):
            return False
        if mode == "none" or result["invalid_reason"] == "worker_lost" or self.bags.has(result["episode_id"]):
            return False
        return mode == "all" or eventful(result)

    def _accept(self, outcome: MissionOutcome) -> Record | None:
        """Put what was flown where it belongs; a record that is new is returned."""
        key = outcome.job.task.key
        if outcome.fatal:
            self.log(f"{key}: {outcome.message}")
            raise RunError(f"{key}: {outcome.message}; give the same command again when that is mended")
        if outcome.reason is not None:
            self.log(f"{key}: INVALID({outcome.reason}): {outcome.message}")
        for spoilt in () if outcome.record is None else outcome.record.run.get("spoilt_attempts", ()):
            self.log(f"{key}: an attempt was spoilt ({spoilt['reason']}: {spoilt['detail']})")
        record = outcome.record
        if record is None:
            assert outcome.reason is not None
            record = invalid_record(outcome.job.task.prepare(), outcome.reason)
        self._refuse_mixture(outcome, record)
        if outcome.job.again:
            self._compare(outcome)
            return None
        if outcome.record is not None and outcome.bag is not None:
            record.run["bag"] = self.bags.keep(outcome.bag, key)
        self.ledger.append(record)
        return record

    def _refuse_mixture(self, outcome: MissionOutcome, record: Record) -> None:
        """End the campaign rather than take in what was flown with other files than the rest of it."""
        wrong = self.door.complaint(record) or (self.door.other_code(outcome.code) if outcome.code else "")
        if not wrong and outcome.inputs:
            wrong = self.door.edited(record.result, outcome.inputs)
        if wrong:
            told = f"{outcome.job.task.key}: {wrong}"
            self.log(f"{told}; its record was left out")
            raise ContractError(
                f"{told}; its record was left out and nothing was mixed in: put it back as it was and give the same "
                "command again, or begin another campaign in another folder"
            )

    def _compare(self, outcome: MissionOutcome) -> None:
        """A mission flown again must come out the same to the last digit; its bag says so by its name."""
        key = outcome.job.task.key
        before = self.ledger.records[key].result
        bag = outcome.bag
        if outcome.record is None:
            if bag is not None:
                self.bags.keep(bag, bag.rsplit("/", 1)[1])
            if before["invalid_reason"] == outcome.reason:
                return
            changed = ["invalid_reason"]
        else:
            changed = differences(before, outcome.record.result)
        if changed:
            self.differing.append(key)
            self.log(f"{key}: flown again it differs in {', '.join(changed)}")
        if outcome.record is not None and bag is not None:
            self.bags.keep(bag, f"{key}.differs" if changed else key)

    def _progress(self, flown: int, elapsed_s: float, missing: int, tasks: list[MissionTask]) -> CampaignProgress:
        rate = flown / elapsed_s if elapsed_s > 0.0 else 0.0
        records = list(self.ledger.records.values())
        return CampaignProgress(
            done=len(tasks) - missing + flown,
            total=len(tasks),
            rate=rate,
            eta_s=(missing - flown) / rate if rate > 0.0 else None,
            collisions=sum(r.result["collisions"] for r in records),
            invalid=sum(not r.result["valid"] for r in records),
            bags=sum(r.run.get("bag") is not None for r in records),
        )

    def _end(self, tasks: list[MissionTask], bags: str, flown: int, stopped: bool) -> Ending:
        records = self.ledger.records
        whole = len(records) == len(self.manifest.episodes)
        invalid = Counter(r.result["invalid_reason"] for r in records.values() if not r.result["valid"])
        return Ending(
            planned=len(self.manifest.episodes),
            recorded=len(records),
            flown_now=flown,
            left=len(self.missing(tasks)),
            bags_left=sum(t.key in records and self._wants_bag(records[t.key], bags) for t in tasks),
            invalid=dict(sorted(invalid.items())),
            collisions=sum(r.result["collisions"] for r in records.values()),
            differing=tuple(self.differing),
            results=write_results(self.folder, self.manifest, records) if whole else None,
            stopped=stopped,
        )


def check_bags(mode: str) -> None:
    """Refuse a way of recording that does not exist."""
    if mode not in BAG_MODES:
        raise InputError(f"bags = {mode!r}: allowed: {', '.join(BAG_MODES)}")


def eventful(result: dict[str, Any]) -> bool:
    """Worth a bag of its own: a collision, a false alarm, or INVALID."""
    return not result["valid"] or result["collisions"] > 0 or bool(result["false_alarms"])


def write_results(folder: Path, manifest: Manifest, records: dict[str, Record]) -> Path:
    """results.json: ``result`` is the same bytes however the campaign was flown, ``run`` tells of hosts and time."""
    path = folder / RESULTS
    runs = [records[key].run for key in manifest.episodes]
    lines = ",\n".join(json.dumps(records[key].result) for key in manifest.episodes)
    head = {
        "identity": manifest.identity,
        "configuration": manifest.decides["configuration"],
        "inputs": manifest.decides["inputs"],
    }
    result = f'{json.dumps(head)[:-1]}, "episodes": [\n{lines}\n]}}'
    run = {"host": manifest.host, "flying_s": round(sum(run.get("wall_s") or 0.0 for run in runs), 3)}
    text = f'{{"schema_version": {RESULTS_SCHEMA_VERSION},\n"result": {result},\n"run": {json.dumps(run)}}}\n'
    write_whole(path, text)
    return path
