"""Each way to break a world has a finding that names it; whole worlds have none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sar_sim.world.worldlint import PX4_PLUGINS, SDF_COMMAND_PACKAGES, WorldFinding, libsdformat_check, lint_world

WORLDS = Path(__file__).resolve().parents[4] / "worlds"
NAMES = ("open_field", "village", "forest", "collapsed_block")

HUT = (
    '<model name="hut"><static>true</static><pose>10 20 0 0 0 0.3</pose><link name="link">'
    '<collision name="body"><pose>0 0 1.5 0 0 0</pose><geometry><box><size>4 5 3</size></box></geometry>'
    "<sar:material>brick_shell</sar:material></collision>"
    '<visual name="body_visual"><pose>0 0 1.5 0 0 0</pose><geometry><box><size>4 5 3</size></box></geometry></visual>'
    '<collision name="mast"><pose>0 0 5 0 0 0</pose><geometry><cylinder><radius>0.1</radius><length>4</length>'
    "</cylinder></geometry><sar:material>metal</sar:material></collision>"
    '<visual name="mast_visual"><pose>0 0 5 0 0 0</pose><geometry><cylinder><radius>0.1</radius><length>4</length>'
    "</cylinder></geometry></visual></link></model>"
)


def hut_world() -> str:
    return (WORLDS / "open_field.sdf").read_text().replace("  </world>", f"{HUT}\n  </world>")


@pytest.mark.parametrize("name", NAMES)
def test_committed_worlds_are_clean(name: str) -> None:
    assert lint_world(WORLDS / f"{name}.sdf") == []


def test_the_world_that_the_table_breaks_is_clean(tmp_path: Path) -> None:
    path = tmp_path / "hut.sdf"
    path.write_text(hut_world())
    assert lint_world(path) == []


# name: (old text, new text, severity, part of where, part of the message)
BROKEN = {
    "misspelt element": (
        "<gravity>0 0 -9.8</gravity>",
        "<gravty>0 0 -9.8</gravty>",
        "error",
        "gravty",
        "did you mean 'gravity'?",
    ),
    "missing element": ("<gravity>0 0 -9.8</gravity>", "", "error", "world 'open_field'", "<gravity> is missing"),
    "misspelt shape": (
        "<box><size>4 5 3</size></box>",
        "<boks><size>4 5 3</size></boks>",
        "error",
        "boks",
        "did you mean 'box'?",
    ),
    "element out of place": ("<link name", "<radius>1</radius><link name", "error", "radius", "not allowed in <model>"),
    "unknown attribute": (
        '<link name="link">',
        '<link name="link" nam="x">',
        "error",
        "link",
        "attribute 'nam' is unknown",
    ),
    "missing name": ('<model name="hut">', "<model>", "error", "model", "attribute 'name' is missing"),
    "stray text": ("<static>", "oops<static>", "error", "model", "text 'oops' has no meaning here"),
    "repeated element": (
        "<gravity>",
        "<gravity>0 0 -9.8</gravity><gravity>",
        "error",
        "world",
        "<gravity> appears 2 times",
    ),
    "not a bool": ("<cast_shadows>true", "<cast_shadows>yes", "error", "cast_shadows", "allowed are true and false"),
    "not a number": ("<intensity>1<", "<intensity>one<", "error", "intensity", "'one', which is not a finite number"),
    "infinite": ("<intensity>1<", "<intensity>inf<", "error", "intensity", "'inf', which is not a finite number"),
    "wrong count": (
        "<direction>0.3 0.5 -0.8<",
        "<direction>0.3 0.5<",
        "error",
        "direction",
        "2 values, allowed is exactly 3",
    ),
    "negative size": (
        "<size>4 5 3</size>",
        "<size>4 -5 3</size>",
        "error",
        "collision 'body'",
        "size -5 is not positive",
    ),
    "zero radius": ("<radius>0.1<", "<radius>0<", "error", "collision 'mast'", "size 0 is not positive"),
    "tilted box": ("<pose>10 20 0 0 0 0.3<", "<pose>10 20 0 0.2 0 0.3<", "error", "pose", "only 0 is allowed"),
    "relative pose": ("<pose>10 20", '<pose relative_to="a">10 20', "error", "pose", "'relative_to' is not supported"),
    "visual differs": (
        '<visual name="body_visual"><pose>0 0 1.5 0 0 0</pose><geometry><box><size>4 5 3<',
        '<visual name="body_visual"><pose>0 0 1.5 0 0 0</pose><geometry><box><size>4 5 9<',
        "error",
        "link",
        "collision and visual geometry differ",
    ),
    "visual elsewhere": (
        '<visual name="mast_visual"><pose>0 0 5',
        '<visual name="mast_visual"><pose>0 1 5',
        "error",
        "link",
        "collision and visual geometry differ",
    ),
    "duplicate model": (
        '<model name="hut">',
        '<model name="ground_plane">',
        "error",
        "model 'ground_plane'",
        "already taken",
    ),
    "duplicate in link": ('"body_visual"', '"body"', "error", "visual 'body'", "already taken by <collision>"),
    "unknown material": (">brick_shell<", ">brickshell<", "error", "sar:material", "'brickshell' is unknown"),
    "no material": ("<sar:material>metal</sar:material>", "", "error", "collision 'mast'", "<sar:material> is missing"),
    "dynamic model": (
        "<static>true</static><pose>10",
        "<static>false</static><pose>10",
        "error",
        "hut",
        "must be true",
    ),
    "old version": ('version="1.9"', 'version="1.6"', "error", "sdf", "version is '1.6', allowed is '1.9'"),
    "plugin name": ("systems::Imu", "systems::IMU", "error", "plugin", "did you mean 'gz::sim::systems::Imu'?"),
    "plugin of the old house": (
        "gz::sim::systems::NavSat",
        "ignition::gazebo::systems::NavSat",
        "error",
        "plugin",
        "unknown",
    ),
    "plugin file": ("gz-sim-imu-system", "gz-sim-imu", "error", "plugin", "allowed is 'gz-sim-imu-system'"),
    "plugin parameter": (
        "<use_units_gauss>true</use_units_gauss>",
        "<use_unit_gauss>1</use_unit_gauss>",
        "error",
        "use_unit_gauss",
        "did you mean 'use_units_gauss'?",
    ),
    "plugin twice": (
        '<plugin filename="gz-sim-imu-system" name="gz::sim::systems::Imu"/>',
        '<plugin filename="gz-sim-imu-system" name="gz::sim::systems::Imu"/>' * 2,
        "error",
        "world",
        "gz::sim::systems::Imu is listed 2 times",
    ),
    "step": (">0.004<", ">0.001<", "error", "max_step_size", "allowed is 0.004 s"),
    "update rate": (">250<", ">1000<", "warning", "real_time_update_rate", "do not make real time"),
    "real-time factor": ("<real_time_factor>1.0<", "<real_time_factor>0<", "error", "real_time_factor", "not positive"),
    "gravity upwards": ("0 0 -9.8", "0 0 9.8", "error", "gravity", "must point down"),
    "field in gauss": ("6e-06 2.3e-05 -4.2e-05", "0.06 0.23 -0.42", "error", "magnetic_field", "in tesla"),
    "earth": ("EARTH_WGS84", "MOON_SCS", "error", "surface_model", "allowed is 'EARTH_WGS84'"),
    "spawn in the hut": ("3 -210 0 1.5", "10 20 0 1.5", "error", "sar:spawn", "overlaps obstacle 'hut/link/body'"),
    "spawn near the hut": (
        "3 -210 0 1.5",
        "13.6 20 0 1.5",
        "warning",
        "world",
        "m from obstacle 'hut/link/body'; 3 m is safer",
    ),
    "spawn outside": ("3 -210 0 1.5", "3 -221 0 1.5", "error", "sar:spawn", "outside the fence"),
    "spawns too near": ("9 -210 0 1.5", "5 -210 0 1.5", "error", "sar:spawn", "2.00 m from spawn 0"),
    "spawn of three": (
        "3 -210 0 1.5707963267948966",
        "3 -210 0",
        "error",
        "sar:spawn",
        "3 values, allowed is exactly 4",
    ),
    "bow-tie fence": (
        "-220 -220 220 -220 220 220 -220 220",
        "-220 -220 220 220 220 -220 -220 220",
        "error",
        "sar:fence",
        "simple polygon",
    ),
    "fence inside": (
        "-220 -220 220 -220 220 220 -220 220",
        "-220 -220 220 -220 190 190 -220 220",
        "error",
        "sar:fence",
        "whole search area",
    ),
    "obstacle outside": (
        "<pose>10 20 0",
        "<pose>300 20 0",
        "warning",
        "world",
        "'hut/link/mast' lies outside the fence",
    ),
    "buried obstacle": (
        "<pose>10 20 0",
        "<pose>10 20 -9",
        "warning",
        "world",
        "'hut/link/body' lies wholly under the ground",
    ),
    "empty document": ("", None, "error", "world.sdf", "not well-formed XML: no element found"),
    "entity": (
        "<sdf ",
        '<!DOCTYPE sdf [<!ENTITY a "b">]><sdf ',
        "error",
        "world.sdf",
        "DOCTYPE and entities are not allowed",
    ),
    "unclosed": ("</world>", "", "error", "world.sdf", "not well-formed XML: mismatched tag"),
    "another language": ("<sdf ", "<urdf ", "error", "world.sdf", "mismatched tag"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_world_is_named(case: str, tmp_path: Path) -> None:
    old, new, severity, where, message = BROKEN[case]
    text = hut_world()
    assert old in text
    path = tmp_path / "world.sdf"
    path.write_text("" if new is None else text.replace(old, new, 1))
    findings = lint_world(path)
    hits = [f for f in findings if f.severity == severity and where in f.where and message in f.message]
    assert len(hits) == 1, findings
    assert len(findings) <= 5, findings


@pytest.mark.parametrize("name", PX4_PLUGINS)
def test_each_plugin_px4_needs_is_missed(name: str, tmp_path: Path) -> None:
    lines = (WORLDS / "open_field.sdf").read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if f'"{name}"' in line)
    stop = start if lines[start].endswith("/>") else next(i for i in range(start, 999) if "</plugin>" in lines[i])
    path = tmp_path / "world.sdf"
    path.write_text("\n".join(lines[:start] + lines[stop + 1 :]))
    assert [f.message for f in lint_world(path)] == [
        f"plugin {name} ({PX4_PLUGINS[name]}) is missing; PX4 needs it in the world"
    ]


def test_findings_come_all_at_once_in_file_order_with_lines(tmp_path: Path) -> None:
    path = tmp_path / "world.sdf"
    path.write_text(
        hut_world().replace("0 0 -9.8", "0 0 9.8").replace(">0.004<", ">0.002<").replace(">metal<", ">tin<")
    )
    findings = lint_world(path)
    assert [f.where.split("/")[-1] for f in findings if f.severity == "error"] == [
        "max_step_size",
        "gravity",
        "sar:material",
    ]
    lines = path.read_text().splitlines()
    for finding, token in zip([f for f in findings if f.severity == "error"], ("0.002", "9.8", "tin"), strict=True):
        assert token in lines[int(finding.where.split(":")[0].removeprefix("line ")) - 1]


def test_a_file_that_is_not_there_is_a_finding(tmp_path: Path) -> None:
    assert [f.severity for f in lint_world(tmp_path / "none.sdf")] == ["error"]
    (tmp_path / "binary.sdf").write_bytes(bytes(range(256)))
    assert "not well-formed XML" in lint_world(tmp_path / "binary.sdf")[0].message
    (tmp_path / "other.sdf").write_text("<robot name='x'/>")
    assert "allowed is <sdf> with exactly one" in lint_world(tmp_path / "other.sdf")[0].message


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_damage_makes_the_linter_raise(tmp_path: Path, data: st.DataObject) -> None:
    text = hut_world()
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, min(start + 120, len(text))))
    junk = data.draw(
        st.sampled_from(["", "<", ">", "x", "</world>", "<model/>", "<pose/>", "<sar:spawn/>", "nan", '"'])
    )
    path = tmp_path / "world.sdf"
    path.write_text(text[:start] + junk + text[stop:])
    assert all(isinstance(f, WorldFinding) for f in lint_world(path))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_removing_any_line_that_matters_is_found(tmp_path: Path, data: st.DataObject) -> None:
    """Of the world's settings no line may go unnoticed, except those SDF itself gives a harmless default."""
    lines = (WORLDS / "open_field.sdf").read_text().splitlines()
    stop = next(i for i, line in enumerate(lines) if "<sar:spawn>" in line)
    harmless = (
        "<?xml",
        "<!--",
        "<real_time_factor",
        "<use_",
        "<force_",
        "<scene",
        "</scene",
        "<ambient",
        "<background",
        "<shadows",
        "<grid",
        "<pose",
        "<cast_shadows",
        "<intensity",
        "<direction",
        "<diffuse",
        "<specular",
    )
    vital = [i for i in range(stop) if not lines[i].strip().startswith(harmless)]
    gone = data.draw(st.sampled_from(vital))
    path = tmp_path / "world.sdf"
    path.write_text("\n".join(lines[:gone] + lines[gone + 1 :]))
    assert lint_world(path) != [], lines[gone]


def fake_tool(folder: Path, name: str, script: str) -> None:
    tool = folder / name
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)


VERSION = 'if [ "$2" = "--versions" ]; then echo 14.1.0; exit 0; fi\n'


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (VERSION + "echo Valid.", []),
        (VERSION + "echo Valid.; echo 'Library error: libignition-tools-backward.so not found.' >&2; echo >&2", []),
        (VERSION + "echo Valid.; echo 'Error: unable to convert' >&2", ["Error: unable to convert"]),
        (VERSION + "printf '\\033[1;31mError [a.cc]\\033[0m bad\\n' >&2; exit 255", ["Error [a.cc] bad"]),
        (VERSION + "exit 3", ["exit code 3 without a message"]),
        ("echo \"I cannot find any available 'gz' command\"; exit 255", None),
    ],
)
def test_libsdformat_needs_exit_code_and_silence(
    script: str, expected: list[str] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_tool(tmp_path, "gz", script)
    monkeypatch.setenv("PATH", str(tmp_path))
    findings = libsdformat_check(WORLDS / "open_field.sdf")
    assert (None if findings is None else [f.message for f in findings]) == expected


def test_libsdformat_absent_is_none_and_a_hung_one_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", str(tmp_path))
    assert libsdformat_check(WORLDS / "open_field.sdf") is None
    fake_tool(tmp_path, "gz", VERSION + f"PATH={path}\nexec sleep 30")
    findings = libsdformat_check(WORLDS / "open_field.sdf", timeout_s=0.5)
    assert findings is not None and [f.message for f in findings] == ["no answer within 0.5 s"]


@pytest.fixture
def libsdformat() -> None:
    if libsdformat_check(WORLDS / "open_field.sdf") is None:
        pytest.skip(f"no `gz sdf` or `ign sdf` command here; to get it: {SDF_COMMAND_PACKAGES}")


@pytest.mark.usefixtures("libsdformat")
@pytest.mark.parametrize("name", NAMES)
def test_libsdformat_accepts_the_committed_worlds(name: str) -> None:
    assert libsdformat_check(WORLDS / f"{name}.sdf") == []


@pytest.mark.usefixtures("libsdformat")
@pytest.mark.parametrize(
    ("old", "new"),
    [('version="1.9"', 'version="1.99"'), ("<size>4 5 3", "<size>4 a 3"), ('"body_visual"', '"body"')],
)
def test_libsdformat_refuses_what_it_knows_to_be_wrong(old: str, new: str, tmp_path: Path) -> None:
    path = tmp_path / "world.sdf"
    path.write_text(hut_world().replace(old, new, 1))
    assert libsdformat_check(path)
