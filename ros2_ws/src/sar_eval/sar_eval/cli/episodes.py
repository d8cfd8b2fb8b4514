"""Verbs about episode sets: make one, check those there are, show what is in one and what its noise does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from sar_core.errors import ContractError, MissingDependencyError, SarError
from sar_eval.cli.console import Json, note, out, say

if TYPE_CHECKING:
    from sar_eval.scenario.episodeset import EpisodeSet
    from sar_sim.radio.devices import Device

episodes_app = typer.Typer(
    no_args_is_help=True, help="Episode sets: fixed layouts at fixed noise levels, committed with a hash."
)


@episodes_app.command("make")
def episodes_make(
    world: Annotated[str, typer.Option(help="World by name or path to an SDF file.")],
    target: Annotated[Path, typer.Option("--out", help="JSON file to write; a different set in it is never replaced.")],
    version: Annotated[int, typer.Option(help="Version of the set; another one has other layouts.")] = 2,
    wide: Annotated[bool, typer.Option("--wide", help="200 layouts, each flown once: for rare events.")] = False,
) -> None:
    """Make a world's set: 10 layouts at 5 noise levels. The same world and version give the same file everywhere.

    A wide set flies 200 layouts once, at the five levels in turn. Victims, decoys and what phones are like follow the
    rules of the version; from 2 on every world draws its own layouts.

    Examples:
      sar-eval episodes make --world village --version 2 --out configs/episodes/village-v2.json
      sar-eval episodes make --world village --wide --out configs/episodes/village_wide-v2.json
    """
    from sar_eval.scenario.episodeset import make_set, write_set

    content = make_set(world, version, wide)
    written = write_set(content, target)
    told = "written" if written else "is already there, and the same"
    say(f"{target}: {content['name']} {told}, sha256 {content['sha256']}")


@episodes_app.command("check")
def episodes_check(
    files: Annotated[list[str] | None, typer.Argument(help="Names or files; default: all shipped sets.")] = None,
    as_json: Json = False,
) -> None:
    """Check sets: format, own hash, the world's hash, and whether making the set again gives the same content.

    Example: sar-eval episodes check village-v2
    """
    from sar_eval.scenario.episodeset import load_set, make_set
    from sar_eval.scenario.resources import share_dir

    names = files or sorted(p.stem for p in (share_dir("configs") / "episodes").glob("*.json"))
    findings = []
    for name in names:
        try:
            found = load_set(name)
            again = make_set(found.world, found.version, found.one_level_each)["sha256"]
            findings.append({"set": name, "sha256": found.sha256, "same_when_made_again": again == found.sha256})
        except SarError as error:
            findings.append({"set": name, "error": str(error)})
    broken = [str(finding["error"]) for finding in findings if "error" in finding]
    if as_json:
        print(json.dumps(findings))
    else:
        for finding in findings:
            if "error" not in finding:
                made = "is what" if finding["same_when_made_again"] else "is NOT what"
                say(f"{finding['set']}: whole, {made} episodes make gives, sha256 {finding['sha256']}")
        for line in broken:
            note(line)
    if broken:
        raise typer.Exit(ContractError.exit_code)


@episodes_app.command("show")
def episodes_show(
    name: Annotated[str, typer.Argument(help="Set by name or file.")],
    picture: Annotated[Path | None, typer.Option(help="PNG or SVG to write: its first ten layouts as maps.")] = None,
    as_json: Json = False,
) -> None:
    """Show a set's noise levels and layouts; what a transmitter's address is listed as stands behind it.

    Example: sar-eval episodes show village-v2 --picture village-v2.png
    """
    from sar_eval.scenario.episodeset import load_set

    found = load_set(name)
    if picture is not None:
        _draw(found, picture)
    if as_json:
        layouts = [
            {
                "wind_rad": layout.wind_rad,
                "devices": [
                    {"kind": d.kind.name.lower(), "listed": d.listed, "at": d.track[0, 1:].tolist()}
                    for d in layout.devices
                ],
            }
            for layout in found.layouts
        ]
        levels = [level.model_dump() for level in found.levels]
        print(json.dumps({"name": found.name, "sha256": found.sha256, "levels": levels, "layouts": layouts}))
        return
    out.print(_table(found))
    told = ", ".join(f"({level.sigma:g}, {level.kappa:g})" for level in found.levels)
    say(f"Levels (sigma, kappa) of an episode by index modulo {len(found.levels)}: {told}.")
    say(f"sha256 {found.sha256}, world {found.world} {found.world_sha256[:12]}...")
    if picture is not None:
        say(f"{picture} written")


@episodes_app.command("levels")
def episodes_levels(
    name: Annotated[str, typer.Argument(help="Set by name or file.")],
    duration_s: Annotated[float, typer.Option(help="How long each level is watched, simulated time.")] = 300.0,
    as_json: Json = False,
) -> None:
    """Measure where a set's noise levels lie against the gates: frames of eight standing links near a beacon.

    R is the mean phasor length over 50 frames, beside I1(kappa)/I0(kappa); open is the share of frames at which the
    phase gate was open (from R 0.70, closed below 0.65), the others are shares of the amplitude gate's states.

    Example: sar-eval episodes levels village-v2
    """
    from dataclasses import asdict

    from sar_eval.scenario.episodeset import load_set
    from sar_eval.studies.noiselevels import place_levels

    found = load_set(name)
    rows = place_levels([(level.sigma, level.kappa) for level in found.levels], duration_s)
    if as_json:
        print(json.dumps([asdict(row) for row in rows]))
        return
    table = Table(title=f"{found.name}: {rows[0].frames} frames a level", title_justify="left", box=None)
    for head in ("sigma", "kappa", "R", "I1/I0", "open", "accept", "predict only", "reject", "recalibrate"):
        table.add_column(head, justify="right")
    for row in rows:
        shares = (row.open_share, row.accept, row.predict_only, row.reject, row.recalibrate)
        told = (f"{row.sigma:g}", f"{row.kappa:g}", f"{row.mean_r:.3f}", f"{row.theory_r:.3f}")
        table.add_row(*told, *(f"{100.0 * share:.1f} %" for share in shares))
    out.print(table)


def _table(found: EpisodeSet) -> Table:
    flown = f"each at one of {len(found.levels)}" if found.one_level_each else f"at {len(found.levels)}"
    title = f"{found.name}: {len(found.layouts)} layouts {flown} levels, {len(found)} episodes"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for head in ("episodes", "wind to", "victims at (m)", "other transmitters"):
        table.add_column(head)
    for k, layout in enumerate(found.layouts):
        victims = [d for d in layout.devices if d.kind.name == "VICTIM"]
        others = [d.kind.name.lower() + _listing(d) for d in layout.devices if d.kind.name != "VICTIM"]
        table.add_row(
            _episodes(found, k),
            f"{layout.wind_rad * 57.29577951308232:.0f} deg",
            "  ".join(f"({d.track[0, 1]:.0f}, {d.track[0, 2]:.0f})" for d in victims),
            ", ".join(others),
        )
    return table


def _listing(device: Device) -> str:
    """Of those whose address the swarm may be told."""
    if device.listed is None or device.kind.name not in ("RESCUER", "ACCESS_POINT"):
        return ""
    return " (listed)" if device.listed else " (unlisted)"


def _episodes(found: EpisodeSet, layout: int) -> str:
    """Which episodes fly a layout."""
    first = layout * found.missions_each
    return str(first) if found.missions_each == 1 else f"{first}-{first + found.missions_each - 1}"


def _draw(found: EpisodeSet, picture: Path) -> None:
    """The first ten layouts on the map: stars are victims, crosses others where they start, lines tracks."""
    try:
        import matplotlib
    except ImportError:
        raise MissingDependencyError(
            "matplotlib is not installed; get it with: pip install 'sar-eval[report]'"
        ) from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    from sar_eval.scenario.resources import world_path
    from sar_eval.studies.drawing import draw_map
    from sar_sim.world.world import load_world

    world = load_world(world_path(found.world))
    shown = found.layouts[:10]
    figure, axes = pyplot.subplots(2, -(-len(shown) // 2), figsize=(14, 6), layout="constrained", squeeze=False)
    for axis in axes.flat[len(shown) :]:
        axis.axis("off")
    for k, (axis, layout) in enumerate(zip(axes.flat, shown, strict=False)):
        draw_map(axis, world, world.altitude_m)
        for device in layout.devices:
            victim = device.kind.name == "VICTIM"
            track = device.track[device.track[:, 0] <= max(240.0, device.track[0, 0] + 1.0)]
            axis.plot(track[:, 1], track[:, 2], linewidth=0.8, color="#777777", zorder=3)
            style = ("*", "#c1121f", 80) if victim else ("x", "#1d4e89", 30)
            axis.scatter(track[0, 1], track[0, 2], marker=style[0], color=style[1], s=style[2], zorder=4)
        axis.set_title(f"episodes {_episodes(found, k)}", fontsize=9)
        axis.set_aspect("equal")
        axis.set_xticks([])
        axis.set_yticks([])
    figure.suptitle(f"{found.name}: victims (stars) and other transmitters (crosses), sha256 {found.sha256[:12]}")
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=90)
    pyplot.close(figure)
