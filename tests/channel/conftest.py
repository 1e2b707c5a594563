"""Fixtures of the channel's tests."""

from __future__ import annotations

import pytest
from channel_cases import circle

from clinveil.channel import Channel


@pytest.fixture(scope="session")
def channel() -> Channel:
    """N drawn from 3 to 5 on the circle of `WORDS`."""
    return circle()
