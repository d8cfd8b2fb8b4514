"""One line per refused file: which file, which key, which value, what would be right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from sar_core.validation import describe_validation


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    loss: float = Field(default=0.0, le=1.0)


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid")
    drones: int
    link: Inner = Inner()

    @field_validator("drones")
    @classmethod
    def _some(cls, value: int) -> int:
        if value < 1:
            raise ValueError("At least one must fly")
        return value


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"drones": 0}, "a.yaml: drones = 0: at least one must fly"),
        ({}, "a.yaml: key 'drones' is missing"),
        ({"drone": 4}, "a.yaml: unknown key 'drone' (value 4); remove it or correct its name"),
        (
            {"drones": 4, "link": {"lost": 1}},
            "a.yaml: unknown key 'link.lost' (value 1); remove it or correct its name",
        ),
        ({"drones": 4, "link": {"loss": 2}}, "a.yaml: link.loss = 2: input should be less than or equal to 1"),
        ([], "a.yaml: (top level) = []: input should be a valid dictionary or instance of Outer"),
    ],
)
def test_the_first_problem_is_one_line(given: Any, line: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate(given)
    assert describe_validation(Path("a.yaml"), caught.value) == line
