"""The node table as actions of ROS 2's launch: kernels first, then one flight after another, then what they came to.

Every process is started with SIGINT ignored and is ended by this module: a terminal sends its Ctrl-C to all of them at
once, also to those that still import, and ``kill -INT`` of launch to none.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from launch import LaunchContext, LaunchDescription
from launch.action import Action
from launch.actions import (
    DeclareLaunchArgument,
    EmitEvent,
    ExecuteProcess,
    LogInfo,
    OpaqueFunction,
    RegisterEventHandler,
    TimerAction,
)
from launch.event_handlers import OnProcessExit, OnProcessStart, OnShutdown
from launch.events import matches_action
from launch.events.process import ShutdownProcess
from launch.logging import launch_config
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from sar_core.errors import MissingDependencyError, RunError
from sar_eval.backends.registry import choose_tier, require
from sar_eval.bag.folders import ready_folder
from sar_eval.campaign.plan import told_time
from sar_eval.episode.attempts import Attempts
from sar_eval.episode.record import Record
from sar_eval.ros.graph import COMPOSED, graph_environment, missing_record, own_domain, read_record
from sar_eval.ros.launchargs import (
    EPISODE,
    MEDIAN_SEEDS,
    NOISE_SWEEP,
    Argument,
    LaunchedFlight,
    Tour,
    check_names,
    check_values,
    clear,
    given_words,
    number,
    plan_tour,
    stage1_command,
    truth,
)
from sar_eval.ros.nodetable import NODES, STARTED, NodeRow, node_table, settings_of
from sar_eval.scenario.resources import share_dir

SPARED = ("env", "--ignore-signal=INT")
LEAVE_S = 20.0
END_S = 10.0
"""Wall time that nodes have to go by themselves once one of them has, and then on order."""
FINISH_S = "20"
"""Seconds a node has for its bag after it was asked to stop before launch insists."""
VIEWERS = {"rviz": ("rviz2", "rviz2"), "foxglove": ("foxglove_bridge", "foxglove_bridge")}
LAUNCH_FILES = {"episode": EPISODE, "median_seeds": MEDIAN_SEEDS, "noise_sweep": NOISE_SWEEP}
Next = Callable[[], list[Action]]


def described(name: str) -> LaunchDescription:
    """The launch description of a launch file: it takes its arguments, flies what they ask for and shows it."""
    arguments = LAUNCH_FILES[name]
    declared = [
        DeclareLaunchArgument(a.name, default_value=a.default, description=a.description, choices=a.choices or None)
        for a in arguments
    ]

    def check(context: LaunchContext) -> None:
        check_names(arguments, given_words(sys.argv, f"{name}.launch.py"))
        check_values(arguments, {a.name: context.launch_configurations.get(a.name, a.default) for a in arguments})

    def start(context: LaunchContext) -> list[Action]:
        return LaunchJob(arguments, context, one=name == "episode").begin()

    return LaunchDescription([OpaqueFunction(function=check), *declared, OpaqueFunction(function=start)])


class LaunchJob:
    """All that one launch does, one step after another; a step is over when its processes are gone, however."""

    def __init__(self, arguments: Sequence[Argument], context: LaunchContext, one: bool) -> None:
        self.values = {a.name: LaunchConfiguration(a.name).perform(context) for a in arguments}
        self.one = one
        self.tier, self.why = choose_tier(self.values["backend"])
        self.processes: set[Any] = set()
        self.held = contextlib.ExitStack()
        self.tour = Tour((), (), ())
        self.records: list[Record] = []
        self.left: list[LaunchedFlight] = []
        self.began_s = 0.0

    def begin(self) -> list[Action]:
        """Refuse what cannot be flown, then compile, then Stage 1 if there is none, then fly."""
        require(self.tier)
        for name in VIEWERS:
            if truth(self.values, name):
                _require_viewer(name)
        stage1 = stage1_command(self.values)
        ready_folder(Path(self.values["bag_dir"]))
        fly: Next = self.first_flight
        if stage1 is None:
            self.tour = plan_tour(self.values, self.tier)
        elif stage1[0].is_file():
            self.tour = plan_tour(self.values, self.tier, stage1[0])
        else:
            file, words = stage1

            def fly() -> list[Action]:
                said = LogInfo(msg=f"Stage 1: every pattern, seed and episode by points, into {file}; takes seconds")
                return [said, *self.run([*words, "--workers", "1"], "stage1", plan_and_fly)]

            def plan_and_fly() -> list[Action]:
                self.tour = plan_tour(self.values, self.tier, file)
                return self.first_flight()

        watching = RegisterEventHandler(OnShutdown(on_shutdown=self.stop))
        told = [LogInfo(msg=self.why)] if self.why else []
        return [watching, *told, *self.run(["compile"], "compile", fly)]

    def run(self, words: Sequence[str], name: str, after: Next) -> list[Action]:
        """A verb of ``sar-eval`` in a process of its own, and what comes after it."""
        command = [*SPARED, sys.executable, "-m", "sar_eval", *words]
        process = ExecuteProcess(cmd=command, name=name, output="screen", emulate_tty=False)

        def gone(event: Any, context: LaunchContext) -> list[Action]:
            self.processes.discard(process)
            if context.is_shutdown:
                return [LogInfo(msg=f"interrupted: {name} was not finished; give the same command to go on")]
            if event.returncode:
                raise RunError(f"sar-eval {name} ended with exit code {event.returncode}; what it said stands above")
            return after()

        return self.watched([process], gone)

    def watched(self, processes: Sequence[Any], gone: Callable[..., list[Action]]) -> list[Action]:
        """Start processes, tell ``gone`` of each end, and end them with the launch."""
        self.processes |= set(processes)
        handlers = []
        for process in processes:
            handlers.append(RegisterEventHandler(OnProcessStart(target_action=process, on_start=self.started)))
            handlers.append(RegisterEventHandler(OnProcessExit(target_action=process, on_exit=gone)))
        return [*handlers, *processes]

    def started(self, event: Any, context: LaunchContext) -> None:
        if context.is_shutdown:
            _end(event.pid)

    def stop(self, event: Any, context: LaunchContext) -> None:
        """The launch is over, by a signal or an error: so are its processes."""
        _end_all(self.processes, signal.SIGTERM)

    def first_flight(self) -> list[Action]:
        self.left = list(self.tour.left)
        self.records = list(self.tour.flown)
        self.began_s = time.monotonic()
        for flight in self.left:
            ready_folder(flight.bag.parent)
            clear(flight)
        return [*(LogInfo(msg=text) for text in self.tour.notes), *self.next_flight()]

    def next_flight(self) -> list[Action]:
        done = len(self.records) - len(self.tour.flown)
        if done == len(self.left):
            return self.show()
        flight, number_ = self.left[done], len(self.records) + 1
        domain = self._fresh_domain()
        to_go = ""
        if done:
            spent_s = time.monotonic() - self.began_s
            to_go = f", about {told_time(spent_s / done * (len(self.left) - done))} to go"
        begun = f"{flight.episode.episode_id}: {number_} of {len(self.tour.flights)}{to_go}, ROS_DOMAIN_ID={domain}"
        return [LogInfo(msg=begun), *self.fly(flight, Attempts(flight.bag), domain)]

    def fly(self, flight: LaunchedFlight, attempts: Attempts, domain: int) -> list[Action]:
        environment = graph_environment(domain, Path(launch_config.log_dir))
        settings = settings_of(
            flight.episode,
            run=secrets.randbits(62),
            bag=flight.bag.resolve(),
            record_file=flight.record.resolve(),
            record_csi=truth(self.values, "record_csi"),
            lockstep_timeout_s=number(self.values, "lockstep_timeout_s"),
            ready_timeout_s=number(self.values, "ready_timeout_s"),
            sim_speed=number(self.values, "sim_speed"),
            speed_factor=number(self.values, "speed_factor"),
        )
        rows = node_table(settings)
        if truth(self.values, "composed"):
            parameters = {key: value for row in rows for key, value in row.parameters.items()}
            rows = (NodeRow(COMPOSED, "composed_nodes", parameters),)
        nodes = [self._node(row, environment) for row in rows]
        viewers = [_viewer(name, environment) for name in VIEWERS if truth(self.values, name)]
        flying = set(nodes)
        leaving = [
            TimerAction(period=after_s, actions=[OpaqueFunction(function=lambda _, n=number_: _end_all(flying, n))])
            for after_s, number_ in ((LEAVE_S, signal.SIGTERM), (LEAVE_S + END_S, signal.SIGKILL))
        ]

        def gone(event: Any, context: LaunchContext) -> list[Action]:
            flying.discard(event.action)
            self.processes.discard(event.action)
            if flying:
                first = len(flying) == len(nodes) - 1
                return leaving if first and not context.is_shutdown else []
            for timer in leaving:
                timer.cancel()
            record = _outcome(flight, context.is_shutdown)
            told: list[Action] = [LogInfo(msg=_told(record))]
            again = attempts.again(record, context.is_shutdown)
            if again:
                told.append(LogInfo(msg=f"spoilt: {record.run['invalid_detail']}; it is flown again"))
                clear(flight)
            else:
                self.records.append(_settle(flight, attempts.tell_of(record)))
            if context.is_shutdown:
                return [*told, LogInfo(msg="interrupted" if self.one else "interrupted; the same command goes on")]
            closing = [EmitEvent(event=ShutdownProcess(process_matcher=matches_action(v))) for v in viewers]
            following = self.fly(flight, attempts, self._fresh_domain()) if again else self.next_flight()
            return [*told, *(closing if again or not self.one else []), *following]

        return [*self.watched(nodes, gone), *viewers]

    def show(self) -> list[Action]:
        """What it came to, for people to look at."""
        invalid = [record for record in self.records if not record.result["valid"]]
        if not self.one:
            return self.report(len(invalid))
        for record in invalid:
            raise RunError(_told(record))
        bag = self.tour.flights[0].bag
        picture = bag.with_name(f"{bag.name}.png")
        layout = share_dir("configs") / "layouts" / "mission.rviz"

        def drawn() -> list[Action]:
            return [
                LogInfo(msg=_told(self.records[0])),
                LogInfo(msg=f"look at {picture}"),
                LogInfo(msg=f"watch it: ros2 bag play {bag}, and rviz2 -d {layout} --ros-args -p use_sim_time:=true"),
            ]

        return self.run(["draw", str(bag), "--out", str(picture)], "draw", drawn)

    def report(self, invalid: int) -> list[Action]:
        """Of all bags in the folder, also of those that other launches flew there."""
        folder = Path(self.values["bag_dir"])
        words = ["report", str(folder), "--out", str(folder / "report")]
        if self.tour.stage1 is not None:
            words += ["--stage1", str(self.tour.stage1)]

        def written() -> list[Action]:
            told = f"{invalid} of {len(self.records)} INVALID; the same command flies them again. " if invalid else ""
            place = folder / "report"
            return [LogInfo(msg=f"{told}read {place / 'RESULTS.md'}, look at {place / 'report.html'}")]

        return self.run(words, "report", written)

    def _fresh_domain(self) -> int:
        """As given, or one that nobody uses; the last flight's is given back only when the next has its own."""
        if self.values["domain_id"] != "auto":
            return int(number(self.values, "domain_id"))
        before, self.held = self.held, contextlib.ExitStack()
        with before:
            return self.held.enter_context(own_domain())

    def _node(self, row: NodeRow, environment: Mapping[str, str]) -> Node:
        """As the table has it, but for the name: nodes know their own, and launch would count it up over flights."""
        given = {**row.parameters, "use_sim_time": truth(self.values, "use_sim_time")}
        names = NODES if row.name == COMPOSED else (row.name,)  # of all others, ROS tells too much
        return Node(
            package=row.package,
            executable=row.executable,
            exec_name=row.executable,
            namespace=row.namespace,
            parameters=[{key: ParameterValue(value, value_type=type(value)) for key, value in given.items()}],
            additional_env=dict(environment),
            ros_arguments=[word for name in names for word in ("--log-level", f"{name}:={self.values['log_level']}")],
            prefix=" ".join(SPARED),
            sigterm_timeout=FINISH_S,
            output="screen",
        )


def _end(pid: int, number_: int = signal.SIGTERM) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number_)


def _end_all(processes: set[Any], number_: int) -> None:
    """Those of a flight that are still there: who missed its end would wait for it for ever."""
    for process in processes:
        if process.process_details is not None:
            _end(process.process_details["pid"], number_)


def _outcome(flight: LaunchedFlight, interrupted: bool) -> Record:
    """What the manager wrote, or what is to be said where it could not."""
    if flight.record.exists() or not interrupted:
        return read_record(flight.record, flight.episode, flight.bag)
    return missing_record(flight.episode, flight.bag, "interrupted", [])


def _settle(flight: LaunchedFlight, record: Record) -> Record:
    """Leave the flight's record in its file, also where the manager could not, and nothing else beside it."""
    flight.record.with_suffix(STARTED).unlink(missing_ok=True)
    flight.record.write_text(json.dumps(record.as_dict()) + "\n", encoding="utf-8")
    return record


def _told(record: Record) -> str:
    """An episode in a line: what it came to, or why it does not count and who is to blame, and where its bag lies."""
    r, run = record.result, record.run
    bag = f"bag {run['bag']}" if run.get("bag") else "no bag"
    if r["valid"]:
        return (
            f"{r['episode_id']}: coverage {r['coverage']:.1%}, detections {r['detections']}, "
            f"false alarms {r['false_alarms']}, collisions {r['collisions']}, {bag}"
        )
    silent = f"; silent: {', '.join(run['silent'])}" if run.get("silent") else ""
    detail = f"; {run['invalid_detail']}" if run.get("invalid_detail") else ""
    return f"{r['episode_id']} is INVALID ({r['invalid_reason']}){silent}{detail}, {bag}"


def _require_viewer(name: str) -> None:
    package, _ = VIEWERS[name]
    try:
        get_package_prefix(package)
    except PackageNotFoundError as error:
        deb = f"ros-jazzy-{package.replace('_', '-')}"
        raise MissingDependencyError(
            f"{name}:=true needs {package}, which is not installed: apt-get install {deb}"
        ) from error


def _viewer(name: str, environment: Mapping[str, str]) -> Node:
    package, executable = VIEWERS[name]
    layout = share_dir("configs") / "layouts" / "mission.rviz"
    return Node(
        package=package,
        executable=executable,
        arguments=["-d", str(layout)] if name == "rviz" else [],
        parameters=[{"use_sim_time": True}],
        additional_env=dict(environment),
    )
