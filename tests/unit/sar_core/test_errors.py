"""Scripts branch on exit codes, so each kind of failure keeps its own."""

from __future__ import annotations

from sar_core.errors import ContractError, InputError, MissingDataError, MissingDependencyError, RunError, SarError


def test_each_kind_of_failure_has_its_exit_code_and_none_is_success() -> None:
    codes = {kind: kind.exit_code for kind in (InputError, ContractError, RunError, MissingDataError)}
    assert codes == {InputError: 1, ContractError: 2, RunError: 3, MissingDataError: 4}
    assert MissingDependencyError.exit_code == 5
    assert {kind.exit_code for kind in SarError.__subclasses__()} <= {1, 2, 3, 4, 5}
