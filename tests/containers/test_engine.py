"""Our unmodified images and compose file on a real engine: one build, embedded, a cluster, PX4's stand-in."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sar_eval.campaign.campaign import RESULTS
from sar_eval.campaign.ledger import LEDGER, read_ledger
from tests.containers.engine import IMAGE, ROOT, SHORT, Stack, call, require, until

require()

pytestmark = [pytest.mark.containers, pytest.mark.alone, pytest.mark.slow]


HOSTS_OWN = re.compile(r"(?<=Analysed: )`[^`]*`|(?<=Python 3\.11)\.\d+")
"""What a page says of the command that made it and of its interpreter's last digit."""


def sar_eval(*words: object) -> subprocess.CompletedProcess[str]:
    """The same command on this machine, outside any container.

    OpenBLAS chooses its kernels by the processor, unless a variable of this shell says otherwise; a container has none.
    """
    plain = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
    return call(sys.executable, "-m", "sar_eval", *map(str, words), env=plain)


def said(page: Path) -> str:
    """A file's words but the host's own, whose lengths decide where lines are wrapped."""
    return HOSTS_OWN.sub("", " ".join(page.read_text().split()))


def result_bytes(campaign: Path) -> bytes:
    """The part of results.json that is compared, as it stands in the file."""
    return (campaign / RESULTS).read_bytes().partition(b'"result": ')[2].rpartition(b',\n"run": ')[0]


def test_embedded_ends_with_the_numbers_of_the_same_command_outside(
    stack: Callable[..., Stack], tmp_path: Path
) -> None:
    inside = stack(**SHORT)
    done = inside.evaluate("embedded")
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stdout.splitlines() if line.startswith("sar-eval: ")]
    assert "on the embedded simulator, then the report" in told[0] and f"{inside.runs}/embedded" in told[1]
    here, there = tmp_path / "outside", inside.runs / "embedded" / "evaluation"
    words = ("--episodes", "0", "--pattern", "partitioned_lawnmower", "--duration-s", "30", "--out", here)
    outside = sar_eval("eval", *words)
    assert outside.returncode == 0, outside.stderr
    assert result_bytes(there / "campaign") == result_bytes(here / "campaign") != b""
    for name in ("stage1.jsonl", "report/RESULTS.md", "report/TABLES.md", "report/episodes.csv"):
        assert said(there / name) == said(here / name), name
    manifest = json.loads((there / "campaign" / "manifest.json").read_text())
    assert manifest["host"]["image"] == "sar-eval 0.1.0 (unknown)"
    again = inside.evaluate("embedded")
    assert again.returncode == 0 and "6 of 6 missions are flown, 0 to fly" in again.stdout + again.stderr


def test_a_failing_run_is_told_from_its_exit_code(stack: Callable[..., Stack]) -> None:
    wrong = stack(**{**SHORT, "SAR_PATTERN": "zigzag"})
    done = wrong.evaluate("embedded")
    assert done.returncode == 1 and "zigzag" in done.stdout + done.stderr
    done = wrong.compose("embedded", "up", "--exit-code-from", "embedded")
    assert done.returncode == 1


def test_a_folder_that_cannot_be_written_is_one_clear_line(stack: Callable[..., Stack]) -> None:
    barred = stack(**SHORT)
    os.chown(barred.runs, 0, 0)
    done = barred.evaluate("embedded")
    told = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("sar-eval: ")]
    assert done.returncode == 1
    assert told == [
        f"sar-eval: {barred.runs} belongs to user 0 and cannot be written by user 1000, who runs in here. "
        f"Give: sudo chown 1000 {barred.runs}"
    ]


def test_a_cluster_whose_worker_is_killed_ends_with_the_table_of_one_process(
    stack: Callable[..., Stack], tmp_path: Path
) -> None:
    settings = {**SHORT, "SAR_EPISODES": "0-1", "SAR_SEEDS": "1,3,6", "SAR_DURATION_S": "60"}
    cluster = stack(**settings)
    ledger = cluster.runs / "cluster" / "campaign-village" / LEDGER
    flying = cluster.begin("cluster", "run", "--rm", "-T", "cluster")
    until(lambda: ledger.exists() and ledger.read_bytes().count(b"\n") >= 2, "two missions", flying)
    workers = cluster.containers("worker")
    assert len(workers) == 2
    hardened(cluster)
    assert call("docker", "kill", workers[0]).returncode == 0
    flown = len(read_ledger(ledger))
    assert flying.wait(900) == 0, cluster.said
    assert flown < 12 and len(read_ledger(ledger)) == 12, "it was killed in the middle"
    words = ("--seeds", "1,3,6", "--episodes", "0-1", "--pattern", "partitioned_lawnmower", "--duration-s", "60")
    alone = sar_eval("stage2", *words, "--out", tmp_path / "alone")
    assert alone.returncode == 0, alone.stderr
    assert result_bytes(ledger.parent) == result_bytes(tmp_path / "alone") != b""
    assert (cluster.runs / "cluster" / "report" / "RESULTS.md").is_file()


LISTENING = "for l in open('/proc/net/tcp'): f = l.split(); f[3] == '0A' and print(f[1])"


def hardened(stack: Stack) -> None:
    """Every container as the docs promise: an ordinary user, nothing allowed, a read-only root, no port outside."""
    for container in stack.containers():
        (facts,) = json.loads(call("docker", "inspect", container).stdout)
        host = facts["HostConfig"]
        assert facts["Config"]["User"] == "1000:1000" and host["ReadonlyRootfs"] and not host["Privileged"]
        assert host["CapDrop"] == ["ALL"] and not host["CapAdd"] and host["SecurityOpt"] == ["no-new-privileges:true"]
        assert not host["PortBindings"] and host["NetworkMode"] != "host" and not host["PidMode"]
        status = call("docker", "exec", container, "cat", "/proc/1/status").stdout
        assert "CapEff:\t0000000000000000" in status and "NoNewPrivs:\t1" in status
        assert call("docker", "exec", container, "touch", "/opt/file").returncode != 0
        for name in facts["NetworkSettings"]["Networks"]:
            if name not in ("none", ""):
                assert json.loads(call("docker", "network", "inspect", name).stdout)[0]["Internal"] is True
    (scheduler,) = stack.containers("scheduler") or [None]
    if scheduler is not None:
        ports = call("docker", "exec", scheduler, "python3", "-c", LISTENING).stdout.split()
        beyond = {port.rpartition(":")[2] for port in ports if not port.startswith("0100007F")}
        assert beyond <= {f"{8786:04X}"} | embedded_resolver(ports), "the dashboard is for the probe alone"


def embedded_resolver(ports: list[str]) -> set[str]:
    """The port of the engine's own name server, which it opens in every container on 127.0.0.11."""
    return {port.rpartition(":")[2] for port in ports if port.startswith("0B00007F")}


def test_our_own_vehicle_at_px4s_path_is_not_called_px4(standin: Callable[..., Stack]) -> None:
    done = standin().evaluate("sih")
    assert done.returncode == 3
    assert "wrong_autopilot: vehicle 1 is the embedded autopilot" in done.stdout + done.stderr


def test_orders_network_probes_and_a_whole_mission_go_through_to_the_report(standin: Callable[..., Stack]) -> None:
    flown = standin(SAR_TIER="sitl")
    flying = flown.begin("sih", "run", "--rm", "-T", "sih")
    until(lambda: "searched, coverage" in flown.said, "a search that begins", flying)
    hardened(flown)
    states = [json.loads(call("docker", "inspect", c).stdout)[0]["State"] for c in flown.containers()]
    assert len(states) == 5 and all(state["Health"]["Status"] in ("healthy", "starting") for state in states)
    assert flying.wait(900) == 0, flown.said
    (record,) = read_ledger(flown.runs / "sih" / "campaign-village" / LEDGER).values()
    assert record.result["valid"] and record.result["tier"] == "sitl" and record.result["landed"] == 4
    title = (flown.runs / "sih" / "report" / "RESULTS.md").read_text().splitlines()[0]
    assert "Stage 2 (sitl)" in title and "sih" not in title
    until(lambda: not flown.containers(), "vehicles that leave by themselves")


HASHES = """
import hashlib, os
for folder, _, files in os.walk('/'):
    if folder.split('/')[1] in ('proc', 'sys', 'dev', 'tmp', 'run'): continue
    for name in files:
        path = os.path.join(folder, name)
        if os.path.isfile(path) and not os.path.islink(path):
            print(hashlib.sha256(open(path, 'rb').read()).hexdigest(), path)
"""
MADE_BY_THE_ENGINE = {"/.dockerenv", "/etc/hostname", "/etc/hosts", "/etc/resolv.conf"}


def files_of(image: str) -> dict[str, str]:
    done = call("docker", "run", "--rm", "--user", "0", "--network", "none", image, "python3", "-c", HASHES)
    assert done.returncode == 0, done.stderr
    rows = (line.split(maxsplit=1) for line in done.stdout.splitlines())
    return {path: digest for digest, path in rows if path not in MADE_BY_THE_ENGINE}


def test_an_image_built_twice_has_the_same_files(base: str) -> None:
    build = ("docker", "build", "--quiet", "--file", "docker/Dockerfile", "--build-arg", f"PYTHON_IMAGE={base}")
    again = call(*build, "--no-cache", "--tag", "sar-eval-test-again:1", ".", cwd=ROOT)
    assert again.returncode == 0, again.stderr
    first, second = files_of(IMAGE), files_of("sar-eval-test-again:1")
    assert {p for p in {*first, *second} if first.get(p) != second.get(p)} == set()
    labels = json.loads(call("docker", "inspect", IMAGE).stdout)[0]["Config"]["Labels"]
    assert labels["org.opencontainers.image.version"] == "0.1.0"
    bill = json.loads(call("docker", "run", "--rm", IMAGE, "cat", "/opt/venv/sbom.cdx.json").stdout)
    assert {"numpy", "pymavlink", "distributed"} <= {part["name"] for part in bill["components"]}
