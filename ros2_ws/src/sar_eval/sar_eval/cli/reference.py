"""The verb that flies the oracle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from sar_core.errors import InputError
from sar_eval.cli.console import Json, bar, say
from sar_eval.cli.studies import DEFAULT_WORKERS, Workers


def reference(
    world: Annotated[str, typer.Option(help="World by name.")] = "village",
    episodes: Annotated[str, typer.Option(help="Episode indices, such as 0-49 or 0-9,12.")] = "0-49",
    episode_set: Annotated[str | None, typer.Option(help="Episode set by name, such as village-v2.")] = None,
    level: Annotated[
        list[str] | None, typer.Option(help="Noise level sigma:kappa; may be repeated. Default: the scenario's.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Scenario file (YAML).")] = None,
    fresh: Annotated[bool, typer.Option(help="Fly everything again instead of what is missing.")] = False,
    workers: Workers = DEFAULT_WORKERS,
    target: Annotated[Path | None, typer.Option("--out", help="JSON to write; default: configs/reference.")] = None,
    as_json: Json = False,
) -> None:
    """Fly the oracle that knows the victims, for the optimality gap: what the file lacks is flown and added.

    Examples:

      sar-eval reference --world village --episode-set village-v2

      sar-eval reference --world forest --episodes 0-9 --level 0.05:8 --level 0.2:4
    """
    from sar_eval.scenario.model import load_scenario
    from sar_eval.scenario.prepare import prepare
    from sar_eval.scenario.resources import share_dir
    from sar_eval.stage1.oracle import EPISODES_IN_SET, make_reference, parse_episodes, parse_levels, save_reference

    scenario, _ = load_scenario(config, {"world": world, **({"episode_set": episode_set} if episode_set else {})})
    if scenario.episode_set is not None and level:
        raise InputError(f"--level: episode set {scenario.episode_set} brings its own noise levels; leave it out")
    drawn = prepare(scenario, 0, 0).episode_set
    name = drawn if scenario.episode_set is not None else f"{Path(world).stem}-{drawn}"
    levels = parse_levels(level) if level else [(scenario.sigma, scenario.kappa)]
    path = target or share_dir("configs") / "reference" / f"{name}.json"
    held = None
    if path.exists() and not fresh:
        try:
            held = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: cannot read the reference held ({error})") from error
    with bar("{task.completed:.0f} of {task.total} flights") as progress:
        task = progress.add_task("flying the oracle", total=None)
        found = make_reference(
            scenario,
            parse_episodes(episodes),
            levels,
            held,
            workers,
            lambda done, total: progress.update(task, completed=done, total=total),
        )
    save_reference(found, path)
    if as_json:
        print(json.dumps(found))
        return
    invalid = sum(row["return"] is None for row in found["returns"])
    say(f"{path}: {len(found['returns'])} returns, {invalid} of them INVALID; Stage 2 (embedded), seed {found['seed']}")
    if found["missing_episodes"]:
        lacking = f"{len(found['missing_episodes'])} of the {EPISODES_IN_SET} episodes"
        say(f"not in it yet: {lacking} of set {found['episode_set']}")
