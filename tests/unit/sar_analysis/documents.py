"""A results document made by hand: small numbers that anyone can find again in a picture."""

from __future__ import annotations

from typing import Any

LEVELS = ((0.05, 8.0), (0.1, 8.0), (0.2, 4.0), (0.3, 4.0), (0.4, 2.0))
BANDS = ("< 1.2", "1.2 - 2", "2 - 4", ">= 4", "undefined")


def document(conditions: int = 3, levels: int = 5) -> dict[str, Any]:
    """Some patterns in the village, and a noise envelope of the first two; nothing here was flown."""
    patterns = ("partitioned_lawnmower", "pheromone", "levy_flight", "spiral", "boustrophedon", "random_walk")
    groups = [_group(k, patterns[k % len(patterns)], *LEVELS[k // len(patterns)]) for k in range(conditions)]
    return {
        "schema_version": 1,
        "result": {
            "title": "Stage 2 (embedded)",
            "tiers": ["embedded"],
            "conditions": groups,
            "pooled": [],
            "seeds": [
                {"condition": g["id"], "seed": seed, "missions": 10, "invalid": 0, "metrics": _seed_metrics(k, seed)}
                for k, g in enumerate(groups)
                for seed in (3, 5, 8)
            ],
            "noise_envelope": [
                _envelope(pattern, k, *LEVELS[k]) for pattern in patterns[: min(conditions, 2)] for k in range(levels)
            ],
            "reliability": {
                "bins": [_bin(k, right, n) for k, (right, n) in enumerate(((0, 8), (2, 10), (5, 9), (0, 0), (18, 20)))],
                "brier": 0.0912,
                "ece": 0.0444,
                "reports": 47,
            },
            "sample_efficiency": [
                {
                    "policy": "mappo",
                    "steps": [0, 10_000, 20_000, 40_000],
                    "iqm": [100.0, 900.0, 1500.0, 1700.0],
                    "low": [50.0, 700.0, 1300.0, 1550.0],
                    "high": [150.0, 1100.0, 1700.0, 1800.0],
                    "seeds": [0, 1, 2, 3, 4],
                    "episodes": [0, 1, 2, 3],
                    "method": "seeds jackknife, t",
                }
            ],
        },
        "run": {},
    }


def _group(k: int, pattern: str, sigma: float, kappa: float) -> dict[str, Any]:
    return {
        "id": f"c{k + 1:02d}",
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
        "seeds": [3, 5, 8],
        "victims": 30,
        "estimates": [
            _estimate("missions_with_false_alarm", 0.1 * (k % 6), 0.05 * (k % 6), min(0.15 + 0.12 * (k % 6), 1.0)),
            _estimate("missions_with_collision", 0.0, 0.0, 0.116),
        ],
        "gdop_bands": [
            {"name": name, "detections": n, "cep50_m": 1.5 + j + 0.2 * k, "cep95_m": 3.0 + 2 * j + 0.3 * k}
            if (n := (7, 9, 0, 3, 0)[j])
            else {"name": name, "detections": 0, "cep50_m": None, "cep95_m": None}
            for j, name in enumerate(BANDS)
        ],
        "coverage_curve": {
            "time_s": [10.0 * t for t in range(25)],
            "mean": [min(1.0, t / (18 + k)) for t in range(25)],
            "low": [min(1.0, t / (20 + k)) for t in range(25)],
            "high": [min(1.0, t / (16 + k)) for t in range(25)],
        },
        "profile": {
            "tau_m": [float(t) for t in range(11)],
            "share": [t / (12 + k) for t in range(11)],
            "low": [t / (14 + k) for t in range(11)],
            "high": [t / (11 + k) for t in range(11)],
        },
    }


def _estimate(metric: str, value: float, low: float, high: float) -> dict[str, Any]:
    return {
        "metric": metric,
        "value": value,
        "low": low,
        "high": high,
        "n": 30,
        "unit": "missions",
        "method": "Clopper-Pearson",
    }


def _seed_metrics(k: int, seed: int) -> dict[str, float | None]:
    return {
        "coverage_240s": 0.9 - 0.05 * k + 0.004 * seed,
        "victims_found": 0.5 + 0.03 * seed,
        "episode_return": 15_000.0 - 800.0 * k + 50.0 * seed,
    }


def _envelope(pattern: str, k: int, sigma: float, kappa: float) -> dict[str, Any]:
    later = 0.05 * (pattern == "pheromone")
    return {
        "sigma": sigma,
        "kappa": kappa,
        "pattern": pattern,
        "world": "village",
        "missions": 30,
        "missions_with_detection": {"value": 0.9 - 0.1 * k - later, "low": 0.7 - 0.1 * k, "high": 0.95 - 0.08 * k},
        "missions_with_false_alarm": {"value": 0.05 + 0.1 * k, "low": 0.01 + 0.08 * k, "high": 0.2 + 0.12 * k},
        "cep50_m": {"value": 1.0 + k, "low": 0.5 + k, "high": 2.0 + k if k < 4 else None},
    }


def _bin(k: int, right: int, n: int) -> dict[str, Any]:
    share = right / n if n else None
    return {
        "low": 0.2 * k,
        "high": 0.2 * (k + 1),
        "mean_confidence": 0.2 * k + 0.1 if n else None,
        "right": share,
        "n": n,
        "share_low": None if share is None else max(share - 0.15, 0.0),
        "share_high": None if share is None else min(share + 0.15, 1.0),
    }
