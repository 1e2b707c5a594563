"""The report in a real browser: one printed page that decides, at most nine in all, no sideways
scrolling.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import replace

import pytest
from invented_release import check, findings, gate, of_kind, record, with_findings

from clinveil.report import AUDIENCES, Column, Limits, Verdict, render
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


def long(audience="agreement"):
    """A record with long values everywhere on the first page, and every limit changed and not
    held.
    """
    long_hint = "Raise a.setting.with.a.long.name, or lower another.one that has a long name too. "
    held = record(test_seed=True, audience=audience)
    label = "a_column_with_a_rather_long_name_of_its_own"
    why = "a reason that does not want to end " * 9
    some = [
        replace(f, labels=(label, *f.labels), why=why) if f.measure.startswith("utility") else f
        for f in findings()
    ]
    failing = [
        replace(
            made,
            name=f"a condition with a name too long for one line {i}",
            within=False,
            inapplicable=False,
            value=0.123 if made.value is None else made.value,
            meaning="A sentence that explains the outcome at length. " * 5,
            hint=f"{i}. {long_hint * 4}",
            default="0.05",
            limit=0.0123,
        )
        for i, made in enumerate((*held.gates, gate("copies", "not held"), check("a check")))
    ]
    judged = (Verdict(audience, tuple(failing)), *held.verdicts[1:])
    corpus = replace(
        held.corpus,
        notes=123456789,
        read=123456822,
        patients=12345678,
        tokens=12345678901,
        columns=tuple(Column(f"a column of notes, number {i}", "kept") for i in range(30)),
    )
    return replace(
        held,
        title="Consultation notes of all wards " * 9,
        recipient="A university with a name that does not want to end, department of words " * 3,
        purpose="A purpose that needs a great many words to be explained to a committee " * 3,
        review_on="2027-11-20",
        listed=0.5,
        verdicts=judged,
        findings=tuple(some),
        excerpts=("an excerpt of incomprehensible words " * 20,) * 5,
        earlier=tuple(f"2026-11-2{i}-0123456789 (deidentified)" for i in range(6)),
        reuses="a release with a name that does not want to end " * 4,
        corpus=corpus,
    )


def unlimited():
    """The long record with each question's risk not limited, so that the agreement has most
    sentences.
    """
    held = long()
    risks = [*Limits.read().rules("agreement")]
    name = "a condition with a name too long for one line"
    gates = tuple(gate(risk, "not limited", name=name, default="0.05") for risk in risks)
    return replace(held, test_seed=False, verdicts=(Verdict("agreement", gates),))


def undecided():
    """A record of which nothing is decided, and the reasons are long."""
    why = "A sentence that explains at length why nothing is decided. " * 5
    gates = tuple(
        replace(gate(risk, "not decided"), value=None, meaning=why)
        for risk in Limits.read().rules("agreement")
    )
    return replace(record(), verdicts=(Verdict("agreement", gates),))


def worse():
    """A record with each utility below the floor."""
    low = [
        replace(f, value=-0.3, low=-0.5, high=-0.1)
        if f.measure.startswith("utility") and f.value
        else f
        for f in findings()
    ]
    return with_findings(record(), *low)


CASES = {
    **{f"{kind}, {one}": of_kind(kind, one) for kind in KINDS for one in AUDIENCES},
    "long": long(),
    "long, public": long("public"),
    "unlimited": unlimited(),
    "undecided": undecided(),
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
