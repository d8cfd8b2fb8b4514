"""Verbs of a Stage-2 campaign: stage2 flies one, merge puts its shards together, pack makes it ready to move."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from sar_core.errors import ContractError, InputError, RunError
from sar_eval.cli.console import (
    BACKEND_HELP,
    PATTERN_HELP,
    Json,
    SimSpeed,
    bar,
    command_line,
    err,
    note,
    out,
    say,
    stop,
)
from sar_eval.cli.studies import DEFAULT_WORKERS, Workers

LINES = 20
"""Progress lines a log file gets from a campaign."""


def stage2(
    folder: Annotated[Path, typer.Option("--out", help="The campaign's folder; give the same one to go on.")],
    seeds: Annotated[str | None, typer.Option(help="Seeds, such as 1,4,7.")] = None,
    stage1: Annotated[Path | None, typer.Option(help="Stage-1 JSONL: its three median seeds are flown.")] = None,
    episodes: Annotated[str, typer.Option(help="Episode indices, such as 0-49.")] = "0-49",
    patterns: Annotated[
        list[str] | None,
        typer.Option("--pattern", help=f"May be repeated; default: those shipped, but no policy. {PATTERN_HELP}"),
    ] = None,
    worlds: Annotated[
        list[str] | None, typer.Option("--world", help="World by name or path; may be repeated; default: village.")
    ] = None,
    victims: Annotated[str, typer.Option(help="present, absent or both.")] = "both",
    episode_set: Annotated[
        str, typer.Option(help="v2: each world's committed set; a set's name; or none: drawn by the rules.")
    ] = "v2",
    config: Annotated[Path | None, typer.Option(help="Scenario file (YAML) for what all conditions share.")] = None,
    duration_s: Annotated[
        float | None, typer.Option(help="Search time of every mission; default: the scenario's, 240 s.")
    ] = None,
    backend: Annotated[str, typer.Option(help=BACKEND_HELP)] = "embedded",
    speed: SimSpeed = 1.0,
    workers: Workers = DEFAULT_WORKERS,
    bags: Annotated[str, typer.Option(help="none; events: collisions, false alarms, INVALID; or all.")] = "none",
    bags_url: Annotated[
        str | None, typer.Option(help="Put bags below this fsspec URL, such as s3://bucket/campaign, not into --out.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Fly this part now: world=, pattern=, victims=, seed= or episode=; may be repeated."),
    ] = None,
    shard: Annotated[str, typer.Option(help="Fly part i of n only, such as 2/8; see merge.")] = "1/1",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be flown and what it costs.")] = False,
    cluster: Annotated[
        str | None, typer.Option(help="Fly on the workers of this dask scheduler, such as tcp://host:8786.")
    ] = None,
    refly_invalid: Annotated[
        bool, typer.Option("--refly-invalid", help="Fly missions again that ended INVALID; logs keep what they were.")
    ] = False,
    shuffle: Annotated[int | None, typer.Option(hidden=True, help="Fly in a random order of this seed.")] = None,
    as_json: Json = False,
) -> None:
    """Fly a campaign: seeds x episodes x victims present and absent x patterns x worlds. Give it again to go on.

    Example: sar-eval stage2 --seeds 1,4,7 --episodes 0-49 --out runs/campaign

    Whatever ends it, the same command flies what is missing. Its results do not depend on workers, order or shards.
    A folder that pack wrote, here or on another machine, is gone on with in the same way.
    """
    from sar_eval.campaign.campaign import check_bags
    from sar_eval.campaign.cluster import Cluster
    from sar_eval.campaign.manifest import check_same, make_manifest, read_manifest
    from sar_eval.campaign.plan import cost, flight_order, make_plan, parse_shard, select
    from sar_eval.campaign.workers import WorkerCrew
    from sar_eval.cli.console import tier_of
    from sar_eval.scenario.tiers import repeats

    check_bags(bags)
    choice, origin = _choice(seeds, stage1, episodes, patterns, worlds, victims, episode_set, config, duration_s)
    choice = replace(choice, tier=tier_of(backend), speed=speed)
    if not repeats(choice.tier):
        workers = _alone(choice.tier, workers, bags, cluster)
    plan = make_plan(choice)
    manifest = make_manifest(plan, origin)
    tasks = flight_order(select(plan, only or (), parse_shard(shard)), shuffle)
    if dry_run:
        from sar_eval.campaign.ledger import LEDGER, read_ledger

        found = read_manifest(folder)
        if found is not None:
            check_same(found, manifest, folder)
        records = read_ledger(folder / LEDGER)
        left = [task for task in tasks if task.key not in records]
        price = cost(left, workers, bags, [record.run for record in records.values()])
        _print_cost(plan, len(tasks), price, workers, bags, as_json)
        return
    flyers = WorkerCrew(workers, note) if cluster is None else Cluster(cluster)
    ending, results = fly_campaign(folder, manifest, plan, tasks, flyers, bags, bags_url, refly_invalid)
    _print_ending(folder, manifest.identity, ending, results, as_json)
    check_ending(folder, ending)


def fly_campaign(
    folder: Path,
    manifest: Any,
    plan: Any,
    tasks: list[Any],
    flyers: Any,
    bags: str,
    bags_url: str | None = None,
    refly_invalid: bool = False,
) -> tuple[Any, list[dict[str, Any]]]:
    """Fly what has no record, telling how far it is; how that ended, and all results there are."""
    from sar_eval.campaign.campaign import open_campaign
    from sar_eval.campaign.plan import cost, told_time
    from sar_eval.campaign.workers import WorkerCrew

    with open_campaign(folder, manifest, bags_url) as campaign:
        if campaign.ledger.torn_bytes:
            note(f"{campaign.ledger.path}: an unfinished last line was cut off; its mission is flown again")
        if refly_invalid and (invalid := campaign.refly_invalid(tasks)):
            note(f"{folder}: {invalid} missions were INVALID and are flown again")
        to_fly = campaign.missing(tasks)
        missing = len(to_fly)
        if missing and isinstance(flyers, WorkerCrew):
            _warm(plan)
        price = cost(to_fly, flyers.size, bags, [record.run for record in campaign.ledger.records.values()])
        about = f", about {told_time(price.wall_h * 3600.0)}" if missing else ""
        note(f"{folder}: {len(tasks) - missing} of {len(tasks)} missions are flown, {missing} to fly{about}")
        stop.listen()
        with bar("{task.completed:.0f} of {task.total}", "{task.fields[note]}") as progress:
            line = progress.add_task("flying", total=len(tasks), completed=len(tasks) - missing, note="")
            every = max(1, missing // LINES)
            told_at = -1

            def tell(now: Any) -> None:
                nonlocal told_at
                told = _tell(now)
                progress.update(line, completed=now.done, note=told)
                due = missing and (now.done % every == 0 or now.done == now.total)
                if not err.is_terminal and due and now.done > told_at:
                    told_at = now.done
                    note(f"{now.done} of {now.total}: {told}")

            ending = campaign.fly(tasks, flyers, bags, stop, tell)
        return ending, [record.result for record in campaign.ledger.records.values()]


def merge(
    folders: Annotated[list[Path], typer.Argument(help="Folders of the shards.")],
    target: Annotated[Path, typer.Option("--out", help="A new folder for the whole campaign.")],
    partial: Annotated[bool, typer.Option("--partial", help="Take what there is, with gaps.")] = False,
    as_json: Json = False,
) -> None:
    """Put the shards of one campaign together, as if one process had flown it all.

    Example: sar-eval merge runs/shard-1 runs/shard-2 --out runs/campaign

    Refused: shards of different campaigns or code, a mission with two results, and gaps without --partial.
    """
    from sar_eval.campaign.merging import merge as put_together

    merged = put_together(folders, target, partial)
    if as_json:
        told = {**asdict(merged), "results": str(merged.results) if merged.results else None}
        print(json.dumps({"folder": str(target), **told}))
        return
    say(f"{target}: {merged.recorded} of {merged.planned} missions, {merged.bags} bags")
    if merged.missing:
        say(f"{len(merged.missing)} missions are missing, so no results.json; the first is {merged.missing[0]}")


def pack(
    folder: Annotated[Path, typer.Argument(help="Folder of a campaign, flown as far as it is.")],
    target: Annotated[Path, typer.Option("--out", help="Folder for the two files; an earlier state is replaced.")],
    as_json: Json = False,
) -> None:
    """Make a campaign ready to be finished elsewhere: its manifest and its records, compressed, to commit or to send.

    Example: sar-eval pack runs/campaign --out moving/campaign

    There, give the stage2 command that began it, with --out moving/campaign: it flies what is missing. The other
    machine needs the same code, libraries, inputs and OpenBLAS core type; what differs is named. Bags stay behind.
    """
    from sar_eval.campaign.packing import pack as put_up

    manifest, records = put_up(folder, target)
    told = {
        "folder": str(target),
        "identity": manifest.identity,
        "planned": len(manifest.episodes),
        "recorded": records,
    }
    if as_json:
        print(json.dumps(told))
        return
    say(f"{target}: {records} of {len(manifest.episodes)} missions; go on there with --out and the options it has here")


def _alone(tier: str, workers: int, bags: str, cluster: str | None) -> int:
    """Real autopilots fly one mission at a time and none twice alike; how many workers that leaves."""
    if cluster is not None:
        raise InputError(f"cluster: tier {tier} flies on this machine only; leave --cluster out")
    if bags == "events":
        raise InputError(f"bags = events: tier {tier} cannot fly a mission again for its bag; allowed: none, all")
    if workers not in (1, DEFAULT_WORKERS):
        raise InputError(
            f"workers = {workers}: tier {tier} flies one mission at a time, for its vehicles have one set of ports"
        )
    return 1


def _choice(
    seeds: str | None,
    stage1: Path | None,
    episodes: str,
    patterns: list[str] | None,
    worlds: list[str] | None,
    victims: str,
    episode_set: str,
    config: Path | None,
    duration_s: float | None,
) -> tuple[Any, Any]:
    """The campaign asked for, and where its seeds came from."""
    from sar_eval.campaign.plan import CampaignChoice, parse_numbers
    from sar_eval.campaign.seedchoice import choose_seeds
    from sar_eval.scenario.model import DEFAULT_WORLD, load_scenario
    from sar_swarm.piloting.patternlist import STANDARD

    scenario, source = load_scenario(config, {} if duration_s is None else {"duration_s": duration_s})
    chosen, origin = choose_seeds(None if seeds is None else parse_numbers(seeds, "seeds"), stage1)
    if seeds is None:
        note(f"{stage1}: the median seeds are {', '.join(map(str, chosen))}")
    if worlds is None:
        worlds = [scenario.world if "world" in scenario.model_fields_set else DEFAULT_WORLD]
    if patterns is None:
        patterns = [scenario.pattern] if "pattern" in scenario.model_fields_set else list(STANDARD)
    choice = CampaignChoice(
        scenario=scenario,
        worlds=tuple(worlds),
        patterns=tuple(patterns),
        victims=victims,
        seeds=chosen,
        episodes=parse_numbers(episodes, "episodes"),
        episode_set=None if episode_set == "none" else episode_set,
        source=source,
    )
    return choice, origin


def _warm(plan: Any) -> None:
    """Compile once, so that workers find everything in the cache."""
    from sar_eval.episode.kernels import compile_kernels

    with err.status("compiling the simulator (about a minute on a new machine, then cached)"):
        for sample in plan.samples:
            if not sample.scenario.victim_absent or len(plan.samples) == 1:
                compile_kernels(sample)


def _tell(now: Any) -> str:
    from sar_eval.campaign.plan import told_time

    eta = "?" if now.eta_s is None else told_time(now.eta_s)
    rate = f"{now.rate:.2f} per s" if now.rate >= 0.1 else f"{60.0 * now.rate:.1f} per min"
    return f"{rate}, {eta} to go, collisions {now.collisions}, invalid {now.invalid}"


def _print_cost(plan: Any, selected: int, price: Any, workers: int, bags: str, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"planned": len(plan), "selected": selected, **asdict(price)}))
        return
    from sar_eval.campaign.plan import told_time

    c = plan.choice
    table = Table(title=f"Stage 2 ({c.tier}): the plan; nothing is flown", title_justify="left", show_header=False)
    rows = [
        ("worlds", ", ".join(c.worlds)),
        ("patterns", ", ".join(c.patterns)),
        ("victims", c.victims),
        ("seeds", ", ".join(map(str, c.seeds))),
        ("episode indices", str(len(c.episodes))),
        ("missions in all", str(len(plan))),
        ("of these asked for now", str(selected)),
        ("of these left to fly", str(price.episodes)),
        ("simulated time", f"{price.simulated_h:.1f} h"),
        (f"wall time, {workers} workers", f"{told_time(price.wall_h * 3600.0)} ({price.basis})"),
        ("disk", f"{1e3 * price.disk_gb:.1f} MB (bags: {bags}{', which come on top' if bags == 'events' else ''})"),
    ]
    for row in rows:
        table.add_row(*row)
    out.print(table)


def _print_ending(folder: Path, identity: str, ending: Any, results: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        told = {**asdict(ending), "results": str(ending.results) if ending.results else None}
        print(json.dumps({"folder": str(folder), "identity": identity, **told}), flush=True)
        return
    for table in campaign_tables(results):
        out.print(table)
    if ending.results is not None:
        say(f"all {ending.planned} missions are flown: {ending.results}")
    else:
        say(f"{ending.recorded} of the campaign's {ending.planned} missions are flown: {folder}")


def campaign_tables(results: list[dict[str, Any]]) -> list[Table]:
    """World by world, every pattern so far: what is found, how often it cries wolf, how often it collides."""
    worlds = sorted({r["world"] for r in results})
    return [_table(world, [r for r in results if r["world"] == world]) for world in worlds]


def _table(world: str, results: list[dict[str, Any]]) -> Table:
    from sar_analysis.render.method import how
    from sar_eval.studies.missions import summarise

    seeds = ", ".join(map(str, sorted({r["seed"] for r in results})))
    invalid = sum(not r["valid"] for r in results)
    title = (
        f"Stage 2 ({results[0]['tier']}): {world}, {results[0]['episode_set']}, seeds {seeds}, "
        f"{len({r['episode'] for r in results})} episodes, {len(results)} missions, {invalid} of them INVALID.\n"
        "Percent, 95 % interval over layouts in brackets."
    )
    table = Table(title=title, title_justify="left", box=None, padding=(0, 1, 0, 0))
    shown = []
    table.add_column("pattern", no_wrap=True)
    heads = (
        "valid",
        "cover\n240 s",
        "victims\nfound",
        "false alarm\n(victims)",
        "false alarm\n(no victim)",
        "collision",
    )
    for name in heads:
        table.add_column(name, justify="right", no_wrap=True)
    for pattern in sorted({r["pattern"] for r in results}):
        mine = [r for r in results if r["pattern"] == pattern]
        halves = [[r for r in mine if r["scenario"]["victim_absent"] is absent] for absent in (False, True)]
        present, absent = (summarise(half) for half in halves)
        both = summarise(mine)
        table.add_row(
            pattern,
            f"{both.missions - both.invalid}",
            "none" if both.coverage_240s is None else _share(both.coverage_240s),
            "none there" if present.found_at_all is None else _share(present.found_at_all),
            *(_share(half.missions_with_false_alarm) for half in (present, absent)),
            _share(both.missions_with_collision),
        )
        shown += [both.coverage_240s, present.found_at_all, both.missions_with_collision]
        shown += [half.missions_with_false_alarm for half in (present, absent)]
    table.caption, table.caption_justify = how(shown), "left"
    return table


def _share(rate: Any) -> str:
    return "not flown" if rate is None else f"{100 * rate.value:.0f} ({100 * rate.low:.0f}-{100 * rate.high:.0f})"


def check_ending(folder: Path, ending: Any) -> None:
    """Say what went wrong, with the exit code of it; nothing where all is well."""
    if ending.differing:
        names = ", ".join(ending.differing[:3]) + (" ..." if len(ending.differing) > 3 else "")
        raise ContractError(
            f"{folder}: {len(ending.differing)} missions flown again for their bags came out DIFFERENTLY ({names}); "
            "logs/campaign.log says in what: this machine or code does not repeat its results"
        )
    if ending.invalid:
        reasons = ", ".join(f"{count} {reason}" for reason, count in ending.invalid.items())
        why = f"{reasons}; {folder}/logs/campaign.log says why, --refly-invalid flies them again"
        if sum(ending.invalid.values()) == ending.planned:
            raise RunError(f"no mission is valid: {why}")
        note(f"INVALID: {why}")
    if ending.stopped and (ending.left or ending.bags_left):
        left = f"{ending.left} missions to fly and {ending.bags_left} bags to record"
        note(f"stopped with {left}; go on with: {command_line()}")
        raise typer.Exit(RunError.exit_code)


def publish(
    folder: Annotated[Path, typer.Argument(help="What sar-eval eval left; with --renew, published results.")],
    commit: Annotated[
        str | None, typer.Option(help="Of the code that flew it; its sources must be those of the manifest.")
    ] = None,
    target: Annotated[
        Path | None, typer.Option("--out", help="Folder; earlier published results in it are replaced.")
    ] = None,
    checkout: Annotated[Path, typer.Option(help="Git checkout that knows the commit.")] = Path("."),
    renew: Annotated[bool, typer.Option("--renew", help="Analyse published results again, in their place.")] = False,
) -> None:
    """Make a small folder to commit of a finished evaluation: records, seeds, tables, figures, and what flew them.

    Examples:

    sar-eval publish runs/full --commit HEAD --out results

    sar-eval publish results --renew
    """
    from sar_eval.campaign import publication

    if renew and commit is None and target is None:
        publication.renew(folder)
        target = folder
    elif commit is not None and target is not None and not renew:
        publication.publish(folder, commit, target, checkout)
    else:
        raise InputError("give --commit and --out to publish an evaluation, or --renew alone")
    for file in sorted(file for file in target.rglob("*") if file.is_file()):
        say(f"{file.stat().st_size:>10} {file.relative_to(target)}")


def erratum(
    source: Annotated[Path, typer.Argument(help="Published results, or a file of records of schema 1.")],
    begin_s: Annotated[
        float | None, typer.Option(help="Seconds from take-off to the search, which such records do not hold.", min=0.0)
    ] = None,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples.", min=100)] = 10_000,
    seed: Annotated[int, typer.Option(help="Of the resamples.", min=0)] = 0,
    as_json: Json = False,
) -> None:
    """Say what the definitions of schema 1 hid in a campaign: its figures as published and by today's definitions.

    Examples:

    sar-eval erratum results

    sar-eval erratum results --json | jq '.[] | {words, value: .corrected.value}'

    Everything is counted from the records; nothing is flown. docs/campaigns.md says what such records cannot tell.
    """
    from sar_analysis.render.frontpage import correction_words
    from sar_analysis.results.model import ErratumRow
    from sar_analysis.stats.layouts import Options
    from sar_eval.campaign.erratum import BEGIN_S, campaign_erratum

    made = campaign_erratum(source, BEGIN_S if begin_s is None else begin_s, Options(resamples, seed))
    plain = [correction.row() for correction in made]
    if as_json:
        print(json.dumps(plain, allow_nan=False))
        return
    rows = [ErratumRow.model_validate(row) for row in plain]
    view = Table(title=f"Erratum of {escape(str(source))}, 95 % intervals over layouts", title_justify="left")
    for head in ("figure", "as published", "by today's definitions", "interval"):
        view.add_column(head, overflow="fold")
    for row in rows:
        words = (correction_words(figure, row.unit) for figure in (row.published, row.corrected))
        view.add_row(row.words, *words, row.corrected.method)
    out.print(view)
    for row in rows:
        for text in row.corrected.notes:
            say(f"{row.words}: {text}")
