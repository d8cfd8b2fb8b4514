"""A flight by MAVSDK, the same for real PX4 and for `sar-eval sitl`: one vehicle per address, all at once.

    python mavsdk_flight.py udpin://127.0.0.1:14540 udpin://127.0.0.1:14541

Each vehicle arms, takes off, flies north in OFFBOARD, loses its stream of setpoints, must fall back to HOLD by itself,
lands and disarms. One line of JSON per vehicle tells what was seen; the exit code is 1 if anything was not.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

from mavsdk.asyncio import ComponentType, Configuration, Mavsdk, System
from mavsdk.asyncio.plugins.action import ActionAsync
from mavsdk.asyncio.plugins.info import InfoAsync
from mavsdk.asyncio.plugins.offboard import OffboardAsync, VelocityNedYaw
from mavsdk.asyncio.plugins.param import ParamAsync
from mavsdk.asyncio.plugins.telemetry import FlightMode, TelemetryAsync

HOLD_ON_STREAM_LOSS = 5
TAKEOFF_M = 3.0
SPEED_MPS = 2.0
NORTH_M = 4.0
ATTEMPTS = 5
TIMEOUT_S = 90.0


async def until(stream: AsyncGenerator[Any, None], fits: Callable[[Any], bool], what: str) -> Any:
    """The first value that fits; a TimeoutError says what did not happen."""
    last = None
    try:
        async with asyncio.timeout(TIMEOUT_S):
            async for last in stream:
                if fits(last):
                    return last
    except TimeoutError:
        raise TimeoutError(f"{what}: not within {TIMEOUT_S:g} s; last was {last}") from None
    finally:
        await stream.aclose()
    raise RuntimeError(f"{what}: the stream ended; last was {last}")


async def insist(action: Callable[[], Awaitable[Any]]) -> Any:
    """Try again what a busy vehicle or a lost packet may refuse at first."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return await action()
        except Exception:
            if attempt == ATTEMPTS:
                raise
            await asyncio.sleep(1.0)
    return None


async def fly(system: System) -> dict[str, Any]:
    """One vehicle's flight; returns what was seen."""
    telemetry, action, param = TelemetryAsync(system), ActionAsync(system), ParamAsync(system)
    began = time.monotonic()
    seen: dict[str, Any] = {"system": await system.get_system_id()}
    version = await insist(InfoAsync(system).get_version)
    seen["version"] = f"{version.flight_sw_major}.{version.flight_sw_minor}.{version.flight_sw_patch}"
    seen["custom_version"] = version.flight_sw_git_hash
    await until(telemetry.subscribe_health(), lambda h: h.is_armable and h.is_home_position_ok, "ready to arm")
    await insist(lambda: param.set_param_int("COM_OBL_RC_ACT", HOLD_ON_STREAM_LOSS))
    assert await insist(lambda: param.get_param_int("COM_OBL_RC_ACT")) == HOLD_ON_STREAM_LOSS
    await insist(lambda: action.set_takeoff_altitude(TAKEOFF_M))

    await insist(action.arm)
    await until(telemetry.subscribe_armed(), bool, "armed")
    await insist(action.takeoff)
    await until(telemetry.subscribe_position(), lambda p: p.relative_altitude_m > TAKEOFF_M - 1.0, "take-off")
    await until(telemetry.subscribe_flight_mode(), lambda mode: mode == FlightMode.HOLD, "HOLD after take-off")

    offboard = OffboardAsync(system)
    start = await until(telemetry.subscribe_position_velocity_ned(), lambda _: True, "a position")
    await offboard.set_velocity_ned(VelocityNedYaw(SPEED_MPS, 0.0, 0.0, 0.0))
    await insist(offboard.start)
    await until(telemetry.subscribe_flight_mode(), lambda mode: mode == FlightMode.OFFBOARD, "OFFBOARD")
    there = await until(
        telemetry.subscribe_position_velocity_ned(),
        lambda now: now.position.north_m - start.position.north_m > NORTH_M,
        "flight to the north",
    )
    seen["north_m"] = round(there.position.north_m - start.position.north_m, 2)

    offboard.destroy()  # the plugin sent the setpoints; without it the stream ends
    stopped = time.monotonic()
    await until(telemetry.subscribe_flight_mode(), lambda mode: mode == FlightMode.HOLD, "HOLD by failsafe")
    seen["failsafe_after_s"] = round(time.monotonic() - stopped, 2)

    await insist(action.land)
    await until(telemetry.subscribe_flight_mode(), lambda mode: mode == FlightMode.LAND, "LAND")
    await until(telemetry.subscribe_in_air(), lambda in_air: not in_air, "on the ground")
    await until(telemetry.subscribe_armed(), lambda armed: not armed, "disarmed")
    return {**seen, "wall_s": round(time.monotonic() - began, 1), "ok": True}


async def autopilots(mavsdk: Mavsdk, count: int) -> list[System]:
    """So many vehicles as soon as all have been heard of."""
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            found = [system for system in await mavsdk.get_systems() if await system.has_autopilot()]
            if len(found) >= count:
                return found
            await asyncio.sleep(0.1)


async def main(addresses: list[str]) -> int:
    mavsdk = Mavsdk(Configuration.create_with_component_type(ComponentType.GROUND_STATION))
    try:
        for address in addresses:
            await mavsdk.add_any_connection(address)
        systems = await autopilots(mavsdk, len(addresses))
        outcomes = await asyncio.gather(*(fly(system) for system in systems), return_exceptions=True)
    finally:
        mavsdk.destroy()
    failed = 0
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            failed += 1
            outcome = {"ok": False, "error": f"{type(outcome).__name__}: {outcome}"}
        print(json.dumps(outcome), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("address", nargs="+", help="MAVSDK connection of one vehicle, udpin://127.0.0.1:14540")
    sys.exit(asyncio.run(main(parser.parse_args().address)))
