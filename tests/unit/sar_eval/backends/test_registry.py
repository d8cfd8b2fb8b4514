"""What a tier is flown in: opened by name, told why, and ended whatever happens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pytest

from sar_core.errors import InputError, MissingDependencyError
from sar_eval.backends import registry
from sar_eval.backends.backend import Stop
from sar_eval.backends.registry import backend_of, choose_tier, receiver_of, require
from sar_eval.scenario import tiers
from sar_eval.scenario.model import Episode, Scenario
from sar_eval.scenario.prepare import prepare
from sar_eval.scenario.tiers import Tier, register


class Hangar:
    """A backend that remembers how it was opened and that it was closed."""

    opened: ClassVar[list[tuple[float, str | None]]] = []
    closed = 0

    def close(self) -> None:
        Hangar.closed += 1


def open_hangar(episode: Episode, speed: float, stop: Stop) -> Hangar:
    Hangar.opened.append((speed, stop()))
    return Hangar()


def hear_nothing(episode: Episode) -> None:
    return None


def lack(name: str) -> None:
    raise MissingDependencyError(f"{name} needs a hangar")


@pytest.fixture
def hangar(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(tiers, "_KNOWN", dict(tiers.registry()))
    monkeypatch.setattr(Hangar, "opened", [])
    monkeypatch.setattr(Hangar, "closed", 0)
    tiers.registry.cache_clear()
    door = f"{__name__}:"
    made = Tier("hangar", "made up", door + "open_hangar", door + "hear_nothing", door + "lack", autopilots=False)
    yield register(made).name
    tiers.registry.cache_clear()


def test_a_backend_is_opened_at_its_speed_and_closed_in_the_end(hangar: str) -> None:
    episode = prepare(Scenario(drones=1, radio=None), 0, 0, hangar)
    with backend_of(episode, 2.5, lambda: "enough") as backend:
        assert isinstance(backend, Hangar) and Hangar.closed == 0
    assert (Hangar.opened, Hangar.closed) == ([(2.5, "enough")], 1)
    assert receiver_of(episode) is None


def test_it_is_closed_when_the_flight_fails_too(hangar: str) -> None:
    with pytest.raises(ZeroDivisionError), backend_of(prepare(Scenario(drones=1, radio=None), 0, 0, hangar)):
        raise ZeroDivisionError
    assert Hangar.closed == 1


def test_what_is_missing_is_asked_for_by_name_and_our_own_tier_needs_nothing(hangar: str) -> None:
    with pytest.raises(MissingDependencyError, match="hangar needs a hangar"):
        require(hangar)
    require("embedded")


def test_auto_is_the_best_tier_here_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "diagnose", lambda: "this machine")
    monkeypatch.setattr(registry, "best_tier", lambda found: ("sih", f"{found} has px4"))
    assert choose_tier("auto") == ("sih", "backend auto: sih (this machine has px4)")
    assert choose_tier("embedded") == ("embedded", "")
    with pytest.raises(InputError, match="backend 'real' is not known"):
        choose_tier("real")
