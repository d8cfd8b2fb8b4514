"""Containers, as far as a machine without an engine can tell: the compose file, what it runs, images and scripts.

What an engine makes of them is tests/containers.
"""

from __future__ import annotations

import http.server
import importlib.util
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from sar_core.errors import RunError
from sar_core.geodesy import Origin
from sar_eval import __version__
from sar_eval.backends.backend import SpoiltError
from sar_eval.cli.app import app
from sar_eval.px4.containers import ContainerVehicles
from sar_eval.px4.gazebo import MODULES, X500
from sar_eval.px4.parameters import parameters_of
from sar_eval.scenario.model import Scenario
from sar_eval.scenario.prepare import prepare
from sar_eval.scenario.resources import CHECKOUT_PLACES
from tests.unit.sar_gazebo import standins

ROOT = Path(__file__).resolve().parents[2]
DOCKER = ROOT / "docker"
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
PROFILES = ("sih", "embedded", "cluster", "gazebo", "viz")
ONE_SHOT = {"kernels"}
"""Services that end by themselves before the others begin; everything else is probed."""
PLAYED_BY_OTHERS = {"player"}
"""What has nothing to probe: the bridge it feeds is probed."""
SCRIPTS = sorted(DOCKER.glob("*.sh"))
DOCKERFILES = sorted(DOCKER.glob("*Dockerfile"))
OURS = "/opt/sar_eval/"
WAIT_S = 60.0


def filled_in(text: str) -> str:
    """What compose makes of a text where the environment has none of the variables."""
    while (plainer := re.sub(r"\$\{(\w+):-([^{}]*)\}", r"\2", text)) != text:
        text = plainer
    return text.replace("$$", "$")


def command_of(service: str) -> list[str]:
    """The words a service runs, through the shell or not."""
    words = [filled_in(word) for word in SERVICES[service]["command"]]
    if words[:2] != ["/bin/sh", "-c"]:
        return words
    return shlex.split(words[2].replace("$SAR_PROTOCOL", "tcp"))[1:]


def in_profile(profile: str) -> dict[str, dict[str, Any]]:
    return {name: s for name, s in SERVICES.items() if profile in s["profiles"]}


def needs(service: dict[str, Any]) -> set[str]:
    """Services that must be there for this one."""
    modes = (service.get("network_mode", ""), service.get("ipc", ""))
    return set(service.get("depends_on", {})) | {m.partition(":")[2] for m in modes if m.startswith("service:")}


def test_the_published_schema_accepts_it() -> None:
    import jsonschema

    found = importlib.util.find_spec("check_jsonschema")
    if found is None or found.origin is None:
        pytest.skip("the compose specification's schema is missing: pip install check-jsonschema")
    schema = json.loads((Path(found.origin).parent / "builtin_schemas" / "vendor" / "compose-spec.json").read_text())
    jsonschema.validate(COMPOSE, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"services": {"px4-1": {**SERVICES["px4-1"], "healthchek": {}}}}, schema)


@pytest.mark.parametrize("profile", PROFILES)
def test_docker_compose_accepts_every_profile(profile: str) -> None:
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode:
        pytest.skip("no `docker compose` here: scripts/engine.sh gets one on Debian")
    command = [docker, "compose", "--profile", profile, "config", "--services"]
    for place in (ROOT, DOCKER):
        done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert set(done.stdout.split()) == set(in_profile(profile))


def test_profiles_and_the_default() -> None:
    assert {profile for service in SERVICES.values() for profile in service["profiles"]} == set(PROFILES)
    settings = [line for line in (ROOT / ".env").read_text().splitlines() if not line.startswith("#")]
    assert settings == ["COMPOSE_PROFILES=sih"]


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_is_complete_in_itself_and_can_be_started(profile: str) -> None:
    services = in_profile(profile)
    started: set[str] = set()
    while len(started) < len(services):
        ready = {name for name, s in services.items() if name not in started and needs(s) <= started}
        assert ready, f"{set(services) - started} wait for each other or for another profile"
        started |= ready


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_kept_small(name: str) -> None:
    service = SERVICES[name]
    assert service["init"] is True and service["read_only"] is True
    assert service["cap_drop"] == ["ALL"] and service["security_opt"] == ["no-new-privileges:true"]
    assert filled_in(service["user"]) == "1000:1000"
    assert service["stop_grace_period"] == "60s"
    assert not {"privileged", "pid", "cap_add", "devices", "ulimits"} & set(service)
    assert re.match("none$|service:", service.get("network_mode", "none")), "never the host's network"
    assert re.fullmatch(r"[\w./-]+:v?\d[\w.-]*", filled_in(service["image"])), "an image has a version"
    for port in service.get("ports", []):
        assert port.startswith("127.0.0.1:"), "published on this machine only"
    if name not in ONE_SHOT | PLAYED_BY_OTHERS:
        assert service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")
        assert "python" not in service["healthcheck"]["test"], "Ubuntu's is python3"


def test_one_service_of_a_profile_builds_its_image() -> None:
    for profile in PROFILES:
        built = [s["image"] for s in in_profile(profile).values() if "build" in s]
        assert len(built) == 1, "two that build one tag at once collide"
        assert all(s["pull_policy"] == "build" for s in in_profile(profile).values() if "build" in s)


def test_nothing_is_reached_from_outside_but_what_is_said() -> None:
    published = {name for name, service in SERVICES.items() if service.get("ports")}
    assert published == {"foxglove"}
    assert all(network["internal"] for network in COMPOSE["networks"].values())
    alone = {"embedded", "kernels", "px4-1"}
    assert {name for name, s in SERVICES.items() if s.get("network_mode") == "none"} == alone
    for name, service in SERVICES.items():
        inside = "networks" in service or service.get("network_mode", "").startswith("service:")
        assert name in alone | published or inside, f"{name} would be on the engine's default network"


def test_one_service_of_a_profile_speaks() -> None:
    """The log a person sees is the evaluation's, not that of nine programs."""
    heard = {p: {n for n, s in in_profile(p).items() if s.get("attach", True)} for p in PROFILES}
    assert heard["sih"] == {"sih"} and heard["embedded"] == {"embedded"} and heard["gazebo"] == {"gazebo"}
    assert heard["cluster"] == {"kernels", "cluster"}


def test_no_variable_has_to_be_set() -> None:
    text = (ROOT / "compose.yaml").read_text()
    assert re.findall(r"\$\{\w+(?!\w*:-)[^}]*\}", text) == []


def test_every_variable_is_documented() -> None:
    told = (ROOT / "docs" / "containers.md").read_text().partition("\n## Settings\n")[2].partition("\n## ")[0]
    workflows = "".join(file.read_text() for file in (ROOT / ".github" / "workflows").iterdir())
    asked = set(re.findall(r"\$\{(\w+):-", (ROOT / "compose.yaml").read_text()))
    asked |= set(re.findall(r"\b(?:SAR|PX4)_[A-Z0-9_]+(?=: )", workflows))
    assert {name for name in asked if f"`{name}`" not in told} == set()


def test_what_is_mounted_exists() -> None:
    for name, service in SERVICES.items():
        for volume in service.get("volumes", []):
            source = filled_in(volume).partition(":")[0]
            known = (ROOT / source).exists() if source.startswith(".") else source in COMPOSE["volumes"]
            assert known, f"{name}: {volume}"
    for folder in (ROOT / "runs", DOCKER / "tls"):
        assert (folder / ".gitignore").is_file(), "an engine would make a missing folder as root"


def images() -> dict[str, Path]:
    """Dockerfile by image, for the images built here."""
    return {s["image"]: ROOT / s["build"]["dockerfile"] for s in SERVICES.values() if "build" in s}


@pytest.mark.parametrize("name", SERVICES)
def test_our_files_are_in_the_image_that_runs_them(name: str) -> None:
    service = SERVICES[name]
    words = [*service.get("entrypoint", []), *service["command"], *service.get("healthcheck", {}).get("test", [])]
    used = {word.removeprefix(OURS) for word in words if word.startswith(OURS)}
    mounted = {v.split(":")[1].removeprefix(OURS) for v in service.get("volumes", []) if OURS in v}
    dockerfile = images().get(service["image"])
    copied = set(re.findall(r"docker/([\w.]+)", dockerfile.read_text())) if dockerfile else set()
    assert used <= mounted | copied
    assert all((DOCKER / file).is_file() for file in used)


def click_app() -> Any:
    return typer.main.get_command(app)


@pytest.mark.parametrize("name", ["scheduler", "worker"])
def test_dask_knows_the_verbs_and_options(name: str) -> None:
    cli = pytest.importorskip(
        f"distributed.cli.dask_{name}", reason="dask.distributed is missing: pip install 'sar-eval[cluster]'"
    )
    program, verb, *options = command_of(name)
    assert (program, verb) == ("dask", name)
    assert cli.main.make_context(verb, options).params


def test_scheduler_and_workers_meet() -> None:
    port = command_of("scheduler")[command_of("scheduler").index("--port") + 1]
    assert f"tcp://scheduler:{port}" in command_of("worker")
    assert f"://scheduler:{port}" in (DOCKER / "evaluate.sh").read_text()
    for name in ("scheduler", "worker"):
        words = command_of(name)
        page = SERVICES[name]["healthcheck"]["test"][-1]
        assert words[words.index("--dashboard-address") + 1] == f"127.0.0.1:{page}", "for the probe alone"
    worker = command_of("worker")
    assert worker[worker.index("--nthreads") + 1] == "1", "cluster.py refuses other workers"


def test_vehicles_of_the_sih_tier_are_one_container_each() -> None:
    for i in range(Scenario().drones):
        service = SERVICES[f"px4-{i + 1}"]
        assert service["command"] == ["/opt/px4/bin/px4", str(i)]
        assert service["healthcheck"]["test"][-2:] == ["probe", str(i)]
        told = service["environment"]["SAR_HANGAR"]
        assert told == SERVICES["sih"]["environment"]["SAR_HANGAR"], "parameters come with the order"
        assert f"signals:{told}" in service["volumes"] and f"signals:{told}" in SERVICES["sih"]["volumes"]


def test_the_gazebo_tier_is_one_container() -> None:
    assert set(in_profile("gazebo")) == {"gazebo"}
    flown = SERVICES["gazebo"]
    assert "SAR_HANGAR" not in flown["environment"], "its vehicles are processes of its own"
    assert flown["healthcheck"] == SERVICES["sih"]["healthcheck"]
    missions = {key: value for key, value in flown["environment"].items() if key.startswith("SAR_")}
    assert missions.items() <= SERVICES["sih"]["environment"].items()


def test_both_images_of_px4_are_of_one_version() -> None:
    images = {filled_in(SERVICES["px4-1"]["image"]), filled_in(SERVICES["gazebo"]["build"]["args"]["PX4_GAZEBO_IMAGE"])}
    assert images == {f"px4io/px4-sitl{kind}:v1.18.0-beta2" for kind in ("", "-gazebo")}


@pytest.mark.parametrize("tier", ["sih", "gazebo"])
def test_a_vehicle_whose_evaluator_falls_silent_holds(tier: str) -> None:
    assert parameters_of(prepare(Scenario(world="village"), 1, 0, tier))["COM_OBL_RC_ACT"] == 5.0


def instructions(dockerfile: Path) -> list[tuple[str, str]]:
    text = re.sub(r"\\\n\s*", " ", dockerfile.read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda p: p.name)
def test_dockerfiles(dockerfile: Path) -> None:
    steps = instructions(dockerfile)
    known = {"ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "FROM", "LABEL", "RUN", "USER", "WORKDIR"}
    assert {word for word, _ in steps} <= known
    given = dict(rest.split("=", 1) for word, rest in steps if word == "ARG")
    bases = {name: value for name, value in given.items() if name.endswith("_IMAGE")}
    assert bases and all(re.fullmatch(r"[\w./-]+:v?[\d\w][\w.-]*\d[\w.-]*|ros:jazzy[\w-]+", v) for v in bases.values())
    assert {rest.split()[0] for word, rest in steps if word == "FROM"} == {f"${{{name}}}" for name in bases}
    assert [rest for word, rest in steps if word == "USER"][-1] == "1000:1000"
    for word, rest in steps:
        if word == "COPY" and not rest.startswith("--from="):
            *sources, _ = rest.split()
            assert all((ROOT / source).exists() for source in sources), rest
    assert "latest" not in dockerfile.read_text()
    assert not re.search(r"\b[\w-]+\.(com|dev|io|net|org)\b", dockerfile.read_text()), "no host is named"
    (asked,) = {
        tuple(s["build"]["args"].items())
        for s in SERVICES.values()
        if "build" in s and dockerfile.name in s["build"]["dockerfile"].split("/")
    }
    assert {key: filled_in(value) for key, value in asked} == given
    labels = next(rest for word, rest in steps if word == "LABEL")
    assert f'org.opencontainers.image.version="{__version__}"' in labels


INSTALLING = [d for d in DOCKERFILES if "pyproject.toml" in d.read_text()]


def settings_of(dockerfile: Path) -> dict[str, str]:
    """The environment of the image, the last stage's."""
    steps = instructions(dockerfile)
    last = max(i for i, (word, _) in enumerate(steps) if word == "FROM")
    words = [shlex.split(rest) for word, rest in steps[last:] if word == "ENV"]
    return dict(word.split("=", 1) for line in words for word in line)


@pytest.mark.parametrize("dockerfile", INSTALLING, ids=lambda p: p.name)
def test_sar_eval_can_be_built_of_what_is_copied(dockerfile: Path, tmp_path: Path) -> None:
    """Wheels carry every shared folder, so every one must be in the image while it is built."""
    source, stale = tmp_path / "source", shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "install", "log")
    for word, rest in instructions(dockerfile):
        if word == "COPY" and not rest.startswith(("--from=", "docker/")):
            *files, target = rest.split()
            for file in files:
                place = source / target.removeprefix("/source").strip("./") / ("" if len(files) == 1 else file)
                if (ROOT / file).is_dir():
                    shutil.copytree(ROOT / file, place, symlinks=True, ignore=stale)
                else:
                    place.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(ROOT / file, place)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    done = subprocess.run(
        [*command, "--wheel-dir", str(tmp_path), str(source)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    inside = zipfile.ZipFile(wheel).namelist()
    for folder in (*(f"sar_eval/share/{name}/" for name in CHECKOUT_PLACES), "sar_gazebo/"):
        assert any(name.startswith(folder) for name in inside), folder


def test_images_that_evaluate_are_made_alike() -> None:
    plain, gazebo = (settings_of(DOCKER / name) for name in ("Dockerfile", "gazebo.Dockerfile"))
    own = ("PATH", "SAR_IMAGE")
    assert {k: v for k, v in plain.items() if k not in own}.items() <= gazebo.items()
    assert SERVICES["gazebo"]["environment"]["PX4_BIN"] == gazebo["PX4_BIN"]
    assert SERVICES["gazebo"]["environment"]["HOME"] == gazebo["HOME"]
    (installed,) = re.findall(r"pip install .*?--target (\S+)", (DOCKER / "gazebo.Dockerfile").read_text())
    assert gazebo["PYTHONPATH"] == installed
    assert gazebo["PATH"] == f"{installed}/bin:$PATH", "where pip puts the commands of what it installs there"


def test_our_version_is_the_images_version() -> None:
    assert {image.rpartition(":")[2] for image in images()} == {__version__}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.name)
def test_scripts_are_well_formed_and_executable(script: Path) -> None:
    shell = script.read_text().splitlines()[0].removeprefix("#!")
    assert subprocess.run([shell, "-n", str(script)], check=False).returncode == 0
    assert os.access(script, os.X_OK)


@pytest.fixture
def stage_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder first on PATH, and the scripts' places below a temporary one."""
    tools = tmp_path / "bin"
    tools.mkdir()
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    monkeypatch.setenv("SAR_RUNS_DIR", str(tmp_path / "runs"))
    monkeypatch.setenv("SAR_HANGAR", str(tmp_path))
    for name in ("SAR_RUNS", "SAR_TIER", "SAR_SEEDS", "SAR_EPISODES", "SAR_PATTERN", "SAR_DURATION_S"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TOLD", str(tmp_path / "told"))
    return tools


def put(tools: Path, name: str, script: str) -> None:
    (tools / name).write_text(f"#!/bin/sh\n{script}\n")
    (tools / name).chmod(0o755)


def run_script(name: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = ["/bin/bash" if name == "play.sh" else "/bin/sh", str(DOCKER / name), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=WAIT_S)


def wait_for(path: Path) -> None:
    give_up = time.monotonic() + WAIT_S
    while not path.exists():
        assert time.monotonic() < give_up, f"{path} never came"
        time.sleep(0.02)


@pytest.fixture
def gazebo_image(stage_hand: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """PX4's folder of a stand-in of the Gazebo image: gz, Gazebo's Python modules, PX4 and its models."""
    prefix = tmp_path / "px4-gazebo"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "share" / "gz" / "models" / X500).parent.mkdir(parents=True)
    (prefix / "share" / "gz" / "models" / X500).touch()
    put(prefix / "bin", "px4", "exit 1")
    put(stage_hand, "gz", "exit 1")
    put(stage_hand, "python3", f'exec "{sys.executable}" "$@"')
    put(stage_hand, "sar-eval", f'exec "{sys.executable}" -m sar_eval "$@"')
    for name in {*MODULES, *(name for name in standins.modules() if name.startswith("gz."))}:
        module = (tmp_path / "modules").joinpath(*name.split("."), "__init__.py")
        module.parent.mkdir(parents=True, exist_ok=True)
        module.write_text("def __getattr__(name):\n    return object\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "modules"))
    monkeypatch.setenv("PX4_BIN", str(prefix / "bin" / "px4"))
    for name in ("SAR_HANGAR", "PX4_GZ_MODELS"):
        monkeypatch.delenv(name, raising=False)
    return prefix


@pytest.mark.parametrize("lacks", ["", "gz", "px4", *MODULES])
def test_the_gazebo_image_is_not_built_without_its_parts(
    gazebo_image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacks: str
) -> None:
    if lacks in MODULES:
        shutil.rmtree((tmp_path / "modules").joinpath(*lacks.split(".")))
    elif lacks:
        (tmp_path / "bin" / "gz" if lacks == "gz" else gazebo_image / "bin" / "px4").unlink()
    (check,) = (r for word, r in instructions(DOCKER / "gazebo.Dockerfile") if word == "RUN" and "import gz" in r)
    kernels, volume = tmp_path / "kernels", tmp_path / "volume"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(volume))
    done = subprocess.run(
        ["/bin/sh", "-c", check.replace("/tmp/kernels", str(kernels))], capture_output=True, text=True, check=False
    )
    assert (done.returncode == 0) == (not lacks), done.stderr
    assert lacks in done.stderr
    assert lacks or not kernels.exists()
    assert not volume.exists(), "what root makes there, others cannot write to"


COMMON = "--world village --episodes 0-1 --pattern partitioned_lawnmower --out {runs}/campaign-village"
FLOWN = {
    "sih": "--backend sih " + COMMON + " --sim-speed 1 --bags all --victims present --refly-invalid",
    "gazebo": "--backend gazebo " + COMMON + " --sim-speed 1 --bags all --victims present --refly-invalid",
    "cluster": "--backend embedded " + COMMON + " --cluster tcp://scheduler:8786 --bags events --victims both",
}


@pytest.mark.parametrize("profile", FLOWN)
def test_an_evaluation_flies_the_median_seeds_and_leaves_a_report(
    stage_hand: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str
) -> None:
    assert command_of(profile)[1:] == [f"{OURS}evaluate.sh", profile]
    if "SAR_HANGAR" not in SERVICES[profile]["environment"]:
        monkeypatch.delenv("SAR_HANGAR")
    put(stage_hand, "sar-eval", 'echo "$@" >> "$TOLD"; case $1 in stage1) echo row > "$5";; esac')
    first, again = run_script("evaluate.sh", profile), run_script("evaluate.sh", profile)
    assert (first.returncode, again.returncode) == (0, 0), first.stderr
    runs = f"runs/{profile}"
    stage2 = f"stage2 --stage1 {runs}/stage1-village.jsonl {FLOWN[profile].format(runs=runs)}"
    report = f"report {runs}/campaign-village --stage1 {runs}/stage1-village.jsonl --out {runs}/report"
    stage1 = f"stage1 --world village --out {runs}/stage1-village.jsonl"
    told = (tmp_path / "told").read_text().splitlines()
    assert told == ["compile", stage1, stage2, report, "compile", stage2, report]
    assert first.stdout.splitlines()[0].startswith("sar-eval: Stage 1, its three median seeds, their Stage-2 missions")
    assert f"everything is left in ./runs/{profile}" in first.stdout.splitlines()[1]
    assert first.stdout.splitlines()[-1].startswith(f"sar-eval: read ./runs/{profile}/report/RESULTS.md")
    assert not (tmp_path / "alive").exists(), "vehicles in containers of their own leave"
    for line in (stage1, stage2, report):
        verb, *options = line.split()
        click_app().commands[verb].make_context(verb, options)


def test_variables_reduce_what_is_flown(stage_hand: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(stage_hand, "sar-eval", 'echo "$@" >> "$TOLD"')
    given = {
        "SAR_EPISODES": "3",
        "SAR_PATTERN": "spiral",
        "SAR_DURATION_S": "30",
        "SAR_SEEDS": "1,4",
        "SAR_TIER": "sitl",
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert run_script("evaluate.sh", "embedded").returncode == 0
    assert run_script("evaluate.sh", "sih").returncode == 0
    _, embedded, _, stage2, report = (tmp_path / "told").read_text().splitlines()
    assert embedded == "eval --out runs/embedded/evaluation --episodes 3 --pattern spiral --duration-s 30"
    assert stage2.startswith("stage2 --seeds 1,4 --backend sitl --world village --episodes 3 --pattern spiral ")
    assert stage2.endswith(" --duration-s 30")
    assert report == "report runs/sih/campaign-village --out runs/sih/report"
    for line in (embedded, stage2, report):
        verb, *options = line.split()
        click_app().commands[verb].make_context(verb, options)


def test_an_evaluation_that_fails_says_so_and_ends_the_vehicles(stage_hand: Path, tmp_path: Path) -> None:
    put(stage_hand, "sar-eval", f"case $1 in stage2) exit {RunError.exit_code};; esac")
    assert run_script("evaluate.sh", "sih").returncode == RunError.exit_code
    assert not (tmp_path / "alive").exists()


@pytest.mark.parametrize("tier", ["sih", "gazebo"])
def test_an_evaluation_told_to_stop_lets_the_flight_finish(
    stage_hand: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tier: str
) -> None:
    if "SAR_HANGAR" not in SERVICES[tier]["environment"]:
        monkeypatch.delenv("SAR_HANGAR")
    flight = (
        'trap \'sleep 0.3; echo landed >> "$TOLD"; exit 3\' TERM; touch "$TOLD.flying"; while :; do sleep 0.05; done'
    )
    put(stage_hand, "sar-eval", f"case $1 in stage2) {flight};; esac")
    process = subprocess.Popen(["/bin/sh", str(DOCKER / "evaluate.sh"), tier])
    wait_for(tmp_path / "told.flying")
    assert (tmp_path / "alive").exists() == (tier == "sih")
    process.send_signal(signal.SIGTERM)
    assert process.wait(WAIT_S) == 3
    assert (tmp_path / "told").read_text() == "landed\n"
    assert not (tmp_path / "alive").exists()


PX4 = 'trap \'echo down >> "$TOLD"; exit 0\' TERM; echo "$@" > "$TOLD"; touch "$TOLD.up"; while :; do sleep 0.05; done'


@pytest.fixture
def etc(tmp_path: Path) -> Path:
    """Where a PX4 in bin has its start-up scripts."""
    return tmp_path / "etc"


@pytest.mark.parametrize("end", ["the evaluation is over", "the evaluation was killed", "the container is stopped"])
def test_a_vehicle_ends_with_its_evaluation(stage_hand: Path, tmp_path: Path, etc: Path, end: str) -> None:
    put(stage_hand, "px4", PX4)
    (tmp_path / "vehicle-2.order").touch()
    (tmp_path / "alive").touch()
    process = subprocess.Popen(["/bin/sh", str(DOCKER / "vehicle.sh"), str(stage_hand / "px4"), "2"])
    wait_for(tmp_path / "told.up")
    if end == "the evaluation is over":
        (tmp_path / "alive").unlink()
    elif end == "the evaluation was killed":
        os.utime(tmp_path / "alive", (time.time() - 11.0,) * 2)
    else:
        process.send_signal(signal.SIGTERM)
    assert process.wait(WAIT_S) == 0
    first, second = (tmp_path / "told").read_text().splitlines()
    assert re.fullmatch(rf"-d -i 2 -w /\S+ {etc}", first) and second == "down"


def test_a_vehicle_that_does_not_leave_is_made_to(stage_hand: Path, tmp_path: Path) -> None:
    put(stage_hand, "px4", 'trap "" TERM; touch "$TOLD.up"; while :; do sleep 0.05; done')
    (tmp_path / "vehicle-2.order").touch()
    (tmp_path / "alive").touch()
    process = subprocess.Popen(["/bin/sh", str(DOCKER / "vehicle.sh"), str(stage_hand / "px4"), "2"])
    wait_for(tmp_path / "told.up")
    (tmp_path / "alive").unlink()
    assert process.wait(WAIT_S) == 0
    assert not (tmp_path / "vehicle-2.flying").exists()


def test_a_vehicle_does_not_wait_for_ever(stage_hand: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(stage_hand, "px4", PX4)
    (tmp_path / "alive").touch()
    os.utime(tmp_path / "alive", (time.time() - 3600.0,) * 2)
    monkeypatch.setenv("SAR_PATIENCE_S", "0")
    done = run_script("vehicle.sh", str(stage_hand / "px4"), "2")
    assert (done.returncode, done.stdout) == (1, "vehicle 2: no evaluation came within 0 s\n")
    os.utime(tmp_path / "alive", (time.time() + 5.0,) * 2)
    (tmp_path / "alive").rename(tmp_path / "over")
    done = run_script("vehicle.sh", str(stage_hand / "px4"), "2")
    assert (done.returncode, done.stdout) == (0, "vehicle 2: the evaluation is over\n"), "it came and went"


ORDERED = 'trap \'exit 0\' TERM; echo "$@ $PX4_HOME_LAT $PX4_PARAM_A" >> "$TOLD"; while :; do sleep 0.05; done'


@pytest.fixture
def hangar(stage_hand: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A vehicle of a stand-in that waits for orders, as its container does."""
    put(stage_hand, "px4", ORDERED)
    folder = tmp_path / "hangar"
    folder.mkdir()
    monkeypatch.setenv("SAR_HANGAR", str(folder))
    beat = subprocess.Popen(["/bin/sh", "-c", f"while touch {folder}/alive; do sleep 1; done"])
    command = ["/bin/sh", str(DOCKER / "vehicle.sh"), str(stage_hand / "px4"), "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "vehicle 0: waits for orders\n"
    yield folder
    beat.kill()
    beat.wait()
    (folder / "alive").unlink()
    assert process.wait(WAIT_S) == 0


def left_in(hangar: Path) -> set[str]:
    return {path.name for path in hangar.iterdir()} - {"alive"}


def test_a_vehicle_flies_on_order_and_afresh(hangar: Path, tmp_path: Path) -> None:
    launcher = ContainerVehicles(hangar)
    for number in (1, 2):
        launcher.start([Origin(47.0 + number, 8.0, 489.4)], {"A": f"{number} metres"}, 1.0)
        wait_for(hangar / "vehicle-0.flying")
        launcher.check()
        give_up = time.monotonic() + WAIT_S
        while len((tmp_path / "told").read_text().splitlines() if (tmp_path / "told").exists() else []) < number:
            assert time.monotonic() < give_up
            time.sleep(0.02)
        launcher.stop()
        assert not left_in(hangar), "it has landed and left nothing behind"
    told = (tmp_path / "told").read_text().splitlines()
    places = {line.split()[4] for line in told}
    assert len(places) == 2 and not any(Path(place).exists() for place in places), "each flew in a folder of its own"
    assert [line.split(maxsplit=6)[6] for line in told] == ["48.000000000 1 metres", "49.000000000 2 metres"]


def test_a_vehicle_that_falls_out_of_the_sky_is_reported(stage_hand: Path, hangar: Path) -> None:
    put(stage_hand, "px4", "exit 7")
    launcher = ContainerVehicles(hangar)
    launcher.start([Origin(47.0, 8.0, 489.4)], {}, 1.0)
    wait_for(hangar / "vehicle-0.ended")
    with pytest.raises(SpoiltError, match="vehicle_lost: vehicle 1 ended with 7"):
        launcher.check()
    launcher.stop()
    assert not left_in(hangar)


def test_an_order_that_no_container_takes_ends_the_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = ContainerVehicles(tmp_path)
    launcher.start([Origin(47.0, 8.0, 489.4)] * 2, {}, 1.0)
    (tmp_path / "vehicle-0.flying").touch()
    launcher.check()
    monkeypatch.setattr("sar_eval.px4.containers.TAKE_S", -1.0)
    with pytest.raises(SpoiltError, match="no container took the order of vehicle 2") as caught:
        launcher.check()
    assert caught.value.final
    (tmp_path / "vehicle-0.flying").unlink()
    launcher.stop()


def test_a_vehicle_in_the_hangar_is_healthy(hangar: Path) -> None:
    assert run_script("vehicle.sh", "probe", "0").returncode == 0
    (hangar / "vehicle-41.order").touch()
    assert run_script("vehicle.sh", "probe", "41").returncode != 0, "ordered, and its port is not open"
    (hangar / "vehicle-41.order").unlink()


def test_a_vehicle_without_a_hangar_says_so(stage_hand: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SAR_HANGAR")
    put(stage_hand, "px4", 'touch "$TOLD"')
    done = run_script("vehicle.sh", str(stage_hand / "px4"), "0")
    assert done.returncode != 0 and "SAR_HANGAR: give the folder" in done.stderr
    assert not (stage_hand.parent / "told").exists()


def test_a_vehicle_is_healthy_when_its_port_is_open(stage_hand: Path, tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.bind(("127.0.0.1", 0))
        instance = str(link.getsockname()[1] - 14580)
        (tmp_path / f"vehicle-{instance}.order").touch()
        assert run_script("vehicle.sh", "probe", instance).returncode == 0
    assert run_script("vehicle.sh", "probe", instance).returncode != 0


def test_the_player_takes_the_newest_whole_bag(stage_hand: Path, tmp_path: Path) -> None:
    put(stage_hand, "ros2", 'echo "$@" > "$TOLD"')
    none = run_script("play.sh")
    assert none.returncode != 0
    for age, name in ((30, "old"), (20, "new bag"), (10, "torn.partial")):
        folder = tmp_path / "runs" / "embedded" / name
        folder.mkdir(parents=True)
        (folder / "metadata.yaml").touch()
        os.utime(folder / "metadata.yaml", (time.time() - age,) * 2)
    assert run_script("play.sh").returncode == 0
    assert (tmp_path / "told").read_text() == f"bag play --loop --clock 100 {tmp_path}/runs/embedded/new bag\n"


def test_the_player_without_a_bag_says_what_to_do(stage_hand: Path, tmp_path: Path) -> None:
    done = run_script("play.sh")
    assert done.returncode == 4 and "fly first" in done.stderr


def probe(*words: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, str(DOCKER / "probe.py"), *words], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout


@pytest.fixture
def answering() -> Iterator[tuple[int, list[str]]]:
    """A port, and what it answers."""
    says = ["ok"]

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/health" else 404)
            self.end_headers()
            self.wfile.write(says[0].encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port, says
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_http_probe(answering: tuple[int, list[str]]) -> None:
    port, says = answering
    assert probe("http", str(port)) == (0, "")
    says[0] = "busy"
    assert probe("http", str(port)) == (1, f"unhealthy: port {port} says 'busy', not 'ok'\n")


def test_the_probes_of_a_real_scheduler(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="dask.distributed is missing: pip install 'sar-eval[cluster]'")
    with socket.socket() as one, socket.socket() as two:
        one.bind(("127.0.0.1", 0))
        two.bind(("127.0.0.1", 0))
        port, page = (str(s.getsockname()[1]) for s in (one, two))
    assert probe("http", page)[0] == 1
    moved = {"8786": port, "127.0.0.1:8787": f"127.0.0.1:{page}"}
    words = [moved.get(word, word) for word in command_of("scheduler")[2:]]
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", *words]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=tmp_path)
    try:
        give_up = time.monotonic() + WAIT_S
        while probe("http", page)[0] != 0:
            assert process.poll() is None and time.monotonic() < give_up, (tmp_path / "log").read_text()
    finally:
        process.terminate()
        process.wait(WAIT_S)


def test_the_progress_probe(tmp_path: Path) -> None:
    folder, kernels = tmp_path / "runs", tmp_path / "kernels"
    asked = ("progress", "60", str(folder), str(kernels))
    assert probe(*asked) == (1, f"unhealthy: {folder}, {kernels}: not there yet\n")
    (folder / "bag").mkdir(parents=True)
    assert probe(*asked) == (0, "")
    for path in (folder / "bag", folder):
        os.utime(path, (time.time() - 100,) * 2)
    code, said = probe(*asked)
    assert code == 1 and "changed for 10" in said
    kernels.mkdir()
    assert probe(*asked)[0] == 0, "it compiles"
    os.utime(kernels, (time.time() - 100,) * 2)
    (folder / "bag" / "new.mcap").touch()
    assert probe(*asked)[0] == 0


def test_a_probe_asked_wrongly_is_unhealthy() -> None:
    code, said = probe("http", "dashboard")
    assert code == 1 and "allowed are: http PORT, progress SECONDS FOLDER..." in said
