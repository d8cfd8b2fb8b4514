"""Every number of RESULTS.md and TABLES.md once more, from rows that recompute.py read out of raw bags.

Plain loops and scipy; nothing of sar_analysis is used. The functions give, for each table and each line, the numbers it
must show, in order; None stands for an end or a value that is said in words.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product
from typing import Any

from scipy import stats

Row = dict[str, Any]
Cell = list[float | None]
GDOP = ((0.0, 1.2), (1.2, 2.0), (2.0, 4.0), (4.0, math.inf))
NEAR_M, LOST_M = 10.0, 50.0


class End(float):
    """An end of an interval of independent missions. Tables show those over layouts, which have oracles of their own
    (tests/unit/sar_analysis/stats); this one stands beside them in results.json."""


def clopper(hits: int, n: int) -> Cell:
    """hits, n, percent and its ends."""
    low = 0.0 if hits == 0 else float(stats.beta.ppf(0.025, hits, n - hits + 1))
    high = 1.0 if hits == n else float(stats.beta.ppf(0.975, hits + 1, n - hits))
    return [hits, n, 100 * hits / n, End(100 * low), End(100 * high)]


def poisson(events: int, exposure: float) -> Cell:
    low = 0.0 if events == 0 else float(stats.gamma.ppf(0.025, events))
    high = float(stats.gamma.ppf(0.975, events + 1))
    return [events / exposure, End(low / exposure), End(high / exposure)]


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
    low = ordered[lower - 1] if lower >= 1 else math.nan
    high = ordered[upper - 1] if upper <= n else math.nan
    return [ordered[at], End(low), End(high), n]


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
    """IQM, its t interval over seeds (and layouts), and n; a single seed is refused."""

    def of(some: Sequence[Row]) -> float:
        return scale * iqm([r[metric] for r in some])

    seeds, episodes = sorted({r["seed"] for r in rows}), sorted({r["episode"] for r in rows})
    if len(seeds) < 2:
        return []
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
    ends = [End(math.nan if end is None else end) for end in found[1:]]
    return reached if found[0] is None else [found[0], *ends, *reached]


def noise(r: Row) -> tuple[float, float]:
    return r["configuration"]["sigma"], float(r["configuration"]["kappa"])


def condition_of(r: Row) -> tuple[Any, ...]:
    c = r["configuration"]
    return (r["tier"], c["world"], c["pattern"], c["drones"], noise(r)[0], -noise(r)[1], c["victim_absent"])


def page_order(r: Row) -> tuple[Any, ...]:
    return (*condition_of(r), r["seed"], r["episode"])


def conditions(rows: Sequence[Row]) -> list[list[Row]]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for r in sorted(rows, key=lambda r: (*page_order(r), r["config_sha256"])):
        groups.setdefault(condition_of(r), []).append(r)
    return list(groups.values())


def shares(rows: Sequence[Row], test: Callable[[Row], bool]) -> Cell:
    return clopper(sum(map(test, rows)), len(rows))


def errors(rows: Sequence[Row], name: str = "error") -> list[float]:
    """Of all issued victims, without a cut."""
    return [v[name] for r in rows for v in r["victims"] if v[name] is not None]


def capped(error: float | None) -> float:
    """What goals and stages take: a miss is as bad as any error beyond."""
    return LOST_M if error is None else min(error, LOST_M)


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


def exposed(r: Row) -> list[Row]:
    """The mission's decoys that are on no list and that drones heard."""
    assert all(d["listed"] is not None for d in r["decoys"])
    return [d for d in r["decoys"] if d["exposed"] and not d["listed"]]


def some_share(rows: Sequence[Row], test: Callable[[Row], bool]) -> Cell:
    """Nothing where there are no missions of the kind."""
    return shares(rows, test) if rows else []


def exposed_alarms(rows: Sequence[Row]) -> Cell:
    return some_share([r for r in rows if exposed(r)], lambda r: r["false_alarms"] > 0)


def displaced_share(rows: Sequence[Row]) -> Cell:
    off = errors(rows)
    return clopper(sum(e > NEAR_M for e in off), len(off)) if off else []


def headline(rows: Sequence[Row], every: Sequence[Row]) -> list[Cell]:
    """Of one kind; what needs missions of both kinds, of every mission."""
    present = any(r["victims"] for r in rows)
    return [
        [],
        [],
        [len(rows)],
        [0],
        exposed_alarms(rows),
        shares(rows, lambda r: r["false_alarms"] > 0),
        shares(rows, lambda r: r["collisions"] > 0),
        [100 * mean([r["coverage_240s"] for r in rows]), len(rows)],
        found_share(rows),
        mean_time(rows),
        right_of_issues(every) if present else [],
        displaced_share(rows),
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


def censored(pairs: Sequence[tuple[float | None, float]]) -> Cell:
    """Of pairs of a time, None where it never came, and the end of the watch."""
    in_time = [(t, True) if t is not None and t <= end else (end, False) for t, end in pairs]
    return kaplan([t for t, _ in in_time], [came for _, came in in_time]) if pairs else []


def upstream_time(rows: Sequence[Row]) -> Cell:
    """Time to first detection as ADR-149 has it: of the whole flight."""
    return censored([(r["upstream"]["time"], r["flight_time_s"]) for r in rows if r["victims"]])


def victim_times(rows: Sequence[Row]) -> Cell:
    return censored([(v["time"] if v["found"] else None, r["search_time_s"]) for r in rows for v in r["victims"]])


def covering_times(rows: Sequence[Row]) -> Cell:
    return censored([(r["time_to_95_s"], r["search_time_s"]) for r in rows])


def settled(rows: Sequence[Row]) -> Cell:
    each = [v for r in rows for v in r["victims"]]
    return clopper(sum(v["settled"] is not None for v in each), len(each)) if each else []


def alarms_per_decoy_hour(rows: Sequence[Row]) -> Cell:
    """By the time from when an unlisted decoy was heard to its issue, or to the end of the search."""
    count, watched = 0, 0.0
    for r in rows:
        for d in exposed(r):
            count += d["issued"] is not None
            end = r["search_time_s"] if d["issued"] is None else d["issued"]
            watched += max(0.0, end - (d["issued"] if d["heard"] is None else d["heard"]))
    return poisson(count, watched / 3600) if watched > 0 else []


def right_of_issues(rows: Sequence[Row]) -> Cell:
    """PPV, at one mission without victims for each with: missions of either kind weigh as much together."""
    sides = [[r for r in rows if r["configuration"]["victim_absent"] is absent] for absent in (False, True)]
    if not all(sides) or not total(rows, "issues"):
        return []
    right, issues = (sum(total(side, name) / len(side) for side in sides) for name in ("detections", "issues"))
    return [100 * right / issues, End(math.nan), End(math.nan), total(rows, "issues")]


def mean_time(rows: Sequence[Row]) -> Cell:
    """Of victims until they were found, a miss as long as the longest search or 240 s; all searches are as long."""
    longest = min(240.0, horizon(rows))
    times = [v["time"] if v["found"] else longest for r in rows for v in r["victims"]]
    return [mean([min(t, longest) for t in times]), End(math.nan), End(math.nan), len(times)] if times else []


def came_to(rows: Sequence[Row]) -> list[Cell]:
    """What the reports came to."""
    absent = [r for r in rows if r["configuration"]["victim_absent"]]
    return [
        exposed_alarms(rows),
        alarms_per_decoy_hour(rows),
        some_share(absent, lambda r: r["false_alarms"] > 0),
        shares(rows, lambda r: bool(exposed(r))),
        found_share(rows, 240),
        victim_times(rows),
        settled(rows),
        displaced_share(rows),
        poisson(total(rows, "displaced") + total(rows, "false_alarms"), len(rows)),
        right_of_issues(rows),
        *(order(errors(rows, name), p) for name in ("error", "last_error") for p in (0.5, 0.95)),
    ]


def upstream_metrics(rows: Sequence[Row]) -> list[Cell]:
    """The ten metrics of ADR-149, by its own definitions."""
    sides = [[r for r in rows if r["configuration"]["victim_absent"] == absent] for absent in (False, True)]
    off = [e for r in rows for e in r["upstream"]["errors"]]
    gdop = [g for r in rows for g in r["upstream"]["gdop"] if g is not None]
    return [
        order(off, 0.5),
        order(off, 0.95),
        order(gdop, 0.5),
        [100 * mean([r["coverage_240s"] for r in rows]), len(rows)],
        covering_times(rows),
        upstream_time(rows),
        some_share(sides[0], lambda r: r["upstream"]["detected"]),
        some_share(sides[1], lambda r: r["upstream"]["confident"]),
        poisson(total(rows, "collisions_drone_drone"), len(rows)),
        [100 * mean([r["overlap_ratio"] for r in rows]), len(rows)],
    ]


def looks(rows: Sequence[Row]) -> list[Row]:
    """What was held of each victim at each whole minute of search."""
    return [fix for r in rows for v in r["victims"] for fix in v["fixes"] if fix["mark"] % 60 == 0]


def _ceps(seen: Sequence[Row]) -> list[Cell]:
    return [order([fix["error"] for fix in seen], p)[:3] for p in (0.5, 0.95)]


def look_errors(rows: Sequence[Row]) -> list[list[Cell]]:
    """Errors of all victims at each whole minute that their search lasted; one without a report is infinitely off."""
    table = []
    for mark in range(60, int(horizon(rows)) + 1, 60):
        seen = [v for r in rows if r["search_time_s"] >= mark for v in r["victims"]]
        held = [[fix["error"] for fix in v["fixes"] if fix["mark"] == mark] for v in seen]
        off = [errors[0] if errors else math.inf for errors in held]
        ceps = [order(off, p)[0] or 0.0 for p in (0.5, 0.95)]
        cells: list[Cell] = [[cep, End(math.nan), End(math.nan)] if math.isfinite(cep) else [] for cep in ceps]
        table.append([[], [mark], [len(off)], [off.count(math.inf)], *cells])
    return table


def look_bands(rows: Sequence[Row]) -> list[list[Cell]]:
    """Errors by band of constellation GDOP."""
    seen = looks(rows)
    own = [[fix for fix in seen if fix["gdop"] is not None and a <= fix["gdop"] < b] for a, b in GDOP]
    own.append([fix for fix in seen if fix["gdop"] is None])
    names: list[Cell] = [[1.2], [1.2, 2], [2, 4], [4], []]
    return [[[], name, [len(some)], *_ceps(some)] for name, some in zip(names, own, strict=True)]


def look_correlations(rows: Sequence[Row]) -> list[list[Cell]]:
    """Rank correlation of each dilution with the error, over all times and then at each; of three pairs or more."""
    seen, table = looks(rows), []
    for mark in (None, *sorted({fix["mark"] for fix in seen})):
        for name in ("path_gdop", "gdop", "information_dop"):
            own = [fix for fix in seen if mark in (None, fix["mark"]) and fix[name] is not None]
            pairs = [[fix[name] for fix in own], [fix["error"] for fix in own]]
            varies = len(own) >= 3 and all(len(set(side)) > 1 for side in pairs)
            rho: Cell = [float(stats.spearmanr(*pairs).statistic), End(math.nan), End(math.nan)] if varies else []
            table.append([[], [], [] if mark is None else [mark], [len(own)], rho])
    return table


def look_views(rows: Sequence[Row]) -> list[list[Cell]]:
    """Errors by number of views, beside what one over its root makes of those of the fewest from two on."""
    seen, table = looks(rows), []
    for mark in sorted({fix["mark"] for fix in seen}):
        start: tuple[int, float] | None = None
        for views in sorted({min(fix["views"], 4) for fix in seen if fix["mark"] == mark}):
            own = [fix for fix in seen if (fix["mark"], min(fix["views"], 4)) == (mark, views)]
            ceps = _ceps(own)
            if start is None and 2 <= views < 4 and len(own) >= 24:
                start = views, ceps[0][0] or 0.0
            root: Cell = [] if start is None else [start[1] * math.sqrt(start[0] / views), *[End(math.nan)] * 2]
            table.append([[], [mark], [views], [len(own)], *ceps, root])
    return table


def times(rows: Sequence[Row]) -> list[Cell]:
    first = censored([(r["time_to_first_detection_s"], r["search_time_s"]) for r in rows if r["victims"]])
    return [upstream_time(rows), first, victim_times(rows), covering_times(rows)]


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
        _over_layouts(rows, "coverage_240s", 100.0),
        _over_layouts(rows, "episode_return", 1.0),
    ]


def _over_layouts(rows: Sequence[Row], metric: str, scale: float) -> Cell:
    """The IQM and n; its ends are those of layouts drawn again."""
    return [scale * iqm([r[metric] for r in rows]), End(math.nan), End(math.nan), len(rows)]


def these_seeds(rows: Sequence[Row]) -> list[Cell]:
    return [_over_layouts(rows, name, scale) for name, scale in SCORED]


def one_seed(rows: Sequence[Row]) -> list[Cell]:
    found = found_share(rows)
    return [
        [rows[0]["seed"]],
        [100 * mean([r["false_alarms"] > 0 for r in rows])],
        [100 * mean([r["collisions"] > 0 for r in rows])],
        [total(rows, "near_misses") / len(rows)],
        found[2:],
        order(errors(rows), 0.5)[:3],
        [100 * mean([r["coverage_240s"] for r in rows])],
        [mean([r["episode_return"] for r in rows]), End(math.nan), End(math.nan)],
    ]


def bands(rows: Sequence[Row]) -> list[Cell]:
    issued = [v for r in rows for v in r["victims"] if v["error"] is not None]
    groups = [[v["error"] for v in issued if v["gdop"] is not None and a <= v["gdop"] < b] for a, b in GDOP]
    groups.append([v["error"] for v in issued if v["gdop"] is None])
    return [[*order(g, 0.5)[:3], *order(g, 0.95)[:3], len(g)] if g else [] for g in groups]


def envelope(rows: Sequence[Row]) -> list[Cell]:
    def plain(cell: Cell) -> Cell:
        return [*cell[2:], cell[1]] if cell else []

    detected = shares(rows, lambda r: r["detections"] > 0) if any(r["victims"] for r in rows) else []
    alarmed = shares(rows, lambda r: r["false_alarms"] > 0)
    return [*([x] for x in noise(rows[0])), [], [], plain(detected), plain(alarmed), order(errors(rows), 0.5)]


def profile(rows: Sequence[Row]) -> list[Cell]:
    off = [math.inf if v["error"] is None else v["error"] for r in rows for v in r["victims"]]
    return [[len(off)], *(clopper(sum(e < tau for e in off), len(off))[2:] for tau in (1, 2, 5, 10))]


def pools(rows: Sequence[Row]) -> list[list[Row]]:
    """Conditions with their noise levels together."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for group in conditions(rows):
        c = condition_of(group[0])
        found.setdefault((*c[:4], c[6]), []).extend(group)
    return list(found.values())


def comparisons(groups: Sequence[Sequence[Row]]) -> list[list[Cell]]:
    """Metric, first, second, difference, p after Holm, P(first better), detectable, note."""
    pairs = [(a, b) for a, b in combinations(range(len(groups)), 2) if _rest(groups[a][0]) == _rest(groups[b][0])]
    made = [_compare(name, scale, a, b, groups) for name, scale in (SCORED[1], SCORED[0]) for a, b in pairs]
    adjusted = holm([p for _, p in made])
    return [[*cells[:4], [p], *cells[4:]] for (cells, _), p in zip(made, adjusted, strict=True)]


def holm(p_values: Sequence[float]) -> list[float]:
    adjusted, worst = [0.0] * len(p_values), 0.0
    for place, k in enumerate(sorted(range(len(p_values)), key=lambda k: p_values[k])):
        worst = max(worst, min(1.0, p_values[k] * (len(p_values) - place)))
        adjusted[k] = worst
    return adjusted


def _rest(r: Row) -> tuple[Any, ...]:
    c = condition_of(r)
    return c[:2] + c[3:4] + c[6:]


def slot(r: Row) -> tuple[Any, ...]:
    """What pairs two patterns' missions."""
    return r["seed"], r["episode"], noise(r)


def _compare(metric: str, scale: float, a: int, b: int, groups: Sequence[Sequence[Row]]) -> tuple[list[Cell], float]:
    first, second = ({slot(r): scale * r[metric] for r in groups[side]} for side in (a, b))
    keys = [k for k in first if k in second]
    seeds = sorted({k[0] for k in keys})

    def gap(keys: Sequence[tuple[Any, ...]]) -> float:
        return iqm([first[k] for k in keys]) - iqm([second[k] for k in keys])

    def better(keys: Sequence[tuple[Any, ...]]) -> float:
        return 100 * mean([(first[k] > second[k]) + 0.5 * (first[k] == second[k]) for k in keys])

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
    lost = [
        x
        for side, own in ((a, first), (b, second))
        if len(own) > len(keys)
        for x in (side + 1, (len(own) - len(keys)) // len(seeds), len(own) // len(seeds))
    ]
    cells: list[Cell] = [
        name,
        [a + 1],
        [b + 1],
        [*jackknife([jack[0]], gap(keys)), len(keys)],
        chance,
        [],
        [len(seeds), *lost],
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
    last = [t for r in rows for t in r["tracks"] if t["last"]]
    words = [(t["confidence"], t["error"] is not None and t["error"] <= NEAR_M) for t in last]
    table: list[list[Cell]] = []
    gap = 0.0
    for k in range(10):
        mine = [(p, right) for p, right in words if min(int(p * 10), 9) == k]
        if mine:
            confidence, hits = mean([p for p, _ in mine]), sum(right for _, right in mine)
            gap += len(mine) / len(words) * abs(confidence - hits / len(mine))
            table.append([[k / 10, (k + 1) / 10], [len(mine)], [100 * confidence], clopper(hits, len(mine))[2:]])
    return table, [len(words), mean([(p - right) ** 2 for p, right in words]), gap]


GOALS: dict[str, tuple[bool, float]] = {
    "coverage at 240 s": (True, 100.0),
    "time to 95 % coverage": (False, 1.0),
    "victims found": (True, 100.0),
    "time to first detection": (False, 1.0),
    "localisation error": (False, 1.0),
    "decoy alarm, victims absent": (False, 100.0),
    "missions with a collision": (False, 100.0),
    "return (IQM)": (True, 1.0),
    "overlap": (False, 100.0),
}
"""Whether more is better, and what a value is multiplied with to be shown."""


def horizon(rows: Sequence[Row]) -> float:
    return float(max(r["search_time_s"] for r in rows))


def goal_value(goal: str, r: Row, longest: float) -> float:
    """One mission's value; misses as the worst."""

    def time(name: str) -> float:
        return float(r[name]) if r[name] is not None and r[name] <= r["search_time_s"] else longest

    if goal.startswith("time"):
        return time("time_to_95_s" if "95" in goal else "time_to_first_detection_s")
    if goal == "victims found":
        return mean([v["found"] for v in r["victims"]])
    if goal == "localisation error":
        return mean([capped(v["error"]) for v in r["victims"]])
    if goal.startswith(("missions", "decoy alarm")):
        return float(r["false_alarms" if "alarm" in goal else "collisions"] > 0)
    names = {"coverage at 240 s": "coverage_240s", "return (IQM)": "episode_return", "overlap": "overlap_ratio"}
    return float(r[names[goal]])


Values = dict[tuple[Any, ...], float]


def goal_tables(goal: str, rows: Sequence[Row]) -> dict[str, Values]:
    """Each pattern's values on the missions that all patterns flew, of the side on which the goal is judged."""
    absent = "victims absent" in goal
    mine = [r for r in rows if r["configuration"]["victim_absent"] == absent]
    scale, longest = GOALS[goal][1], horizon(rows)
    found: dict[str, Values] = {}
    for r in mine:
        name = r["configuration"]["pattern"].replace("_", " ")
        found.setdefault(name, {})[slot(r)] = scale * goal_value(goal, r, longest)
    common = set.intersection(*(set(own) for own in found.values()))
    return {name: {k: own[k] for k in sorted(common)} for name, own in sorted(found.items())}


def both_ways(of: Callable[[Sequence[tuple[Any, ...]]], float], keys: Sequence[tuple[Any, ...]]) -> list[list[float]]:
    """The statistic without each seed, and without each episode, where there are two."""
    found = []
    for place in (0, 1):
        units = sorted({k[place] for k in keys})
        if len(units) > 1:
            found.append([of([k for k in keys if k[place] != unit]) for unit in units])
    return found


def t_ends(value: float, samples: Sequence[Sequence[float]]) -> Cell:
    """The value with its ends; alone where nothing varied."""
    if not samples or all(math.isclose(x, value, rel_tol=1e-12, abs_tol=1e-12) for s in samples for x in s):
        return [value]
    return jackknife(samples, value)


def t_p(value: float, samples: Sequence[Sequence[float]]) -> float | None:
    ends = t_ends(value, samples)
    if len(ends) == 1 or ends[2] is None:
        return None
    variances = [(len(s) - 1) / len(s) * sum((x - mean(s)) ** 2 for x in s) for s in samples]
    freedom = sum(variances) ** 2 / sum(v**2 / (len(s) - 1) for v, s in zip(variances, samples, strict=True))
    return float(2 * stats.t.sf(abs(value) / math.sqrt(sum(variances)), freedom))


def goal_statistic(goal: str, own: Values, keys: Sequence[tuple[Any, ...]]) -> float:
    return (iqm if "IQM" in goal else mean)([own[k] for k in keys])


def leaders(rows: Sequence[Row]) -> tuple[list[tuple[list[str], list[Cell]]], int]:
    """For each goal the names (best, runner-up) and the numbers of its row; and how many pairs were compared."""
    tested: list[tuple[str, str, str, float, float | None]] = []
    for goal, (higher, _) in GOALS.items():
        tables = goal_tables(goal, rows)
        for a, b in combinations(tables, 2):
            diff = _goal_gap(goal, tables[a], tables[b], higher)
            keys = list(tables[a])
            tested.append((goal, a, b, diff(keys), t_p(diff(keys), both_ways(diff, keys))))
    known = [k for k, item in enumerate(tested) if item[4] is not None]
    corrected = dict(zip(known, holm([tested[k][4] or 0.0 for k in known]), strict=True))
    p_of = {tested[k][:3]: p for k, p in corrected.items()}
    return [_leader(goal, rows, p_of) for goal in GOALS], len(tested)


def _goal_gap(goal: str, one: Values, two: Values, higher: bool) -> Callable[[Sequence[tuple[Any, ...]]], float]:
    sign = 1.0 if higher else -1.0
    return lambda keys: sign * (goal_statistic(goal, one, keys) - goal_statistic(goal, two, keys))


def _leader(goal: str, rows: Sequence[Row], p_of: dict[tuple[str, str, str], float]) -> tuple[list[str], list[Cell]]:
    higher = GOALS[goal][0]
    tables = goal_tables(goal, rows)
    values = {name: goal_statistic(goal, own, list(own)) for name, own in tables.items()}
    ranked = sorted(values, key=lambda name: -values[name] if higher else values[name])
    best = [name for name in ranked if math.isclose(values[name], values[ranked[0]], rel_tol=1e-12, abs_tol=1e-12)]
    title: Cell = [240] if "240" in goal else [95] if "95" in goal else []
    behind = [name for name in ranked if name not in best]
    top = pattern_value(goal, tables[best[0]])
    if not behind:
        names = [best[0] if len(best) == 1 else "all alike", "none"]
        return names, [title, [], [], top, [], [], [], [], []]
    other = behind[0]
    diff = _goal_gap(goal, tables[best[0]], tables[other], higher)
    keys = list(tables[other])
    gap = t_ends(diff(keys), both_ways(diff, keys))
    a, b = sorted((best[0], other))
    p: Cell = [p_of[goal, a, b]] if (goal, a, b) in p_of else []
    told = sum(p_of.get((goal, *sorted((best[0], name))), 1.0) < 0.05 for name in behind)  # type: ignore[call-overload]
    return [best[0], other], [title, [], [], top, [], [values[other]], gap, p, [told, len(behind)]]


def pattern_value(goal: str, own: Values) -> Cell:
    """A pattern's value with its interval; a share stays within 0 and 100 %, and nothing but a return is below 0."""
    value = goal_statistic(goal, own, list(own))
    ends = t_ends(value, both_ways(lambda keys: goal_statistic(goal, own, keys), list(own)))
    if len(ends) == 1 or "return" in goal:
        return ends
    most = 100.0 if GOALS[goal][1] == 100.0 else math.inf
    return [ends[0], max(ends[1] or 0.0, 0.0), min(ends[2] or 0.0, most)]


def seed_rates(rows: Sequence[Row]) -> list[list[Cell]]:
    """Side by side of victims, seed by seed."""
    found: list[list[Cell]] = []
    for absent, seed in sorted({(r["configuration"]["victim_absent"], r["seed"]) for r in rows}):
        own = [r for r in rows if (r["configuration"]["victim_absent"], r["seed"]) == (absent, seed)]
        alarmed, per_mission, _, collided, per_hour = alarms(own)
        found.append([[], [], [seed], [len(own)], [0], alarmed, per_mission, collided, per_hour])
    return found


def levels(rows: Sequence[Row]) -> tuple[list[list[Cell]], Cell]:
    """The levels' rows, and the numbers of the sentence on where detections fall below half of the missions."""
    table: list[list[Cell]] = []
    passed: list[tuple[tuple[float, float], float]] = []
    for level in sorted({noise(r) for r in rows}, key=lambda level: (level[0], -level[1])):
        own = [r for r in rows if noise(r) == level]
        sides = [[r for r in own if r["configuration"]["victim_absent"] == absent] for absent in (False, True)]
        detected = shares(sides[0], lambda r: r["detections"] > 0)
        passed.append((level, (detected[2] or 0.0) / 100))
        alarmed = [shares(side, lambda r: r["false_alarms"] > 0)[2:] if side else [] for side in sides]
        cells: list[Cell] = [[], [level[0]], [level[1]], [len(own)], [0], [], detected[2:], found_share(sides[0])[2:]]
        table.append([*cells, *alarmed])
    at = next((k for k, (_, share) in enumerate(passed) if share < 0.5), None)
    if at is None:
        return table, []
    return table, [*passed[at][0], *(passed[at - 1][0] if at else ())]


def claims(rows: Sequence[Row]) -> list[tuple[Cell, str]]:
    """What the measured column shows and the verdict, claim by claim; no claim is about what two drones cover."""
    issued = [v for r in rows for v in r["victims"] if v["error"] is not None]

    def judged(errors: Sequence[float], limit: float) -> tuple[Cell, str]:
        ends = order(errors, 0.5)
        if not ends:
            return [], "NOT MEASURED HERE"
        low, high = ends[1], ends[2]
        held, failed = high is not None and high <= limit, low is not None and low > limit
        return ends, "HOLDS" if held else "DOES NOT HOLD" if failed else "CANNOT BE SAID"

    unlike: tuple[Cell, str] = ([4, 160, 0], "NOT MEASURED HERE")
    return [
        judged([v["error"] for v in issued], 1.732),
        judged([v["last_error"] for v in issued], 1.732),
        judged([v["error"] for v in issued if v["views"] >= 3], 2.0),
        judged([v["error"] for v in issued], 5.0),
        *[unlike] * 4,
        *[([], "NOT MEASURED HERE")] * 2,
    ]


def stage_changes(rows: Sequence[Row], foretold: Sequence[Row]) -> dict[str, dict[str, tuple[float, float, Cell]]]:
    """For each shared metric and pattern: Stage 1's mean, Stage 2's, and the change with its interval over layouts."""
    known = {(f["policy"], f["seed"], f["episode"]): f for f in foretold}
    present = [r for r in rows if not r["configuration"]["victim_absent"]]
    longest = horizon(present)
    found: dict[str, dict[str, tuple[float, float, Cell]]] = {}
    for pattern in sorted({r["configuration"]["pattern"] for r in present}):
        own = [r for r in present if r["configuration"]["pattern"] == pattern]
        pairs = [(r, known[pattern, r["seed"], r["episode"]]) for r in own]
        for metric, (scale, flown, told) in STAGES.items():
            both = {slot(r): (scale * told(f, r, longest), scale * flown(r, longest)) for r, f in pairs}

            def change(keys: Sequence[tuple[Any, ...]], both: dict[Any, tuple[float, float]] = both) -> float:
                return mean([both[k][1] - both[k][0] for k in keys])

            keys = list(both)
            ends: Cell = [change(keys), End(math.nan), End(math.nan)]
            means = (mean([both[k][0] for k in keys]), mean([both[k][1] for k in keys]))
            found.setdefault(metric, {})[pattern.replace("_", " ")] = (*means, ends)
    return found


def _first_time(time: float | None, longest: float) -> float:
    return longest if time is None else min(time, longest)


STAGES: dict[str, tuple[float, Callable[[Row, float], float], Callable[[Row, Row, float], float]]] = {
    "return": (1.0, lambda r, _: r["episode_return"], lambda f, r, _: f["return"]),
    "coverage at 240 s": (100.0, lambda r, _: r["coverage_240s"], lambda f, r, _: f["coverage_240s"]),
    "victims found": (
        100.0,
        lambda r, _: mean([v["found"] for v in r["victims"]]),
        lambda f, r, _: f["detections"] / len(r["victims"]),
    ),
    "time to first detection": (
        1.0,
        lambda r, longest: _first_time(r["time_to_first_detection_s"], longest),
        lambda f, r, longest: _first_time(f["time_to_first_detection_s"], longest),
    ),
    "error of the first issued": (
        1.0,
        lambda r, _: capped(r["localization_error_m"]),
        lambda f, r, _: capped(f["localization_error_m"]),
    ),
    "decoy alarms per mission": (1.0, lambda r, _: float(r["false_alarms"]), lambda f, r, _: float(f["false_alarms"])),
}


def stage_gap(
    rows: Sequence[Row], foretold: Sequence[Row], shown: Mapping[str, Mapping[str, tuple[float, float] | None]]
) -> list[tuple[str, str, list[Cell], tuple[int, int]]]:
    """Metric, the pattern that moved most, its row's numbers, and how often Stage 1 is too kind and too harsh.

    ``shown``: of each metric and pattern the interval of its change, None where an end is open.
    """
    present = [r["configuration"]["pattern"].replace("_", " ") for r in rows if r["victims"]]
    pairs, found = {name: present.count(name) for name in present}, []
    for metric, own in stage_changes(rows, foretold).items():
        most = max(own, key=lambda name: round(abs(own[name][2][0] or 0.0), 7))
        tau = stats.kendalltau(*([round(v[side], 7) for v in own.values()] for side in (0, 1))).statistic
        sure = {name: ends for name, ends in shown[metric].items() if ends is not None}
        away = [own[name][2][0] or 0.0 for name, (low, high) in sure.items() if not low <= 0.0 <= high]
        better = 1.0 if metric in ("return", "coverage at 240 s", "victims found") else -1.0
        title: Cell = [240] if "240" in metric else []
        cells: list[Cell] = [
            title,
            [],
            [] if math.isnan(tau) else [float(tau), End(math.nan), End(math.nan)],
            [sum(pairs[name] * (v[2][0] or 0.0) for name, v in own.items()) / len(present), *[End(math.nan)] * 2],
            [len(away), len(sure)] if sure else [],
            [],
            [own[most][0]],
            [own[most][1]],
            own[most][2],
        ]
        found.append((metric, most, cells, (sum(better * d < 0 for d in away), sum(better * d > 0 for d in away))))
    return found
