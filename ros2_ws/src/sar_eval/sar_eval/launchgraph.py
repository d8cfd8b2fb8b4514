"""The node table as actions of ROS 2's launch: one flight after another, each in a ROS domain of its own."""

from __future__ import annotations

import contextlib
import json
import secrets
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
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
)
from launch.event_handlers import OnProcessExit
from launch.events import matches_action
from launch.events.process import ShutdownProcess
from launch.logging import launch_config
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from sar_core.errors import MissingDependencyError, RunError
from sar_eval.backends import choose_tier, require
from sar_eval.episode import Record
from sar_eval.flying import Attempts
from sar_eval.folders import ready_folder
from sar_eval.graph import graph_environment, own_domain, read_record
from sar_eval.kernels import compile_kernels
from sar_eval.launchargs import Argument, Flight, flights, number, truth
from sar_eval.nodetable import STARTED, NodeRow, node_table, settings_of
from sar_eval.recorder import refuse_existing
from sar_eval.resources import share_dir

FINISH_S = "20"
"""Seconds a node has for its bag after SIGINT before launch insists."""
VIEWERS = {"rviz": ("rviz2", "rviz2"), "foxglove": ("foxglove_bridge", "foxglove_bridge")}
Ending = Callable[[Mapping[str, str], Sequence[Record]], list[Action]]


def described(arguments: Iterable[Argument], ending: Ending) -> LaunchDescription:
    """A launch description that takes these arguments, flies what they ask for, and then does what ``ending`` says."""
    arguments = tuple(arguments)
    declared = [
        DeclareLaunchArgument(a.name, default_value=a.default, description=a.description, choices=a.choices or None)
        for a in arguments
    ]

    def start(context: LaunchContext) -> list[Action]:
        values = {a.name: LaunchConfiguration(a.name).perform(context) for a in arguments}
        tier, why = choose_tier(values["backend"])
        require(tier)
        tour = Tour(flights(values, tier), values, ending)
        return [*([LogInfo(msg=why)] if why else []), *tour.begin()]

    return LaunchDescription([*declared, OpaqueFunction(function=start)])


def refuse_invalid(values: Mapping[str, str], records: Sequence[Record]) -> list[Action]:
    """An INVALID episode makes the launch fail, and says why."""
    for record in records:
        if not record.result["valid"]:
            raise RunError(f"{record.result['episode_id']} is INVALID ({record.result['invalid_reason']})")
    return []


def report(values: Mapping[str, str], records: Sequence[Record]) -> list[Action]:
    """Write the report of the bags just flown, and of others in their folder."""
    folder = values["bag_dir"]
    return [ExecuteProcess(cmd=[sys.executable, "-m", "sar_eval", "report", folder], name="report", output="screen")]


class Tour:
    """Flights one after another. A flight is over when all of its nodes are gone, however they went."""

    def __init__(self, planned: Sequence[Flight], values: Mapping[str, str], ending: Ending) -> None:
        self.planned = list(planned)
        self.values = values
        self.ending = ending
        self.records: list[Record] = []
        self.attempts = [Attempts(flight.bag) for flight in planned]
        self.held = contextlib.ExitStack()

    def begin(self) -> list[Action]:
        for flight in self.planned:
            ready_folder(flight.bag.parent)
            refuse_existing(flight.bag)
            flight.record.unlink(missing_ok=True)
        for name in VIEWERS:
            if truth(self.values, name):
                _require_viewer(name)
        compile_kernels(self.planned[0].episode)
        return self.next_flight()

    def next_flight(self) -> list[Action]:
        if len(self.records) == len(self.planned):
            return self.ending(self.values, self.records)
        flight, attempts = self.planned[len(self.records)], self.attempts[len(self.records)]
        domain = self._fresh_domain()
        environment = graph_environment(domain, Path(launch_config.log_dir))
        settings = settings_of(
            flight.episode,
            run=secrets.randbits(62),
            bag=flight.bag.resolve(),
            record_file=flight.record.resolve(),
            lockstep_timeout_s=number(self.values, "lockstep_timeout_s"),
            ready_timeout_s=number(self.values, "ready_timeout_s"),
            speed_factor=number(self.values, "speed_factor"),
        )
        nodes = [self._node(row, environment) for row in node_table(settings)]
        viewers = [_viewer(name, environment) for name in VIEWERS if truth(self.values, name)]
        flying = set(nodes)

        def gone(event: Any, context: LaunchContext) -> list[Action]:
            flying.discard(event.action)
            if flying:
                return []
            record = read_record(flight.record, flight.episode, flight.bag)
            told: list[Action] = [LogInfo(msg=_told(record))]
            again = attempts.again(record, context.is_shutdown)
            if again:
                told.append(LogInfo(msg=f"spoilt: {record.run['invalid_detail']}; it is flown again"))
                flight.record.unlink()
            else:
                self.records.append(_settle(flight, attempts.tell_of(record)))
            if context.is_shutdown:
                return told
            closing = [EmitEvent(event=ShutdownProcess(process_matcher=matches_action(v))) for v in viewers]
            return [*told, *(closing if again or len(self.planned) > 1 else []), *self.next_flight()]

        watching = [RegisterEventHandler(OnProcessExit(target_action=node, on_exit=gone)) for node in nodes]
        begun = f"{flight.episode.episode_id}: {len(self.records) + 1} of {len(self.planned)}, ROS_DOMAIN_ID={domain}"
        return [LogInfo(msg=begun), *watching, *nodes, *viewers]

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
        return Node(
            package=row.package,
            executable=row.executable,
            namespace=row.namespace,
            parameters=[{key: ParameterValue(value, value_type=type(value)) for key, value in given.items()}],
            additional_env=dict(environment),
            ros_arguments=["--log-level", self.values["log_level"]],
            sigterm_timeout=FINISH_S,
            output="screen",
        )


def _settle(flight: Flight, record: Record) -> Record:
    """Leave the flight's record in its file, also where the manager could not, and nothing else beside it."""
    flight.record.with_suffix(STARTED).unlink(missing_ok=True)
    flight.record.write_text(json.dumps(record.as_dict()) + "\n", encoding="utf-8")
    return record


def _told(record: Record) -> str:
    r = record.result
    if not r["valid"]:
        return f"{r['episode_id']}: INVALID ({r['invalid_reason']}), bag {record.run.get('bag')}"
    return (
        f"{r['episode_id']}: coverage {r['coverage']:.1%}, detections {r['detections']}, "
        f"false alarms {r['false_alarms']}, collisions {r['collisions']}, bag {record.run.get('bag')}"
    )


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
