"""Every number of a RESULTS.md once more, from rows that recompute.py read out of raw bags: plain loops and scipy.

Nothing of sar_analysis is used. `expected_page` gives, for each table and each line of the page, the numbers it must
show, in order; None stands for an end or a value that is said in words.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations, product
from typing import Any

from scipy import stats

Row = dict[str, Any]
Cell = list[float | None]
GDOP = ((0.0, 1.2), (1.2, 2.0), (2.0, 4.0), (4.0, math.inf))


def clopper(hits: int, n: int) -> Cell:
    """hits, n, percent and its ends."""
    low = 0.0 if hits == 0 else float(stats.beta.ppf(0.025, hits, n - hits + 1))
    high = 1.0 if hits == n else float(stats.beta.ppf(0.975, hits + 1, n - hits))
    return [hits, n, 100 * hits / n, 100 * low, 100 * high]


def poisson(events: int, exposure: float) -> Cell:
    low = 0.0 if events == 0 else float(stats.gamma.ppf(0.025, events))
    return [events / exposure, low / exposure, float(stats.gamma.ppf(0.975, events + 1)) / exposure]


def order(values: Sequence[float], p: float) -> Cell:
    """The quantile, its ends by counting up binomial tails, and n; nothing at all without values."""
    n, ordered = len(values), sorted(values)
    if n == 0:
        return []

    def rank(tail: float) -> int:
        k = 0
        while stats.binom.cdf(k, n, p) < tail:
            k += 1
        return k

    lower, upper = rank(0.025), rank(0.975) + 1
    at = next(k for k in range(n) if (k + 1) / n >= p - 1e-12)
    low = ordered[lower - 1] if lower >= 1 else None
    high = ordered[upper - 1] if upper <= n else None
    return [ordered[at], low, high, n]


def iqm(values: Sequence[float]) -> float:
    ordered = sorted(values)
    cut = len(ordered) // 4
    middle = ordered[cut : len(ordered) - cut]
    return sum(middle) / len(middle)


def jackknife(samples: Sequence[Sequence[float]], value: float) -> Cell:
    """Student's t about the value; each sample holds the statistic with one of its units left out."""
    variances = []
    for left_out in samples:
        mean, k = sum(left_out) / len(left_out), len(left_out)
        variances.append((k - 1) / k * sum((x - mean) ** 2 for x in left_out))
    total = sum(variances)
    if total == 0:
        return [value, value, value]
    freedom = total**2 / sum(v**2 / (len(s) - 1) for v, s in zip(variances, samples, strict=True))
    half = float(stats.t.ppf(0.975, freedom)) * math.sqrt(total)
    return [value, value - half, value + half]


def without(rows: Sequence[Row], key: str, unit: Any) -> list[Row]:
    return [r for r in rows if r[key] != unit]


def score(rows: Sequence[Row], metric: str, layouts: bool, scale: float = 1.0) -> Cell:
    """IQM, its t interval over seeds (and layouts), and n; a single seed has no interval."""

    def of(some: Sequence[Row]) -> float:
        return scale * iqm([r[metric] for r in some])

    seeds, episodes = sorted({r["seed"] for r in rows}), sorted({r["episode"] for r in rows})
    if len(seeds) < 2:
        return [of(rows)]
    samples = [[of(without(rows, "seed", s)) for s in seeds]]
    if layouts:
        samples.append([of(without(rows, "episode", e)) for e in episodes])
    return [*jackknife(samples, of(rows)), len(rows)]


def kaplan(times: Sequence[float], seen: Sequence[bool]) -> Cell:
    """Median, the times at which the log-log band's ends cross one half, and how many of how many had it."""
    survival, greenwood = 1.0, 0.0
    found: list[float | None] = [None, None, None]
    z = float(stats.norm.ppf(0.975))
    for t in sorted({t for t, s in zip(times, seen, strict=True) if s}):
        at_risk = sum(x >= t for x in times)
        deaths = sum(x == t and s for x, s in zip(times, seen, strict=True))
        survival *= 1 - deaths / at_risk
        ends = [survival] * 3
        if deaths < at_risk:
            greenwood += deaths / (at_risk * (at_risk - deaths))
        if 0 < survival < 1:
            theta = z * math.sqrt(greenwood) / -math.log(survival)
            ends = [survival, survival ** math.exp(theta), survival ** math.exp(-theta)]
        found = [t if f is None and end <= 0.5 + 1e-12 else f for f, end in zip(found, ends, strict=True)]
    reached: Cell = [sum(seen), len(seen)]
    return reached if found[0] is None else [*found, *reached]


def noise(r: Row) -> tuple[float, float]:
    return r["configuration"]["sigma"], float(r["configuration"]["kappa"])


def condition_of(r: Row) -> tuple[Any, ...]:
    c = r["configuration"]
    return (r["tier"], c["world"], c["pattern"], c["drones"], noise(r)[0], -noise(r)[1], c["victim_absent"])


def page_order(r: Row) -> tuple[Any, ...]:
    c = r["configuration"]
    return (r["tier"], c["world"], c["pattern"], c["drones"], noise(r)[0], -noise(r)[1], r["seed"], r["episode"])


def conditions(rows: Sequence[Row]) -> list[list[Row]]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for r in sorted(rows, key=lambda r: (*page_order(r), r["config_sha256"])):
        groups.setdefault(condition_of(r), []).append(r)
    return list(groups.values())


def shares(rows: Sequence[Row], test: Callable[[Row], bool]) -> Cell:
    return clopper(sum(map(test, rows)), len(rows))


def errors(rows: Sequence[Row], name: str = "error") -> list[float]:
    return [v[name] for r in rows for v in r["victims"] if v["found"]]


def total(rows: Sequence[Row], name: str) -> int:
    return sum(r[name] for r in rows)


def hours(rows: Sequence[Row]) -> float:
    return float(sum(r["flight_hours"] for r in rows))


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def found_share(rows: Sequence[Row], within: float = math.inf) -> Cell:
    all_victims = [v for r in rows for v in r["victims"]]
    hits = sum(v["found"] and v["time"] <= within for v in all_victims)
    return clopper(hits, len(all_victims)) if all_victims else []


def headline(rows: Sequence[Row]) -> list[Cell]:
    present = any(r["victims"] for r in rows)
    return [
        [],
        [],
        [len(rows)],
        [0],
        shares(rows, lambda r: r["false_alarms"] > 0),
        shares(rows, lambda r: r["collisions"] > 0),
        [100 * mean([r["coverage_240s"] for r in rows]), len(rows)],
        found_share(rows),
        order(errors(rows), 0.5) if present else [],
        order(errors(rows), 0.95) if present else [],
    ]


def label(r: Row, with_noise: bool = True) -> Cell:
    c = r["configuration"]
    return [c["drones"], *((c["sigma"], c["kappa"]) if with_noise else ())]


def seed_list(rows: Sequence[Row], key: str = "seed") -> Cell:
    found = sorted({r[key] for r in rows})
    if len(found) > 2 and found == list(range(found[0], found[-1] + 1)):
        return [found[0], found[-1]]
    return list(found)


def flown(rows: Sequence[Row]) -> list[Cell]:
    victims = sum(len(r["victims"]) for r in rows)
    return [label(rows[0]), seed_list(rows), [len({r["episode"] for r in rows})], [victims], [hours(rows)]]


def alarms(rows: Sequence[Row]) -> list[Cell]:
    return [
        shares(rows, lambda r: r["false_alarms"] > 0),
        poisson(total(rows, "false_alarms"), len(rows)),
        poisson(total(rows, "false_alarms"), hours(rows)),
        shares(rows, lambda r: r["collisions"] > 0),
        poisson(total(rows, "collisions"), hours(rows)),
    ]


def contacts(rows: Sequence[Row]) -> list[Cell]:
    names = ("collisions_drone_drone", "collisions_drone_obstacle", "collisions_drone_ground", "near_misses")
    counted = [poisson(total(rows, name), len(rows)) for name in (*names, "geofence_breaches", "failsafe_entries")]
    return [*counted, [min(r["min_separation_m"] for r in rows), len(rows)]]


def finding(rows: Sequence[Row]) -> list[Cell]:
    if not any(r["victims"] for r in rows):
        return [[]] * 7
    return [
        shares(rows, lambda r: r["detections"] > 0),
        found_share(rows),
        found_share(rows, 240),
        order(errors(rows), 0.5),
        order(errors(rows), 0.95),
        order(errors(rows, "last_error"), 0.5),
        order(errors(rows, "last_error"), 0.95),
    ]


def times(rows: Sequence[Row]) -> list[Cell]:
    def censored(pairs: Sequence[tuple[float | None, float]]) -> Cell:
        in_time = [(t, True) if t is not None and t <= end else (end, False) for t, end in pairs]
        return kaplan([t for t, _ in in_time], [came for _, came in in_time]) if pairs else []

    searched = [r for r in rows if r["victims"]]
    each = [(v["time"] if v["found"] else None, r["search_time_s"]) for r in searched for v in r["victims"]]
    return [
        censored([(r["time_to_first_detection_s"], r["search_time_s"]) for r in searched]),
        censored(each),
        censored([(r["time_to_95_s"], r["search_time_s"]) for r in rows]),
    ]


SCORED = (
    *(("episode_return", 1.0), ("coverage_240s", 100.0), ("overlap_ratio", 100.0), ("path_m", 1.0)),
    *(("energy_batteries", 1.0), ("yaw_rate_rms_rps", 1.0), ("jerk_rms_mps3", 1.0)),
)


def scores(rows: Sequence[Row]) -> list[Cell]:
    return [score(rows, name, False, scale) for name, scale in SCORED]


def new_layouts(rows: Sequence[Row]) -> list[Cell]:
    return [score(rows, name, True, scale) for name, scale in SCORED[:2]]


def pooled(rows: Sequence[Row]) -> list[Cell]:
    return [
        label(rows[0], with_noise=False),
        shares(rows, lambda r: r["false_alarms"] > 0),
        shares(rows, lambda r: r["collisions"] > 0),
        found_share(rows),
        order(errors(rows), 0.5),
        score(rows, "coverage_240s", False, 100.0),
        score(rows, "episode_return", False),
    ]


def one_seed(rows: Sequence[Row]) -> list[Cell]:
    found = found_share(rows)
    return [
        [rows[0]["seed"]],
        [100 * mean([r["false_alarms"] > 0 for r in rows])],
        [100 * mean([r["collisions"] > 0 for r in rows])],
        [total(rows, "near_misses") / len(rows)],
        found[2:3],
        order(errors(rows), 0.5)[:1],
        [100 * mean([r["coverage_240s"] for r in rows])],
        [mean([r["episode_return"] for r in rows])],
    ]


def bands(rows: Sequence[Row]) -> list[Cell]:
    found = [v for r in rows for v in r["victims"] if v["found"]]
    groups = [[v["error"] for v in found if v["gdop"] is not None and a <= v["gdop"] < b] for a, b in GDOP]
    groups.append([v["error"] for v in found if v["gdop"] is None])
    return [[order(g, 0.5)[0], order(g, 0.95)[0], len(g)] if g else [] for g in groups]


def envelope(rows: Sequence[Row]) -> list[Cell]:
    def plain(cell: Cell) -> Cell:
        return [*cell[2:], cell[1]] if cell else []

    detected = shares(rows, lambda r: r["detections"] > 0) if any(r["victims"] for r in rows) else []
    alarmed = shares(rows, lambda r: r["false_alarms"] > 0)
    return [*([x] for x in noise(rows[0])), [], [], plain(detected), plain(alarmed), order(errors(rows), 0.5)]


def profile(rows: Sequence[Row]) -> list[Cell]:
    off = [v["error"] if v["found"] else math.inf for r in rows for v in r["victims"]]
    return [[len(off)], *(clopper(sum(e < tau for e in off), len(off))[2:] for tau in (1, 2, 5, 10))]


def comparisons(groups: Sequence[Sequence[Row]]) -> list[list[Cell]]:
    """Metric, first, second, difference, p after Holm, P(first better), detectable, note."""
    pairs = [(a, b) for a, b in combinations(range(len(groups)), 2) if _rest(groups[a][0]) == _rest(groups[b][0])]
    made = [_compare(name, scale, a, b, groups) for name, scale in (SCORED[1], SCORED[0]) for a, b in pairs]
    ranked = sorted(range(len(made)), key=lambda k: made[k][1])
    adjusted, worst = [0.0] * len(made), 0.0
    for place, k in enumerate(ranked):
        worst = max(worst, min(1.0, made[k][1] * (len(made) - place)))
        adjusted[k] = worst
    return [[*cells[:4], [holm], *cells[4:]] for (cells, _), holm in zip(made, adjusted, strict=True)]


def _rest(r: Row) -> tuple[Any, ...]:
    found = condition_of(r)
    return found[:2] + found[3:]


def _compare(metric: str, scale: float, a: int, b: int, groups: Sequence[Sequence[Row]]) -> tuple[list[Cell], float]:
    first = {(r["seed"], r["episode"]): scale * r[metric] for r in groups[a]}
    second = {(r["seed"], r["episode"]): scale * r[metric] for r in groups[b]}
    seeds = sorted({s for s, _ in first})

    def gap(keys: Sequence[tuple[int, int]]) -> float:
        return iqm([first[k] for k in keys]) - iqm([second[k] for k in keys])

    def better(keys: Sequence[tuple[int, int]]) -> float:
        return 100 * mean([(first[k] > second[k]) + 0.5 * (first[k] == second[k]) for k in keys])

    keys = list(first)
    jack = [[of([k for k in keys if k[0] != s]) for s in seeds] for of in (gap, better)]
    chance = jackknife([jack[1]], better(keys))
    chance = [chance[0], max(chance[1] or 0.0, 0.0), min(chance[2] or 0.0, 100.0)]
    by_seed = [gap([k for k in keys if k[0] == s]) for s in seeds]
    flips = [
        abs(sum(sign * d for sign, d in zip(signs, by_seed, strict=True)))
        for signs in product((1, -1), repeat=len(seeds))
    ]
    p = mean([f >= abs(sum(by_seed)) * (1 - 1e-12) for f in flips])
    name: Cell = [240] if metric == "coverage_240s" else []
    cells: list[Cell] = [
        name,
        [a + 1],
        [b + 1],
        [*jackknife([jack[0]], gap(keys)), len(keys)],
        chance,
        [],
        [len(seeds)],
    ]
    return cells, p


def detectable(by_seed: Sequence[float]) -> float:
    """The true difference found with a power of 80 %, by halving."""
    n = len(by_seed)
    spread = math.sqrt(sum((d - mean(by_seed)) ** 2 for d in by_seed) / (n - 1))
    edge = stats.t.ppf(0.975, n - 1)
    low, high = 0.0, 1000.0
    for _ in range(100):
        middle = (low + high) / 2
        power = stats.nct.sf(edge, n - 1, middle) + max(0.0, stats.nct.cdf(-edge, n - 1, middle))
        low, high = (middle, high) if power < 0.8 else (low, middle)
    return spread * low / math.sqrt(n)


def reliability(rows: Sequence[Row]) -> tuple[list[list[Cell]], Cell]:
    """The bins' rows, and for the caption n, Brier score and calibration error."""
    words = [w for r in rows for w in r["words"]]
    table: list[list[Cell]] = []
    gap = 0.0
    for k in range(10):
        mine = [(p, right) for p, right in words if min(int(p * 10), 9) == k]
        if mine:
            confidence, hits = mean([p for p, _ in mine]), sum(right for _, right in mine)
            gap += len(mine) / len(words) * abs(confidence - hits / len(mine))
            table.append([[k / 10, (k + 1) / 10], [len(mine)], [100 * confidence], clopper(hits, len(mine))[2:]])
    return table, [len(words), mean([(p - right) ** 2 for p, right in words]), gap]
