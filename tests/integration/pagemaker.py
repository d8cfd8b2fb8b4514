"""A results document of real bags, in the shape the page reads, and many episodes made of a few."""

from __future__ import annotations

import copy
from dataclasses import asdict
from typing import Any

from sar_analysis.replaydata import Replay
from sar_analysis.summary import summarise
from sar_analysis.table import Table

ROW = (
    *("episode_id", "seed", "episode", "valid", "invalid_reason", "coverage_240s", "collisions", "near_misses"),
    *("false_alarms", "detections", "localization_error_m", "gdop", "time_to_first_detection_s", "episode_return"),
)


def document(table: Table) -> dict[str, Any]:
    """Everything the page can show of a table, without resampled intervals."""
    conditions, rows = [], []
    for number, s in enumerate(summarise(table.episodes), start=1):
        name, plain = f"c{number:02d}", dict(s.condition)
        mine = [e for e in table.episodes if all(getattr(e, k) == v for k, v in plain.items())]
        curve = list(mine[0].coverage_curve)
        conditions.append(
            {
                "id": name,
                "label": f"{plain['world']} · {plain['pattern']}",
                "condition": plain,
                "missions": s.missions,
                "invalid": s.invalid,
                "invalid_reasons": dict(s.invalid_reasons),
                "seeds": list(s.seeds),
                "episodes": s.layouts,
                "estimates": [asdict(e) for e in s.estimates],
                "scores": [{"metric": "episode_return", "statistic": "iqm", "refused": "one seed"}],
                "times": [],
                "gdop_bands": [asdict(b) for b in s.gdop_bands],
                "coverage_curve": {"time_s": [10.0 * k for k in range(len(curve))], "mean": curve},
                "profile": {"tau_m": [0.0, 10.0], "share": [0.0, 1.0], "low": [0.0, 0.5], "high": [0.5, 1.0]},
            }
        )
        rows += [{"condition": name, "victims": len(e.victims), **{k: getattr(e, k) for k in ROW}} for e in mine]
    headlines = [
        {
            **dict(s.condition),
            "missions": s.missions,
            "invalid": s.invalid,
            "seeds": list(s.seeds),
            "episodes": s.layouts,
        }
        | {"estimates": [asdict(e) for e in s.estimates]}
        for s in summarise(table.episodes, ("victim_absent",))
    ]
    result = {
        "title": "Stage 2 (embedded)",
        "tiers": ["embedded"],
        "counts": {"episodes": len(rows), "valid": len(table.valid), "invalid": len(table.invalid)},
        "warnings": table.warnings(),
        "headlines": headlines,
        "conditions": conditions,
        "seeds": [{"condition": "c01", "seed": 1, "missions": 1, "invalid": 0, "metrics": {"coverage_240s": 0.5}}],
        "noise_envelope": [
            {"sigma": 0.05, "kappa": 8.0, "world": "village", "pattern": "spiral", "missions": 3, "condition": "c01"}
            | {"missions_with_detection": {"value": 0.5, "low": 0.1, "high": 0.9}}
        ],
        "reliability": {
            "bins": [
                {"low": 0.8, "high": 0.9, "mean_confidence": 0.86, "right": 0.8, "n": 9}
                | {"share_low": 0.5, "share_high": 0.97}
            ],
            "brier": 0.1,
            "ece": 0.05,
            "reports": 9,
        },
        "comparisons": [],
        "registration": None,
        "card": {"seeds": [1], "versions": {"sar_eval": "0.1.0"}},
        "bootstrap": {"resamples": 1000, "seed": 0},
        "episodes": rows,
    }
    return {"schema_version": 1, "result": result, "run": {"python": "3"}}


def multiplied(results: dict[str, Any], replays: list[Replay], count: int) -> tuple[dict[str, Any], list[Replay]]:
    """The same page with `count` episodes: the given ones again and again under other names."""
    results = copy.deepcopy(results)
    given = results["result"]["episodes"]
    rows, shown = [], []
    for k in range(count):
        row, replay = given[k % len(given)], replays[k % len(given)]
        name = f"{row['episode_id']}-copy{k:03d}" if k >= len(given) else row["episode_id"]
        rows.append({**row, "episode_id": name})
        shown.append(Replay({**replay.data, "episode_id": name}, replay.scene))
    results["result"]["episodes"] = rows
    return results, shown
