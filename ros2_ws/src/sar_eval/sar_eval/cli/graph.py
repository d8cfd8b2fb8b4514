"""The verb that flies an episode as a ROS 2 graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sar_core.errors import InputError
from sar_eval.cli.console import BACKEND_HELP, PATTERN_HELP, Json, SimSpeed, err, note, scenario_options, stop
from sar_eval.cli.console import bar as bar_of


def graph(
    world: Annotated[str | None, typer.Option(help="World by name (see worlds/) or path to an SDF file.")] = None,
    drones: Annotated[int | None, typer.Option(help="Number of drones, 1 to 64.")] = None,
    pattern: Annotated[str | None, typer.Option(help=PATTERN_HELP)] = None,
    seed: Annotated[int, typer.Option(help="Seed of sensor, link and motor noise.")] = 0,
    episode: Annotated[int, typer.Option(help="Index in the episode set: decides wind and layout.")] = 0,
    duration_s: Annotated[float | None, typer.Option(help="Search time, from all drones at altitude.")] = None,
    sigma: Annotated[float | None, typer.Option(help="CSI amplitude noise, relative to the frame's mean.")] = None,
    kappa: Annotated[float | None, typer.Option(help="CSI phase concentration (von Mises); inf for none.")] = None,
    episode_set: Annotated[str | None, typer.Option(help="Fixed episode set by name (configs/episodes).")] = None,
    config: Annotated[Path | None, typer.Option(help="Scenario file (YAML); options given here win over it.")] = None,
    composed: Annotated[bool, typer.Option(help="All nodes in one process instead of one each.")] = False,
    speed_factor: Annotated[float, typer.Option(help="Simulated over wall time at most; 0: as fast as it goes.")] = 0.0,
    backend: Annotated[str, typer.Option(help=BACKEND_HELP)] = "embedded",
    sim_speed: SimSpeed = 1.0,
    lockstep_timeout_s: Annotated[
        float, typer.Option(help="Wall time after which a silent node ends it; real autopilots get at least 5.")
    ] = 2.0,
    out_dir: Annotated[Path, typer.Option("--out", help="Folder for the bag; created if needed.")] = Path("runs"),
    bag: Annotated[bool, typer.Option(help="Record a bag; --no-bag flies without one.")] = True,
    record_: Annotated[str | None, typer.Option("--record", help="csi: raw frames too; about doubles the bag.")] = None,
    as_json: Json = False,
) -> None:
    """Fly one episode as a ROS 2 graph of processes, record it, and print its record as run does.

    Example: sar-eval graph --world village --seed 3 --out runs/graph
    """
    given = scenario_options(locals())
    from sar_eval.bag.folders import ready_folder
    from sar_eval.cli.console import tier_of
    from sar_eval.cli.recordtable import conclude
    from sar_eval.episode.kernels import compile_kernels
    from sar_eval.ros.graph import fly_graph, require_ros
    from sar_eval.scenario.model import load_scenario
    from sar_eval.scenario.prepare import prepare

    require_ros()
    if record_ not in (None, "csi"):
        raise InputError(f"--record {record_}: not known; allowed: csi")
    scenario, source = load_scenario(config, given)
    plan = prepare(scenario, seed, episode, tier_of(backend), source)
    if bag:
        ready_folder(out_dir)
    with err.status("compiling the simulator (about a minute on a new machine, then cached)"):
        compile_s = compile_kernels(plan)
    stop.listen()
    with bar_of("{task.fields[note]}", threaded=False) as bar:
        task = bar.add_task(plan.world.name, total=scenario.duration_s, note="")

        def watch(search_time_s: float) -> None:
            bar.update(task, completed=search_time_s, note="" if search_time_s else "taking off", refresh=True)

        record = fly_graph(
            plan,
            out_dir / plan.episode_id if bag else None,
            composed=composed,
            csi=record_ == "csi",
            stop=stop,
            watch=watch,
            tell=note,
            speed_factor=speed_factor,
            sim_speed=sim_speed,
            lockstep_timeout_s=lockstep_timeout_s,
        )
    record.run["compile_s"] = round(compile_s, 3)
    conclude(record, as_json)
