"""The loop: datagrams in, the fleet onwards in scaled real time, telemetry out; all of it in one thread."""

from __future__ import annotations

import errno
import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sar_core.errors import RunError
from sar_core.streams import stream
from sar_eval.px4.mavlink import GCS_PORT, OFFBOARD_PORT, VEHICLE_GCS_PORT, VEHICLE_PORT
from sar_eval.sitl.craft import Craft, look
from sar_eval.sitl.crew import Crew
from sar_eval.sitl.datagram import messages
from sar_eval.sitl.inbox import Talk, receive, wanted_messages
from sar_eval.sitl.link import Address, MavlinkLink
from sar_eval.sitl.telemetry import GROUND_RATES, ONBOARD_RATES
from sar_sim.vehicle.fleet import Fleet
from sar_sim.vehicle.vehicle import STEP_S

HOST = "127.0.0.1"
SETTLE_S = 20.0
"""How long estimators settle before anyone looks."""
LONGEST_STEPS = 5
"""20 ms: at least so often the vehicles think."""
LARGEST_DATAGRAM = 4096
MOST_DATAGRAMS = 256
"""Per socket and turn, so that a flood cannot stop the clock."""
PATIENCE_S = 0.25
"""A machine that falls further behind loses the time for good, instead of rushing after it."""


@dataclass
class Door:
    """A bound socket and whose link it is."""

    socket: socket.socket
    link: MavlinkLink
    index: int


def bind(port: int) -> socket.socket:
    """A UDP socket on a port of this machine."""
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        opened.bind((HOST, port))
    except OSError as error:
        opened.close()
        why = "is taken: another vehicle runs with this instance" if error.errno == errno.EADDRINUSE else str(error)
        raise RunError(f"UDP port {port} {why}; stop it, or choose another --instance") from error
    opened.setblocking(False)
    return opened


def ports_of(instance: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """(listens on, sends to) of the onboard link and of the ground station link."""
    return (VEHICLE_PORT + instance, OFFBOARD_PORT + instance), (VEHICLE_GCS_PORT + instance, GCS_PORT)


def bind_all(systems: range) -> list[socket.socket]:
    """The sockets of all vehicles, two each, or none at all."""
    opened: list[socket.socket] = []
    try:
        for system in systems:
            for own, _ in ports_of(system - 1):
                opened.append(bind(own))
    except RunError:
        for one in opened:
            one.close()
        raise
    return opened


class Server:
    """Vehicles, their doors and their clock."""

    def __init__(self, m: Any, crew: Crew, sockets: list[socket.socket]) -> None:
        """sockets as :func:`bind_all` gives them; the server closes them in the end."""
        self._m = m
        self._decoder = m.MAVLink(None)
        self._wanted = wanted_messages(m)
        self.fleet = Fleet(crew.vehicle, crew.site.spawns, crew.seed, crew.instance, obstacles=crew.site.obstacles)
        self.fleet.warm_up(SETTLE_S)
        state = self.fleet.snapshot()
        self.crafts: list[Craft] = []
        self.doors: list[Door] = []
        self._selector = selectors.DefaultSelector()
        for i, system in enumerate(crew.systems):
            chance = stream("mavlink", crew.seed, system).random
            craft = Craft(m, system, crew.table(system), crew.site.frame, look(self.fleet, i, state), chance)
            rates = (ONBOARD_RATES, GROUND_RATES)
            for (_, remote), rate, own in zip(ports_of(system - 1), rates, sockets[2 * i : 2 * i + 2], strict=True):
                link = MavlinkLink(m, system, (HOST, remote), rate, _sender(own))
                craft.connect(link)
                door = Door(own, link, i)
                self.doors.append(door)
                self._selector.register(own, selectors.EVENT_READ, door)
            self.crafts.append(craft)

    def close(self) -> None:
        self._selector.close()
        for door in self.doors:
            door.socket.close()

    def run(self, speed: float, stop: Callable[[], object]) -> None:
        """Fly at a multiple of real time until told to stop."""
        due = time.monotonic()
        while not stop():
            wait = due - time.monotonic()
            for key, _ in self._selector.select(max(wait, 0.0)):
                self.listen(key.data)
            now = time.monotonic()
            if now >= due:
                due += self.advance() / speed
                due = max(due, now - PATIENCE_S)

    def listen(self, door: Door) -> None:
        """Take what has come through a door."""
        craft = self.crafts[door.index]
        for _ in range(MOST_DATAGRAMS):
            try:
                data, peer = door.socket.recvfrom(LARGEST_DATAGRAM)
            except (BlockingIOError, ConnectionError):
                return
            if craft.loses():
                continue
            talk = Talk(craft, door.link, peer, self.fleet, door.index)
            for message in messages(self._decoder, self._wanted, data, self._m.MAVError):
                receive(talk, message)

    def advance(self) -> float:
        """Move all vehicles on by what their finest stream needs; returns the simulated seconds."""
        finest = min(door.link.schedule.finest_s for door in self.doors)
        steps = min(max(round(finest / STEP_S), 1), LONGEST_STEPS)
        self.fleet.tick(steps)
        state = self.fleet.snapshot()
        for i, craft in enumerate(self.crafts):
            row = craft.think(look(self.fleet, i, state))
            self.fleet.armed[i] = craft.state.armed
            self.fleet.command_ned(i, row)
            craft.tell()
        return steps * STEP_S


def _sender(own: socket.socket) -> Callable[[bytes, Address], None]:
    def transmit(datagram: bytes, peer: Address) -> None:
        try:
            own.sendto(datagram, peer)
        except (BlockingIOError, ConnectionError):
            return  # UDP promises nothing: a full buffer or a closed port loses the datagram

    return transmit
