"""Latitude and longitude against the local frame, as PX4's estimator relates them.

PX4 projects azimuthally equidistant on a sphere of 6371 km, whatever the shape of the Earth its simulator uses. Whoever
wants a position in the frame in which PX4 takes its setpoints has to do the same.
"""

from __future__ import annotations

import math
from typing import NamedTuple

RADIUS_M = 6_371_000.0


class Origin(NamedTuple):
    """Where the local frame has its zero: degrees, degrees, metres above mean sea level."""

    latitude: float
    longitude: float
    altitude_m: float


def to_local(origin: Origin, latitude: float, longitude: float) -> tuple[float, float]:
    """Metres north and east of the origin."""
    lat0, lat = math.radians(origin.latitude), math.radians(latitude)
    turn = math.radians(longitude - origin.longitude)
    cosine = math.sin(lat0) * math.sin(lat) + math.cos(lat0) * math.cos(lat) * math.cos(turn)
    angle = math.acos(max(-1.0, min(1.0, cosine)))
    scale = RADIUS_M if angle < 1e-9 else RADIUS_M * angle / math.sin(angle)
    north = scale * (math.cos(lat0) * math.sin(lat) - math.sin(lat0) * math.cos(lat) * math.cos(turn))
    return north, scale * math.cos(lat) * math.sin(turn)


def to_global(origin: Origin, north_m: float, east_m: float) -> tuple[float, float]:
    """Latitude and longitude of a place in the local frame, degrees."""
    x, y = north_m / RADIUS_M, east_m / RADIUS_M
    angle = math.hypot(x, y)
    if angle == 0.0:
        return origin.latitude, origin.longitude
    lat0 = math.radians(origin.latitude)
    sine, cosine = math.sin(angle), math.cos(angle)
    latitude = math.asin(cosine * math.sin(lat0) + x * sine * math.cos(lat0) / angle)
    turn = math.atan2(y * sine, angle * math.cos(lat0) * cosine - x * math.sin(lat0) * sine)
    return math.degrees(latitude), origin.longitude + math.degrees(turn)
