"""An episode's record as people read it."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from sar_eval.console import out, say


def print_record(record: Any) -> None:
    """The record of one episode as a table, and where its bag is."""
    from sar_eval.outcome import COVERAGE_TIME_S

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
        ("real-time factor", f"{host['rtf']:.0f} x (compilation {host['compile_s']:.1f} s apart)"),
    ]
    for name, value in rows:
        table.add_row(name, value)
    out.print(table)
    say(f"bag: {host['bag'] or 'not recorded'}")


def _sensing_rows(r: dict[str, Any]) -> list[tuple[str, str]]:
    if r["detections"] is None:
        return []
    first = r["time_to_first_detection_s"]
    found = f"{r['detections']} of {len(r['victims'])}"
    if first is not None:
        found += f", first after {first:.0f} s, {r['localization_error_m']:.1f} m off"
    return [("victims found", found), ("false alarms", str(r["false_alarms"]))]
