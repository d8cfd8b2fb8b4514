"""What is known of conditions, seeds and missions: the rows of the results document, typed.

A closed row holds its keys and no others, so that a document that says more than it can mean is refused.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Confidence = Annotated[float, Field(gt=0, lt=1)]
Filled = Annotated[str, Field(min_length=1)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Kappa = float | Literal["inf"]
"""No phase noise is the word inf: JSON has no infinity."""
Settings = dict[str, JsonValue]


class Closed(BaseModel):
    """Holds these keys and no others."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Open(BaseModel):
    """Holds these keys, and may hold more."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)


Cluster = Literal["layout", "mission", "seed", "seed and layout", "episode within seed", "run", "cell"]
"""What was drawn again, or taken as independent."""


class Drawn(Closed):
    """How an interval was made: what was drawn again, and by which draws; null where nothing was.

    Written after the figures of the other base, as are its heirs.
    """

    method: Filled
    cluster: Cluster | None
    resamples: Count | None
    seed: Count | None
    notes: list[str]


class Exact(Closed):
    """The interval of the same value without resampling, missions or victims taken as independent."""

    value: float | None
    low: float | None
    high: float | None
    method: Filled


class _Value(Closed):
    value: float
    low: float | None
    high: float | None
    n: Count
    unit: str


class Figure(Drawn, _Value):
    """A value with its 95 % interval; where an end cannot be given it is null and the notes say why."""

    model_config = ConfigDict(
        json_schema_extra={
            "if": {"anyOf": [{"properties": {end: {"type": "null"}}} for end in ("low", "high")]},
            "then": {"properties": {"notes": {"minItems": 1}}},
        }
    )
    exact: Exact | None

    @model_validator(mode="after")
    def _explained(self) -> Self:
        if (self.low is None or self.high is None) and not self.notes:
            raise ValueError(f"{self.value:g} {self.unit}: an end is missing and no note says why")
        return self


class _OfMetric(Closed):
    metric: str


class EstimateRow(Figure, _OfMetric):
    """A metric's figure over missions."""


class Made(Drawn):
    """The same, with what the interval is about."""

    estimand: str
    confidence: Confidence


class _Score(Closed):
    metric: str
    statistic: Literal["iqm"]
    design: str
    reading: Literal["t", "percentile", "bca", "expanded percentile"]
    n: Count
    value: float
    low: float | None
    high: float | None


class ScoreRow(Made, _Score):
    """An IQM over seeds and episodes with its interval for one question."""


class RefusedScore(Closed):
    """A question that an IQM has no interval for, and why; its value stands with the question that has one."""

    metric: str
    statistic: Literal["iqm"]
    design: str = ""
    reading: str = ""
    n: Count = 0
    refused: str
    notes: list[str] = []


class _Median(Closed):
    metric: str
    n: Count
    reached: Count
    censored: Count
    unit: str
    median: float | None
    low: float | None
    high: float | None


class CensoredTime(Drawn, _Median):
    """The median of a time that may not come, and its mean up to a horizon; without a median the notes say why."""

    model_config = ConfigDict(
        json_schema_extra={
            "if": {"properties": {"median": {"type": "null"}}},
            "then": {"properties": {"notes": {"minItems": 1}}},
        }
    )
    exact: Exact | None
    horizon_s: float | None
    restricted_mean: Figure | None


class GdopBand(Closed):
    """Errors of the detections whose GDOP fell into one band [m]."""

    name: str
    detections: Count
    cep50_m: Figure | None
    cep95_m: Figure | None


class _Coverage(Closed):
    time_s: list[float]
    mean: list[Share]
    mean_low: list[Share]
    mean_high: list[Share]
    low: list[Share]
    high: list[Share]
    missions: Count


class CoverageCurve(Drawn, _Coverage):
    """Share scanned over search time: the mean with its interval, low and high of the middle 95 % of missions.

    All lists (times,).
    """


class _Errors(Closed):
    tau_m: list[float]
    share: list[Share]
    low: list[Share]
    high: list[Share]
    victims: Count


class ErrorProfile(Drawn, _Errors):
    """Share of victims localised better than tau; all lists (taus,)."""


class ConditionSettings(Open):
    """What was set the same; settings without a column of their own may stand beside these."""

    __pydantic_extra__: dict[str, JsonValue]
    tier: str
    world: str
    vehicle: str
    pattern: str
    profile: str
    drones: Annotated[int, Field(ge=1)]
    sigma: float | None = None
    kappa: float | str | None = None
    victim_absent: bool

    def given(self, *without: str) -> Settings:
        """By name, all that were set but these: levels of noise are not where they were pooled."""
        return self.model_dump(exclude_unset=True, exclude=set(without))


class NotComputed(Closed):
    metric: str
    why: Filled


class Section(Open):
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


class TogetherRow(Closed):
    """What a pattern's reports came to, with victims and without together, noise levels pooled."""

    tier: str
    pattern: str
    missions: Count
    invalid: Count
    victims: Count
    estimates: list[EstimateRow]
    times: list[CensoredTime]


class LookErrors(Closed):
    """Errors [m] of all victims at one time, one without a report infinite; null where a CEP is."""

    time_s: float
    n: Count
    reported: Count
    cep50_m: Figure | None
    cep95_m: Figure | None


class LookBand(Closed):
    """Errors [m] of the looks whose constellation GDOP lay in one band."""

    name: str
    n: Count
    cep50_m: Figure | None
    cep95_m: Figure | None


class LookCorrelation(Closed):
    """Spearman's rho of a dilution with the error at one time; null: at all times."""

    dilution: str
    time_s: float | None
    n: Count
    rho: Figure | None


class LookViews(Closed):
    """Errors [m] at one time of the looks that rest on as many views, the last row on as many or more; ``root_m`` as
    1 / sqrt(N) has it."""

    time_s: float
    views: Count
    n: Count
    cep50_m: Figure
    cep95_m: Figure
    root_m: Figure | None


class Geometry(Closed):
    """What was held of every victim at fixed times, of any confidence."""

    tier: str
    looks: Count
    times_s: list[float]
    errors: list[LookErrors]
    bands: list[LookBand]
    correlations: list[LookCorrelation]
    views: list[LookViews]


class _Compared(Closed):
    metric: str
    first: str
    second: str


class _Difference(_Compared):
    difference: float
    low: float | None
    high: float | None


class Comparison(Made, _Difference):
    """Two conditions that differ in the pattern alone, paired by seed and episode."""

    n: Count
    seeds: Count
    improvement: Figure
    p: Share | None
    p_holm: Share | None
    test: str
    detectable: float | None
    note: str


class RefusedComparison(_Compared):
    refused: str


class _Registered(Closed):
    claim: str
    condition: str
    against: str | None
    part: Literal["value", "low", "high"]
    relation: Literal["at_least", "at_most"]
    limit: float


class _Decision(_Registered):
    holds: bool
    value: float | None
    low: float | None
    high: float | None


class DecidedVerdict(Made, _Decision):
    """A registered claim and the interval that decided it; `beyond` says which way an infinite part lies."""

    beyond: dict[Literal["value", "low", "high"], Literal["inf", "-inf"]]


class UndecidedVerdict(_Registered):
    refused: Filled


class RegistrationResult(Closed):
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


class Headline(Closed):
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


class SeedRate(Closed):
    tier: str
    victim_absent: bool
    seed: Count
    missions: Count
    invalid: Count
    estimates: list[EstimateRow]


class SeedRow(Closed):
    """One seed of a condition; null where it has no such figure."""

    condition: str
    seed: Count
    missions: Count
    invalid: Count
    metrics: dict[str, Figure | None]


class EnvelopeRow(Open):
    """One condition at its noise level; beside these keys the metrics of the noise envelope."""

    __pydantic_extra__: dict[str, Figure | None]
    condition: str
    sigma: float
    kappa: float | str
    pattern: str
    world: str
    tier: str
    victim_absent: bool
    missions: Count
    invalid: Count

    def figure(self, metric: str) -> Figure | None:
        return self.__pydantic_extra__.get(metric)


class ReliabilityBin(Closed):
    low: Share
    high: Share
    mean_confidence: Share
    right: Figure


class ReliabilityRow(Closed):
    """How often reports of a confidence were right."""

    which: str
    reports: Count
    bins: list[ReliabilityBin]
    brier: Figure | None
    ece: Figure | None
    note: str


class EpisodeRow(Open):
    """One mission; beside these keys every metric of the catalogue that missions are listed with."""

    __pydantic_extra__: dict[str, int | float | None]
    condition: str
    victims: Count
    episode_id: str
    seed: Count
    episode: Count
    valid: bool
    invalid_reason: str | None

    def figure(self, metric: str) -> float | None:
        return self.__pydantic_extra__.get(metric)
