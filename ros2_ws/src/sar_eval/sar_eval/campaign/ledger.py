"""A campaign's ledger: one episode record per line, on disk before anything else happens, written by one process.

Whatever kills the writer, a line is whole or it is the torn last one, which the next start takes away. Each line
carries a checksum, so that a changed digit is noticed. A ledger that has moved house is compressed until it is opened.
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

from sar_analysis.bags.textfiles import COMPRESSED, read_text
from sar_core.errors import ContractError, InputError, RunError
from sar_core.names import checked_name
from sar_core.sealed import seal, unseal
from sar_eval.episode.record import SCHEMA_VERSION, Record, compared

LEDGER = "episodes.jsonl"
PACKED = f"{LEDGER}{COMPRESSED}"
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
    """Records by episode id, in the order they were flown; from the compressed ledger where there is no other.

    A torn last line is left out. The same mission twice is refused unless both lines have the same result.
    """
    records: dict[str, Record] = {}
    *lines, torn = _raw(path).split(b"\n")
    if b"\r" in torn or torn.count(b'{"schema_version"') > 1:
        raise ContractError(f"{path}: more than one line after its last line feed; no kill leaves that, so none is cut")
    for number, line in enumerate(lines, start=1):
        record = _parse(line, f"{path}:{number}")
        key = checked_name(record.result["episode_id"], f"{path}:{number}")
        if key in records and compared(records[key].result) != compared(record.result):
            raise ContractError(f"{path}:{number}: {key} stands here a second time with another result")
        records.setdefault(key, record)
    return records


def _raw(path: Path) -> bytes:
    packed = path.with_name(f"{path.name}{COMPRESSED}")
    try:
        if path.exists() or not packed.exists():
            return path.read_bytes()
        return read_text(packed).encode()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise InputError(f"{path}: cannot read the ledger ({error.strerror})") from error
    except ValueError as error:
        raise ContractError(f"{packed}: cannot unpack the ledger ({error})") from error


def _parse(line: bytes, where: str) -> Record:
    try:
        row = unseal(line.decode("utf-8"))
        version, result, run = row.pop("schema_version"), row.pop("result"), row.pop("run")
        if row or not isinstance(result, dict) or not isinstance(run, dict) or "episode_id" not in result:
            raise ValueError("expected schema_version, result with an episode_id, and run")
    except (ValueError, KeyError) as error:
        raise ContractError(f"{where}: not an episode record ({error})") from error
    if version != SCHEMA_VERSION:
        raise ContractError(f"{where}: schema_version is {version}; this version reads {SCHEMA_VERSION}")
    return Record(result, run)


def _line(record: Record) -> str:
    try:
        return f"{seal(record.as_dict())}\n"
    except ValueError as error:
        raise ContractError(f"{record.result['episode_id']}: its record holds what is no number ({error})") from error


class Ledger:
    """The open ledger of a locked folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / LEDGER
        self.records = read_ledger(self.path)
        if self.records and not self.path.exists():
            write_whole(self.path, "".join(_line(record) for record in self.records.values()))
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
        line = _line(record).encode()
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
            write_whole(self.path, "".join(_line(record) for record in left.values()))
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
