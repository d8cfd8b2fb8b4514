"""Verbs about how the swarm flies: patterns on the same missions, encounters, and a mission flown again by its id."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import TaskID
from rich.table import Table

from sar_core.errors import ContractError, InputError
from sar_eval.cli.console import PATTERN_HELP, Json, bar, note, out, say, with_ends
from sar_eval.cli.studies import DEFAULT_WORKERS, Workers


def patterns(
    world: Annotated[list[str] | None, typer.Option(help="World by name or path; may be given several times.")] = None,
    pattern: Annotated[
        list[str] | None, typer.Option(help=f"Only these; may be repeated; default: those shipped. {PATTERN_HELP}")
    ] = None,
    count: Annotated[int, typer.Option("--missions", help="Missions per pattern and world.")] = 50,
    unlimited: Annotated[
        int | None, typer.Option(help="How many of them to fly again until 95 % is covered; default: all.")
    ] = None,
    first_seed: Annotated[int, typer.Option(help="Seed and episode index of the first mission.")] = 0,
    workers: Workers = DEFAULT_WORKERS,
    folder: Annotated[Path, typer.Option("--out", help="Folder for what comes out.")] = Path("runs/patterns"),
    as_json: Json = False,
) -> None:
    """Fly all patterns and baselines on the same missions: coverage, time to 95 %, overlap, collisions, near misses.

    Example: sar-eval patterns --world open_field --world village --missions 50 --out runs/patterns
    """
    from sar_eval.scenario.model import load_scenario
    from sar_eval.scenario.prepare import prepare
    from sar_eval.studies.patternstudy import draw_patterns, study
    from sar_swarm.piloting.patternlist import STANDARD

    worlds = world or ["open_field", "village"]
    chosen = pattern or list(STANDARD)
    for name in worlds:
        for style in chosen:
            scenario, source = load_scenario(None, {"world": name, "pattern": style})
            prepare(scenario, first_seed, first_seed, source=source)
    if (folder / "missions.jsonl").exists():
        raise InputError(f"{folder / 'missions.jsonl'}: exists already; choose another folder")
    unlimited = count if unlimited is None else unlimited
    if not 0 <= unlimited <= count:
        raise InputError(f"unlimited = {unlimited}: must be from 0 to the number of missions, {count}")
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    with bar("{task.completed:.0f} of {task.total} flights") as progress, open(folder / "missions.jsonl", "w") as kept:
        task = progress.add_task("flying", total=None)

        def tell(done: int, of: int) -> None:
            progress.update(task, completed=done, total=of)

        for row, results in study(worlds, chosen, count, unlimited, first_seed, workers, tell):
            rows.append(row)
            kept.writelines(json.dumps(result) + "\n" for result in results)
            kept.flush()
            (folder / "patterns.json").write_text(json.dumps([_plain(row) for row in rows], indent=1) + "\n")
    try:
        draw_patterns(worlds[-1], chosen, first_seed, folder / "patterns.png")
    except ImportError:
        note("no picture: matplotlib is not installed; get it with: pip install 'sar-eval[report]'")
    if as_json:
        print(json.dumps([_plain(row) for row in rows]))
        return
    out.print(_pattern_table(rows, count))
    say(f"{folder}: patterns.json, missions.jsonl (fly one again with sar-eval replay), patterns.png")


def _pattern_table(rows: list[Any], count: int) -> Table:
    from sar_analysis.render.method import how

    title = f"Stage 2 (embedded): 4 drones, 240 s, {count} missions per row, 95 % intervals"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for name in ("world", "pattern"):
        table.add_column(name, no_wrap=True)
    for name in (
        "coverage\n240 s",
        "time to 95 %\n(reached)",
        "overlap",
        "collisions\nper mission",
        "near misses\nper mission",
    ):
        table.add_column(name, justify="right")
    for row in rows:
        time_95 = row.time_to_95_s
        reached = f"{row.reached_95} of {row.unlimited}"
        told = "n/a" if time_95 is None else f"{with_ends(time_95, '.0f')} s"
        table.add_row(
            row.world,
            row.pattern,
            _share(row.coverage_240s),
            f"{told} ({reached})",
            _share(row.overlap),
            _count(row.collisions_per_mission),
            _count(row.near_misses_per_mission),
        )
    figures = [value for row in rows for value in vars(row).values() if hasattr(value, "plain")]
    table.caption, table.caption_justify = how(figures), "left"
    return table


def _plain(row: Any) -> dict[str, Any]:
    """A row as JSON can hold it: an end that an interval lacks is null, and its notes say why."""
    return {key: value.plain if hasattr(value, "plain") else value for key, value in vars(row).items()}


def _share(rate: Any) -> str:
    return "n/a" if rate is None else with_ends(rate, ".1%")


def _count(rate: Any) -> str:
    return "n/a" if rate is None else with_ends(rate, ".2f")


def replay(
    results: Annotated[Path, typer.Argument(help="JSONL of missions --out, patterns --out or eval (episodes.jsonl).")],
    episode_id: Annotated[str, typer.Argument(help="Which episode: its episode_id.")],
    folder: Annotated[Path, typer.Option("--out", help="Folder for the bag.")] = Path("runs/replay"),
    as_json: Json = False,
) -> None:
    """Fly one recorded mission again, with a bag, and check that it comes out the same to the last digit.

    Example: sar-eval replay runs/patterns/missions.jsonl village-levy_flight-4x-embedded-s007-e007

    Draw it afterwards with sar-eval draw. Exit code 2 means that it came out differently: other code or other files.
    """
    from sar_eval.bag.folders import ready_folder
    from sar_eval.campaign.replay import differences, find
    from sar_eval.episode.flight import fly_episode

    found = find(results, episode_id)
    ready_folder(folder)
    if found.result.get("config_sha256") != found.episode.config_sha256:
        note("the configuration's files have changed since (world, vehicle, radio or calibration)")
    with bar("{task.fields[note]}") as progress:
        task = progress.add_task(found.episode.world.name, total=found.episode.scenario.duration_s, note="")
        record = fly_episode(
            found.episode,
            folder / found.episode.episode_id,
            lambda now: progress.update(task, completed=now.search_time_s, note=f"collisions {now.collisions}"),
        )
    changed = differences(found.result, record.result)
    if as_json:
        print(json.dumps({"same": not changed, "changed": changed, **record.as_dict()}))
    else:
        for event in record.result["events"]:
            if event["kind"] != "near_miss":
                say(f"{event['kind']} at {event['begin_s']:.2f} s, drone {event['a']}, episode time")
        say(f"bag: {record.run['bag']}")
    if changed:
        raise ContractError(f"{episode_id}: flown again it differs in {', '.join(changed)}")


def encounters(
    count: Annotated[int, typer.Option("--seeds", help="Encounters of each kind.")] = 500,
    first_seed: Annotated[int, typer.Option(help="Seed of the first encounter.")] = 0,
    kinds: Annotated[
        list[str] | None,
        typer.Option("--kind", help="head_on, crossing, overtaking, four_way, merging or turning; may be repeated."),
    ] = None,
    layer: Annotated[str, typer.Option(help="Safety layer: on, off or both.")] = "both",
    workers: Workers = DEFAULT_WORKERS,
    target: Annotated[Path | None, typer.Option("--out", help="JSONL to write: one encounter per line.")] = None,
    as_json: Json = False,
) -> None:
    """Let drones meet at 8 m/s on estimates and a lossy link, with and without the safety layer, and count.

    Example: sar-eval encounters --seeds 500 --out encounters.jsonl
    """
    from sar_eval.studies.encounters import KINDS, study, summarise

    settings = {"on": [True], "off": [False], "both": [True, False]}
    if layer not in settings:
        raise InputError(f"layer = {layer!r}: allowed: {', '.join(settings)}")
    if count < 1 or first_seed < 0:
        raise InputError(f"seeds = {count} from {first_seed}: at least one seed, none below 0")
    unknown = set(kinds or ()) - set(KINDS)
    if unknown:
        raise InputError(f"kind = {sorted(unknown)[0]!r}: allowed: {', '.join(KINDS)}")
    if target is not None and target.exists():
        raise InputError(f"{target}: exists already; choose another name")
    seeds = range(first_seed, first_seed + count)
    results = []
    with bar("{task.completed:.0f} of {task.total} encounters") as progress:
        for on in settings[layer]:
            task = progress.add_task(f"layer {'on' if on else 'off'}", total=None)

            def tell(done: int, of: int, task: TaskID = task) -> None:
                progress.update(task, completed=done, total=of)

            results += study(kinds or KINDS, seeds, on, workers, tell)
    if target is not None:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("".join(json.dumps(asdict(result)) + "\n" for result in results))
    if as_json:
        print(json.dumps([asdict(row) for row in summarise(results)]))
    else:
        out.print(encounters_table(results))


def encounters_table(results: list[Any]) -> Table:
    """The summary for people: collisions with their 95 % interval, near misses, distance, punctuality."""
    from sar_eval.studies.encounters import ALLOWED, LATENCY_S, LOSS, SPEED_MPS, WIND_MPS, summarise

    title = (
        f"Encounters (embedded): x500, {SPEED_MPS:g} m/s, wind {WIND_MPS:g} m/s, link loss {LOSS:.0%}, "
        f"latency {1000 * LATENCY_S:.0f} ms"
    )
    caption = (
        "collided: centres below 1.5 m, with the 95 % interval of the share in %; near: 1.5 to 3 m; "
        f"in time: every drone at its goal within {ALLOWED:g} x its free time; slowest: the worst drone's share of it"
    )
    shown = Table(title=title, caption=caption)
    for name in ("kind, layer", "flown", "collided (%)", "near", "min m", "in time", "slowest"):
        shown.add_column(name)
    for row in summarise(results):
        shown.add_row(
            f"{row.kind}, {'on' if row.layer else 'off'}",
            str(row.flown),
            f"{row.with_collision} ({100 * row.collided.low:.1f}-{100 * row.collided.high:.1f})",
            str(row.near_misses),
            f"{row.least_separation_m:.2f}",
            str(row.in_time),
            f"{row.slowest:.2f}",
        )
    return shown
