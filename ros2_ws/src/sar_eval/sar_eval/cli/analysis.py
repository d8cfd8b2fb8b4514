"""Verbs about results: a tidy table of what was flown, the report, and registrations with their locks."""

from __future__ import annotations

import importlib
import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from sar_core.errors import ContractError, InputError, MissingDependencyError
from sar_core.indices import load_indices
from sar_eval.cli.console import Json, bar, err, note, out, say
from sar_eval.scenario.resources import share_dir

prereg_app = typer.Typer(
    no_args_is_help=True,
    help="Registrations: write down what will be flown and claimed before anything is, and lock it.",
)
MOST_WARNINGS = 5
Source = Annotated[Path, typer.Argument(help="A bag, a folder searched for bags, or a JSONL file of episode records.")]


def _library(name: str) -> Any:
    """A module of the analysis, which a ROS install may lack."""
    try:
        return importlib.import_module(f"sar_analysis.{name}")
    except ModuleNotFoundError as error:
        raise MissingDependencyError(f"{error.name} is not installed; get it with: pip install sar-eval") from error


def _read(source: Path) -> Any:
    with bar("{task.completed:.0f} of {task.total} bags") as progress:
        task = progress.add_task("reading", total=None)
        return _library("table").analyze(source, tell=lambda done, of: progress.update(task, completed=done, total=of))


def analyze(
    source: Source,
    csv: Annotated[Path | None, typer.Option(help="CSV to write: one row per mission, all columns.")] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(help="Column that tells conditions apart, such as world or pattern; may be repeated."),
    ] = None,
    terms: Annotated[
        Path | None, typer.Option(help="CSV to write: the terms of conduct of each mission that searched.")
    ] = None,
    indices: Annotated[
        Path | None,
        typer.Option(
            help="Folder of constants for them, like configs/indices; a record has its own only, a bag takes any."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Turn bags into a tidy table, one row per mission, and say what each condition comes to.

    Examples:

      sar-eval analyze runs/eval

      sar-eval analyze runs/eval --by world --csv missions.csv

      sar-eval analyze runs/eval --json | jq '.episodes[].coverage_240s'

    In brackets 95 % intervals over layouts. docs/metrics.md explains every column; sar-eval report writes it all.
    """
    summary, plain = _library("results.summary"), _library("results.conditions").plain_value
    table = _read(source)
    groups = summary.summarise(table.episodes, tuple(by) if by else summary.CONDITION)
    if csv is not None:
        table.to_csv(csv)
    if terms is not None:
        constants = load_indices(indices or share_dir("configs") / "indices")
        _library("table").write_csv(table.conduct(constants), terms)
    elif indices is not None:
        raise InputError("--indices: give --terms FILE too, which is written with these constants")
    if as_json:
        figures = [row for group in groups for row in group.rows()]
        told = {"counts": table.counts(), "warnings": table.warnings(), "episodes": table.rows(), "summary": figures}
        print(json.dumps(plain(told), allow_nan=False))
        return
    tiers = ", ".join(sorted({e.tier for e in table.episodes})) or "no tier"
    out.print(mission_table(table, tiers))
    for group in groups:
        out.print(_summary(group, tiers))
    shown = _library("metrics.catalogue").HEADLINE
    say(_library("render.method").how(group.estimate(key) for group in groups for key in shown))
    _warn(table.warnings())
    if csv is not None:
        say(f"{csv}: {len(table.episodes)} rows written")


def mission_table(table: Any, tiers: str) -> Table:
    """The tidy table's columns that fit a terminal."""
    n = table.counts()
    view = _table(f"Stage 2 ({tiers}): {n['episodes']} missions, {n['invalid']} invalid")
    for head in ("world", "pattern"):
        view.add_column(head, overflow="fold")
    for head in (
        "seed",
        "epi-\nsode",
        "valid",
        "cover\n240 s",
        "colli-\nsions",
        "near\nmisses",
        "found",
        "false\nalarms",
    ):
        view.add_column(head, justify="right")
    for e in table.episodes:
        cells = (
            e.world,
            e.pattern.replace("_", " "),
            str(e.seed),
            str(e.episode),
            "yes" if e.valid else str(e.invalid_reason),
            "none" if e.coverage_240s is None else f"{e.coverage_240s:.1%}",
            str(e.collisions),
            str(e.near_misses),
            "no radio" if e.detections is None else f"{e.detections} of {len(e.victims)}",
            "no radio" if e.false_alarms is None else str(e.false_alarms),
        )
        view.add_row(*map(escape, cells))
    return view


def adr149(
    source: Annotated[Path, typer.Argument(help="Stage-1 results (JSONL), bags, or episode records.")],
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Bootstrap seed.")] = 0,
    as_json: Json = False,
) -> None:
    """ADR-149's ten metrics by its own definitions, of Stage 1 or Stage 2 alike; none where a stage cannot know.

    Examples:

      sar-eval adr149 runs/eval/stage1.jsonl

      sar-eval adr149 runs/eval
    """
    ten, wording = _library("results.tenmetrics"), _library("render.wording")
    options = _library("stats.layouts").Options(resamples, seed)
    if ten.is_stage1(source):
        found = ten.of_stage1(_library("stage1.rows").read_stage1(source), options)
    else:
        found = ten.of_stage2(_read(source).episodes, options)
    if as_json:
        print(json.dumps([_ten_plain(row) for row in found], allow_nan=False))
        return
    for row in found:
        view = _table(f"{row.stage}: {row.pattern.replace('_', ' ')}, {row.missions} missions, {row.invalid} invalid")
        for head in ("as ADR-149 defines it", "value and 95 % interval", "n", "method"):
            view.add_column(head, overflow="fold")
        for item in row.metrics:
            figure, label = item.figure, _library("metrics.catalogue").METRICS[item.metric].label
            label = label.replace(" as ADR-149 has it", "")
            timed = item.horizon_s is not None
            cells = ("none", "", item.why) if figure is None else _ten_cells(wording, item.metric, figure)
            view.add_row(*map(escape, (f"{label}, median" if timed else label, *cells)))
            if timed:
                mean = _ten_cells(wording, item.metric, item.mean)
                view.add_row(*map(escape, (f"{label}, mean up to {item.horizon_s:g} s", *mean)))
        out.print(view)


def _ten_cells(wording: Any, key: str, figure: Any) -> tuple[str, str, str]:
    drawn = "" if figure.resamples is None else f", {figure.resamples} resamples, seed {figure.seed}"
    value = wording.spread(key, figure) if math.isfinite(figure.value) else "not reached"
    return value, f"{figure.n} {figure.unit}", f"{figure.method}{drawn}"


def _ten_plain(row: Any) -> dict[str, Any]:
    def plain(figure: Any) -> dict[str, Any] | None:
        return None if figure is None else dict(figure.plain)

    metrics = [{**m._asdict(), "figure": plain(m.figure), "mean": plain(m.mean)} for m in row.metrics]
    return {**row._asdict(), "metrics": metrics}


def _summary(group: Any, tiers: str) -> Table:
    """One condition, a figure per line."""
    wording, catalogue = _library("render.wording"), _library("metrics.catalogue")
    label = ", ".join(f"{name} {value}" for name, value in group.condition if value is not None)
    seeds = _library("stats.scores").numbers(group.seeds)
    flown = f"{group.missions} missions, {group.invalid} invalid, seeds {seeds}"
    view = _table(f"Stage 2 ({tiers}): {label}; {flown}", show_header=False)
    view.add_column("figure", no_wrap=True)
    view.add_column("value")
    row_of, plain = _library("results.rows").EstimateRow.model_validate, _library("results.summary").plain_estimate
    for key in catalogue.HEADLINE:
        found = group.estimate(key)
        row = None if found is None else row_of(plain(key, found))
        view.add_row(catalogue.metric(key).heading, escape(wording.estimate(row, "not computed")))
    return view


def _table(title: str, show_header: bool = True) -> Table:
    return Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0), show_header=show_header)


def _warn(warnings: list[str]) -> None:
    for text in warnings[:MOST_WARNINGS]:
        note(text)
    if len(warnings) > MOST_WARNINGS:
        note(f"and {len(warnings) - MOST_WARNINGS} more warnings; --json lists all")


def report(
    source: Source,
    folder: Annotated[
        Path | None,
        typer.Option("--out", help="Folder to write; default: report inside SOURCE. An old one is replaced."),
    ] = None,
    prereg: Annotated[Path | None, typer.Option(help="Registration (YAML) to hold the results against.")] = None,
    reference: Annotated[
        Path | None, typer.Option(help="An oracle's returns (sar-eval reference), for the optimality gap.")
    ] = None,
    stage1: Annotated[
        Path | None, typer.Option(help="Stage-1 JSONL of the same episode set and seeds, to show what it hides.")
    ] = None,
    resamples: Annotated[int, typer.Option(help="Resamples of every bootstrap.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of every bootstrap.")] = 0,
    as_json: Json = False,
) -> None:
    """Write the report of a campaign: RESULTS.md, TABLES.md, CSV, LaTeX, JSON, figures, and a page with replay.

    Examples:

      sar-eval report runs/eval

      sar-eval report runs/eval --prereg configs/prereg/study.yaml --out results/study

      sar-eval report runs/campaign --stage1 runs/stage1.jsonl

    Read RESULTS.md first; docs/report.md says what each file holds.
    Without matplotlib the figures are left out, which is said.
    """
    library = _library("render.report")
    place = folder if folder is not None else library.default_place(source)
    with bar("{task.completed:.0f} of {task.total} bags") as progress:
        task = progress.add_task("reading", total=None)

        def tell(done: int, of: int) -> None:
            progress.update(task, completed=done, total=of, description="reading" if done < of else "computing")

        made = library.write_report(source, place, prereg, resamples, seed, reference, stage1, tell=tell)
    result = made.document.result
    if as_json:
        told = {"out": str(made.out), "files": made.files, "left_out": made.left_out, "counts": dict(result.counts)}
        print(json.dumps({**told, "warnings": result.warnings}))
        return
    headline = _library("render.tables").headline(result)
    view = _table(headline.title, show_header=False)
    for cells in zip(headline.columns, *headline.rows, strict=True):
        view.add_row(*map(escape, cells))
    out.print(view)
    _warn(result.warnings)
    for text in made.left_out:
        note(f"left out: {text}")
    say(f"{made.out}: {', '.join(name for name in made.files if '/' not in name)}")


@prereg_app.command("check")
def prereg_check(
    registration: Annotated[Path, typer.Argument(help="Registration (YAML).")],
    against: Annotated[Path | None, typer.Option(help="Bags or records to hold it against.")] = None,
    as_json: Json = False,
) -> None:
    """Say whether a registration is sound, whether it is what was locked, and whether that is what was flown.

    Examples:

      sar-eval prereg check study.yaml

      sar-eval prereg check study.yaml --against runs/study

    Exit code 2: it differs from its lock, or what was flown differs from it.
    """
    prereg = _library("prereg.prereg")
    match = prereg.verify(registration)
    parted: list[str] = []
    if against is not None:
        groups = _library("results.conditions").group(_read(against).episodes)
        parted = list(_library("results.registered").departures(prereg.load_registration(registration), groups))
    if as_json:
        told = {"registration": str(registration), "status": match.status, "sha256": match.sha256}
        print(json.dumps({**told, "sentence": match.sentence, "deviations": parted}))
    else:
        say(f"{registration}: sound; {match.sentence}")
        for text in parted:
            say(f"deviation: {text}")
        if against is not None and not parted:
            say(f"{against}: flown as registered")
    if match.status == "differs" or parted:
        raise typer.Exit(ContractError.exit_code)


@prereg_app.command("lock")
def prereg_lock(registration: Annotated[Path, typer.Argument(help="Registration (YAML).")]) -> None:
    """Lock a registration before anything is flown: its hash and content are kept beside it, and no lock is replaced.

    Example: sar-eval prereg lock study.yaml
    """
    prereg = _library("prereg.prereg")
    digest = prereg.lock(registration)
    say(f"{prereg.lock_path(registration)}: locks {digest[:12]}; commit both before flying")


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


def tiergap(
    first: Annotated[Path, typer.Argument(help="Folder of bags on one tier, such as a campaign's.")],
    second: Annotated[Path, typer.Argument(help="Folder of bags of the same missions on the other.")],
    as_json: Json = False,
) -> None:
    """Compare the same missions on two tiers, from their bags: means, and paired differences with intervals.

    Example: sar-eval tiergap runs/embedded runs/sih
    """
    with err.status("reading the bags"):
        found = _library("results.tiergap").compare(first, second)
    if as_json:
        print(json.dumps(found.plain, allow_nan=False))
    else:
        say(_library("render.stagetables").tier_gap_markdown(found))


def efficiency(
    points: Annotated[Path, typer.Argument(help="JSONL of evaluations made during training.")],
    title: Annotated[str, typer.Option(help="What the picture is called; name the tier.")] = "Training",
    pictures: Annotated[Path | None, typer.Option("--out", help="Folder for the picture.")] = None,
) -> None:
    """Print sample-efficiency curves as JSON: the IQM of every evaluated step with its interval; draw them if asked.

    Example: sar-eval efficiency points.jsonl --title "Stage 1" --out figures
    """
    library = _library("results.efficiency")
    curves = library.curves(library.read_points(points))
    print(json.dumps(library.as_plain(curves), indent=1))
    if pictures is not None:
        _library("render.figures").draw_training(title, curves, pictures)


def detectable(
    base: Annotated[float, typer.Option(help="The first condition's share (0.25 is 25 %), or rate per unit of time.")],
    layouts: Annotated[int | None, typer.Option(help="Layouts flown; of each condition where not paired.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Seeds that fly each layout.")] = None,
    prereg: Annotated[Path | None, typer.Option(help="Registration (YAML) to take layouts and seeds from.")] = None,
    correlation: Annotated[
        float, typer.Option(help="Of two missions of one layout: 0, layouts are all the same, up to below 1.")
    ] = 0.3,
    common: Annotated[
        float, typer.Option(help="How much of a layout's own is the same for both conditions, 0 to 1; if paired.")
    ] = 0.5,
    rate: Annotated[bool, typer.Option("--rate", help="Events per unit of time instead of a share.")] = False,
    exposure: Annotated[float, typer.Option(help="Time of one mission, in the rate's unit (hours, mostly).")] = 1.0,
    paired: Annotated[
        bool, typer.Option("--paired/--unpaired", help="Do both conditions fly the same layouts?")
    ] = True,
    power: Annotated[float, typer.Option(help="How often the difference shall be found.")] = 0.8,
    alpha: Annotated[float, typer.Option(help="How often one that is not there may be found.")] = 0.05,
    as_json: Json = False,
) -> None:
    """Say what difference between two conditions a campaign would find, before it is flown.

    A smaller true difference will mostly be missed, so "no difference found" says nothing about it. Layouts count more
    than seeds: missions of one layout are alike (--correlation), and no number of seeds shows another layout. The
    formula is for Student's t over layouts; beside it stands how often drawn campaigns found the difference.

    Examples:

      sar-eval detectable --base 0.25 --layouts 50 --seeds 3

      sar-eval detectable --base 0.02 --prereg study.yaml --correlation 0.5

      sar-eval detectable --base 2.0 --rate --exposure 0.27 --layouts 50 --seeds 3 --unpaired
    """
    library = _library("stats.detectable")
    if prereg is not None:
        if layouts is not None or seeds is not None:
            raise InputError("detectable: --prereg gives layouts and seeds; allowed: either it or both of them")
        registered = _library("prereg.prereg").load_registration(prereg)
        layouts, seeds = len(registered.episodes.indices), len(registered.seeds)
    if layouts is None or seeds is None:
        raise InputError("detectable: layouts or seeds missing; give --layouts and --seeds, or --prereg")
    kind = "rate" if rate else "share"
    campaign = library.Design(layouts, seeds, base, correlation, kind, paired, common, exposure)
    found = library.detectable(campaign, power, alpha)
    levels = {side: level for side in ("below", "above") if (level := getattr(found, side)) is not None}
    checked = {side: library.simulated_power(campaign, level, alpha) for side, level in levels.items()}
    more = {name: library.detectable(other, power, alpha) for name, other in library.sharper(campaign).items()}
    if as_json:
        told = {**asdict(found), "simulated_power": checked}
        print(json.dumps({**told, "with": {name: {"below": o.below, "above": o.above} for name, o in more.items()}}))
        return

    def shown(value: float) -> str:
        return f"{value:.3g} per unit" if rate else f"{100 * value:.1f} %"

    how = "the same layouts" if paired else "layouts of their own"
    say(f"{layouts} layouts x {seeds} seeds for each of two conditions, on {how}; the first at {shown(base)}:")
    for side in ("below", "above"):
        if side not in levels:
            say(f"  {side}: no difference is found with a power of {100 * power:g} %")
            continue
        gap = f"{abs(levels[side] - base):.3g} per unit" if rate else f"{100 * abs(levels[side] - base):.1f} points"
        chance = f"found by {100 * checked[side]:.0f} % of {library.CAMPAIGNS} drawn campaigns"
        say(f"  {side}: from {shown(levels[side])}, a difference of {gap} ({chance})")
    for name, other in more.items():
        ends = [f"{side} {shown(end)}" for side in ("below", "above") if (end := getattr(other, side)) is not None]
        say(f"  with {name}: {', '.join(ends) or 'none'}")
