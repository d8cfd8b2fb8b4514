"""The same plan on an existing dask.distributed scheduler: small records come back, bags go to the shared folder."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Generator
from queue import Empty, SimpleQueue
from typing import Any

from sar_core.errors import ContractError, MissingDependencyError, RunError
from sar_eval.campaign.sources import code, first_difference
from sar_eval.campaign.workers import POLL_S, MissionJob, MissionOutcome, fly_job

CONNECT_S = 30.0
QUEUED = 2
"""Jobs handed out per worker: one in the air, one waiting, so that nobody idles while a record travels."""


def fly_remote(job: MissionJob, expected: dict[str, Any]) -> MissionOutcome:
    """What runs on a cluster's worker; one that joined later with other code refuses as well."""
    changed = differing(code(), expected)
    if changed:
        return MissionOutcome(job, reason="host_error", message=f"a worker's {changed}", fatal=True)
    return fly_job(job)


def differing(theirs: dict[str, Any], ours: dict[str, Any]) -> str | None:
    """The first part of the code in which a worker is not like us, in words."""
    parted = first_difference(theirs, ours)
    if parted is None:
        return None
    key, there, here = parted
    mend = f"set OPENBLAS_CORETYPE={here}" if key == "openblas" else "install the same version"
    return f"{key} is {there}, here it is {here}: {mend} on every worker"


class Cluster:
    """Every worker of a scheduler. A worker that dies is the scheduler's business: it gives the job to another one."""

    def __init__(self, address: str) -> None:
        try:
            import distributed
        except ImportError as error:
            raise MissingDependencyError(
                "dask.distributed is not installed; get it with: pip install 'sar-eval[cluster]'"
            ) from error
        self.address = address
        try:
            self._client = distributed.Client(address, timeout=CONNECT_S, set_as_default=False)
            self._client.wait_for_workers(1, timeout=CONNECT_S)
        except (OSError, TimeoutError, ValueError) as error:
            raise RunError(f"cluster {address}: no scheduler with a worker within {CONNECT_S:g} s ({error})") from error
        self._check()

    def _check(self) -> None:
        for worker, threads in self._client.nthreads().items():
            if threads != 1:
                raise RunError(f"cluster {self.address}: {worker} has {threads} threads; start it with --nthreads 1")
        for worker, theirs in self._client.run(_code).items():
            changed = differing(json.loads(theirs), code())
            if changed:
                raise ContractError(f"cluster {self.address}: on {worker} {changed}")

    @property
    def size(self) -> int:
        return len(self._client.nthreads())

    def fly(
        self, more: Callable[[], MissionJob | None], stop: Callable[[], str | None]
    ) -> Generator[MissionOutcome, None, None]:
        """Outcomes in the order they arrive; a job whose workers died too often is a lost one."""
        from distributed import KilledWorker

        flying: dict[Any, MissionJob] = {}
        landed: SimpleQueue[Any] = SimpleQueue()
        try:
            while stop() is None:
                while len(flying) < QUEUED * max(self.size, 1) and (job := more()) is not None:
                    name = f"{job.task.key}-{uuid.uuid4().hex[:8]}"
                    future = self._client.submit(fly_remote, job, code(), key=name, pure=False)
                    flying[future] = job
                    future.add_done_callback(landed.put)
                if not flying:
                    return
                try:
                    future = landed.get(timeout=POLL_S)
                except Empty:
                    continue
                job = flying.pop(future)
                try:
                    outcome: MissionOutcome = future.result()
                except KilledWorker as error:
                    outcome = MissionOutcome(job, reason="worker_lost", message=str(error))
                except Exception as error:
                    raise RunError(f"cluster {self.address}: {job.task.key}: {error}") from error
                yield outcome
        finally:
            self._client.cancel(list(flying))
            self._client.close()


def _code() -> str:
    return json.dumps(code())
