"""The command line: every verb parses, calls one function of the library and prints."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from sar_core.errors import InputError, RunError, SarError
from sar_eval import __version__
from sar_eval.cli.analysis import analyze, prereg_app, report
from sar_eval.cli.campaign import merge, stage2
from sar_eval.cli.compiling import compile_
from sar_eval.cli.console import BACKEND_HELP, PATTERN_HELP, Json, SimSpeed, err, note, out, say, stop
from sar_eval.cli.console import bar as bar_of
from sar_eval.cli.episodes import episodes_app
from sar_eval.cli.evaluation import evaluate
from sar_eval.cli.files import bag_app, world_app
from sar_eval.cli.graph import graph
from sar_eval.cli.interfaces import msgs_app
from sar_eval.cli.recordtable import conclude
from sar_eval.cli.reference import reference
from sar_eval.cli.sitl import sitl
from sar_eval.cli.stage1 import fit_observations, median_seeds, stage1
from sar_eval.cli.studies import calibrate, gate_study, missions, reliability, sweep
from sar_eval.cli.swarm import encounters, patterns, replay

# Typer brings its own click or uses the installed one; its exceptions lead to the right base either way.
UsageError: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")

INTERRUPTED = 130
"""What Typer makes of a KeyboardInterrupt."""

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Fly seeded search-and-rescue drone swarms, record them as rosbag2 (MCAP) and score them.\n\n"
    "Start with: sar-eval run --world village --out runs/first\n\n"
    "Exit codes: 0 ok, 1 bad input, 2 a check or contract failed, 3 the run failed, 4 data missing, "
    "5 an optional dependency is missing.",
)
app.add_typer(world_app, name="world")
app.add_typer(bag_app, name="bag")
app.add_typer(prereg_app, name="prereg")
app.add_typer(episodes_app, name="episodes")
app.add_typer(msgs_app, name="msgs")
VERBS: tuple[Callable[..., None], ...] = (
    *(calibrate, missions, sweep, gate_study, reliability, patterns, encounters, replay, reference, graph, sitl),
    *(stage1, median_seeds, fit_observations, stage2, merge, analyze, report),
)
app.command(name="eval")(evaluate)
app.command(name="compile")(compile_)
for verb in VERBS:
    app.command()(verb)


def _compile(episode: Any) -> float:
    from sar_eval.episode.kernels import compile_kernels

    with err.status("compiling the simulator (about a minute on a new machine, then cached)"):
        return compile_kernels(episode)


@app.command()
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
    from sar_eval.bag.folders import ready_folder
    from sar_eval.cli.console import tier_of
    from sar_eval.episode.attempts import fly as fly_mission
    from sar_eval.scenario.model import load_scenario, prepare

    given = {
        "world": world,
        "drones": drones,
        "pattern": pattern,
        "policy": policy,
        "pursuit": pursuit,
        "vehicle": vehicle,
        "duration_s": duration_s,
        "altitude_m": altitude_m,
        "speed_mps": speed_mps,
        "wind_mps": wind_mps,
        "sigma": sigma,
        "kappa": kappa,
        "victims": victims,
        "decoys": decoys,
        "victim_absent": victim_absent,
        "episode_set": episode_set,
        "radio": radio,
    }
    if record_ not in (None, "csi"):
        raise InputError(f"--record {record_}: not known; allowed: csi")
    scenario, source = load_scenario(config, {key: value for key, value in given.items() if value is not None})
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


@app.command()
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
    from sar_eval.scenario.model import load_named_vehicle
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


@app.command()
def draw(
    bag: Annotated[Path, typer.Argument(help="A recorded episode (folder).")],
    picture: Annotated[Path, typer.Option("--out", help="PNG or SVG to write.")] = Path("mission.png"),
) -> None:
    """Draw a flown mission from its bag: map, tracks, coverage over time, events.

    Example: sar-eval draw runs/first/EPISODE --out mission.png
    """
    from sar_eval.studies.drawing import draw_bag

    with err.status("reading the bag"):
        draw_bag(bag, picture)
    say(f"{picture} written")


@app.command()
def doctor(as_json: Json = False) -> None:
    """Say what this machine has and lacks, what each thing is for and how to get it.

    Example: sar-eval doctor --json
    """
    from sar_eval.backends.machine import as_json as to_json
    from sar_eval.backends.machine import best_tier, diagnose, healthy
    from sar_eval.cli.doctor import as_table

    probes = diagnose()
    if as_json:
        print(to_json(probes))
    else:
        out.print(as_table(probes))
        tier, why = best_tier(probes)
        out.print(f"highest tier found: {tier} ({why})")
    if not healthy(probes):
        raise typer.Exit(5)


@app.command()
def bench(
    as_json: Json = False,
    quick: Annotated[bool, typer.Option(help="Shorter runs; for a look, not for quoting.")] = False,
) -> None:
    """Measure every speed figure, best of 3, with its peer and ratio in the same run.

    Example: sar-eval bench --json
    """
    from benchmarks.bench import as_table, measure

    with bar_of("{task.fields[note]}") as bar:
        task = bar.add_task("measuring", total=None, note="")
        figures = measure(quick, lambda name: bar.update(task, note=name))
    if as_json:
        print(json.dumps([vars(figure) for figure in figures]))
    else:
        out.print(as_table(figures))


def _version(show: bool) -> None:
    if show:
        print(f"sar-eval {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options before the verb."""


def main() -> None:
    """Run a verb; every expected failure is one line on stderr and its exit code."""
    try:
        code = app(standalone_mode=False)
    except typer.Exit as ending:
        code = ending.exit_code
    except UsageError as error:
        if text := error.format_message():  # empty where no verb was given and the help has been shown
            print(f"error: {' '.join(text.split())} (see sar-eval --help)", file=sys.stderr)
        code = InputError.exit_code
    except (typer.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except SarError as error:
        print(f"error: {error}", file=sys.stderr)
        code = error.exit_code
    except BrokenPipeError:
        # The reader of our output has gone; nothing is left to tell it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = RunError.exit_code
    except OSError as error:
        print(f"error: {error.filename or 'output'}: {error.strerror or error}", file=sys.stderr)
        code = RunError.exit_code
    interrupted = code == INTERRUPTED
    if interrupted:
        print("error: interrupted", file=sys.stderr)
        code = RunError.exit_code
    if stop.reason or interrupted:
        # Python's shutdown restores the default handlers, and one more signal would then replace the exit code; and it
        # dies of SIGINT itself if the interrupt once passed through code that an extension module ran.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code or 0)
    sys.exit(code)
