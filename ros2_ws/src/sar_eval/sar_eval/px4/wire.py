"""One vehicle's MAVLink link: frames in with the kernel's own arrival times, messages out."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Iterator
from typing import Any

from sar_core.errors import RunError
from sar_eval.px4.mavlink import OFFBOARD_PORT, VEHICLE_PORT, dialect

HOST = "127.0.0.1"
OUR_SYSTEM, OUR_COMPONENT = 245, 191
"""An onboard computer."""
_SO_TIMESTAMPNS = 35
_BUFFER = 1 << 20
_V2, _V1 = 0xFD, 0xFE


def frames(datagram: bytes) -> Iterator[tuple[int, bytes]]:
    """The MAVLink frames of a datagram with their message ids; what is no frame is passed over."""
    at, end = 0, len(datagram)
    while at + 8 <= end:
        magic, size = datagram[at], datagram[at + 1]
        if magic == _V2 and at + 12 <= end:
            whole = 12 + size + (13 if datagram[at + 2] & 1 else 0)
            number = int.from_bytes(datagram[at + 7 : at + 10], "little")
        elif magic == _V1:
            whole = 8 + size
            number = datagram[at + 5]
        else:
            at += 1
            continue
        if at + whole > end:
            return
        yield number, datagram[at : at + whole]
        at += whole


class VehicleWire:
    """The UDP socket to vehicle ``instance`` (from 0). Only messages of the ``wanted`` ids are decoded."""

    def __init__(self, instance: int, wanted: frozenset[int]) -> None:
        self.instance = instance
        self._wanted = wanted
        self._mavlink = dialect()
        self.codec = self._mavlink.MAVLink(self, srcSystem=OUR_SYSTEM, srcComponent=OUR_COMPONENT)
        self.codec.robust_parsing = True
        self.garbage = 0
        self._peer = (HOST, VEHICLE_PORT + instance)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        port = OFFBOARD_PORT + instance
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
            self._socket.setblocking(False)
            self._socket.bind((HOST, port))
        except OSError as error:
            self._socket.close()
            raise RunError(
                f"UDP port {port}, where vehicle {instance + 1} is heard, cannot be had ({error.strerror}): "
                "end the program that holds it, a ground station or another evaluation"
            ) from error

    def write(self, frame: bytes) -> None:
        """pymavlink sends through this. A datagram the vehicle does not take is as lost as any other."""
        with contextlib.suppress(OSError):
            self._socket.sendto(frame, self._peer)

    def receive(self) -> Iterator[tuple[float, Any]]:
        """All that has come, with its arrival on the monotonic clock."""
        lag = time.time() - time.monotonic()
        while True:
            try:
                datagram, ancillary, _, peer = self._socket.recvmsg(65535, 64)
            except BlockingIOError:
                return
            except OSError:
                continue  # the answer to a datagram that nobody took
            arrival = time.monotonic()
            for level, kind, data in ancillary:
                if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS:
                    seconds, nanoseconds = struct.unpack("qq", data[:16])
                    arrival = seconds + nanoseconds * 1e-9 - lag
            self._peer = peer
            for number, frame in frames(datagram):
                if number not in self._wanted:
                    continue
                try:
                    yield arrival, self.codec.decode(bytearray(frame))
                except self._mavlink.MAVError:
                    self.garbage += 1

    def close(self) -> None:
        self._socket.close()
