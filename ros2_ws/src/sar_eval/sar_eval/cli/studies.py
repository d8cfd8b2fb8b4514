"""Verbs that fly many missions: calibrate the confidence, study a condition, sweep the noise."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from sar_core.errors import InputError
from sar_eval.cli.console import PATTERN_HELP, Json, bar, err, note, out, say, scenario_options

Workers = Annotated[int, typer.Option(help="Processes that fly at the same time.")]
DEFAULT_WORKERS = os.cpu_count() or 1


def calibrate(
    radio: Annotated[str, typer.Option(help="Link budget by name (configs/radio).")] = "open_ground",
    missions: Annotated[int, typer.Option(help="Missions to learn from.")] = 128,
    workers: Workers = DEFAULT_WORKERS,
    target: Annotated[Path | None, typer.Option("--out", help="JSON to write; default: configs/calibration.")] = None,
) -> None:
    """Fit the swarm's confidence on missions no evaluation uses (seeds from 1000000), for one link budget.

    Example: sar-eval calibrate --radio near --missions 96 --out near.json
    """
    from sar_eval.scenario.prepare import calibration_path, radio_path
    from sar_eval.studies.calibration import calibrate as fit

    radio_path(radio)
    if missions < 1:
        raise InputError(f"missions = {missions}: must be 1 or more")
    path = target or calibration_path(radio)
    with bar("{task.completed:.0f} of {task.total} missions") as progress:
        task = progress.add_task("calibrating", total=missions)
        fitted = fit(radio, missions, workers, lambda done: progress.update(task, completed=done))
    path.parent.mkdir(parents=True, exist_ok=True)
    fitted.save(path)
    say(f"{path}: fitted on {fitted.n} estimates, {fitted.positives} of them right, from {missions} missions")


def missions(
    world: Annotated[str | None, typer.Option(help="World by name or path.")] = None,
    pattern: Annotated[str | None, typer.Option(help=PATTERN_HELP)] = None,
    drones: Annotated[int | None, typer.Option(help="Number of drones, 1 to 64.")] = None,
    config: Annotated[Path | None, typer.Option(help="Scenario file (YAML); options given here win over it.")] = None,
    count: Annotated[int, typer.Option("--missions", help="How many, each with its own seed and layout.")] = 50,
    first_seed: Annotated[int, typer.Option(help="Seed and episode index of the first mission.")] = 0,
    sigma: Annotated[float | None, typer.Option(help="CSI amplitude noise.")] = None,
    kappa: Annotated[float | None, typer.Option(help="CSI phase concentration.")] = None,
    gate: Annotated[str | None, typer.Option(help="on, or forced_open.")] = None,
    attention: Annotated[str | None, typer.Option(help="How fusion weighs views: none, source or spread.")] = None,
    victims: Annotated[int | None, typer.Option(help="Victims per mission.")] = None,
    decoys: Annotated[int | None, typer.Option(help="Other transmitters per mission.")] = None,
    victim_absent: Annotated[bool | None, typer.Option(help="Leave the victims out.")] = None,
    radio: Annotated[str | None, typer.Option(help="Link budget by name.")] = None,
    workers: Workers = DEFAULT_WORKERS,
    target: Annotated[Path | None, typer.Option("--out", help="JSONL to write: one result per mission.")] = None,
    as_json: Json = False,
) -> None:
    """Fly many missions of one condition without bags and print what they come to, with 95 % intervals.

    Example: sar-eval missions --world village --missions 200 --out village.jsonl
    """
    given = scenario_options(locals())
    from sar_eval.episode.pool import fly_one, plan_missions, spread
    from sar_eval.scenario.model import load_scenario
    from sar_eval.scenario.prepare import prepare
    from sar_eval.studies.missions import summarise

    scenario, source = load_scenario(config, given)
    specs = plan_missions(scenario, count, first_seed)
    first = prepare(scenario, specs[0].seed, specs[0].index, source=source)
    if target is not None and target.exists():
        raise InputError(f"{target}: exists already; choose another name")
    results = []
    with bar("{task.completed:.0f} of {task.total} missions") as progress:
        task = progress.add_task("flying", total=count)
        for result in spread(fly_one, specs, workers):
            results.append(result)
            progress.update(task, completed=len(results))
    if target is not None:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("".join(json.dumps(result) + "\n" for result in results))
    summary = summarise(results)
    if as_json:
        print(json.dumps(_plain(summary)))
    else:
        s = first.scenario
        swarm = f"{first.world.name}, {s.pattern.replace('_', ' ')}, {s.drones} drones"
        level = f"noise of {s.episode_set}" if s.episode_set else f"sigma {s.sigma:g}, kappa {s.kappa:g}"
        noise = f"{level}, gate {s.gate}"
        out.print(_table(summary, f"Stage 2 (embedded): {swarm}, {noise}"))


def _plain(summary: Any) -> dict[str, Any]:
    return {key: value.plain if hasattr(value, "plain") else value for key, value in vars(summary).items()}


def _table(summary: Any, title: str) -> Table:
    from sar_analysis.metrics.catalogue import metric
    from sar_analysis.render.method import how, shortfalls
    from sar_analysis.render.wording import bare, number
    from sar_analysis.results.summary import ONE_KIND
    from sar_eval.studies.missions import KEYS

    found = [getattr(summary, field) for field in KEYS]
    table = Table(title=title, caption=f"{how(found)} {shortfalls(found)}".rstrip())
    for name in ("figure", "value", "95 % interval"):
        table.add_column(name)
    valid = summary.missions - summary.invalid
    table.add_row("missions (invalid), victims", f"{valid} ({summary.invalid}), {summary.victims}", "")
    for field, key in KEYS.items():
        found = getattr(summary, field)
        label = f"median {metric(key).heading}" if metric(key).aggregate == "median time" else metric(key).heading
        if found is None:
            table.add_row(label, "n/a", ONE_KIND if metric(key).mixed else "")
            continue
        value = "not reached" if math.isinf(found.value) else number(key, found.value)
        low, high = ("not reached" if math.isinf(end) else bare(key, end) for end in (found.low, found.high))
        table.add_row(label, value, f"{low} to {high}")
    for kind, count in sorted(summary.false_alarms_by_kind.items()):
        table.add_row(f"decoy alarms from a {kind.replace('_', ' ')}", str(count), "")
    for name in summary.collided:
        table.add_row("collision in", name, "")
    return table


def sweep(
    world: Annotated[str, typer.Option(help="World by name or path.")] = "open_field",
    per_cell: Annotated[int, typer.Option(help="Missions per cell of the grid.")] = 4,
    first_seed: Annotated[int, typer.Option(help="Seed and episode index of the first mission.")] = 0,
    duration_s: Annotated[float, typer.Option(help="Search time of each mission.")] = 240.0,
    workers: Workers = DEFAULT_WORKERS,
    folder: Annotated[Path, typer.Option("--out", help="Folder for sweep.json and sweep.png.")] = Path("runs/sweep"),
    as_json: Json = False,
) -> None:
    """Fly a grid of CSI noise (6 sigma x 8 kappa) and map where the gate opens, what is found and what it costs.

    Example: sar-eval sweep --world open_field --per-cell 4 --out runs/sweep
    """
    from sar_eval.studies.sweep import draw_sweep, fly_sweep

    if per_cell < 1:
        raise InputError(f"per_cell = {per_cell}: must be 1 or more")
    with bar("{task.completed:.0f} of {task.total} missions") as progress:
        task = progress.add_task("sweeping", total=None)
        cells = fly_sweep(
            world, per_cell, first_seed, duration_s, workers, lambda n, of: progress.update(task, completed=n, total=of)
        )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sweep.json").write_text(json.dumps(cells, indent=1) + "\n")
    try:
        draw_sweep(cells, world, folder / "sweep.png")
    except ImportError:
        note("no picture: matplotlib is not installed; get it with: pip install 'sar-eval[report]'")
    if as_json:
        print(json.dumps(cells))
    else:
        say(f"{len(cells)} cells of {per_cell} missions: {folder / 'sweep.json'}, {folder / 'sweep.png'}")


def gate_study(
    world: Annotated[str, typer.Option(help="World by name or path.")] = "open_field",
    count: Annotated[int, typer.Option("--missions", help="Missions per kappa and gate setting.")] = 40,
    first_seed: Annotated[int, typer.Option(help="Seed and episode index of the first mission.")] = 0,
    workers: Workers = DEFAULT_WORKERS,
    folder: Annotated[Path, typer.Option("--out", help="Folder for gate.json and gate.png.")] = Path("runs/gate"),
) -> None:
    """Fly kappa 2, 4 and 8 with the gate on and forced open on the same missions: what does the gate buy?

    Example: sar-eval gate-study --missions 40 --out runs/gate
    """
    from sar_eval.studies.studies import draw_gate_study
    from sar_eval.studies.studies import gate_study as fly_study

    with bar("{task.completed:.0f} of {task.total} missions") as progress:
        task = progress.add_task("flying", total=None)
        rows = fly_study(
            world,
            [2.0, 4.0, 8.0],
            count,
            first_seed,
            workers,
            lambda n, of: progress.update(task, completed=n, total=of),
        )
    folder.mkdir(parents=True, exist_ok=True)
    told = json.dumps([row.plain for row in rows], indent=1, allow_nan=False)
    (folder / "gate.json").write_text(told + "\n")
    draw_gate_study(rows, world, folder / "gate.png")
    out.print(_gate_table(rows, world))


def _gate_table(rows: list[Any], world: str) -> Table:
    from sar_analysis.render.method import how, shortfalls

    title = f"Stage 2 (embedded): {world}, gate on against forced open, paired; per mission, with 95 % intervals"
    figures = [figure for row in rows for arms in row.counts.values() for figure in arms]
    caption = f"{how(figures)} {shortfalls(figures)}".rstrip()
    table = Table(title=title, title_justify="left", caption=caption, caption_justify="left")
    for name in ("kappa", "missions (invalid)", "per mission", "on", "forced open", "on minus open"):
        table.add_column(name)
    for row in rows:
        for name, arms in row.counts.items():
            head = (f"{row.kappa:g}", f"{row.missions} ({row.invalid})") if name == next(iter(row.counts)) else ("", "")
            cells = (
                _with_ends(figure, form) for figure, form in zip(arms, ("{:.3f}", "{:.3f}", "{:+.3f}"), strict=True)
            )
            table.add_row(*head, name.replace("_", " "), *cells)
    return table


def _with_ends(figure: Any, form: str = "{:.3f}") -> str:
    """Value and interval; an end that cannot be given is open."""
    low, high = (form.format(end) if math.isfinite(end) else "open" for end in (figure.low, figure.high))
    return f"{form.format(figure.value)} \\[{low}, {high}]"


def views(
    trials: Annotated[int, typer.Option(help="Trials per constellation.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of all draws.")] = 0,
    sigma: Annotated[float, typer.Option(help="CSI amplitude noise.")] = 0.05,
    kappa: Annotated[float, typer.Option(help="CSI phase concentration.")] = 8.0,
    distance_m: Annotated[float, typer.Option(help="Horizontal distance from the device, 20 to 120.")] = 60.0,
    circle_m: Annotated[float, typer.Option(help="Radius of the circle each drone flies; 0: it hovers.")] = 10.0,
    workers: Workers = DEFAULT_WORKERS,
    folder: Annotated[Path, typer.Option("--out", help="Folder for views.json and views.png.")] = Path("runs/views"),
    as_json: Json = False,
) -> None:
    """Put 1 to 4 drones around one device, spread, in line or side by side: how does the error fall with the views?

    Example: sar-eval views --trials 200 --out runs/views

    Receiver, listener and fusion are those of missions; beside the error stand the Cramér-Rao bound and 1 / sqrt(N).
    """
    from sar_eval.studies.views import ViewConfig, draw_views, plan_views, study

    config = ViewConfig(sigma, kappa, distance_m, circle_m)
    plan = plan_views(trials, seed, config)
    with bar("{task.completed:.0f} of {task.total} trials") as progress:
        task = progress.add_task("hovering" if circle_m == 0.0 else "circling", total=len(plan))
        rows = study(plan, workers, lambda done, of: progress.update(task, completed=done, total=of))
    folder.mkdir(parents=True, exist_ok=True)
    told = [_plain_view(row) for row in rows]
    (folder / "views.json").write_text(json.dumps(told, indent=1) + "\n")
    try:
        draw_views(rows, config, folder / "views.png")
    except ImportError:
        note("no picture: matplotlib is not installed; get it with: pip install 'sar-eval[report]'")
    if as_json:
        print(json.dumps(told))
        return
    out.print(_view_table(rows, _view_title(config, trials)))
    say(f"{folder}: views.json, views.png")


def _plain_view(row: Any) -> dict[str, Any]:
    """A row as JSON can hold it: what is infinite or undefined is null."""
    found = {key: value for key, value in vars(row).items() if hasattr(value, "ends")}
    return {**asdict(row), **{key: {**asdict(value), **value.ends} for key, value in found.items()}}


def _view_table(rows: list[Any], title: str) -> Table:
    from sar_analysis.render.method import how

    shown = [figure for row in rows for figure in (row.median_m, row.cep95_m, row.rms_m, row.far.exact)]
    caption = (
        "m; each trial is a layout of its own. far: % beyond 10 m, exact; CRLB bounds the rms; 1/√N: the median "
        "expected from that of two at right angles; intervals of both in views.json. Trials without a fix are "
        f"infinitely far, and left out of the rms alone. {how(shown)}"
    )
    layout: dict[str, Any] = {"title_justify": "left", "caption_justify": "left", "box": None, "padding": (0, 1, 0, 0)}
    table = Table(title=title, caption=caption, **layout)
    partly = any(row.fixed < row.trials for row in rows)
    for name in ("constellation", "s", "median", "CEP95", "rms", *(("n",) if partly else ()), "far", "CRLB", "1/√N"):
        table.add_column(name, justify="left" if name == "constellation" else "right", no_wrap=True)
    for row in rows:
        table.add_row(
            f"{row.drones} {row.constellation.replace('_', ' ')}" if row.time_s == rows[0].time_s else "",
            f"{row.time_s:g}",
            _metres(row.median_m),
            _metres(row.cep95_m),
            "n/a" if row.rms_m is None else _metres(row.rms_m),
            *((str(row.fixed),) if partly else ()),
            f"{100.0 * row.far.value:.0f} ({100.0 * row.far.exact.low:.0f}-{100.0 * row.far.exact.high:.0f})",
            *("" if found is None else _short(found.value) for found in (row.crlb_m, row.root_m)),
        )
    return table


def _view_title(config: Any, trials: int) -> str:
    flown = f"circles of {config.circle_m:g} m" if config.circle_m else "hovering"
    noise = f"sigma {config.sigma:g}, kappa {config.kappa:g}"
    return f"Views (embedded): open_field, {config.distance_m:g} m away, {flown}, {noise}, n = {trials}"


def _metres(found: Any) -> str:
    if math.isinf(found.value):
        return "none"
    ends = f"({_short(found.low)}-{_short(found.high)})" if math.isfinite(found.low + found.high) else "(-)"
    return f"{_short(found.value)} {ends}"


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 9.95 else f"{value:.1f}" if value >= 0.995 else f"{value:.2f}"


def reliability(
    files: Annotated[list[Path], typer.Argument(help="Results of sar-eval missions --out.")],
    picture: Annotated[Path, typer.Option("--out", help="PNG or SVG to write.")] = Path("reliability.png"),
    as_json: Json = False,
) -> None:
    """Say whether confidence is a probability: among reports of confidence p, is a share p right?

    Example: sar-eval reliability open_field.jsonl village.jsonl --out reliability.png
    """
    from sar_eval.studies.studies import draw_reliability, judge_confidence

    results = []
    for path in files:
        try:
            results += [json.loads(line) for line in path.read_text().splitlines()]
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: cannot read results ({error})") from error
    judged = {which: judge_confidence(results, which) for which in ("first", "last")}
    draw_reliability(results, picture)
    if as_json:
        print(json.dumps({which: found.plain for which, found in judged.items()}, allow_nan=False))
        return
    out.print(_confidence_table(judged))
    say(f"{picture} written")


def _confidence_table(judged: dict[str, Any]) -> Table:
    """A word per column, a figure per line."""
    from sar_analysis.render.method import how

    names = ("right", "expected_calibration_error", "brier_skill", "auroc")
    found = [getattr(figures, name) for figures in judged.values() for name in names]
    table = Table(caption=how(found), caption_justify="left")
    for name in ("one report per transmitter and mission", *(f"{which} word" for which in judged)):
        table.add_column(name)
    table.add_row("reports", *(str(figures.reports) for figures in judged.values()))
    for name in names:
        cells = (getattr(figures, name) for figures in judged.values())
        label = {"right": "share right", "brier_skill": "Brier skill", "auroc": "AUROC"}.get(
            name, name.replace("_", " ")
        )
        table.add_row(label, *("none: all alike" if cell is None else _with_ends(cell) for cell in cells))
    return table


def field(as_json: Json = False) -> None:
    """Lay the radio beside what others measured in the field: strengths, ranges, how often a phone is heard, bearings.

    Example: sar-eval field

    What was measured lies in configs/field, with its origin; nothing is flown.
    """
    from sar_eval.studies.fieldcheck import ASSUMED, check_field

    with err.status("looking") as status:
        found = check_field(lambda step: status.update(step))
    if as_json:
        print(json.dumps(_finite(asdict(found))))
        return
    for table in _field_tables(found):
        out.print(table)
        out.print()
    say("Taken, since the measurements do not say: " + "; ".join(ASSUMED))


def _finite(value: Any) -> Any:
    """Numbers as JSON can hold them."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def _field_tables(found: Any) -> list[Table]:
    layout: dict[str, Any] = {"title_justify": "left", "caption_justify": "left", "box": None, "padding": (0, 2, 0, 0)}
    ground = Table(
        title="Signal strength over ground, dBm",
        caption="; ".join(
            f"stated {power:g} dBm: rms {found.rms_db(power):.1f} dB as stated, {found.rms_db(power, True):.1f} dB "
            "with one offset"
            for power in (24.0, 1.0)
        ),
        **layout,
    )
    for head in ("stated dBm", "m", "measured", "ours"):
        ground.add_column(head, justify="right")
    for row in found.ground:
        told = "lost" if row.measured_dbm is None else f"{row.measured_dbm:.0f}"
        ground.add_row(f"{row.power_dbm:g}", f"{row.distance_m:g}", told, f"{row.ours_dbm:.1f}")
    reach = Table(
        title="How far a victim's phone reaches, m along the ground",
        caption=f"measured discovery at 2.4 GHz: {found.measured_range_m['LoS']:.0f} m with line of sight, "
        f"{found.measured_range_m['NLoS']:.0f} m without (here: near)",
        **layout,
    )
    for head in ("budget", "world", "90 % of frames", "50 % of frames", "discovery"):
        reach.add_column(head, justify="left" if head in ("budget", "world") else "right")
    for row in found.reaches:
        reaches = (row.ninety_m, row.half_m, row.discovery_m)
        reach.add_row(row.budget, row.world, *("never" if value is None else f"{value:.0f}" for value in reaches))
    traffic = Table(title="How often a phone is heard: frames a second in contact, gaps in s", **layout)
    for head in ("what", "rate", "gap median", "gap 90 %", "longest"):
        traffic.add_column(head, justify="left" if head == "what" else "right")
    for row in found.measured_rates:
        traffic.add_row(
            f"measured {row['source']} {row['phone']}, {row['windows']} windows",
            f"{float(row['rows_per_s_in_contact']):.1f}",
            *(f"{float(row[key]):.1f}" for key in ("gap_median_s", "gap_p90_s", "gap_longest_in_windows_s")),
        )
    for row in found.traffic:
        numbers = (row.rate_hz, row.gap_median_s, row.gap_p90_s, row.longest_s)
        traffic.add_row(f"ours, {row.distance_m:g} m", *(f"{value:.1f}" for value in numbers))
    bearing = Table(title="Bearing errors, degrees", **layout)
    for head in ("what", "median", "80 %", "95 %"):
        bearing.add_column(head, justify="left" if head == "what" else "right")
    for row in found.measured_directions:
        known = (row[key] or "not told" for key in ("median_deg", "p80_deg", "p95_deg"))
        bearing.add_row(f"measured: {row['set']}", *known)
    for row in found.bearings:
        errors = (row.median_deg, row.p80_deg, row.p95_deg)
        bearing.add_row(f"ours, a second's frames, kappa {row.kappa:g}", *(f"{value:.1f}" for value in errors))
    return [ground, reach, traffic, bearing]
