"""Tables that look inside the figures: by seed, geometry, noise, error, rival, oracle and confidence."""

from __future__ import annotations

from sar_analysis.metrics.catalogue import NOISE_ENVELOPE, labels, metric
from sar_analysis.render.method import BESIDE, how
from sar_analysis.render.wording import (
    NONE,
    OPEN,
    Ends,
    TextTable,
    calibration_words,
    head_of,
    held,
    make,
    number,
    remarks,
    spread,
)
from sar_analysis.results.model import OracleGap, RefusedGap, ResultBody
from sar_analysis.results.rows import Comparison, Figure, GdopBand, RefusedComparison

MOST_COMPARISONS = 40
PROFILE_TAUS_M = (1.0, 2.0, 5.0, 10.0)


def seeds(result: ResultBody) -> TextTable:
    tiers = {c.id: c.condition.tier for c in result.conditions}
    keys = list(dict.fromkeys(key for row in result.seeds for key in row.metrics))
    rows = []
    for row in result.seeds:
        values = ((key, row.metrics.get(key)) for key in keys)
        cells = (NONE if found is None else spread(key, found) for key, found in values)
        head = (f"{row.condition} {tiers[row.condition]}", str(row.missions), str(row.invalid), str(row.seed))
        rows.append((*head, *cells))
    told = how(found for row in result.seeds for found in row.metrics.values())
    caption = f"Shares of the seed's missions, medians of its issued victims, means of coverage and return. {told}"
    return make(result, "seeds", "Each seed", ("id", "missions", "invalid", "seed", *labels(keys)), rows, caption)


def patterns(result: ResultBody) -> TextTable:
    """Every pattern's value on every goal of the page, noise levels pooled; nothing where one pattern was flown."""
    rows: list[tuple[str, ...]] = []
    columns: tuple[str, ...] = ()
    for family in result.patterns:
        if len(family.patterns) < 2 or not any(goal.values for goal in family.goals):
            continue
        columns = ("where", "pattern", *(goal.words for goal in family.goals))
        for name in family.patterns:
            own = (next((v for v in g.values if v.pattern == name), None) for g in family.goals)
            cells = (NONE if v is None else held(g.metric, v) for g, v in zip(family.goals, own, strict=True))
            rows.append((family.label, name, *cells))
    caption = (
        "The values behind the page's choice of the best: means over missions unless it says IQM, misses as the worst. "
        "Jackknife over seeds and layouts, t, 95 %; a value that did not vary by what layouts not seen may do."
    )
    return make(result, "patterns", "Pattern by pattern", columns, rows, caption)


def bands(result: ResultBody) -> TextTable:
    with_victims = [c for c in result.conditions if c.victims]
    names = [band.name for band in with_victims[0].gdop_bands] if with_victims else []
    rows = [(*head_of(c), *(_band(band) for band in c.gdop_bands)) for c in with_victims]
    columns = ("id", "missions", "invalid", *(f"GDOP {name}" for name in names))
    ceps = [cep for c in with_victims for band in c.gdop_bands for cep in (band.cep50_m, band.cep95_m)]
    caption = f"CEP50 / CEP95 at issue by the constellation's GDOP there, m; n issued victims. {how(ceps)}"
    return make(result, "gdop", "Localisation error by geometry", columns, rows, caption)


def _band(band: GdopBand) -> str:
    if band.cep50_m is None or band.cep95_m is None:
        return NONE
    return f"{spread('cep50_m', band.cep50_m)} / {spread('cep95_m', band.cep95_m)}, n {band.detections}"


def envelope(result: ResultBody) -> TextTable:
    """Only where more than one noise level was flown."""
    levels = {(row.sigma, row.kappa) for row in result.noise_envelope}
    found = result.noise_envelope if len(levels) > 1 else []
    rows = []
    for row in found:
        cells = (_figure(key, row.figure(key)) for key in NOISE_ENVELOPE)
        where = f"{row.world} · {row.pattern.replace('_', ' ')}"
        noise = (f"{row.sigma:g}", "∞" if isinstance(row.kappa, str) else f"{row.kappa:g}")
        presence = "absent" if row.victim_absent else "present"
        head = (f"{row.condition} {row.tier}", str(row.missions), str(row.invalid))
        rows.append((*head, *noise, where, presence, *cells))
    columns = ("id", "missions", "invalid", "σ", "κ", "where", "victims", *labels(NOISE_ENVELOPE))
    caption = f"{how(row.figure(key) for row in found for key in NOISE_ENVELOPE)} {BESIDE}"
    return make(result, "noise", "Noise envelope", columns, rows, caption)


def _figure(key: str, found: Figure | None) -> str:
    return NONE if found is None else f"{spread(key, found)}, n {found.n}"


def profiles(result: ResultBody) -> TextTable:
    rows = []
    for c in result.conditions:
        p = c.profile
        if p.victims:
            places = (p.tau_m.index(tau) for tau in PROFILE_TAUS_M)
            cells = (spread("victims_found", Ends(p.share[k], p.low[k], p.high[k])) for k in places)
            rows.append((*head_of(c), str(p.victims), *cells))
    columns = ("id", "missions", "invalid", "victims", *(f"below {tau:g} m" for tau in PROFILE_TAUS_M))
    told = how(c.profile for c in result.conditions if c.profile.victims)
    caption = f"Share of all victims localised better than that; one never issued counts as worse. {told}"
    return make(result, "profile", "Performance profile", columns, rows, caption)


def comparisons(result: ResultBody) -> TextTable:
    rows = []
    for row in result.comparisons[:MOST_COMPARISONS]:
        head = (metric(row.metric).heading, row.first, row.second)
        if isinstance(row, RefusedComparison):
            rows.append((*head, f"refused: {row.refused.partition(': ')[2]}", *[NONE] * 4))
            continue
        gap = spread(row.metric, Ends(row.difference, row.low, row.high))
        better = spread("improvement", row.improvement)
        found = NONE if row.detectable is None else number(row.metric, row.detectable)
        holm = NONE if row.p_holm is None else f"{row.p_holm:.3f}"
        rows.append((*head, f"{gap}, n {row.n}", holm, better, found, remarks(row)))
    columns = ("metric", "first", "second", "first minus second", "p (Holm)", "P(first better)", "detectable", "note")
    more = len(result.comparisons) - MOST_COMPARISONS
    told = f" {more} more are in results.json." if more > 0 else ""
    tests = "; ".join(dict.fromkeys(row.test for row in result.comparisons if isinstance(row, Comparison)))
    caption = (
        f"Paired by seed and episode: difference of IQMs; {how(result.comparisons)} P of each seed's "
        f"difference of IQMs ({tests or 'none could be tested'}); detectable: what a paired t-test over seeds at 5 %, "
        f"uncorrected, finds with a power of 80 %. {result.comparisons_note}{told}"
    )
    return make(result, "comparisons", "Pattern against pattern", columns, rows, caption)


def oracle(result: ResultBody) -> TextTable:
    """As words; no table where no reference was given."""
    part = result.optimality
    if part is None:
        return make(result, "optimality", "Against the oracle", (), (), "")
    rows, said = [], []
    for c in part.conditions:
        head = (f"{c.id} {c.tier}", str(c.missions), str(c.invalid))
        if isinstance(c, RefusedGap):
            rows.append((*head, "refused", "refused"))
            said.append(f"{c.id} refused: {c.refused}.")
            continue
        rows.append((*head, _gap(c), f"{c.beyond} of {c.n}"))
        said += [f"{note}." for note in c.notes]
    caption = (
        f"Mean of 1 - return / oracle's return, not below 0; reference {part.reference.name}, flown by sar_eval "
        f"{part.reference.version}. {how(part.conditions)} The oracle knows the "
        "victims but is no bound: the last column counts missions that returned more. "
    )
    columns = ("id", "missions", "invalid", "optimality gap", "beyond the oracle")
    return make(result, "optimality", "Against the oracle", columns, rows, caption + " ".join(dict.fromkeys(said)))


def _gap(c: OracleGap) -> str:
    """To four digits: patterns differ in the third."""
    low, high = (OPEN if end is None else f"{end:.4f}" for end in (c.low, c.high))
    return f"{c.value:.4f} [{low}, {high}]"


def reliability(result: ResultBody) -> TextTable:
    r = result.reliability
    rows = [
        (
            f"{b.low:.1f} to {b.high:.1f}",
            str(b.right.n),
            f"{100 * b.mean_confidence:.1f} %",
            spread("victims_found", b.right),
        )
        for b in r.bins
    ]
    told = how([*(b.right for b in r.bins), r.brier, r.ece])
    caption = f"{r.which[:1].upper()}{r.which[1:]}, n {r.reports}. {calibration_words(r)}{told}"
    return make(
        result, "reliability", "Is the confidence right?", ("confidence", "reports", "mean", "right"), rows, caption
    )
