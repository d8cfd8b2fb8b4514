"""The good bag that tests of check, repair and scan damage copies of."""

from __future__ import annotations

import pytest

from tests.unit.sar_eval.bag.madebag import Intact, intact


@pytest.fixture(scope="session")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Intact:
    return intact(tmp_path_factory.mktemp("intact") / "bag")
