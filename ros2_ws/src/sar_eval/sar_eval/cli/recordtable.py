"""An episode's record as people read it."""

from __future__ import annotations

import json
from typing import Any

import typer
from rich.table import Table

from sar_core.errors import RunError
from sar_eval.cli.console import note, out, say

PACE_KEPT = 0.9
"""Share of the asked pace below which drones in Gazebo were seen to estimate their height worse (docs/gazebo.md)."""


def conclude(record: Any, as_json: bool) -> None:
    """Print the record of one episode, say what must be said of it, and leave with its exit code."""
    if as_json:
        print(json.dumps(record.as_dict()), flush=True)
    else:
        print_record(record)
    kept = record.run.get("autopilot", {}).get("slowest_rtf_share")
    if record.result["tier"] == "gazebo" and kept is not None and kept < PACE_KEPT:
        note(
            f"this host kept {kept:.0%} of the asked pace at its slowest: Gazebo does not wait, and PX4 estimates "
            "worse for it; fly at a lower --sim-speed"
        )
    if not record.result["valid"]:
        whole = "; its bag is whole up to that moment" if record.run["bag"] else ""
        note(f"the episode is INVALID ({record.result['invalid_reason']}){whole}")
        raise typer.Exit(RunError.exit_code)


def print_record(record: Any) -> None:
    """The record of one episode as a table, and where its bag is."""
    from sar_eval.episode.outcome import COVERAGE_TIME_S

    r, host = record.result, record.run
    title = f"Stage 2 ({r['tier']}): {r['world']}, {r['pattern']}, seed {r['seed']}, episode {r['episode']}"
    table = Table(title=title, title_justify="left", show_header=False, min_width=len(title))
    scored_s = min(r["search_time_s"], COVERAGE_TIME_S)
    status = "valid" if r["valid"] else f"INVALID ({r['invalid_reason']})"
    time_95 = f"{r['time_to_95_s']:.0f} s" if r["time_to_95_s"] is not None else "not reached"
    rows = [
        ("episode", status),
        (f"coverage at {scored_s:.0f} s", f"{r['coverage_240s']:.1%}"),
        ("time to 95 %", time_95),
        ("overlap (share of path)", "n/a" if r["overlap_ratio"] is None else f"{r['overlap_ratio']:.1%}"),
        ("collisions", str(r["collisions"])),
        ("near misses", str(r["near_misses"])),
        ("least separation", "n/a" if r["min_separation_m"] is None else f"{r['min_separation_m']:.2f} m"),
        *_sensing_rows(r),
        ("landed", f"{r['landed']} of {r['num_drones']}"),
        ("real-time factor", _pace(host)),
    ]
    for name, value in rows:
        table.add_row(name, value)
    out.print(table)
    say(f"bag: {host['bag'] or 'not recorded'}")


def _pace(host: dict[str, Any]) -> str:
    pace = "n/a" if host["rtf"] is None else f"{host['rtf']:.3g} x"
    return f"{pace} (compilation {host['compile_s']:.1f} s apart)"


def _sensing_rows(r: dict[str, Any]) -> list[tuple[str, str]]:
    if r["detections"] is None:
        return []
    first = r["time_to_first_detection_s"]
    found = f"{r['detections']} of {len(r['victims'])}"
    if first is not None:
        found += f", first after {first:.0f} s, {r['localization_error_m']:.1f} m off"
    return [("victims found", found), ("false alarms", str(r["false_alarms"]))]
