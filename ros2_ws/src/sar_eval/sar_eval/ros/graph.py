"""Flies an episode as a ROS 2 graph: starts the node table's processes, waits for the record, leaves nothing behind.

Every graph has a ROS domain of its own on this host, so several fly side by side and do not hear each other. The nodes
are forked from this process once its kernels are loaded, so they are ready at once.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import json
import math
import multiprocessing
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from sar_core.errors import MissingDependencyError, RunError
from sar_eval.backends.backend import Stop
from sar_eval.bag.encoders import load_codecs
from sar_eval.bag.writer import partial_of, refuse_existing
from sar_eval.episode.attempts import RETRIES, repeat
from sar_eval.episode.invalid import invalid_record
from sar_eval.episode.record import Record
from sar_eval.ros.nodetable import NODES, STARTED, Settings, node_table, settings_of
from sar_eval.scenario.model import Episode
from sar_eval.scenario.resources import share_dir
from sar_eval.scenario.tiers import piloted
from sar_eval.start import hear, interrupt

DOMAINS = range(1, 102)
"""Domains whose ports lie below Linux's ephemeral range."""
FIRST_PORT, PORTS_PER_DOMAIN, UNICAST_OFFSET = 7400, 250, 10
"""DDS numbers its UDP ports by domain (OMG DDSI-RTPS 2.2, section 9.6.1.1)."""
PROFILES = "FASTRTPS_DEFAULT_PROFILES_FILE"
LEAVE_S = 5.0
END_S = 8.0
"""Wall time a process has to go by itself, and then on order: autopilots are ended with it, and a node that has not
heard of the end waits for it for five seconds."""
POLL_S = 0.01
WATCH_S = 0.25
ASK_AGAIN_S = 0.5
"""A node that is still starting does not hear the first time."""
COMPOSED = "composed"


def require_ros() -> None:
    """Refuse to start a graph where its nodes cannot run."""
    for module, what in (("rclpy", "ROS 2 for Python"), ("sar_msgs", "the messages of this project")):
        if importlib.util.find_spec(module) is None:
            raise MissingDependencyError(
                f"{module} ({what}) is missing: run make ros in a checkout, or install ROS 2 Jazzy, source its setup "
                "file and build ros2_ws with colcon"
            )


def fly_graph(
    episode: Episode,
    bag: Path | None,
    composed: bool = False,
    csi: bool = False,
    stop: Stop | None = None,
    watch: Callable[[float], None] | None = None,
    tell: Callable[[str], None] | None = None,
    retries: int = RETRIES,
    **others: Any,
) -> Record:
    """Fly one episode as a graph and return its record; with ``bag``, leave a verified bag there.

    ``composed`` puts all nodes into one process. ``stop`` is asked all the time; a reason ends the episode as INVALID.
    ``watch`` hears how long has been searched. What host or autopilots spoil is flown again in a graph of its own, as
    :func:`sar_eval.episode.attempts.fly` does. ``others`` are further fields of
    :class:`sar_eval.ros.nodetable.Settings`.
    """

    if bag is not None:
        refuse_existing(bag)

    def attempt() -> Record:
        with Graph(episode, bag, composed, csi, **others) as graph:
            graph.start()
            return graph.wait(stop, watch)

    return repeat(attempt, bag, stop, retries, tell) if piloted(episode.tier) else attempt()


class Graph:
    """One graph from its domain to its record: as a context it has a domain; ``start`` its nodes, ``wait`` for it."""

    def __init__(
        self, episode: Episode, bag: Path | None, composed: bool = False, csi: bool = False, **others: Any
    ) -> None:
        require_ros()
        self.episode, self.bag, self.composed = episode, bag, composed
        self.processes: dict[str, BaseProcess] = {}
        self.domain = 0
        self._given = {"bag": bag, "record_csi": csi, **others}
        self._held = contextlib.ExitStack()

    def __enter__(self) -> Graph:
        self.domain = self._held.enter_context(own_domain())
        self.folder = Path(self._held.enter_context(tempfile.TemporaryDirectory(prefix="sar_eval-graph-")))
        self.file = self.folder / "record.json"
        return self

    def __exit__(self, *_: object) -> None:
        leave(self.processes)
        self._held.close()

    @property
    def environment(self) -> dict[str, str]:
        """What keeps a graph to itself, and lets others find it."""
        return graph_environment(self.domain, self.folder)

    def start(self) -> None:
        """Start every process of the table."""
        self._began_s = time.monotonic()
        self._ready_s = math.inf
        load_codecs()
        settings = settings_of(self.episode, run=secrets.randbits(62), record_file=self.file, **self._given)
        self.processes = fork_nodes(settings, self.composed, self.environment)

    @property
    def alive(self) -> bool:
        return any(process.is_alive() for process in self.processes.values())

    @property
    def ended(self) -> bool:
        """Whether the outcome is there: the record; or, where nobody is left to write one, the bag that says so.

        Notes in passing when the first tick began.
        """
        if not math.isfinite(self._ready_s) and self.file.with_suffix(STARTED).exists():
            self._ready_s = time.monotonic() - self._began_s
        if self.file.exists() or not self.alive:
            return True
        if not math.isfinite(self._ready_s):
            return bool(self.fallen)
        manager = self.processes.get("manager")
        orphaned = manager is not None and not manager.is_alive()
        return orphaned and self.bag is not None and self.bag.is_dir()

    @property
    def fallen(self) -> list[str]:
        """Processes that have failed."""
        return [name for name, process in self.processes.items() if process.exitcode]

    @property
    def search_time_s(self) -> float:
        """How long has been searched, as the manager said last."""
        with contextlib.suppress(OSError, ValueError):
            return float(self.file.with_suffix(STARTED).read_text(encoding="ascii"))
        return 0.0

    def interrupt(self) -> None:
        """Ask for a proper end of the episode."""
        manager = self.processes.get("manager") or self.processes[COMPOSED]
        if manager.is_alive() and manager.pid is not None:
            os.kill(manager.pid, signal.SIGINT)

    def wait(self, stop: Stop | None = None, watch: Callable[[float], None] | None = None) -> Record:
        """The record, once the manager has written it, or is gone and the others have done their part."""
        reason = None
        asked_s = watched_s = -math.inf
        while not self.ended:
            reason = stop() if stop is not None else None
            if reason is not None and time.monotonic() - asked_s > ASK_AGAIN_S:
                asked_s = time.monotonic()
                self.interrupt()
            if watch is not None and time.monotonic() - watched_s > WATCH_S:
                watched_s = time.monotonic()
                watch(self.search_time_s)
            time.sleep(POLL_S)
        reason = stop() if stop is not None else None
        fallen = [] if math.isfinite(self._ready_s) or self.file.exists() else self.fallen
        codes = leave(self.processes, patience_s=0.0 if fallen else LEAVE_S)
        if self.bag is not None and not self.file.with_suffix(STARTED).exists():
            shutil.rmtree(partial_of(self.bag), ignore_errors=True)
        if fallen:
            record = missing_record(self.episode, self.bag, reason or "not_ready", fallen)
        else:
            record = read_record(self.file, self.episode, self.bag)
        record.run["graph"] = {
            "domain": self.domain,
            "composed": self.composed,
            "ready_s": round(self._ready_s, 3) if math.isfinite(self._ready_s) else None,
            "exit_codes": codes,
        }
        return record


def graph_environment(domain: int, folder: Path) -> dict[str, str]:
    """Of every process of a graph: it is heard on this host only.

    With Fast DDS, ROS 2's default, nodes also do without its shared memory (configs/dds/loopback.xml says why), unless
    somebody has profiles of their own.
    """
    environment = {"ROS_DOMAIN_ID": str(domain), "ROS_LOG_DIR": str(folder)}
    if PROFILES in os.environ or "fastrtps" not in os.environ.get("RMW_IMPLEMENTATION", "rmw_fastrtps_cpp"):
        return {**environment, "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    profiles = share_dir("configs") / "dds" / "loopback.xml"
    return {**environment, PROFILES: str(profiles), "ROS_AUTOMATIC_DISCOVERY_RANGE": "SYSTEM_DEFAULT"}


@contextlib.contextmanager
def own_domain() -> Iterator[int]:
    """A ROS domain that no graph of ours and no other participant on this host uses; held until the end."""
    first = os.getpid() % len(DOMAINS)
    for domain in (*DOMAINS[first:], *DOMAINS[:first]):
        lock = open(Path(tempfile.gettempdir(), f"sar_eval-domain-{domain}.lock"), "a")  # noqa: SIM115
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _unused(domain):
                yield domain
                return
        except BlockingIOError:
            continue
        finally:
            lock.close()
    raise RunError(f"all ROS domains from {DOMAINS[0]} to {DOMAINS[-1]} are in use on this host")


def _unused(domain: int) -> bool:
    port = FIRST_PORT + PORTS_PER_DOMAIN * domain + UNICAST_OFFSET
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def fork_nodes(settings: Settings, composed: bool, environment: Mapping[str, str]) -> dict[str, BaseProcess]:
    """Fork a process per node, or one for all."""
    table = {row.name: row.parameters for row in node_table(settings)}
    groups = {COMPOSED: list(NODES)} if composed else {name: [name] for name in table}
    fork = multiprocessing.get_context("fork")
    processes: dict[str, BaseProcess] = {}
    for name, nodes in groups.items():
        process = fork.Process(target=_run, args=(nodes, table, dict(environment)), name=f"sar_eval-{name}")
        process.start()
        processes[name] = process
    return processes


def _run(nodes: Sequence[str], parameters: Mapping[str, Mapping[str, Any]], environment: Mapping[str, str]) -> None:
    os.environ.update(environment)
    hear(lambda *_: os._exit(RunError.exit_code))  # extension modules make other errors of an interrupted import
    from sar_eval.ros.main import run_nodes

    hear(interrupt)
    try:
        code = run_nodes(nodes, parameters)
    except KeyboardInterrupt:
        code = RunError.exit_code
    sys.exit(code)


def leave(processes: Mapping[str, BaseProcess], patience_s: float = LEAVE_S) -> dict[str, int | None]:
    """Give everyone the time to go, then end who is still there; exit codes by process."""
    _join(processes.values(), patience_s)
    for end in (BaseProcess.terminate, BaseProcess.kill):
        for process in processes.values():
            if process.is_alive():
                end(process)
        _join(processes.values(), END_S)
    return {name: process.exitcode for name, process in processes.items()}


def _join(processes: Iterable[BaseProcess], patience_s: float) -> None:
    give_up = time.monotonic() + patience_s
    for process in processes:
        process.join(max(give_up - time.monotonic(), 0.0))


def read_record(file: Path, episode: Episode, bag: Path | None) -> Record:
    """The manager's record, or an INVALID one where it left none."""
    if file.exists():
        plain = json.loads(file.read_text(encoding="utf-8"))
        run = plain["run"]
        if run.get("bag") is None and bag is not None and bag.is_dir():
            run["bag"] = str(bag)  # finished after the manager had waited long enough for word of it
        return Record(plain["result"], run)
    return missing_record(episode, bag, "lockstep_timeout", ["manager"])


def missing_record(episode: Episode, bag: Path | None, reason: str, silent: Sequence[str]) -> Record:
    """In place of the one that the manager did not write."""
    record = invalid_record(episode, reason)
    whole = bag is not None and bag.is_dir()
    record.run.update(bag=str(bag) if whole else None, silent=list(silent), diagnostics={})
    return record
