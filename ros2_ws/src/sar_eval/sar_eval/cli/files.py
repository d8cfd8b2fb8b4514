"""Verbs about files: lint worlds, check and repair bags."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from sar_core.errors import ContractError, MissingDataError
from sar_eval.cli.console import Json, err, out, say

world_app = typer.Typer(
    no_args_is_help=True, help="Worlds: the SDF files that Gazebo and the embedded simulator share."
)
export_app = typer.Typer(no_args_is_help=True, help="Bags in the words of other tools.")
bag_app = typer.Typer(no_args_is_help=True, help="Bags: check a recording, or save what a damaged one still holds.")


@world_app.command("check")
def world_check(
    worlds: Annotated[list[str] | None, typer.Argument(help="Names or paths; default: all shipped worlds.")] = None,
    as_json: Json = False,
) -> None:
    """Lint worlds: tags, plugins, sizes, spawn points; and run libsdformat's own check where it is installed.

    Example: sar-eval world check village my_world.sdf
    """
    from sar_eval.scenario.resources import names, world_path
    from sar_sim.world.worldlint import SDF_COMMAND_PACKAGES, libsdformat_check, lint_world

    paths = [world_path(name) for name in (worlds or names("worlds", ".sdf"))]
    report: list[dict[str, Any]] = []
    tool_ran = True
    for path in paths:
        with err.status(f"checking {path.name}"):
            findings = lint_world(path)
            second = libsdformat_check(path)
        tool_ran = tool_ran and second is not None
        report.append({"world": str(path), "findings": [vars(f) for f in [*findings, *(second or [])]]})
    if as_json:
        print(json.dumps({"libsdformat": tool_ran, "worlds": report}))
    else:
        for entry in report:
            for finding in entry["findings"]:
                line = f"{finding['severity']}: {finding['where']}: {finding['message']}"
                out.print(f"{entry['world']}: {line}", markup=False, soft_wrap=True)
        bad = sum(bool(entry["findings"]) for entry in report)
        out.print(f"{len(report)} worlds checked, {bad} with findings")
        if not tool_ran:
            out.print(f"libsdformat's own check did not run; to add it: {SDF_COMMAND_PACKAGES}", markup=False)
    errors = [f for entry in report for f in entry["findings"] if f["severity"] == "error"]
    if errors:
        raise typer.Exit(ContractError.exit_code)


@bag_app.command("check")
def bag_check(
    bags: Annotated[list[Path], typer.Argument(help="Bag folders or .mcap files.")], as_json: Json = False
) -> None:
    """Say whether bags are whole and keep the contract, and what is wrong where they do not.

    Example: sar-eval bag check runs/first/*
    """
    from sar_eval.bag.check import check_bag

    for path in bags:
        if not path.exists():
            raise MissingDataError(f"{path}: no such bag; expected a rosbag2 folder or an .mcap file")
    reports = []
    for path in bags:
        with err.status(f"reading {path}"):
            reports.append(check_bag(path))
    if as_json:
        listed = [
            {"bag": str(r.path), "ok": r.ok, "messages": r.messages, "findings": [vars(f) for f in r.findings]}
            for r in reports
        ]
        print(json.dumps(listed))
    else:
        for report in reports:
            span = (report.end_ns - report.start_ns) / 1e9
            state = "ok" if report.ok else f"{len(report.findings)} findings"
            head = f"{report.path}: {state}; {report.messages} messages over {span:.1f} s in {report.chunks} chunks"
            out.print(head, markup=False, soft_wrap=True)
            for found in report.findings:
                out.print(f"  {found.code}: {found.text}", markup=False, soft_wrap=True)
    if not all(report.ok for report in reports):
        raise typer.Exit(ContractError.exit_code)


@bag_app.command("repair")
def bag_repair(
    source: Annotated[Path, typer.Argument(help="A damaged or unfinished bag: folder (also *.partial) or .mcap file.")],
    target: Annotated[Path, typer.Option("--out", help="Folder for the repaired bag; must not exist.")],
) -> None:
    """Write a new, whole bag with every message that can be proven intact; the source stays as it is.

    Example: sar-eval bag repair runs/first/EPISODE.partial --out runs/first/EPISODE
    """
    from sar_eval.bag.repair import repair_bag

    with err.status(f"reading {source}"):
        report = repair_bag(source, target)
    out.print(
        f"{target}: {report.recording.messages} messages from {report.chunks} chunks saved and read back; "
        f"{report.lost_bytes} bytes and {report.lost_messages} counted messages lost",
        markup=False,
        soft_wrap=True,
    )
    for reason in report.damage:
        out.print(f"  {reason}", markup=False, soft_wrap=True)


@export_app.command("telemetry")
def export_telemetry(
    bag: Annotated[Path, typer.Argument(help="A bag folder.")],
    target: Annotated[Path, typer.Option("--out", help="JSONL to write; must not exist.")],
    every_s: Annotated[float, typer.Option(help="Search time between two steps [s].")] = 1.0,
) -> None:
    """Write a flown search as ADR-148's telemetry: a meta line, a line per step, an episode line.

    Example: sar-eval export telemetry runs/first/EPISODE --out runs/first.jsonl
    """
    from sar_analysis.bags.reader import read_bag
    from sar_analysis.render.telemetry import telemetry
    from sar_core.errors import InputError
    from sar_eval.bag.folders import ready_folder

    if target.exists():
        raise InputError(f"{target}: exists already; choose another name")
    with err.status(f"reading {bag}"):
        lines = [json.dumps(line, allow_nan=False) for line in telemetry(read_bag(bag), every_s)]
    ready_folder(target.parent)
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    say(f"{target}: {len(lines) - 2} steps")
