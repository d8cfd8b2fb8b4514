"""A campaign's ledger: one episode record per line, on disk before anything else happens, written by one process.

Whatever kills the writer, a line is whole or it is the torn last one, which the next start takes away.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from sar_core.errors import ContractError, InputError, RunError
from sar_eval.episode.record import SCHEMA_VERSION, Record

LEDGER = "episodes.jsonl"
LOCK = ".lock"


class Lock:
    """One process per campaign folder. The lock belongs to the process and goes with it, however it ends."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / LOCK

    def __enter__(self) -> Lock:
        try:
            self._handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise InputError(f"{self.path}: cannot open the lock ({error.strerror})") from error
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.read(self._handle, 200).decode(errors="replace").strip()
            os.close(self._handle)
            raise InputError(
                f"{self.path.parent}: another process flies this campaign ({owner or 'unknown'}); "
                "wait for it, stop it, or choose another folder"
            ) from error
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.close(self._handle)


def read_ledger(path: Path) -> dict[str, Record]:
    """Records by episode id, in the order they were flown. A torn last line is left out.

    The same mission twice is refused unless both lines have the same result.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InputError(f"{path}: cannot read the ledger ({error.strerror})") from error
    records: dict[str, Record] = {}
    whole = raw[: raw.rfind(b"\n") + 1]
    for number, line in enumerate(whole.splitlines(), start=1):
        record = _parse(line, f"{path}:{number}")
        key = record.result["episode_id"]
        if key in records and records[key].result != record.result:
            raise ContractError(f"{path}:{number}: {key} stands here a second time with another result")
        records.setdefault(key, record)
    return records


def _parse(line: bytes, where: str) -> Record:
    try:
        row = json.loads(line)
        version, result, run = row["schema_version"], row["result"], row["run"]
        key = result["episode_id"]
    except (ValueError, KeyError, TypeError) as error:
        raise ContractError(f"{where}: not an episode record ({error})") from error
    if version != SCHEMA_VERSION or not isinstance(key, str) or not isinstance(run, dict):
        raise ContractError(f"{where}: schema_version is {version}; this version reads {SCHEMA_VERSION}")
    return Record(result, run)


class Ledger:
    """The open ledger of a locked folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / LEDGER
        self.records = read_ledger(self.path)
        self.torn_bytes = self._mend()

    def _mend(self) -> int:
        """Cut off what a killed writer left after the last whole line; returns how many bytes that was."""
        if not self.path.exists():
            return 0
        try:
            with self.path.open("r+b") as file:
                raw = file.read()
                end = raw.rfind(b"\n") + 1
                if end < len(raw):
                    file.truncate(end)
                    os.fsync(file.fileno())
                return len(raw) - end
        except OSError as error:
            raise RunError(f"{self.path}: cannot write the ledger ({error.strerror})") from error

    def append(self, record: Record) -> None:
        """One line, whole and on the disk when this returns; a full disk leaves the ledger as it was."""
        line = (json.dumps(record.as_dict()) + "\n").encode()
        try:
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                before = os.fstat(handle).st_size
                try:
                    if os.write(handle, line) != len(line):
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                    os.fsync(handle)
                except OSError:
                    os.ftruncate(handle, before)
                    raise
            finally:
                os.close(handle)
        except OSError as error:
            raise RunError(
                f"{self.path}: cannot write the episode record ({error.strerror}); what stands there is whole: "
                "make room and give the same command again"
            ) from error
        self.records[record.result["episode_id"]] = record

    def take_out(self, keys: Iterable[str]) -> list[Record]:
        """Records that are to be flown again, off the ledger in one step; the caller keeps them elsewhere first."""
        gone = set(keys)
        left = {key: record for key, record in self.records.items() if key not in gone}
        taken = [self.records[key] for key in self.records if key in gone]
        if taken:
            write_whole(self.path, "".join(json.dumps(record.as_dict()) + "\n" for record in left.values()))
            self.records = left
        return taken


def write_whole(path: Path, text: str) -> None:
    """Replace a file in one step: readers see the old one or the new one, and a full disk leaves the old one."""
    fresh = path.with_name(path.name + ".new")
    try:
        try:
            with fresh.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(fresh, path)
        except OSError:
            fresh.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise RunError(f"{path}: cannot write ({error.strerror})") from error


def plain(value: Any) -> Any:
    """As it looks after a trip through JSON, which is how results are compared."""
    return json.loads(json.dumps(value))
