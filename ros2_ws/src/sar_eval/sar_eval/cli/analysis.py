"""Verbs about results: a tidy table of what was flown, the report, and registrations with their locks."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from sar_core.errors import ContractError, MissingDependencyError
from sar_eval.cli.console import Json, bar, err, note, out, say

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
    as_json: Json = False,
) -> None:
    """Turn bags into a tidy table, one row per mission, and say what each condition comes to.

    Examples:

      sar-eval analyze runs/eval

      sar-eval analyze runs/eval --by world --csv missions.csv

      sar-eval analyze runs/eval --json | jq '.episodes[].coverage_240s'

    Exact 95 % intervals in brackets. Every column is explained in docs/metrics.md; sar-eval report writes it all.
    """
    summary, plain = _library("results.summary"), _library("results.conditions").plain_value
    table = _read(source)
    groups = summary.summarise(table.episodes, tuple(by) if by else summary.CONDITION)
    if csv is not None:
        table.to_csv(csv)
    if as_json:
        figures = [row for group in groups for row in group.rows()]
        told = {"counts": table.counts(), "warnings": table.warnings(), "episodes": table.rows(), "summary": figures}
        print(json.dumps(plain(told), allow_nan=False))
        return
    tiers = ", ".join(sorted({e.tier for e in table.episodes})) or "no tier"
    out.print(mission_table(table, tiers))
    for group in groups:
        out.print(_summary(group, tiers))
    say("95 % intervals: Clopper-Pearson for shares, order statistics for CEP (open: too few victims for that end)")
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


def _summary(group: Any, tiers: str) -> Table:
    """One condition, a figure per line."""
    wording, catalogue = _library("render.wording"), _library("metrics.catalogue")
    label = ", ".join(f"{name} {value}" for name, value in group.condition if value is not None)
    seeds = _library("stats.scores").numbers(group.seeds)
    flown = f"{group.missions} missions, {group.invalid} invalid, seeds {seeds}"
    view = _table(f"Stage 2 ({tiers}): {label}; {flown}", show_header=False)
    view.add_column("figure", no_wrap=True)
    view.add_column("value")
    figures = wording.by_metric(group.rows())
    for key in catalogue.HEADLINE:
        words = escape(wording.estimate(figures.get(key), "not computed"))
        view.add_row(catalogue.metric(key).heading, words)
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
    result = made.document["result"]
    if as_json:
        told = {"out": str(made.out), "files": made.files, "left_out": made.left_out, "counts": result["counts"]}
        print(json.dumps({**told, "warnings": result["warnings"]}))
        return
    headline = _library("render.tables").headline(result)
    view = _table(headline.title, show_header=False)
    for cells in zip(headline.columns, *headline.rows, strict=True):
        view.add_row(*map(escape, cells))
    out.print(view)
    _warn(result["warnings"])
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
        print(json.dumps(found))
    else:
        say(_library("render.tiertable").as_markdown(found))


def efficiency(
    points: Annotated[Path, typer.Argument(help="JSONL of evaluations made during training.")],
    title: Annotated[str, typer.Option(help="What the picture is called; name the tier.")] = "Training",
    pictures: Annotated[Path | None, typer.Option("--out", help="Folder for the picture.")] = None,
) -> None:
    """Print sample-efficiency curves as JSON: the IQM of every evaluated step with its interval; draw them if asked.

    Example: sar-eval efficiency points.jsonl --title "Stage 1" --out figures
    """
    library = _library("results.efficiency")
    plain = library.as_plain(library.curves(library.read_points(points)))
    print(json.dumps(plain, indent=1))
    if pictures is not None:
        drawn = {"result": {"title": title, "sample_efficiency": plain}}
        _library("render.figures").draw_figures(drawn, pictures)
