"""Names that stay inside their folder."""

from __future__ import annotations

import pytest

from sar_core.errors import ContractError
from sar_core.names import checked_name


@pytest.mark.parametrize("name", ["village-v1-spiral-4x-embedded-s001-e000", "a.differs", "_", "x" * 200])
def test_names_of_missions_are_taken(name: str) -> None:
    assert checked_name(name, "here") == name


@pytest.mark.parametrize("name", ["../x", "a/b", "/etc", "..", ".hidden", "", "a b", "a\n", "a\0", None, 7])
def test_names_that_lead_elsewhere_are_refused(name: object) -> None:
    with pytest.raises(ContractError, match="here: name"):
        checked_name(name, "here")
