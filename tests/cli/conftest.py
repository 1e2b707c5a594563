"""Command lines up to the work: parsed, with their settings, but nothing is read or written."""

from __future__ import annotations

import functools

import pytest

from clinveil.cli.command import Command


@pytest.fixture
def only_parsed(monkeypatch):
    """Every command ends before its work; returns the settings and arguments of the calls."""
    calls = []
    call = Command.__call__

    def parsed(self, arguments):
        work = self.function

        @functools.wraps(work)
        def recorded(run_, /, **given):
            calls.append((run_.settings, given))

        monkeypatch.setattr(self, "function", recorded)
        try:
            call(self, arguments)
        finally:
            monkeypatch.setattr(self, "function", work)

    monkeypatch.setattr(Command, "__call__", parsed)
    return calls
