"""Attacks and utility take most of a release's time: they run only in files that set `MEASURES`."""

from __future__ import annotations

import pytest

from clinveil.releases import pipeline


@pytest.fixture(autouse=True, scope="module")
def measures_where_asked(request):
    """No attack and no utility, except in a file with `MEASURES`."""
    with pytest.MonkeyPatch.context() as patch:
        if not getattr(request.module, "MEASURES", False):
            patch.setattr(pipeline, "attacked", lambda *_: [])
            patch.setattr(pipeline, "useful", lambda *_: [])
        yield
