"""The ways clinveil fails: one line for people, one exit code for machines, never note text."""

from __future__ import annotations


class ClinveilError(Exception):
    """A failure that the user can act on: what, where, and how to mend it, in one line.

    Messages carry ids of files, row numbers, offsets and counts; never note text, never a word of a note.
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        self.what, self.where, self.remedy = what, where, remedy
        place = f"{where}: " if where else ""
        mend = f" ({remedy})" if remedy else ""
        super().__init__(" ".join(f"{place}{what}{mend}".split()))


class InputWarning(UserWarning):
    """What cannot be checked of an input, in one line; the command line says it on stderr."""


class UsageError(ClinveilError):
    """The command or the configuration does not make sense (exit 2)."""

    exit_code = 2


class InputError(ClinveilError):
    """The input does not fit: missing column, broken file, too few patients (exit 3)."""

    exit_code = 3


class GateError(ClinveilError):
    """A gate failed, so no release was made (exit 4)."""

    exit_code = 4


class MissingExtra(ClinveilError):
    """An optional library is not installed (exit 6); the message holds the pip line."""

    exit_code = 6

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(f"{library} is not installed", remedy=f"pip install 'clinveil[{extra}]'")
