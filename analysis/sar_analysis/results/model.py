"""The results document, typed: what results.json holds, and its JSON Schema (`python scripts/schema.py` writes it).

A document is checked against these models before anybody sees it. Metrics are not listed here: the catalogue names
them, so a new one needs no change, and a document that is older than a metric stays valid.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.json_schema import GenerateJsonSchema

from sar_analysis.metrics.catalogue import METRICS, NOISE_ENVELOPE, of_missions

DIALECT = "https://json-schema.org/draft/2020-12/schema"
Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Confidence = Annotated[float, Field(gt=0, lt=1)]
Filled = Annotated[str, Field(min_length=1)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Kappa = float | Literal["inf"]
"""No phase noise is the word inf: JSON has no infinity."""


class _Closed(BaseModel):
    """Holds these keys and no others."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _Open(BaseModel):
    """Holds these keys, and may hold more."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)


class Ends(_Closed):
    """A figure with its interval and what it rests on; an end that cannot be given is null."""

    value: float
    low: float | None
    high: float | None
    n: Count


class EstimateRow(_Closed):
    """A metric's figure over missions; where an end is missing the note says why."""

    model_config = ConfigDict(
        json_schema_extra={
            "if": {"anyOf": [{"properties": {end: {"type": "null"}}} for end in ("low", "high")]},
            "then": {"required": ["note"]},
        }
    )
    metric: str
    value: float
    low: float | None
    high: float | None
    n: Count
    unit: str
    method: str
    note: str = ""

    @model_validator(mode="after")
    def _explained(self) -> Self:
        if (self.low is None or self.high is None) and not self.note:
            raise ValueError(f"{self.metric}: an end is missing and no note says why")
        return self


class _Made(_Closed):
    """How an interval was made."""

    estimand: str
    method: str
    resamples: int | None
    seed: int | None
    confidence: Confidence
    notes: list[str]


class ScoreRow(_Made):
    """An IQM over seeds and episodes with its interval for one question."""

    metric: str
    statistic: Literal["iqm"]
    design: str
    reading: Literal["t", "percentile", "bca"]
    n: Count
    value: float
    low: float
    high: float


class RefusedScore(_Closed):
    """An IQM without an interval, or not even a value, and why."""

    metric: str
    statistic: Literal["iqm"]
    refused: str
    design: str = ""
    reading: str = ""
    n: Count = 0
    value: float | None = None
    notes: list[str] = []


class CensoredTime(_Closed):
    """The median of a time that may not come; without one the notes say why."""

    model_config = ConfigDict(
        json_schema_extra={
            "if": {"properties": {"median": {"type": "null"}}},
            "then": {"properties": {"notes": {"minItems": 1}}},
        }
    )
    metric: str
    n: Count
    reached: Count
    censored: Count
    unit: str
    median: float | None
    low: float | None
    high: float | None
    method: str
    notes: list[str]


class GdopBand(_Closed):
    """Errors of the detections whose GDOP fell into one band [m]."""

    name: str
    detections: Count
    cep50_m: float | None
    cep95_m: float | None


class CoverageCurve(_Closed):
    """Share scanned over search time; all lists (times,)."""

    time_s: list[float]
    mean: list[Share]
    low: list[Share]
    high: list[Share]
    missions: Count
    method: str


class ErrorProfile(_Closed):
    """Share of victims localised better than tau; all lists (taus,)."""

    tau_m: list[float]
    share: list[Share]
    low: list[Share]
    high: list[Share]
    victims: Count
    method: str


class ConditionSettings(_Open):
    """What was set the same; settings without a column of their own may stand beside these."""

    tier: str
    world: str
    vehicle: str
    pattern: str
    profile: str
    drones: Annotated[int, Field(ge=1)]
    sigma: float | None = None
    kappa: float | str | None = None
    victim_absent: bool


class NotComputed(_Closed):
    metric: str
    why: Filled


class Absent(_Closed):
    what: str
    why: str


class Section(_Open):
    """Everything known about one condition, or about one with its noise levels pooled."""

    id: Annotated[str, Field(pattern="^[cp][0-9]{2,}$")]
    label: str
    condition: ConditionSettings
    missions: Count
    invalid: Count
    invalid_reasons: dict[str, Count]
    seeds: list[Count]
    episodes: Count
    victims: Count
    flight_hours: Annotated[float, Field(ge=0)]
    estimates: list[EstimateRow]
    not_computed: list[NotComputed]
    scores: list[ScoreRow | RefusedScore]
    times: list[CensoredTime]
    gdop_bands: list[GdopBand]
    coverage_curve: CoverageCurve
    profile: ErrorProfile


class Improvement(_Closed):
    value: Share
    low: Share
    high: Share


class Comparison(_Made):
    """Two conditions that differ in the pattern alone, paired by seed and episode."""

    metric: str
    first: str
    second: str
    difference: float
    low: float | None
    high: float | None
    n: Count
    seeds: Count
    improvement: Improvement
    p: Share | None
    p_holm: Share | None
    test: str
    detectable: float | None
    note: str


class RefusedComparison(_Closed):
    metric: str
    first: str
    second: str
    refused: str


class _Registered(_Closed):
    claim: str
    condition: str
    against: str | None
    part: Literal["value", "low", "high"]
    relation: Literal["at_least", "at_most"]
    limit: float


class DecidedVerdict(_Registered, _Made):
    """A registered claim and the interval that decided it; `beyond` says which way an infinite part lies."""

    holds: bool
    value: float | None
    low: float | None
    high: float | None
    beyond: dict[Literal["value", "low", "high"], Literal["inf", "-inf"]]


class UndecidedVerdict(_Registered):
    refused: Filled


class RegistrationResult(_Closed):
    """Results held against their registration."""

    name: str
    status: Literal["matches", "differs", "no lock"]
    sentence: str
    sha256: Sha256
    hypothesis: str
    metric: str
    estimator: str
    run_purpose: Literal["leaderboard", "power", "debug"]
    failure_policy: Literal["strict", "best_effort"]
    deviations: list[str]
    verdicts: list[DecidedVerdict | UndecidedVerdict]
    refused: str | None


class Headline(_Closed):
    """A tier's missions with victims together, or those without."""

    tier: str
    victim_absent: bool
    missions: Count
    invalid: Count
    invalid_reasons: dict[str, Count]
    seeds: list[Count]
    episodes: Count
    victims: Count
    flight_hours: Annotated[float, Field(ge=0)]
    estimates: list[EstimateRow]


class SeedRate(_Closed):
    tier: str
    victim_absent: bool
    seed: Count
    missions: Count
    invalid: Count
    estimates: list[EstimateRow]


class SeedRow(_Closed):
    """One seed of a condition; null where it has no such figure."""

    condition: str
    seed: Count
    missions: Count
    invalid: Count
    metrics: dict[str, float | None]


class EnvelopeRow(_Open):
    """One condition at its noise level; beside these keys the metrics of the noise envelope."""

    __pydantic_extra__: dict[str, Ends | None]
    condition: str
    sigma: float
    kappa: float | str
    pattern: str
    world: str
    tier: str
    victim_absent: bool
    missions: Count
    invalid: Count


class ReliabilityBin(_Closed):
    low: Share
    high: Share
    mean_confidence: Share
    right: Share
    n: Annotated[int, Field(ge=1)]
    share_low: Share
    share_high: Share


class ReliabilityRow(_Closed):
    """How often reports of a confidence were right."""

    which: str
    reports: Count
    bins: list[ReliabilityBin]
    brier: float | None
    ece: float | None
    note: str


class PaperRow(_Closed):
    """Somebody else's published figures: beside our own, never ranked with them."""

    name: str
    localisation_error_m: float
    area_m2: float
    search_time_s: float
    angle_of_arrival_median_deg: float
    drones: Count
    source: str
    note: Annotated[str, Field(pattern="paper-to-paper")]
    caution: str


class Hyperparameters(_Closed):
    fixed: dict[str, Any]
    varied: dict[str, Any]


class Draws(_Closed):
    resamples: Count
    seed: Count


class Bootstrap(Draws):
    """How intervals are made where they are resampled."""

    confidence: float


class ReportingCard(_Open):
    """What another team needs to fly and analyse the same."""

    hyperparameters: Hyperparameters
    compute: dict[str, Any]
    versions: dict[str, Any]
    seeds: list[Count]
    episodes: list[Count]
    seeds_with_valid_missions: list[Count]
    bootstrap: Draws


class EpisodeRow(_Open):
    """One mission; beside these keys every metric of the catalogue that missions are listed with."""

    __pydantic_extra__: dict[str, float | None]
    condition: str
    victims: Count
    episode_id: str
    seed: Count
    episode: Count
    valid: bool
    invalid_reason: str | None


class ReferenceName(_Closed):
    name: str
    world: str
    version: str


class _Held(_Closed):
    id: str
    tier: str
    missions: Count
    invalid: Count


class OracleGap(_Held, _Made):
    """A condition's mean shortfall below the oracle; `beyond` counts missions that returned more."""

    n: Count
    beyond: Count
    value: float
    low: float
    high: float


class RefusedGap(_Held):
    refused: str


class Optimality(_Closed):
    reference: ReferenceName
    conditions: list[OracleGap | RefusedGap]


class PatternValue(_Closed):
    pattern: str
    value: float
    low: float | None
    high: float | None


class Rival(_Closed):
    """By how much the best pattern is better than this one."""

    pattern: str
    better_by: float
    low: float | None
    high: float | None
    p: float | None
    p_holm: float | None
    told_apart: bool


class _Goal(_Closed):
    metric: str
    words: str
    higher_is_better: bool
    victim_absent: bool
    statistic: Literal["mean", "iqm"]
    values: list[PatternValue]


class JudgedGoal(_Goal):
    """Who leads on a goal, who follows, and how sure that is."""

    missions: Count
    seeds: list[Count]
    layouts: Count
    notes: list[str]
    best: list[str]
    runner_up: list[str]
    rivals: list[Rival]
    told_apart: Count


class RefusedGoal(_Goal):
    refused: str


class PatternFamily(_Closed):
    """Patterns flown under otherwise equal settings."""

    label: str
    patterns: list[str]
    horizon_s: Annotated[float, Field(ge=0)]
    comparisons: Count
    method: str
    confidence: float
    goals: list[JudgedGoal | RefusedGoal]


class NoiseLevel(_Closed):
    sigma: float
    kappa: Kappa


class NoiseLevelRow(NoiseLevel):
    """One noise level, all patterns together."""

    missions: Count
    invalid: Count
    gate_open: Share | None
    present: dict[str, Ends]
    absent: dict[str, Ends]


class GateCloses(_Closed):
    judged_by: str
    level: NoiseLevel | None
    before: NoiseLevel | None


class NoiseLevels(_Closed):
    tier: str
    world: str
    levels: list[NoiseLevelRow]
    closes: GateCloses


class StageChange(_Closed):
    """A pattern's change from Stage 1 to Stage 2."""

    pattern: str
    stage1: float
    stage2: float
    difference: float
    low: float | None
    high: float | None
    n: Count
    layouts: Count
    notes: list[str]


class StageMetric(_Closed):
    metric: str
    words: str
    patterns: list[StageChange]
    kendall_tau: Annotated[float, Field(ge=-1, le=1)] | None
    moved_most: str
    mean_difference: float
    too_kind: Count
    too_harsh: Count


class StagePart(_Closed):
    label: str
    victim_absent: bool
    patterns: list[str]
    unpaired_patterns: list[str]
    seeds: list[Count]
    pairs: Count
    collisions: Count
    missions: Count
    metrics: list[StageMetric]


class StageGap(_Closed):
    """Stage 1 against Stage 2 on the same missions."""

    file: str
    episode_set: str
    method: str
    parts: list[StagePart]


class MeasuredClaim(_Closed):
    value: float | None
    low: float | None
    high: float | None
    n: Count
    method: str
    why: str


class UpstreamClaim(_Closed):
    """What is claimed upstream, beside what was measured here."""

    tier: str
    claim: str
    source: str
    metric: str
    claimed: str
    limit: float
    side: Literal["at most", "at least"]
    definition: str
    measured: MeasuredClaim | None
    verdict: Literal["holds", "does not hold", "cannot be said", "not measured here"]


class ReturnCounts(_Closed):
    episodes: Count
    valid: Count
    invalid: Count
    duplicates: Count
    unreadable: Count
    unfinished: Count
    schema_version: Count


class ResultBody(_Open):
    """What follows from the bags alone: no paths, no times, the same bytes from the same input."""

    title: Annotated[str, Field(pattern=r"^Stage 2 \(.+\)$")]
    tiers: Annotated[list[str], Field(min_length=1)]
    counts: ReturnCounts
    seeds_flown: list[Count]
    conditional: str
    warnings: list[str]
    headlines: list[Headline]
    seed_rates: list[SeedRate]
    patterns: list[PatternFamily]
    noise_levels: list[NoiseLevels]
    stage_gap: StageGap | None
    upstream: list[UpstreamClaim]
    registration: RegistrationResult | None
    conditions: Annotated[list[Section], Field(min_length=1)]
    pooled: list[Section]
    seeds: list[SeedRow]
    pooled_seeds: list[SeedRow]
    noise_envelope: list[EnvelopeRow]
    reliability: ReliabilityRow
    optimality: Optimality | None
    comparisons: list[Comparison | RefusedComparison]
    comparisons_note: str
    paper: list[PaperRow]
    card: ReportingCard
    not_computed: list[Absent]
    bootstrap: Bootstrap
    episodes: Annotated[list[EpisodeRow], Field(min_length=1)]


class CampaignHost(_Closed):
    """Where and by which command the missions were flown."""

    identity: str
    command: str
    commit: str | None
    scenario: str
    machine: str
    python: str


class Run(_Open):
    """Where and with what the analysis ran; never compared."""

    command: str
    campaign: CampaignHost | None
    sar_eval: str
    python: str
    numpy: str
    scipy: str
    platform: str
    cpus: int | None


class Document(_Closed):
    """Results of a campaign, as sar-eval report writes them to results.json.

    Undefined numbers are null, and a note, reason or count beside them says why.
    """

    schema_version: Literal[1]
    result: ResultBody
    run: Run


class _Untitled(GenerateJsonSchema):
    """Without a title for every field, which would only say its name again."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def results_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) that every results.json keeps, with the metrics of the catalogue."""
    schema = Document.model_json_schema(schema_generator=_Untitled)
    defs = schema["$defs"]
    for metric in of_missions():
        if metric.listed != "no":
            low, high = metric.bounds
            limits = {"minimum": low, "maximum": high} if metric.share else {}
            entry = {"type": ["number", "null"], "description": metric.definition, **limits}
            defs["EpisodeRow"]["properties"][metric.key] = entry
    for key in NOISE_ENVELOPE:
        figure = {"anyOf": [{"$ref": "#/$defs/Ends"}, {"type": "null"}], "description": METRICS[key].definition}
        defs["EnvelopeRow"]["properties"][key] = figure
    return {"$schema": DIALECT, **schema}
