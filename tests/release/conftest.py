"""Attacks and utility take most of a release's time: they run only in files that set `MEASURES`."""

from __future__ import annotations

import pytest

from clinveil.attacks.adversaries.assembly import Assembly
from clinveil.attacks.channel import adversary_suite
from clinveil.releases import pipeline


@pytest.fixture(autouse=True, scope="module")
def measures_where_asked(request):
    """No attack and no utility, or (in a file with `MEASURES`) attackers that use little text."""
    with pytest.MonkeyPatch.context() as patch:
        if getattr(request.module, "MEASURES", False):
            patch.setattr(adversary_suite, "IN_A_RELEASE", 2_000)
            patch.setattr(Assembly, "max_words", 300)
        else:
            patch.setattr(pipeline, "attacked", lambda *_: [])
            patch.setattr(pipeline, "useful", lambda *_: [])
        yield
