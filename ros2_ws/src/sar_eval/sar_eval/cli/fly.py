"""Verbs that fly one episode, or one vehicle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sar_core.errors import InputError
from sar_eval.cli.console import (
    BACKEND_HELP,
    PATTERN_HELP,
    Json,
    SimSpeed,
    err,
    note,
    say,
    scenario_options,
    stop,
    tier_of,
)
from sar_eval.cli.console import bar as bar_of
from sar_eval.cli.recordtable import conclude


def _compile(episode: Any) -> float:
    from sar_eval.episode.kernels import compile_kernels

    told: list[str] = []

    def tell(number: int, of: int, what: str) -> None:
        if not told and not err.is_terminal:
            note("compiling the simulator, once per machine and version: minutes")
        told.append(what)

    with err.status("compiling the simulator (about a minute on a new machine, then cached)"):
        return compile_kernels(episode, tell)


def run(
    world: Annotated[str | None, typer.Option(help="World by name (see worlds/) or path to an SDF file.")] = None,
    drones: Annotated[int | None, typer.Option(help="Number of drones, 1 to 64.")] = None,
    pattern: Annotated[str | None, typer.Option(help=PATTERN_HELP)] = None,
    policy: Annotated[str | None, typer.Option(help="Weights of a learned policy (.npz).")] = None,
    pursuit: Annotated[str | None, typer.Option(help="Look closer at hypotheses: on, or off.")] = None,
    vehicle: Annotated[str | None, typer.Option(help="Vehicle by name (configs/vehicles).")] = None,
    seed: Annotated[int, typer.Option(help="Seed of sensor, link and motor noise.")] = 0,
    episode: Annotated[int, typer.Option(help="Index in the episode set: decides wind and layout.")] = 0,
    duration_s: Annotated[float | None, typer.Option(help="Search time, from all drones at altitude.")] = None,
    altitude_m: Annotated[float | None, typer.Option(help="Search altitude; default: the world's own.")] = None,
    speed_mps: Annotated[float | None, typer.Option(help="Search speed over ground.")] = None,
    wind_mps: Annotated[float | None, typer.Option(help="Mean wind; default: the world's own.")] = None,
    sigma: Annotated[float | None, typer.Option(help="CSI amplitude noise, relative to the frame's mean.")] = None,
    kappa: Annotated[float | None, typer.Option(help="CSI phase concentration (von Mises); inf for none.")] = None,
    victims: Annotated[int | None, typer.Option(help="Number of victims.")] = None,
    decoys: Annotated[int | None, typer.Option(help="Number of other transmitters.")] = None,
    victim_absent: Annotated[bool | None, typer.Option(help="The same mission without its victims.")] = None,
    episode_set: Annotated[
        str | None, typer.Option(help="Fixed episode set by name (configs/episodes): decides layout, wind and noise.")
    ] = None,
    radio: Annotated[str | None, typer.Option(help="Link budget by name (configs/radio).")] = None,
    config: Annotated[Path | None, typer.Option(help="Scenario file (YAML); options given here win over it.")] = None,
    backend: Annotated[str, typer.Option(help=BACKEND_HELP)] = "embedded",
    speed: SimSpeed = 1.0,
    out_dir: Annotated[Path, typer.Option("--out", help="Folder for the bag; created if needed.")] = Path("runs"),
    bag: Annotated[bool, typer.Option(help="Record a bag; --no-bag flies without one.")] = True,
    record_: Annotated[str | None, typer.Option("--record", help="csi: raw frames too; about doubles the bag.")] = None,
    as_json: Json = False,
) -> None:
    """Fly one episode, record it, and print its record.

    Example: sar-eval run --world forest --drones 6 --seed 3 --out runs/forest
    """
    given = scenario_options(locals())
    from sar_eval.bag.folders import ready_folder
    from sar_eval.episode.attempts import fly as fly_mission
    from sar_eval.scenario.model import load_scenario
    from sar_eval.scenario.prepare import prepare

    if record_ not in (None, "csi"):
        raise InputError(f"--record {record_}: not known; allowed: csi")
    scenario, source = load_scenario(config, given)
    plan = prepare(scenario, seed, episode, tier_of(backend), source)
    if bag:
        ready_folder(out_dir)
    compile_s = _compile(plan)
    stop.listen()
    with bar_of("{task.fields[note]}") as bar:
        task = bar.add_task(plan.world.name, total=scenario.duration_s, note="taking off")

        def watch(now: Any) -> None:
            note = f"coverage {now.coverage:6.1%}  collisions {now.collisions}"
            bar.update(task, completed=now.search_time_s, note=note)

        bag_dir = out_dir / plan.episode_id if bag else None
        record = fly_mission(plan, bag_dir, watch, stop, record_ == "csi", speed, tell=note)
    record.run["compile_s"] = round(compile_s, 3)
    conclude(record, as_json)


def fly(
    setpoints: Annotated[
        Path, typer.Argument(help="CSV with t and sp_x sp_y sp_z sp_vx sp_vy sp_vz sp_yaw, local NED.")
    ],
    trace: Annotated[Path, typer.Option("--out", help="CSV to write: the same columns at the same times.")],
    vehicle: Annotated[str, typer.Option(help="Vehicle by name (configs/vehicles).")] = "sihsim_quadx",
    params: Annotated[str | None, typer.Option(help="PX4 parameter file or name; default: the vehicle's own.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the sensor noise.")] = 0,
    noise: Annotated[bool, typer.Option(help="Sensor noise; --no-noise flies on the truth.")] = True,
    backend: Annotated[str, typer.Option(help="embedded, or auto.")] = "embedded",
) -> None:
    """Fly one vehicle through a scripted setpoint file, to lay it over your own logs.

    Example: sar-eval fly setpoints.csv --out trace.csv

    nan means "not commanded". The flight starts at the first row's x y z, at rest, or on the ground if z is about 0.
    """
    from sar_eval.backends.registry import choose_tier
    from sar_eval.bag.folders import ready_folder
    from sar_eval.scenario.prepare import load_named_vehicle
    from sar_eval.studies.fly import fly_script, read_script, write_trace

    if choose_tier(backend)[0] != "embedded" and backend != "auto":
        raise InputError(f"--backend {backend}: fly knows embedded only; run and stage2 fly on real autopilots")
    script = read_script(setpoints)
    model = load_named_vehicle(vehicle, params)
    if seed < 0:
        raise InputError(f"seed = {seed}: must be 0 or more")
    if trace.is_dir():
        raise InputError(f"{trace}: is a folder; give the name of a CSV file")
    ready_folder(trace.parent)
    with err.status(f"flying {script.times[-1]:.1f} s on {model.name}"):
        flown = fly_script(script, model, seed, noise)
    write_trace(trace, flown)
    told = f"{trace}: {len(flown)} rows over {script.times[-1]:.1f} s, vehicle {model.name} (embedded)"
    say(told)
