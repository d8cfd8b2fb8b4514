"""The verb that puts the embedded autopilot on MAVLink."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from sar_eval import __version__
from sar_eval.cli.console import err, note, say, stop


def sitl(
    vehicles: Annotated[int, typer.Option(help="Number of vehicles, 1 to 10.")] = 1,
    instance: Annotated[int, typer.Option(help="PX4 instance of the first: ports 14540 + instance, system + 1.")] = 0,
    vehicle: Annotated[str, typer.Option(help="Vehicle by name (configs/vehicles).")] = "sihsim_quadx",
    world: Annotated[str | None, typer.Option(help="World to fly in; default: open ground.")] = None,
    speed: Annotated[
        float | None, typer.Option(help="Simulated over wall time; default: PX4_SIM_SPEED_FACTOR, or 1.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the sensor noise.")] = 0,
) -> None:
    """Put the embedded autopilot on PX4's MAVLink ports, for QGroundControl, MAVSDK and our bridge. It is not PX4.

    Example: sar-eval sitl --vehicles 4 --world village

    Vehicle i listens on UDP 14580 + i and talks to 14540 + i, and for ground stations on 18570 + i to 14550.
    PX4_HOME_LAT, PX4_HOME_LON, PX4_HOME_ALT (of the ground) and PX4_PARAM_<NAME> in the environment act as on PX4.

    Test hooks, as parameters: SAR_REFUSE_ARM = 1 refuses to arm, SAR_MUTE = 1 sends heartbeats only, SAR_CLOCK_JUMP = s
    shifts the reported clock, SAR_DROP = share loses datagrams both ways; SAR_AFTER = s lets the last three begin so
    long after arming.
    """
    from sar_eval.px4.mavlink import dialect
    from sar_eval.sitl.crew import muster
    from sar_eval.sitl.server import Server, bind_all, ports_of

    m = dialect()
    crew = muster(vehicles, instance, vehicle, world, speed, seed, os.environ)
    if crew.ignored:
        note(f"ignored, for the embedded autopilot has no such parameter: {', '.join(crew.ignored)}")
    sockets = bind_all(crew.systems)
    with err.status("compiling the simulator (about a minute on a new machine, then cached)"):
        server = Server(m, crew, sockets)
    stop.listen()
    say(f"sar_eval {__version__} embedded autopilot, not PX4: {crew.vehicle.name} at {crew.speed:g} x real time")
    for system in crew.systems:
        (own, remote), (own_ground, ground) = ports_of(system - 1)
        say(f"system {system}: UDP {own} to {remote}, ground station {own_ground} to {ground}")
    print("ready", flush=True)
    try:
        server.run(crew.speed, stop)
    finally:
        server.close()
