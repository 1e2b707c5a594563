"""The report in a real browser: one printed page that decides, at most nine in all, no sideways
scrolling.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import replace

import pytest
from invented_release import findings, gates, of_kind, record, share

from clinveil.report import render
from clinveil.report.page_one import KINDS

CHROMIUM = shutil.which("chromium")
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is not installed (apt-get install chromium)"
)
MM = 96 / 25.4  # CSS pixels
A4_HEIGHT = (297 - 2 * 11) * MM  # less the margins of the style sheet


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


def long():
    """A record with long values everywhere on the first page."""
    named = [
        replace(gates()[7], name=f"a gate with a name too long for one line {i}", passed=i > 4)
        for i in range(19)
    ]
    off = [replace(gate, switched_off=i > 8) for i, gate in enumerate(named)]
    label = "a_column_with_a_rather_long_name_of_its_own"
    why = "a reason that does not want to end " * 9
    some = [
        replace(f, labels=(label, *f.labels), why=why) if f.measure.startswith("utility") else f
        for f in findings()
    ]
    held = record(test_seed=True)
    return replace(
        held,
        title="Consultation notes of all wards " * 9,
        gates=tuple(off),
        findings=tuple(some),
        excerpts=("an excerpt of incomprehensible words " * 20,) * 5,
        corpus=replace(
            held.corpus, notes=123456789, read=123456822, patients=12345678, tokens=12345678901
        ),
    )


def switched_off():
    """The long record with no failed gate, so that limits are listed, and own identifiers instead
    of known pairs.
    """
    held = long()
    named = tuple(
        replace(gates()[7], name=f"a gate with a name too long for one line {i}") for i in range(19)
    )
    off = tuple(replace(gate, switched_off=i > 8) for i, gate in enumerate(named))
    return replace(held, kind="deidentified", gates=off)


def worse():
    """A record with each utility below the floor, and risks above the threshold that have no row of
    their own.
    """
    low = [replace(f, value=-0.3, low=-0.5, high=-0.1) if f.measure.startswith("utility")
        and f.value else f
           for f in findings()]  # fmt: skip
    unique = share("kept columns", "recipient", 300, 300, 0.0, unit="notes")
    return replace(record(), findings=(*low, unique))


CASES = {
    **{kind: of_kind(kind) for kind in KINDS},
    "long": long(),
    "limits": switched_off(),
    "failed": record(failed=True),
    "worse": worse(),
}


@pytest.fixture(params=CASES)
def source(request):
    return render(CASES[request.param])


def test_the_first_page_fits_one_a4_page_and_the_report_nine(browser, source):
    page = browser.new_page(viewport={"width": round((210 - 2 * 13) * MM), "height": 1000})
    page.set_content(source)
    page.emulate_media(media="print")
    assert (
        page.evaluate("document.querySelector('.first').getBoundingClientRect().height")
        <= A4_HEIGHT
    )
    pdf = page.pdf(prefer_css_page_size=True)
    pages = len(re.findall(rb"/Type\s*/Page\b", pdf))
    page.close()
    assert 2 <= pages <= 9


@pytest.mark.parametrize("width", [390, 1280])
def test_no_sideways_scrolling(browser, source, width):
    page = browser.new_page(viewport={"width": width, "height": 844})
    page.set_content(source)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_the_sample_does_not_scroll_sideways(browser, pages):
    page = browser.new_page(viewport={"width": 390, "height": 844}, java_script_enabled=True)
    page.set_content(pages["sample"])
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.close()
