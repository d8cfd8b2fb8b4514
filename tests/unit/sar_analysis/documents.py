"""A result made by hand, with small numbers that anyone can find again in a picture; and results as JSON."""

from __future__ import annotations

import json
from typing import Any

from sar_analysis.results.model import Document, ResultBody, ReturnCounts

LEVELS = ((0.05, 8.0), (0.1, 8.0), (0.2, 4.0), (0.3, 4.0), (0.4, 2.0))
BANDS = ("< 1.2", "1.2 - 2", "2 - 4", ">= 4", "undefined")
MADE = {"method": "made by hand", "cluster": "layout", "resamples": None, "seed": None, "notes": ["by hand"]}


def plain(made: Document | ResultBody) -> dict[str, Any]:
    """As results.json has it."""
    found: dict[str, Any] = json.loads(made.model_dump_json(exclude_unset=True))
    return found


def typed(given: dict[str, Any]) -> ResultBody:
    """A result as the code reads it."""
    return ResultBody.model_validate_json(json.dumps(given))


def result(conditions: int = 3, levels: int = 5) -> dict[str, Any]:
    """Some patterns in the village, and a noise envelope of the first two; nothing here was flown."""
    patterns = ("partitioned_lawnmower", "pheromone", "levy_flight", "spiral", "boustrophedon", "random_walk")
    groups = [_group(k, patterns[k % len(patterns)], *LEVELS[k // len(patterns)]) for k in range(conditions)]
    lists = ("warnings", "headlines", "seed_rates", "patterns", "noise_levels", "upstream", "pooled", "pooled_seeds")
    draws = {"resamples": 200, "seed": 0}
    episode = {"condition": "c01", "victims": 1, "episode_id": "e", "seed": 3, "episode": 0, "valid": True}
    return {
        "title": "Stage 2 (embedded)",
        "tiers": ["embedded"],
        "counts": dict.fromkeys(ReturnCounts.model_fields, 0),
        "seeds_flown": [3, 5, 8],
        "conditional": "",
        **{name: [] for name in (*lists, "together", "geometry", "comparisons", "paper", "not_computed")},
        **dict.fromkeys(("stage_gap", "registration", "optimality")),
        "comparisons_note": "",
        "bootstrap": {**draws, "confidence": 0.95},
        "card": {
            "hyperparameters": {"fixed": {}, "varied": {}},
            "compute": {
                **dict.fromkeys(("flight_hours", "simulated_hours"), 1.0),
                **{"missions": 30, "wall_time": "", "training": ""},
            },
            "versions": {**{key: [] for key in ("sar_eval", "episode_set", "episode_set_sha256")}, "worlds": {}},
            **{name: [] for name in ("seeds", "episodes", "seeds_with_valid_missions")},
            "bootstrap": draws,
        },
        "conditions": groups,
        "seeds": [
            {"condition": g["id"], "seed": seed, "missions": 10, "invalid": 0, "metrics": _seed_metrics(k, seed)}
            for k, g in enumerate(groups)
            for seed in (3, 5, 8)
        ],
        "noise_envelope": [_envelope(g, k, *LEVELS[k]) for g in groups[:2] for k in range(levels)],
        "reliability": {
            "which": "",
            "bins": [_bin(k, right, n) for k, right, n in ((0, 0, 8), (1, 2, 10), (2, 5, 9), (4, 18, 20))],
            "brier": _figure(0.0912),
            "ece": _figure(0.0444),
            "reports": 47,
            "note": "",
        },
        "episodes": [episode | {"invalid_reason": None}],
    }


def _group(k: int, pattern: str, sigma: float, kappa: float) -> dict[str, Any]:
    return {
        "id": f"c{k + 1:02d}",
        "label": pattern,
        "condition": {
            "tier": "embedded",
            "world": "village",
            "vehicle": "x500",
            "pattern": pattern,
            "profile": "default",
            "drones": 4,
            "sigma": sigma,
            "kappa": kappa,
            "victim_absent": False,
        },
        "missions": 30,
        "invalid": k,
        "invalid_reasons": {},
        "seeds": [3, 5, 8],
        "episodes": 10,
        "victims": 30,
        "flight_hours": 8.0,
        **{name: [] for name in ("not_computed", "scores", "times")},
        "estimates": [
            _estimate("missions_with_false_alarm", 0.1 * (k % 6), 0.05 * (k % 6), min(0.15 + 0.12 * (k % 6), 1.0)),
            _estimate("missions_with_collision", 0.0, 0.0, 0.116),
        ],
        "gdop_bands": [
            {
                "name": name,
                "detections": n,
                "cep50_m": _figure(1.5 + j + 0.2 * k),
                "cep95_m": _figure(3.0 + 2 * j + 0.3 * k),
            }
            if (n := (7, 9, 0, 3, 0)[j])
            else {"name": name, "detections": 0, "cep50_m": None, "cep95_m": None}
            for j, name in enumerate(BANDS)
        ],
        "coverage_curve": {
            "time_s": [10.0 * t for t in range(25)],
            **{name: [min(1.0, t / (18 + k)) for t in range(25)] for name in ("mean", "mean_low", "mean_high")},
            "low": [min(1.0, t / (20 + k)) for t in range(25)],
            "high": [min(1.0, t / (16 + k)) for t in range(25)],
            "missions": 30,
            **MADE,
        },
        "profile": {
            "tau_m": [float(t) for t in range(11)],
            "share": [t / (12 + k) for t in range(11)],
            "low": [t / (14 + k) for t in range(11)],
            "high": [t / (11 + k) for t in range(11)],
            "victims": 30,
            **MADE,
        },
    }


def _estimate(metric: str, value: float, low: float, high: float) -> dict[str, Any]:
    return {"metric": metric, **_figure(value, low, high)}


def _figure(value: float, low: float | None = None, high: float | None = None, n: int = 30) -> dict[str, Any]:
    return {"value": value, "low": low, "high": high, "n": n, "unit": "missions", **MADE, "exact": None}


def _seed_metrics(k: int, seed: int) -> dict[str, dict[str, Any]]:
    return {
        "coverage_240s": _figure(0.9 - 0.05 * k + 0.004 * seed),
        "victims_found": _figure(0.5 + 0.03 * seed),
        "episode_return": _figure(15_000.0 - 800.0 * k + 50.0 * seed),
    }


def _envelope(group: dict[str, Any], k: int, sigma: float, kappa: float) -> dict[str, Any]:
    later = 0.05 * (group["id"] == "c02")
    names = ("tier", "world", "pattern", "victim_absent")
    return {
        "condition": group["id"],
        "sigma": sigma,
        "kappa": kappa,
        **{name: group["condition"][name] for name in names},
        "missions": 30,
        "invalid": 0,
        "missions_with_detection": _figure(0.9 - 0.1 * k - later, 0.7 - 0.1 * k, 0.95 - 0.08 * k),
        "missions_with_false_alarm": _figure(0.05 + 0.1 * k, 0.01 + 0.08 * k, 0.2 + 0.12 * k),
        "cep50_m": _figure(1.0 + k, 0.5 + k, 2.0 + k if k < 4 else None),
    }


def _bin(k: int, right: int, n: int) -> dict[str, Any]:
    share = right / n
    return {
        "low": 0.2 * k,
        "high": 0.2 * (k + 1),
        "mean_confidence": 0.2 * k + 0.1,
        "right": _figure(share, max(share - 0.15, 0.0), min(share + 0.15, 1.0), n),
    }
