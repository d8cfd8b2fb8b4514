"""The error tree. Every error a user can meet carries the exit code the command line ends with."""

from __future__ import annotations


class SarError(Exception):
    """Base of every expected failure; its message says what was wrong, where, and what would be right."""

    exit_code = 3


class InputError(SarError):
    """The user asked for something that cannot be: a bad key, value, file or combination."""

    exit_code = 1


class ContractError(SarError):
    """A file or a result does not keep the contract it claims to keep."""

    exit_code = 2


class RunError(SarError):
    """The run itself failed: a full disk, a dead process, a bag that cannot be read back."""

    exit_code = 3


class MissingDataError(SarError):
    """Something that should have been there is not: a file, a seed, a metric."""

    exit_code = 4


class MissingDependencyError(SarError):
    """An optional package or program is absent; the message names it and how to get it."""

    exit_code = 5
