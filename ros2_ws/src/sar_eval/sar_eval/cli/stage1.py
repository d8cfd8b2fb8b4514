"""Verbs of Stage 1: fly its matrix, fit what it knows of sensing, choose the seeds that go on to Stage 2."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from sar_core.errors import InputError
from sar_eval.cli.console import PATTERN_HELP, Json, bar, err, note, out, say, with_ends
from sar_eval.cli.studies import DEFAULT_WORKERS, Workers

PROTOCOL_ROLLOUTS = 2000
"""Rollouts the upstream protocol asks of Stage 1."""


def stage1(
    target: Annotated[Path, typer.Option("--out", help="JSONL to write; one line per episode.")],
    seeds: Annotated[str, typer.Option(help="Seeds, for example 0-9 or 1,4,7.")] = "0-9",
    world: Annotated[str | None, typer.Option(help="World by name; default: the episode set's.")] = None,
    episode_set: Annotated[str | None, typer.Option(help="Fixed episode set; default: WORLD-v2.")] = None,
    episodes: Annotated[str | None, typer.Option(help="Episode indices, for example 0-4; default: the set.")] = None,
    policy: Annotated[
        list[str] | None, typer.Option(help=f"Only these; may be repeated; default: those shipped. {PATTERN_HELP}")
    ] = None,
    victim_absent: Annotated[bool, typer.Option(help="The same episodes without their victims.")] = False,
    observations: Annotated[
        Path | None, typer.Option(help="Observation statistics; default: the committed ones.")
    ] = None,
    workers: Workers = DEFAULT_WORKERS,
    as_json: Json = False,
) -> None:
    """Fly Stage 1: kinematic points and fitted sensing, every pattern on every episode of a set for every seed.

    Example: sar-eval stage1 --seeds 0-9 --out runs/stage1.jsonl
    """
    from sar_analysis.stage1.figures import policy_figures
    from sar_analysis.stage1.rows import read_stage1
    from sar_eval.bag.folders import ready_folder
    from sar_eval.campaign.plan import parse_numbers
    from sar_eval.scenario.episodeset import SET_VERSION
    from sar_eval.scenario.model import Scenario
    from sar_eval.stage1.matrix import default_observations, plan
    from sar_swarm.piloting.patternlist import STANDARD

    name = episode_set or f"{world or 'village'}-{SET_VERSION}"
    given: dict[str, Any] = {"episode_set": name, "victim_absent": victim_absent}
    scenario = Scenario(**given if world is None else {**given, "world": world})
    indices = None if episodes is None else parse_numbers(episodes, "episodes")
    data = observations or default_observations()
    matrix = plan(scenario, policy or STANDARD, parse_numbers(seeds, "seeds"), indices, data)
    if target.is_dir():
        raise InputError(f"{target}: is a folder; give the name of a JSONL file")
    if target.exists():
        raise InputError(f"{target}: exists already; choose another name")
    ready_folder(target.parent)
    count, took = fly_stage1(matrix, target, workers)
    rows = read_stage1(target)
    figures = policy_figures(rows, layout_numbers(rows))
    facts = {"out": str(target), "episodes": count, "wall_s": round(took, 2), "per_s": round(count / took, 1)}
    if as_json:
        told = {policy: {key: found.plain for key, found in own.items()} for policy, own in figures.items()}
        print(json.dumps({**facts, "policies": told}))
    else:
        out.print(_figure_table(figures, rows))
        say(
            f"{target}: {count} Stage-1 episodes ({len(matrix.policies)} policies, {len(matrix.seeds)} seeds, "
            f"{len(matrix.episodes)} episodes) in {took:.1f} s, {count / took:.0f} per second; "
            f"the protocol asks for {PROTOCOL_ROLLOUTS} rollouts"
        )


def layout_numbers(rows: Any) -> Callable[[int], Any]:
    """Which layout each episode of Stage-1 rows flew, by their set; without a set that is known each has its own."""
    from sar_eval.scenario.episodeset import load_set

    try:
        return load_set(rows[0].episode_set or "").layout_number
    except InputError:
        return lambda index: index


def _figure_table(figures: dict[str, dict[str, Any]], rows: Any) -> Table:
    """Every policy's figures with their intervals, as the analysis words them."""
    from sar_analysis.metrics.catalogue import metric
    from sar_analysis.render.method import how
    from sar_analysis.render.wording import spread
    from sar_analysis.stage1.figures import FIGURES

    seeds, episodes = ({getattr(row, name) for row in rows} for name in ("seed", "episode"))
    title = f"Stage 1: {rows[0].episode_set}, {len(seeds)} seeds, {len(episodes)} episodes"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    words = {"episode_return": "return, IQM", "coverage_240s": "coverage at 240 s, IQM"}
    words["time_to_first_detection_s"] = "mean time to first detection, a miss is 240 s"
    table.add_column("policy", no_wrap=True)
    for key in FIGURES:
        table.add_column(words.get(key, metric(key).heading), justify="right")
    for policy, own in figures.items():
        table.add_row(policy, *(spread(key, own[key]) if key in own else "none" for key in FIGURES))
    table.caption = how(found for own in figures.values() for found in own.values())
    table.caption_justify = "left"
    return table


def fly_stage1(matrix: Any, target: Path, workers: int) -> tuple[int, float]:
    """Fly a matrix into a file, telling how far it is; how many episodes, and the seconds they took."""
    from sar_eval.stage1.matrix import compile_flights, fly_matrix, write_rows

    with err.status("compiling (some seconds on a new machine, then cached)"):
        compile_flights(matrix)
    began = time.perf_counter()
    with bar("{task.completed:.0f} of {task.total} episodes") as progress:
        task = progress.add_task("Stage 1", total=len(matrix))
        rows = fly_matrix(matrix, workers, lambda done: progress.update(task, completed=done))
        count = write_rows(target, rows)
    return count, time.perf_counter() - began


def median_seeds(
    results: Annotated[Path, typer.Argument(help="Stage-1 results (JSONL), ours or from elsewhere.")],
    count: Annotated[int, typer.Option(help="How many seeds to choose.")] = 3,
    per_policy: Annotated[
        bool, typer.Option(help="Choose for each policy apart; conditions then do not pair.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Choose the seeds whose return is nearest to the median seed's, and show what they were chosen from.

    Example: sar-eval median-seeds runs/stage1.jsonl
    """
    from sar_analysis.render.method import how
    from sar_analysis.stage1.figures import plain_choice, seed_figures
    from sar_analysis.stage1.medianseeds import choose
    from sar_analysis.stage1.rows import read_stage1

    rows = read_stage1(results)
    choice, layout_of = choose(rows, count, per_policy), layout_numbers(rows)
    if as_json:
        print(json.dumps(plain_choice(choice, rows, layout_of)))
        return
    policies = len({row.policy for row in rows})
    for pick in choice.picks:
        over = f"policy {pick.policy}" if pick.policy is not None else f"pooled over {policies} policies"
        title = f"Stage 1: IQM of the return by seed, {over}; median {pick.median:.1f}"
        table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0), min_width=len(title))
        figures = seed_figures(rows, pick.policy, layout_of)
        table.caption, table.caption_justify = how(figures.values()), "left"
        for head in ("seed", "IQM of the return", "episodes", "from the median"):
            table.add_column(head, justify="right")
        table.add_column("")
        for c in pick.candidates:
            mark = "chosen" if c.chosen else ""
            table.add_row(str(c.seed), with_ends(figures[c.seed], ".1f"), str(c.episodes), f"{c.distance:.1f}", mark)
        out.print(table)
    if per_policy:
        note("chosen per policy: seeds differ between conditions, so differences do not pair")
    say(f"chosen: {', '.join(map(str, choice.seeds))}")


def fit_observations(
    target: Annotated[Path, typer.Option("--out", help="JSON to write; another version gets another name.")],
    world: Annotated[str, typer.Option(help="World by name or path.")] = "village",
    flights: Annotated[int, typer.Option(help="Full-chain flights to fit on.")] = 100,
    check: Annotated[int, typer.Option(help="Further flights to check the fit on.")] = 50,
    kept: Annotated[Path | None, typer.Option(help="JSONL of flights: those in it are not flown again.")] = None,
    picture: Annotated[Path | None, typer.Option(help="PNG or SVG: flown against foretold.")] = None,
    page: Annotated[Path | None, typer.Option(help="Markdown: the same table and what it rests on.")] = None,
    workers: Workers = DEFAULT_WORKERS,
    as_json: Json = False,
) -> None:
    """Fly the full chain and fit what Stage 1 knows of sensing; show how well it foretells other flights.

    Example: sar-eval fit-observations --flights 100 --check 50 --out observations-v4.json

    Flights use seeds and layouts that belong to calibration; no evaluation contains them.
    """
    from sar_eval.bag.folders import ready_folder
    from sar_eval.scenario.prepare import prepare
    from sar_eval.scenario.splits import CHECK, FIT
    from sar_eval.stage1.fitcheck import as_page, draw_check
    from sar_eval.stage1.fitcheck import check as check_fit
    from sar_eval.stage1.fitflights import fly_for_fit, plan_flights
    from sar_eval.stage1.observations import fit, write_observations
    from sar_eval.stage1.sight import scenery_of

    if target.exists():
        raise InputError(f"{target}: exists already; a new fit is a new version: choose another name")
    ready_folder(target.parent)
    specs, others = plan_flights(world, flights, FIT), plan_flights(world, check, CHECK)
    episode = prepare(specs[0].scenario, specs[0].seed, specs[0].index)
    with bar("{task.completed:.0f} of {task.total} flights") as progress:
        task = progress.add_task("flying", total=flights + check)
        used = fly_for_fit(specs, workers, kept, lambda done: progress.update(task, completed=done))
        fresh = fly_for_fit(others, workers, kept, lambda done: progress.update(task, completed=flights + done))
    model = fit(used, episode, target.stem)
    rows = check_fit(model, fresh, scenery_of(episode).bodies)
    digest = write_observations(model, target)
    if picture is not None:
        draw_check(model, rows, picture)
    if page is not None:
        shown = None if picture is None else os.path.relpath(picture, page.parent)
        page.write_text(as_page(model, digest, rows, check, shown), encoding="utf-8")
    if as_json:
        print(json.dumps({"out": str(target), "sha256": digest, "residuals": [row.plain for row in rows]}))
        return
    out.print(_residual_table(rows, flights, check, model.world))
    say(f"{target}: fitted on {flights} flights, sha256 {digest}")


def _residual_table(rows: list[Any], flights: int, check: int, world: str) -> Table:
    from sar_eval.stage1.fitcheck import pair

    title = f"Stage 1 against Stage 2 (embedded): {world}, fitted on {flights} flights, checked on {check} others"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0), min_width=len(title))
    for head in ("sigma", "kappa", "victims"):
        table.add_column(head, justify="right")
    for head in ("issued", "median time s", "median error m", "decoy alarms per flight"):
        table.add_column(f"{head}\nflown; foretold", justify="right")
    for row in rows:
        table.add_row(
            f"{row.sigma:g}",
            f"{row.kappa:g}",
            str(row.victims),
            escape(pair(row.issued, row.issued_foretold, "{:.0%}")),
            pair(row.time_s, row.time_foretold_s, "{:.0f}"),
            pair(row.error_m, row.error_foretold_m, "{:.1f}"),
            pair(row.alarms_per_flight, row.alarms_foretold, "{:.2f}"),
        )
    return table
