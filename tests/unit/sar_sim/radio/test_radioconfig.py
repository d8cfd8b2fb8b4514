"""Link budgets: textbook figures, refusals by file and key, and a hash that follows every number."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sar_core.errors import InputError
from sar_sim.radio.radioconfig import RadioConfig, config_sha256, load_radio, make_budget
from sar_sim.world.materials import RADIO_MATERIALS

FOLDER = Path(__file__).resolve().parents[4] / "configs" / "radio"
DEFAULT = load_radio(FOLDER / "open_ground.yaml")


def written(folder: Path, **changes: Any) -> Path:
    raw = yaml.safe_load((FOLDER / "open_ground.yaml").read_text(encoding="utf-8")) | changes
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump({k: v for k, v in raw.items() if v is not None}), encoding="utf-8")
    return path


def test_thermal_noise_is_minus_174_dbm_per_hertz() -> None:
    """At 290 K, the figure every link budget begins with."""
    quiet = DEFAULT.model_copy(update={"noise_temperature_k": 290.0, "noise_figure_db": 0.0, "bandwidth_hz": 1.0})
    assert quiet.noise_dbm == pytest.approx(-173.975, abs=1e-3)
    wide = quiet.model_copy(update={"bandwidth_hz": 20e6, "noise_figure_db": 6.0})
    assert wide.noise_dbm == pytest.approx(-173.975 + 73.010 + 6.0, abs=1e-3)
    assert make_budget(wide).noise_mw == pytest.approx(10.0 ** (wide.noise_dbm / 10.0))


@given(st.floats(-10, 30), st.floats(0.1, 5))
def test_nine_in_ten_packets_arrive_at_the_detection_snr(snr_db: float, width_db: float) -> None:
    config = DEFAULT.model_copy(update={"detection_snr_db": snr_db, "detection_width_db": width_db})
    received = 1.0 / (1.0 + math.exp(-(snr_db - config.detection_midpoint_db) / width_db))
    assert received == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"device_eirp_dbm": 2000.0}, "device_eirp_dbm = 2000.0: input should be less than or equal to 200"),
        ({"packet_loss": 1.0}, "packet_loss = 1.0: input should be less than 1"),
        ({"sto_range_s": 50e-3}, "sto_range_s = 0.05"),
        ({"name": "../up"}, "name = '../up'"),
        ({"bandwidth_hz": None}, "key 'bandwidth_hz' is missing"),
        ({"tx_power_w": 0.1}, "unknown key 'tx_power_w'"),
        ({"materials": "itu_p2040_1"}, "materials = 'itu_p2040_1': input should be 'itu_p2040_4'"),
        ({"wall_permittivity": {"brick": 4.0}}, "unknown key 'wall_permittivity'"),
    ],
)
def test_what_no_radio_has_is_refused_by_file_and_key(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = written(tmp_path, **changes)
    with pytest.raises(InputError) as caught:
        load_radio(path)
    assert str(caught.value).startswith(f"{path}: {said}")


@pytest.mark.parametrize("content", [b"[", b"- 1", b"", b"\xff\xfe\xff", b"[" * 5000])
def test_what_is_no_radio_file_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "odd.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"odd\.yaml: (cannot read the radio file|a radio file is a mapping)"):
        load_radio(path)


def test_one_on_the_base_of_another_differs_in_what_it_says(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "loud.yaml").write_text("base: mine\nname: loud\ndevice_eirp_dbm: 23\n")
    loud = load_radio(tmp_path / "loud.yaml")
    assert loud == DEFAULT.model_copy(update={"name": "loud", "device_eirp_dbm": 23.0})
    assert loud.phone_dbm - DEFAULT.phone_dbm == pytest.approx(23.0 - DEFAULT.device_eirp_dbm)


@pytest.mark.parametrize("key", sorted(RadioConfig.model_fields.keys() - {"name", "materials", "traffic"}))
def test_the_hash_follows_every_number_and_not_the_name(key: str) -> None:
    """A calibration is bound to it."""
    assert config_sha256(DEFAULT.model_copy(update={"name": "other"})) == config_sha256(DEFAULT)
    other = DEFAULT.model_copy(update={key: getattr(DEFAULT, key) + 1})
    assert config_sha256(other) != config_sha256(DEFAULT)


@pytest.mark.parametrize("key", ["handshake_frames", "handshake_tries", "forget_s", "pause_s", "pause_mean_s"])
def test_the_hash_follows_the_traffic(key: str) -> None:
    traffic = DEFAULT.traffic.model_copy(update={key: getattr(DEFAULT.traffic, key) + 1})
    assert config_sha256(DEFAULT.model_copy(update={"traffic": traffic})) != config_sha256(DEFAULT)


@pytest.mark.parametrize("field", ["permittivity", "conductivity_spm", "wall_m", "db_per_m", "db_per_face"])
def test_the_hash_follows_every_constant_of_a_material_and_not_its_source(
    field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    was = config_sha256(DEFAULT)
    brick = RADIO_MATERIALS["brick"]
    for changes, equal in (({"source": "elsewhere"}, True), ({field: getattr(brick, field) + 0.01}, False)):
        table = RADIO_MATERIALS | {"brick": replace(brick, **changes)}
        monkeypatch.setattr("sar_sim.radio.radioconfig.RADIO_MATERIALS", table)
        assert (config_sha256(DEFAULT) == was) is equal
