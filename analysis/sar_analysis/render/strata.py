"""Tables that look inside the figures: by seed, geometry, noise, error, rival, oracle and confidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sar_analysis.metrics.catalogue import NOISE_ENVELOPE, labels, metric
from sar_analysis.render.wording import NONE, TextTable, head_of, make, number, remarks, spread

MOST_COMPARISONS = 40
PROFILE_TAUS_M = (1.0, 2.0, 5.0, 10.0)


def seeds(result: Mapping[str, Any]) -> TextTable:
    tiers = {c["id"]: c["condition"]["tier"] for c in result["conditions"]}
    keys = list(dict.fromkeys(key for row in result["seeds"] for key in row["metrics"]))
    rows = []
    for row in result["seeds"]:
        m = row["metrics"]
        cells = (NONE if m.get(key) is None else number(key, m[key]) for key in keys)
        rows.append(
            (
                f"{row['condition']} {tiers[row['condition']]}",
                str(row["missions"]),
                str(row["invalid"]),
                str(row["seed"]),
                *cells,
            )
        )
    caption = "Shares of the seed's missions, medians of its found victims, means of coverage and return; no intervals."
    return make(result, "seeds", "Each seed", ("id", "missions", "invalid", "seed", *labels(keys)), rows, caption)


def patterns(result: Mapping[str, Any]) -> TextTable:
    """Every pattern's value on every goal of the page, noise levels pooled; nothing where one pattern was flown."""
    rows: list[tuple[str, ...]] = []
    columns: tuple[str, ...] = ()
    for family in result["patterns"]:
        goals = [goal for goal in family["goals"] if goal["values"]]
        if len(family["patterns"]) < 2 or not goals:
            continue
        columns = ("where", "pattern", *(goal["words"] for goal in family["goals"]))
        for name in family["patterns"]:
            own = [next((v for v in g["values"] if v["pattern"] == name), None) for g in family["goals"]]
            cells = (_goal(g["metric"], v) for g, v in zip(family["goals"], own, strict=True))
            rows.append((family["label"], name, *cells))
    caption = (
        "The values behind the page's choice of the best: means over missions unless it says IQM, misses as the worst. "
        "Jackknife over seeds and layouts, t, 95 %; no interval where nothing varied."
    )
    return make(result, "patterns", "Pattern by pattern", columns, rows, caption)


def _goal(key: str, item: Mapping[str, Any] | None) -> str:
    if item is None:
        return NONE
    return number(key, item["value"]) if item["low"] is None else spread(key, item)


def bands(result: Mapping[str, Any]) -> TextTable:
    with_victims = [c for c in result["conditions"] if c["victims"]]
    names = [band["name"] for band in with_victims[0]["gdop_bands"]] if with_victims else []
    rows = [(*head_of(c), *(_band(band) for band in c["gdop_bands"])) for c in with_victims]
    columns = ("id", "missions", "invalid", *(f"GDOP {name}" for name in names))
    caption = (
        "CEP50 / CEP95 of the first confident report by its GDOP; n found victims. Order statistics, no intervals."
    )
    return make(result, "gdop", "Localisation error by geometry", columns, rows, caption)


def _band(band: Mapping[str, Any]) -> str:
    if not band["detections"]:
        return NONE
    return f"{band['cep50_m']:.2f} / {band['cep95_m']:.2f} m, n {band['detections']}"


def envelope(result: Mapping[str, Any]) -> TextTable:
    """Only where more than one noise level was flown."""
    levels = {(row["sigma"], row["kappa"]) for row in result["noise_envelope"]}
    found = result["noise_envelope"] if len(levels) > 1 else []
    rows = []
    for row in found:
        cells = (NONE if row[key] is None else f"{spread(key, row[key])}, n {row[key]['n']}" for key in NOISE_ENVELOPE)
        where = f"{row['world']} · {row['pattern'].replace('_', ' ')}"
        noise = (f"{row['sigma']:g}", f"{row['kappa']:g}" if not isinstance(row["kappa"], str) else "∞")
        presence = "absent" if row["victim_absent"] else "present"
        head = (f"{row['condition']} {row['tier']}", str(row["missions"]), str(row["invalid"]))
        rows.append((*head, *noise, where, presence, *cells))
    columns = ("id", "missions", "invalid", "σ", "κ", "where", "victims", *labels(NOISE_ENVELOPE))
    caption = "Shares: two-sided Clopper-Pearson. CEP50: order statistics. No resampling."
    return make(result, "noise", "Noise envelope", columns, rows, caption)


def profiles(result: Mapping[str, Any]) -> TextTable:
    rows = []
    for c in result["conditions"]:
        p = c["profile"]
        if p["victims"]:
            places = [p["tau_m"].index(tau) for tau in PROFILE_TAUS_M]
            ends = [{"value": p["share"][k], "low": p["low"][k], "high": p["high"][k]} for k in places]
            rows.append((*head_of(c), str(p["victims"]), *(spread("victims_found", end) for end in ends)))
    columns = ("id", "missions", "invalid", "victims", *(f"below {tau:g} m" for tau in PROFILE_TAUS_M))
    caption = (
        "Share of all victims localised better than that; one never found counts as worse. Clopper-Pearson at each."
    )
    return make(result, "profile", "Performance profile", columns, rows, caption)


def comparisons(result: Mapping[str, Any]) -> TextTable:
    rows = []
    for row in result["comparisons"][:MOST_COMPARISONS]:
        head = (metric(row["metric"]).heading, row["first"], row["second"])
        if "refused" in row:
            rows.append((*head, f"refused: {row['refused'].partition(': ')[2]}", *[NONE] * 4))
            continue
        gap = spread(row["metric"], {**row, "value": row["difference"]})
        found = NONE if row["detectable"] is None else number(row["metric"], row["detectable"])
        holm = NONE if row["p_holm"] is None else f"{row['p_holm']:.3f}"
        rows.append(
            (*head, f"{gap}, n {row['n']}", holm, spread("improvement", row["improvement"]), found, remarks(row))
        )
    columns = ("metric", "first", "second", "first minus second", "p (Holm)", "P(first better)", "detectable", "note")
    more = len(result["comparisons"]) - MOST_COMPARISONS
    told = f" {more} more are in results.json." if more > 0 else ""
    tests = "; ".join(dict.fromkeys(row["test"] for row in result["comparisons"] if "test" in row))
    caption = (
        "Paired by seed and episode: difference of IQMs, seeds jackknife, t, no resampling; p of each seed's "
        f"difference of IQMs ({tests or 'none could be tested'}); detectable: what a paired t-test over seeds at 5 %, "
        f"uncorrected, finds with a power of 80 %. {result['comparisons_note']}{told}"
    )
    return make(result, "comparisons", "Pattern against pattern", columns, rows, caption)


def oracle(result: Mapping[str, Any]) -> TextTable:
    """As words; no table where no reference was given."""
    part = result["optimality"]
    if part is None:
        return make(result, "optimality", "Against the oracle", (), (), "")
    rows, said = [], []
    for c in part["conditions"]:
        head = (f"{c['id']} {c['tier']}", str(c["missions"]), str(c["invalid"]))
        if "refused" in c:
            rows.append((*head, "refused", "refused"))
            said.append(f"{c['id']} refused: {c['refused']}.")
            continue
        rows.append((*head, f"{c['value']:.4f} [{c['low']:.4f}, {c['high']:.4f}]", f"{c['beyond']} of {c['n']}"))
        said += [f"{note}." for note in c["notes"]]
    reference = part["reference"]
    caption = (
        f"Mean of 1 - return / oracle's return, not below 0; reference {reference['name']}, flown by sar_eval "
        f"{reference['version']}. Student's t over seeds, these episodes, no resampling. The oracle knows the victims "
        "but is no bound: the last column counts missions that returned more. "
    )
    columns = ("id", "missions", "invalid", "optimality gap", "beyond the oracle")
    return make(result, "optimality", "Against the oracle", columns, rows, caption + " ".join(dict.fromkeys(said)))


def reliability(result: Mapping[str, Any]) -> TextTable:
    r = result["reliability"]
    rows = [
        (
            f"{b['low']:.1f} to {b['high']:.1f}",
            str(b["n"]),
            f"{100 * b['mean_confidence']:.1f} %",
            spread("victims_found", {"value": b["right"], "low": b["share_low"], "high": b["share_high"]}),
        )
        for b in r["bins"]
    ]
    scored = "" if r["brier"] is None else f" Brier score {r['brier']:.4f}, expected calibration error {r['ece']:.4f}."
    caption = f"{r['which'][:1].upper()}{r['which'][1:]}, n {r['reports']}; Clopper-Pearson.{scored}"
    return make(
        result, "reliability", "Is the confidence right?", ("confidence", "reports", "mean", "right"), rows, caption
    )
