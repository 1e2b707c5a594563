"""One finished release for several files; attacks and utility, which take most of the time, run
only where asked.
"""

from __future__ import annotations

import pytest
from release_cases import demo_notes_in, release

from clinveil.attacks import attacks
from clinveil.cli import main
from clinveil.releases import measured, pipeline

OF_RELEASE = measured.of_release
USEFUL = pipeline.useful


@pytest.fixture(autouse=True, scope="module")
def measures_where_asked(request):
    """No attack and no utility, except in a file with `MEASURES`: all of them (True), or the named
    attacks.
    """
    asked = getattr(request.module, "MEASURES", ())
    with pytest.MonkeyPatch.context() as patch:
        if asked is not True:
            patch.setattr(measured, "of_release", lambda: [attacks.get(name) for name in asked])
            patch.setattr(pipeline, "useful", lambda *_: [])
        yield


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """A folder with demo notes of 70 patients."""
    return demo_notes_in(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="session")
def finished(demo):
    """The same folder with `out`: a finished release with every measure. A test that changes
    it takes a copy.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measured, "of_release", OF_RELEASE)
        patch.setattr(pipeline, "useful", USEFUL)
        kept = ["--label", "diagnosis_group", "--keep", "note_type"]
        assert main(release(demo, "out", *kept)) == 0
    return demo
