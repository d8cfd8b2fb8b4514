"""The results document, typed: what results.json holds, and its JSON Schema (`python scripts/schema.py` writes it).

A document is checked against these models before anybody sees it. Metrics are not listed here: the catalogue names
them, so a new one needs no change, and a document that is older than a metric stays valid.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue
from pydantic.json_schema import GenerateJsonSchema

from sar_analysis.metrics.catalogue import METRICS, NOISE_ENVELOPE, of_missions
from sar_analysis.results.rows import (
    Closed,
    Cluster,
    Comparison,
    Count,
    Drawn,
    EnvelopeRow,
    EpisodeRow,
    Figure,
    Filled,
    Geometry,
    Headline,
    Kappa,
    Made,
    Open,
    RefusedComparison,
    RegistrationResult,
    ReliabilityRow,
    Section,
    SeedRate,
    SeedRow,
    Settings,
    TogetherRow,
)

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class Absent(Closed):
    what: str
    why: str


class PaperRow(Closed):
    """Somebody else's published figures: beside our own, never ranked with them."""

    name: str
    localisation_error_m: float
    area_m2: int
    search_time_s: float
    angle_of_arrival_median_deg: float
    drones: Count
    source: str
    note: Annotated[str, Field(pattern="paper-to-paper")]
    caution: str


class Hyperparameters(Closed):
    fixed: Settings
    varied: dict[str, list[JsonValue]]


class Compute(Open):
    flight_hours: float
    simulated_hours: float
    missions: Count
    wall_time: str
    training: str


class FlownVersions(Open):
    """What flew: every version of the code and the episode set, and every hash of each world."""

    sar_eval: list[str]
    episode_set: list[str | int]
    episode_set_sha256: list[str]
    worlds: dict[str, list[str]]


class Draws(Closed):
    resamples: Count
    seed: Count


class Bootstrap(Draws):
    """How intervals are made where they are resampled."""

    confidence: float


class ReportingCard(Open):
    """What another team needs to fly and analyse the same."""

    hyperparameters: Hyperparameters
    compute: Compute
    versions: FlownVersions
    seeds: list[Count]
    episodes: list[Count]
    seeds_with_valid_missions: list[Count]
    bootstrap: Draws


class ReferenceName(Closed):
    name: str
    world: str
    version: str


class _Held(Closed):
    id: str
    tier: str
    missions: Count
    invalid: Count


class _Shortfall(_Held):
    n: Count
    beyond: Count
    value: float
    low: float | None
    high: float | None


class OracleGap(Made, _Shortfall):
    """A condition's mean shortfall below the oracle; `beyond` counts missions that returned more."""


class RefusedGap(_Held):
    refused: str


class Optimality(Closed):
    reference: ReferenceName
    conditions: list[OracleGap | RefusedGap]


class PatternValue(Closed):
    pattern: str
    value: float
    low: float | None
    high: float | None
    notes: list[str]


class Rival(Closed):
    """By how much the best pattern is better than this one."""

    pattern: str
    better_by: float
    low: float | None
    high: float | None
    p: float | None
    p_holm: float | None
    told_apart: bool
    notes: list[str]


class _Goal(Closed):
    metric: str
    words: str
    higher_is_better: bool
    victim_absent: bool
    statistic: Literal["mean", "iqm"]


class JudgedGoal(_Goal):
    """Who leads on a goal, who follows, and how sure that is."""

    missions: Count
    seeds: list[Count]
    layouts: Count
    notes: list[str]
    values: list[PatternValue]
    best: list[str]
    runner_up: list[str]
    rivals: list[Rival]
    told_apart: Count


class RefusedGoal(_Goal):
    values: list[PatternValue]
    refused: str


class PatternFamily(Closed):
    """Patterns flown under otherwise equal settings."""

    label: str
    patterns: list[str]
    horizon_s: Annotated[float, Field(ge=0)]
    comparisons: Count
    method: str
    cluster: Cluster
    resamples: Count | None
    seed: Count | None
    confidence: float
    goals: list[JudgedGoal | RefusedGoal]


class NoiseLevel(Closed):
    sigma: float
    kappa: Kappa


class NoiseLevelRow(NoiseLevel):
    """One noise level, all patterns together."""

    missions: Count
    invalid: Count
    gate_open: Figure | None
    present: dict[str, Figure]
    absent: dict[str, Figure]


class GateCloses(Closed):
    judged_by: str
    level: NoiseLevel | None
    before: NoiseLevel | None


class NoiseLevels(Closed):
    tier: str
    world: str
    levels: list[NoiseLevelRow]
    closes: GateCloses


class _Change(Closed):
    pattern: str
    stage1: float
    stage2: float
    difference: float
    low: float | None
    high: float | None
    n: Count
    layouts: Count


class StageChange(Drawn, _Change):
    """A pattern's change from Stage 1 to Stage 2."""


class StageMetric(Closed):
    metric: str
    words: str
    patterns: list[StageChange]
    kendall_tau: Figure | None
    moved_most: str
    mean_difference: Figure
    too_kind: Count
    too_harsh: Count


class StagePart(Closed):
    label: str
    victim_absent: bool
    patterns: list[str]
    unpaired_patterns: list[str]
    seeds: list[Count]
    pairs: Count
    collisions: Count
    missions: Count
    metrics: list[StageMetric]


class StageGap(Closed):
    """Stage 1 against Stage 2 on the same missions."""

    file: str
    episode_set: str
    left_out: list[str] = Field(default=[])
    """Metrics that cannot be held against each other, and why."""
    parts: list[StagePart]


class MeasuredClaim(Figure):
    why: Literal[""]


class UnmeasuredClaim(Closed):
    why: Filled


class UpstreamClaim(Closed):
    """What is claimed upstream, beside what was measured here."""

    tier: str
    claim: str
    source: str
    metric: str
    claimed: str
    limit: float
    side: Literal["at most", "at least"]
    definition: str
    measured: MeasuredClaim | UnmeasuredClaim | None
    verdict: Literal["holds", "does not hold", "cannot be said", "not measured here", "undecided, not recorded"]


class ReturnCounts(Closed):
    episodes: Count
    valid: Count
    invalid: Count
    duplicates: Count
    unreadable: Count
    unfinished: Count
    schema_version: Count


class ErratumFigure(Closed):
    """A figure with its 95 % interval, and how that was made."""

    value: float
    low: float | None
    high: float | None
    n: Count
    of: str
    method: str
    cluster: Literal["layout", "mission"] | None
    resamples: Count | None
    seed: Count | None
    notes: list[str]


class ErratumRow(Closed):
    """One figure by the definitions it was published by, null where they did not give it, and by today's."""

    words: str
    metric: str
    unit: Literal["share", "m", "s"]
    published: ErratumFigure | None
    corrected: ErratumFigure


class ResultBody(Open):
    """What follows from the bags alone: no paths, no times, the same bytes from the same input."""

    title: Annotated[str, Field(pattern=r"^Stage 2 \(.+\)$")]
    tiers: Annotated[list[str], Field(min_length=1)]
    counts: ReturnCounts
    seeds_flown: list[Count]
    conditional: str
    warnings: list[str]
    erratum: list[ErratumRow] = Field(default=[])
    """Of a campaign flown by earlier definitions: what they hid."""
    record_schema: Literal[1, 2] = Field(default=2)
    """By whose definitions reports were judged: 1 for records from before issues were judged by transmitter."""
    headlines: list[Headline]
    together: list[TogetherRow]
    geometry: list[Geometry]
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

    def envelopes(self) -> list[tuple[Settings, list[EnvelopeRow]]]:
        """The noise envelope's rows by what was set the same apart from noise."""
        settings = {c.id: c.condition.given("sigma", "kappa") for c in self.conditions}
        found: dict[str, tuple[Settings, list[EnvelopeRow]]] = {}
        for row in self.noise_envelope:
            rest = settings[row.condition]
            found.setdefault(json.dumps(rest, sort_keys=True), (rest, []))[1].append(row)
        return list(found.values())


class CampaignHost(Closed):
    """Where and by which command the missions were flown."""

    identity: str
    command: str
    commit: str | None
    scenario: str
    machine: str
    python: str


class Run(Open):
    """Where and with what the analysis ran; never compared."""

    command: str
    campaign: CampaignHost | None
    sar_eval: str
    python: str
    numpy: str
    scipy: str
    platform: str
    cpus: int | None


class Document(Closed):
    """Results of a campaign, as sar-eval report writes them to results.json.

    Undefined numbers are null, and a note, reason or count beside them says why.
    """

    schema_version: Literal[1]
    result: ResultBody
    run: Run

    def text(self, indent: int | None = None) -> str:
        """What results.json holds: what was given in the order of the models, and none of their defaults."""
        separators = (",", ":") if indent is None else None
        plain = self.model_dump(exclude_unset=True)
        return json.dumps(plain, ensure_ascii=False, allow_nan=False, indent=indent, separators=separators) + "\n"


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
        figure = {"anyOf": [{"$ref": "#/$defs/Figure"}, {"type": "null"}], "description": METRICS[key].definition}
        defs["EnvelopeRow"]["properties"][key] = figure
    return {"$schema": DIALECT, **schema}
