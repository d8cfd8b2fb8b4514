"""The main verb: Stage 1, the median seeds, Stage 2 and the report in one go."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from sar_core.errors import RunError
from sar_eval.cli.campaign import campaign_tables, check_ending, fly_campaign
from sar_eval.cli.console import PATTERN_HELP, Json, command_line, note, out, say
from sar_eval.cli.stage1 import fly_stage1
from sar_eval.cli.studies import DEFAULT_WORKERS, Workers


def evaluate(
    base: Annotated[
        Path, typer.Option("--out", help="Folder; gets a number if it holds another evaluation, goes on with this one.")
    ] = Path("runs/eval"),
    full: Annotated[bool, typer.Option("--full", help="All episodes and patterns: what results/ holds.")] = False,
    seeds: Annotated[str, typer.Option(help="Seeds of Stage 1, of which the three median ones fly Stage 2.")] = "0-9",
    episodes: Annotated[str | None, typer.Option(help="Episodes of Stage 2; default: 0-4, with --full 0-49.")] = None,
    patterns: Annotated[
        list[str] | None, typer.Option("--pattern", help=f"Of Stage 2; may be repeated. {PATTERN_HELP}")
    ] = None,
    duration_s: Annotated[float | None, typer.Option(help="Search time of Stage 2's missions; default: 240 s.")] = None,
    workers: Workers = DEFAULT_WORKERS,
    as_json: Json = False,
) -> None:
    """Evaluate: the whole of Stage 1, its three median seeds, their Stage-2 missions in the village, the report.

    Example: sar-eval eval --full --out runs/full

    Stopped or killed, the same command goes on. Ends in false-alarm and collision rates with 95 % intervals.
    """
    from sar_eval.bag.folders import ready_folder
    from sar_eval.campaign.evaluation import (
        CAMPAIGN,
        FULL,
        REDUCED,
        REPORT,
        STAGE1,
        Extent,
        begun_in,
        follow,
        place_of,
        reference_of,
    )
    from sar_eval.campaign.plan import flight_order, parse_numbers
    from sar_eval.campaign.workers import WorkerCrew
    from sar_eval.scenario.model import DEFAULT_WORLD
    from sar_swarm.piloting.patternlist import canonical

    usual = FULL if full else REDUCED
    extent = Extent(
        usual.episodes if episodes is None else parse_numbers(episodes, "episodes"),
        usual.patterns if patterns is None else tuple(canonical(name) for name in patterns),
        duration_s,
    )
    ready_folder(base.parent)
    begun = begun_in(base, extent, parse_numbers(seeds, "seeds"))
    if begun is not None:
        folder, evaluation = begun
    else:
        with tempfile.TemporaryDirectory(prefix=f".{base.name}.", dir=base.parent) as scratch:
            rows = Path(scratch) / STAGE1
            _stage1(parse_numbers(seeds, "seeds"), rows, workers)
            evaluation = follow(rows, extent)
            folder = place_of(evaluation, base)
            ready_folder(folder)
            os.replace(rows, folder / STAGE1)
    plan = evaluation.plan
    chosen = plan.choice.seeds
    note(f"{folder / STAGE1}: the median seeds are {', '.join(map(str, chosen))}")
    ending, results = fly_campaign(
        folder / CAMPAIGN, evaluation.manifest, plan, flight_order(plan.tasks), WorkerCrew(workers), "none"
    )
    if ending.left:
        note(f"stopped with {ending.left} of {ending.planned} missions to fly; go on with: {command_line()}")
        raise typer.Exit(RunError.exit_code)
    note(f"flying {len(evaluation.replayed)} of them again, with bags to watch; they must come out the same")
    fly_campaign(folder / CAMPAIGN, evaluation.manifest, plan, evaluation.replayed, WorkerCrew(workers), "all")
    made = _report(folder / CAMPAIGN, folder / REPORT, folder / STAGE1, reference_of(plan.choice.set_of(DEFAULT_WORLD)))
    if as_json:
        headlines = [h.model_dump(exclude_unset=True) for h in made.document.result.headlines]
        print(json.dumps({"folder": str(folder), "seeds": chosen, "headlines": headlines, "report": str(made.out)}))
    else:
        for table in campaign_tables(results):
            out.print(table)
        say(f"read {made.out / 'RESULTS.md'}, look at {made.out / 'report.html'}")
    check_ending(folder / CAMPAIGN, ending)


def _stage1(seeds: tuple[int, ...], target: Path, workers: int) -> None:
    from sar_eval.scenario.episodeset import SET_VERSION
    from sar_eval.scenario.model import DEFAULT_WORLD, Scenario
    from sar_eval.stage1.matrix import default_observations, plan
    from sar_swarm.piloting.patternlist import STANDARD

    scenario = Scenario(episode_set=f"{DEFAULT_WORLD}-{SET_VERSION}")
    count, took = fly_stage1(plan(scenario, STANDARD, seeds, None, default_observations()), target, workers)
    note(f"Stage 1: {count} episodes in {took:.1f} s")


def _report(campaign: Path, place: Path, stage1: Path, reference: Path | None) -> Any:
    from sar_analysis.render.report import write_report

    made = write_report(campaign, place, reference=reference, stage1=stage1)
    for text in made.left_out:
        note(f"left out: {text}")
    return made
