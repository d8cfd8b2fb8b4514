"""Vehicle files: every refusal names file and key, and two files that are alike share what they share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from sar_core.errors import InputError
from sar_sim.vehicle.airframe import Vehicle, load_vehicle

ROOT = Path(__file__).resolve().parents[4]
VEHICLES = ROOT / "configs" / "vehicles"
PARAMS = ROOT / "px4_params" / "x500.params"


def written(folder: Path, name: str = "mine", **changes: Any) -> Path:
    """The x500 with changes; None takes a key out, "sensors.x" reaches inside."""
    raw = yaml.safe_load((VEHICLES / "x500.yaml").read_text(encoding="utf-8"))
    for key, value in changes.items():
        inner = raw["sensors"] if key in raw["sensors"] else raw
        inner[key] = value
        if value is None:
            del inner[key]
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(raw), encoding="utf-8")
    return path


def load(path: Path) -> Vehicle:
    return load_vehicle(path, PARAMS)


@pytest.mark.parametrize("path", sorted(VEHICLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_shipped_vehicle_can_lift_itself_and_carries_its_name(path: Path) -> None:
    vehicle = load(path)
    assert vehicle.name == path.stem
    assert 4.0 * vehicle.airframe.thrust_max > 1.5 * vehicle.airframe.mass * 9.81


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"mass_kg": 0.0}, "mass_kg = 0.0: input should be greater than 0"),
        ({"mass_kg": float("inf")}, "mass_kg = inf: input should be a finite number"),
        ({"mass_kg": None}, "key 'mass_kg' is missing"),
        ({"mass_lb": 4.5}, "unknown key 'mass_lb'"),
        ({"rotor_x_m": [0.1, 0.1, 0.1]}, "key 'rotor_x_m.3' is missing"),
        ({"rotor_idle": 1.0}, "rotor_idle = 1.0: input should be less than 1"),
        ({"thrust_exponent": 2.5}, "thrust_exponent = 2.5: input should be less than or equal to 2"),
        ({"heading_rad": -0.1}, "sensors.heading_rad = -0.1: input should be greater than or equal to 0"),
    ],
)
def test_what_no_vehicle_has_is_refused_by_file_and_key(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = written(tmp_path, **changes)
    with pytest.raises(InputError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: {said}")


@pytest.mark.parametrize("text", ["a: [", "- 1", "", "\0", "[" * 5000])
def test_what_is_no_vehicle_file_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=r"odd\.yaml: "):
        load(path)
    with pytest.raises(InputError, match=r"none\.yaml: cannot read the vehicle file"):
        load(tmp_path / "none.yaml")


def test_one_like_another_takes_what_it_does_not_say(tmp_path: Path) -> None:
    base = load(written(tmp_path, "base"))
    (tmp_path / "heavy.yaml").write_text("like: base\nname: heavy\nmass_kg: 3.0\n")
    heavy = load(tmp_path / "heavy.yaml")
    assert (heavy.name, heavy.airframe.mass) == ("heavy", 3.0)
    assert heavy.airframe._replace(mass=base.airframe.mass) == base.airframe


def test_only_one_step_back_is_gone(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("like: a\n")
    (tmp_path / "a.yaml").write_text("like: x500\n")
    with pytest.raises(InputError, match=r"a\.yaml: b is like it, so it must say everything itself"):
        load(tmp_path / "b.yaml")


def test_the_hash_follows_every_file_that_makes_the_vehicle(tmp_path: Path) -> None:
    """The vehicle's own, the one it is like, and the parameters."""
    written(tmp_path, "base")
    mine, params = tmp_path / "mine.yaml", tmp_path / "mine.params"
    mine.write_text("like: base\nname: mine\n")
    params.write_bytes(PARAMS.read_bytes())
    before = load_vehicle(mine, params).sha256
    assert load_vehicle(mine, params).sha256 == before
    for file in (mine, tmp_path / "base.yaml", params):
        whole = file.read_bytes()
        file.write_bytes(whole + b"# a comment\n")
        assert load_vehicle(mine, params).sha256 != before, file.name
        file.write_bytes(whole)
