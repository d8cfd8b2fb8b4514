"""Containers, as far as a machine without an engine can tell: the compose file, what it runs, images and scripts."""

from __future__ import annotations

import http.server
import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from sar_core.errors import RunError
from sar_core.geodesy import Origin
from sar_eval.cli import app
from sar_eval.config import Scenario, prepare
from sar_eval.px4.hangar import Hangar
from sar_eval.simulator import SpoiltError
from sar_sim.parameters import read_parameters

ROOT = Path(__file__).resolve().parents[2]
DOCKER = ROOT / "docker"
COMPOSE = yaml.safe_load((DOCKER / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
PROFILES = ("sih", "embedded", "cluster", "gazebo", "viz")
ONE_SHOT = {"preflight", "gazebo-preflight", "gazebo-stage"}
"""Services that end by themselves within seconds; everything else is probed."""
PLAYED_BY_OTHERS = {"player"}
"""What has nothing to probe: the bridge it feeds is probed."""
SCRIPTS = sorted(DOCKER.glob("*.sh"))
DOCKERFILES = sorted(DOCKER.glob("*Dockerfile"))
OURS = "/opt/sar_eval/"
WAIT_S = 60.0


def filled_in(text: str) -> str:
    """What compose makes of a text where the environment has none of the variables."""
    return re.sub(r"\$\{(\w+):-([^}]*)\}", r"\2", text).replace("$$", "$")


def command_of(service: str) -> list[str]:
    return [filled_in(word) for word in SERVICES[service]["command"]]


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
        pytest.skip("no `docker compose` here: install Docker with its compose plugin")
    command = [docker, "compose", "--profile", profile, "config", "--services"]
    done = subprocess.run(command, cwd=DOCKER, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == set(in_profile(profile))


def test_profiles_and_the_default() -> None:
    assert {profile for service in SERVICES.values() for profile in service["profiles"]} == set(PROFILES)
    settings = [line for line in (DOCKER / ".env").read_text().splitlines() if not line.startswith("#")]
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
    assert not {"privileged", "pid", "cap_add", "devices"} & set(service)
    assert service.get("network_mode", "service:").startswith("service:"), "never the host's network"
    assert re.fullmatch(r"[\w./-]+:v?\d[\w.-]*", filled_in(service["image"])), "an image has a version"
    for port in service.get("ports", []):
        assert port.startswith("127.0.0.1:"), "published on this machine only"
    if name not in ONE_SHOT | PLAYED_BY_OTHERS:
        assert service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")


def test_no_variable_has_to_be_set() -> None:
    text = (DOCKER / "compose.yaml").read_text()
    assert re.findall(r"\$\{\w+(?!\w*:-)[^}]*\}", text) == []


def test_what_is_mounted_exists() -> None:
    for name, service in SERVICES.items():
        for volume in service.get("volumes", []):
            source = filled_in(volume).partition(":")[0]
            known = (DOCKER / source).exists() if source.startswith(".") else source in COMPOSE["volumes"]
            assert known, f"{name}: {volume}"
    assert (DOCKER / "runs" / ".gitignore").is_file(), "an engine would make a missing folder as root"


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


@pytest.mark.parametrize("name", [n for n in SERVICES if SERVICES[n]["command"][0] == "sar-eval"])
def test_sar_eval_knows_the_verbs_and_options(name: str) -> None:
    _, verb, *options = command_of(name)
    command = click_app().commands[verb]
    (out,) = (p.name for p in command.params if "--out" in p.opts)
    assert str(command.make_context(verb, options).params[out]).startswith("/runs/")


def test_the_cluster_campaign_can_be_planned(tmp_path: Path) -> None:
    _, *words = command_of("cluster")
    words[words.index("/runs/cluster")] = str(tmp_path / "cluster")
    command = [sys.executable, "-m", "sar_eval", *words, "--dry-run", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["planned"] == 3 * 3 * 2 * 8, "seeds, episodes, victims present and absent, patterns"


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
    address = f"tcp://scheduler:{port}"
    assert address in command_of("worker") and address in command_of("cluster")
    for name in ("scheduler", "worker"):
        words = command_of(name)
        assert words[words.index("--dashboard-address") + 1] == f":{SERVICES[name]['healthcheck']['test'][-1]}"
    worker = command_of("worker")
    assert worker[worker.index("--nthreads") + 1] == "1", "cluster.py refuses other workers"


@pytest.mark.parametrize(
    ("prefix", "binary"), [("px4-", "/opt/px4/bin/px4"), ("gazebo-px4-", "/opt/px4-gazebo/bin/px4")]
)
def test_vehicles_are_one_container_each(prefix: str, binary: str) -> None:
    hold = "5"
    for i in range(Scenario().drones):
        service = SERVICES[f"{prefix}{i + 1}"]
        assert service["command"] == [binary, str(i)]
        assert service["healthcheck"]["test"][-2:] == ["probe", str(i)]
        told = service["environment"]
        if prefix == "px4-":
            assert told["SAR_HANGAR"] == SERVICES["sih"]["environment"]["SAR_HANGAR"], "parameters come with the order"
        else:
            assert told["PX4_PARAM_COM_OBL_RC_ACT"] == hold
    for file in ("x500", "sihsim_quadx"):
        assert read_parameters(ROOT / "px4_params" / f"{file}.params")["COM_OBL_RC_ACT"] == float(hold)


def test_gazebo_vehicles_attach_to_the_staged_models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "ros2_ws" / "src" / "sar_gazebo"))
    from sar_gazebo.stage import main, vehicles

    for vehicle in vehicles(prepare(Scenario(world="village"), 1, 0, "gazebo")):
        told = SERVICES[f"gazebo-px4-{vehicle.instance + 1}"]["environment"]
        assert {key: filled_in(told[key]) for key in vehicle.environment} == vehicle.environment
    python, dash_m, module, *words = command_of("gazebo-stage")
    assert (python, dash_m, module) == ("python3", "-m", "sar_gazebo.stage")
    place = words.index("/runs/gazebo/stage")
    assert main([*words[:place], str(tmp_path)]) == 0
    assert command_of("gazebo-server")[-1] == f"/runs/gazebo/stage/{(tmp_path / 'stage.sdf').name}"
    assert (tmp_path / "stage.sdf").is_file()


def instructions(dockerfile: Path) -> list[tuple[str, str]]:
    text = re.sub(r"\\\n\s*", " ", dockerfile.read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda p: p.name)
def test_dockerfiles(dockerfile: Path) -> None:
    steps = instructions(dockerfile)
    assert {word for word, _ in steps} <= {"ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "FROM", "RUN", "USER", "WORKDIR"}
    bases = dict(rest.split("=", 1) for word, rest in steps if word == "ARG")
    assert bases and all(re.fullmatch(r"[\w./-]+:v?[\d\w][\w.-]*\d[\w.-]*|ros:jazzy[\w-]+", v) for v in bases.values())
    assert {rest.split()[0] for word, rest in steps if word == "FROM"} == {f"${{{name}}}" for name in bases}
    assert [rest for word, rest in steps if word == "USER"][-1] == "1000:1000"
    for word, rest in steps:
        if word == "COPY" and not rest.startswith("--from="):
            *sources, _ = rest.split()
            assert all((ROOT / source).exists() for source in sources), rest
    assert "latest" not in dockerfile.read_text()
    assert not re.search(r"\b[\w-]+\.(com|dev|io|net|org)\b", dockerfile.read_text()), "no host is named"
    assert dockerfile.with_name(f"{dockerfile.name}.dockerignore").is_file()
    (asked,) = {
        tuple(s["build"]["args"].items())
        for s in SERVICES.values()
        if "build" in s and dockerfile.name in s["build"]["dockerfile"].split("/")
    }
    assert {key: filled_in(value) for key, value in asked} == bases


def test_our_version_is_the_images_version() -> None:
    from sar_eval import __version__

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
    monkeypatch.setenv("SAR_RUNS_DIR", str(tmp_path / "runs"))
    monkeypatch.setenv("SAR_OVER", str(tmp_path / "over"))
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


def test_preflight_agrees_with_the_command_line(
    stage_hand: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `docker compose up` asks: vehicles wait for orders in the hangar. Without them, what is missing is said."""
    put(stage_hand, "sar-eval", f'exec "{sys.executable}" -m sar_eval "$@"')
    monkeypatch.setenv("SAR_HANGAR", str(tmp_path))
    done = run_script("preflight.sh", "sih")
    assert (done.returncode, done.stdout) == (0, "preflight: sar-eval flies the sih tier\n"), done.stderr
    monkeypatch.delenv("SAR_HANGAR")
    monkeypatch.setenv("PX4_BIN", "/no/such/px4")
    done = run_script("preflight.sh", "sih")
    assert done.returncode == 5
    assert "cannot fly the sih tier, so no vehicle was started" in done.stderr
    assert "PX4_BIN=/no/such/px4 is not an executable" in done.stderr
    assert "docker compose --profile embedded up" in done.stderr


def test_preflight_lets_through_what_flies(stage_hand: Path) -> None:
    put(stage_hand, "sar-eval", 'echo "$@" > "$TOLD"')
    done = run_script("preflight.sh", "gazebo")
    assert (done.returncode, done.stdout) == (0, "preflight: sar-eval flies the gazebo tier\n")
    assert "--backend gazebo" in (stage_hand.parent / "told").read_text()


def test_an_evaluation_flies_the_median_seeds_and_leaves_a_report(stage_hand: Path, tmp_path: Path) -> None:
    put(stage_hand, "sar-eval", 'echo "$@" >> "$TOLD"; case $1 in stage1) echo row > "$5";; esac')
    assert run_script("evaluate.sh", "sih").returncode == 0
    assert run_script("evaluate.sh", "sih").returncode == 0
    runs = tmp_path / "runs" / "sih"
    stage2 = (
        f"stage2 --backend sih --stage1 {runs}/stage1-village.jsonl --world village --episodes 0-2 "
        f"--pattern partitioned_lawnmower --victims present --workers 1 --bags all --out {runs}/campaign-village"
    )
    report = f"report {runs}/campaign-village --stage1 {runs}/stage1-village.jsonl --out {runs}/report"
    stage1 = f"stage1 --world village --out {runs}/stage1-village.jsonl"
    assert (tmp_path / "told").read_text().splitlines() == [stage1, stage2, report, stage2, report]
    assert (tmp_path / "over").exists(), "the vehicles are told that it is over"
    for line in (stage1, stage2, report):
        verb, *options = line.split()
        click_app().commands[verb].make_context(verb, options)


def test_an_evaluation_that_fails_says_so_and_ends_the_vehicles(stage_hand: Path, tmp_path: Path) -> None:
    put(stage_hand, "sar-eval", f"case $1 in stage2) exit {RunError.exit_code};; esac")
    assert run_script("evaluate.sh", "sih").returncode == RunError.exit_code
    assert (tmp_path / "over").exists()


def test_an_evaluation_told_to_stop_lets_the_flight_finish(stage_hand: Path, tmp_path: Path) -> None:
    flight = (
        'trap \'sleep 0.3; echo landed >> "$TOLD"; exit 3\' TERM; touch "$TOLD.flying"; while :; do sleep 0.05; done'
    )
    put(stage_hand, "sar-eval", f"case $1 in stage2) {flight};; esac")
    process = subprocess.Popen(["/bin/sh", str(DOCKER / "evaluate.sh"), "sih"])
    wait_for(tmp_path / "told.flying")
    process.send_signal(signal.SIGTERM)
    assert process.wait(WAIT_S) == 3
    assert (tmp_path / "told").read_text() == "landed\n"
    assert (tmp_path / "over").exists()


PX4 = 'trap \'echo down >> "$TOLD"; exit 0\' TERM; echo "$@" > "$TOLD"; touch "$TOLD.up"; while :; do sleep 0.05; done'


@pytest.mark.parametrize("end", ["the evaluation is over", "the container is stopped"])
def test_a_vehicle_ends_with_its_evaluation(stage_hand: Path, tmp_path: Path, end: str) -> None:
    put(stage_hand, "px4", PX4)
    process = subprocess.Popen(["/bin/sh", str(DOCKER / "vehicle.sh"), str(stage_hand / "px4"), "2"])
    wait_for(tmp_path / "told.up")
    if end == "the evaluation is over":
        (tmp_path / "over").touch()
    else:
        process.send_signal(signal.SIGTERM)
    process.wait(WAIT_S)
    assert (tmp_path / "told").read_text() == "-d -i 2\ndown\n"


ORDERED = 'trap \'exit 0\' TERM; echo "$@ $PX4_HOME_LAT $PX4_PARAM_A" >> "$TOLD"; while :; do sleep 0.05; done'


@pytest.fixture
def hangar(stage_hand: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A vehicle of a stand-in that waits for orders, as its container does."""
    put(stage_hand, "px4", ORDERED)
    folder = tmp_path / "hangar"
    folder.mkdir()
    monkeypatch.setenv("SAR_HANGAR", str(folder))
    process = subprocess.Popen(["/bin/sh", str(DOCKER / "vehicle.sh"), str(stage_hand / "px4"), "0"])
    yield folder
    (tmp_path / "over").touch()
    assert process.wait(WAIT_S) == 0


def test_a_vehicle_flies_on_order_and_afresh(hangar: Path, tmp_path: Path) -> None:
    launcher = Hangar(hangar)
    for number in (1, 2):
        launcher.start([Origin(47.0 + number, 8.0, 489.4)], {"A": f"{number} metres"}, 1.0)
        wait_for(hangar / "vehicle-0.flying")
        launcher.check()
        give_up = time.monotonic() + WAIT_S
        while len((tmp_path / "told").read_text().splitlines() if (tmp_path / "told").exists() else []) < number:
            assert time.monotonic() < give_up
            time.sleep(0.02)
        launcher.stop()
        assert not list(hangar.iterdir()), "it has landed and left nothing behind"
    told = (tmp_path / "told").read_text().splitlines()
    assert told == ["-d -i 0 48.000000000 1 metres", "-d -i 0 49.000000000 2 metres"]


def test_a_vehicle_that_falls_out_of_the_sky_is_reported(stage_hand: Path, hangar: Path) -> None:
    put(stage_hand, "px4", "exit 7")
    launcher = Hangar(hangar)
    launcher.start([Origin(47.0, 8.0, 489.4)], {}, 1.0)
    wait_for(hangar / "vehicle-0.ended")
    with pytest.raises(SpoiltError, match="vehicle_lost: vehicle 1 ended with 7"):
        launcher.check()
    launcher.stop()
    assert not list(hangar.iterdir())


def test_a_vehicle_in_the_hangar_is_healthy(hangar: Path) -> None:
    assert run_script("vehicle.sh", "probe", "0").returncode == 0
    (hangar / "vehicle-41.order").touch()
    assert run_script("vehicle.sh", "probe", "41").returncode != 0, "ordered, and its port is not open"
    (hangar / "vehicle-41.order").unlink()


def test_a_vehicle_that_dies_is_not_hidden(stage_hand: Path) -> None:
    put(stage_hand, "px4", "exit 7")
    assert run_script("vehicle.sh", str(stage_hand / "px4"), "0").returncode == 7


def test_a_vehicle_is_healthy_when_its_port_is_open() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.bind(("127.0.0.1", 0))
        instance = str(link.getsockname()[1] - 14580)
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
    (tmp_path / "runs").mkdir()
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
    words = [{"8786": port, ":8787": f"127.0.0.1:{page}"}.get(word, word) for word in command_of("scheduler")[2:]]
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
    folder = tmp_path / "runs"
    assert probe("progress", str(folder), "60") == (1, f"unhealthy: {folder} is not there yet\n")
    (folder / "bag").mkdir(parents=True)
    assert probe("progress", str(folder), "60") == (0, "")
    for path in (folder / "bag", folder):
        os.utime(path, (time.time() - 100,) * 2)
    code, said = probe("progress", str(folder), "60")
    assert code == 1 and "changed for 10" in said
    (folder / "bag" / "new.mcap").touch()
    assert probe("progress", str(folder), "60")[0] == 0


def test_a_probe_asked_wrongly_is_unhealthy() -> None:
    code, said = probe("http", "dashboard")
    assert code == 1 and "allowed are: http PORT, progress FOLDER SECONDS" in said
