from __future__ import annotations

import base64
import hashlib
import itertools
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from invented_release import (
    CANARIES,
    EXCERPTS,
    SIGNING_KEY,
    gate,
    note,
    of_kind,
    record,
    with_findings,
)

from clinveil.core import Cell, Finding, GapScores
from clinveil.report import (
    AUDIENCES,
    AlignedNote,
    AlignedToken,
    Column,
    Fact,
    Limits,
    PhiCount,
    TokenRow,
    Verdict,
    from_json,
    render,
    render_sample,
    to_json,
)
from clinveil.report.page_one import KINDS
from clinveil.report.rendering import LONGEST, md
from clinveil.report.verdict import OUTCOMES

HOSTILE = "</style><script>alert('x')</script><img src=x onerror=y>"
VOID = {"meta", "br", "img", "link", "input", "hr"}
PAGES = ("passed", "refused", "sample")
REPORTS = ("passed", "refused")


class Page(HTMLParser):
    """Reads a page: checks that tags are nested, and keeps headings, attributes, `<data>` and
    words.
    """

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[tuple[int, str]] = []
        self.data: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.feed(source)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        assert len(attrs) == len(dict(attrs)), "an attribute twice"
        if tag not in VOID:
            self.open.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append((int(tag[1]), ""))
        if tag == "data":
            self.data.append((dict(attrs)["value"], ""))

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"</{tag}> closes another tag"

    def handle_data(self, data):
        if "style" in self.open:
            return
        self.words.append(data)
        if self.headings and self.open and re.fullmatch("h[1-6]", self.open[-1]):
            self.headings[-1] = (self.headings[-1][0], self.headings[-1][1] + data)
        if self.open and self.open[-1] == "data":
            self.data[-1] = (self.data[-1][0], self.data[-1][1] + data)

    @property
    def said(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def read(pages):
    return {name: Page(page) for name, page in pages.items()}


@pytest.mark.parametrize("name", PAGES)
def test_tags_are_nested_and_ids_unique(read, name):
    ids = [attrs["id"] for _, attrs in read[name].tags if "id" in attrs]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", PAGES)
def test_every_reference_within_the_page_is_met(read, name):
    ids = {attrs["id"] for _, attrs in read[name].tags if "id" in attrs}
    for tag, attrs in read[name].tags:
        if tag == "a":
            assert attrs["href"].startswith("#") and attrs["href"][1:] in ids
        for name in (attrs.get("aria-labelledby") or "").split():
            assert name in ids


@pytest.mark.parametrize("name", PAGES)
def test_the_page_loads_and_runs_nothing(pages, read, name):
    for tag, attrs in read[name].tags:
        assert tag not in {"script", "link", "img", "iframe", "object", "embed", "form", "base"}
        assert not {"src", "srcset", "style", "xlink:href"} & attrs.keys()
        assert not any(name.startswith("on") for name in attrs)
    assert "http" not in pages[name].replace("http-equiv", "")
    assert not re.search(r"url\(|@import|@font-face", pages[name])


@pytest.mark.parametrize("name", PAGES)
def test_the_policy_allows_this_style_sheet_and_nothing_else(pages, read, name):
    (policy,) = (
        a["content"] for t, a in read[name].tags if a.get("http-equiv") == "Content-Security-Policy"
    )
    style = pages[name].split("<style>")[1].split("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy.split("; ")[:2] == ["default-src 'none'", f"style-src 'sha256-{digest}'"]
    assert "unsafe" not in policy


@pytest.mark.parametrize("name", PAGES)
def test_headings_go_down_one_step_at_a_time(read, name):
    levels = [level for level, _ in read[name].headings]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


FIRST = ["What can go wrong", "Content and use"]
FIRST += ["What the agreement must say"]
DETAILS = [
    "Warnings",
    "Adversaries, by what they hold",
    "Utility",
    "Limits",
    "Data",
    "Identifiers detected",
    "Settings",
]
DETAILS += ["What was not tried", "Criteria and rules", "Provenance and checksums"]


@pytest.mark.parametrize("name", REPORTS)
def test_sections_are_in_reading_order(read, name):
    headings = [words for level, words in read[name].headings if level == 2]
    assert headings == FIRST + DETAILS


@pytest.mark.parametrize("audience", AUDIENCES)
def test_the_report_has_at_most_2500_words(audience):
    for kind in KINDS:
        page = Page(render(of_kind(kind, audience)))
        words = [word for word in page.said.split() if any(map(str.isalnum, word))]
        assert 800 < len(words) <= 2500


@pytest.mark.parametrize("audience", AUDIENCES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_report_has_one_standard(kind, audience):
    said = Page(render(of_kind(kind, audience))).said.casefold()
    old = ("threshold", "gate failed", "gates passed", "switched off", "no power", "failed gate")
    assert [words for words in old if words in said] == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_renders(kind):
    page = Page(render(of_kind(kind)))
    assert f": {kind}, under an agreement" in page.said and KINDS[kind] in page.said
    assert all(text.split(" , ")[0] in page.said for text in EXCERPTS[:2])
    assert ("Tokens of the source by class" in page.said) == (kind == "obfuscated")


@pytest.mark.parametrize("name", PAGES)
def test_tables_have_captions_and_scopes_and_scrolling_parts_take_the_keyboard(read, name):
    page = read[name]
    tags = [tag for tag, _ in page.tags]
    assert tags.count("caption") == tags.count("table")
    assert all(attrs.get("scope") in ("col", "row") for tag, attrs in page.tags if tag == "th")
    for _, attrs in page.tags:
        if attrs.get("class") == "scroll":
            assert attrs["tabindex"] == "0" and attrs["role"] == "region" and attrs["aria-label"]
    assert {"main", "footer"} <= set(tags)
    assert dict(page.tags)["html"]["lang"] == "en"


def test_only_the_sample_holds_source_words(pages):
    for word in CANARIES:
        assert word in pages["sample"]
        assert word not in pages["passed"] + pages["refused"]


def test_page_one_has_the_fingerprint_that_the_recipient_checks(pages):
    first = pages["passed"].partition('id="details"')[0]
    assert SIGNING_KEY in first


def test_the_headline_of_a_passed_release(read):
    said = read["passed"].said
    assert "May leave to recipients under an agreement: every limit is held." in said
    assert "Not for the public: words recovered, notes found from ten words, notes found" in said
    assert "TEST SEED" not in said


def test_a_refusal_is_in_the_headline_and_its_limit_comes_first(pages, read):
    said = read["refused"].said
    assert "Must not leave to recipients under an agreement: identifiers left." in said
    limits = said[said.index("Limits that are not held come first") :]
    assert limits.index("own name no more often") < limits.index("names recovered")
    assert "What to do: Raise channel.background" in limits
    assert "What to do:" not in read["passed"].said
    assert "TEST SEED: not for release." in said
    assert '<header class="refused">' in pages["refused"]
    assert 'class="clear"' not in pages["refused"]


def test_a_release_with_something_undecided_is_never_green():
    page = render(of_kind("deidentified"))
    assert "not decided: identifiers missed" in Page(page).said
    assert '<header class="open">' in page and 'class="clear' not in page


def test_small_counts_are_hidden(read):
    assert (
        "Skipped: error <11" in read["passed"].said
        and "Skipped: null text 30" in read["passed"].said
    )
    assert (
        "e-mail addresses (F) <11" in read["passed"].said
        and "None detected: VEHICLE." in read["passed"].said
    )


def test_limits_are_stated(read):
    for page in (read[name] for name in REPORTS):
        assert "not differentially private" in page.said
        assert "Attackers who read context with a language model." in page.said


def test_the_three_criteria_and_the_rules(read):
    said = read["passed"].said
    criteria = said[said.index("The three criteria of") :]
    singling = criteria[criteria.index("Singling out") : criteria.index("Linkability")]
    assert "kept columns single out few notes" in singling and "held" in singling
    assert "HIPAA Safe Harbor" in said and "No row states that a rule is met" in said
    bare = Page(render(with_findings(record()))).said
    assert "GDPR, Recital 26 Not measured in this run." in bare
    assert bare.count("Not measured in this run.") >= 8


def test_a_release_of_nothing_still_makes_a_page():
    held = record()
    bare = replace(
        held, findings=(), verdicts=(Verdict("agreement", ()),), settings=(), provenance=(),
        warnings=(), excerpts=(),
        skipped=(), phi=None, accounting=(), corpus=replace(held.corpus, read=0, notes=0,
            skipped={}, patients=None),
    )  # fmt: skip
    page = render(bare)
    said = Page(page).said
    assert "Must not leave: nothing was checked." in said and '<header class="refused">' in page
    assert (
        "Not measured: identifiers missed, identifiers left, names disclosed, words recovered"
        in said
    )
    assert "No attack was run on this release" in said and "No utility was measured" in said
    assert "No identifier detection ran" in said and "each counted as a patient" in said


def test_kept_words_are_an_alarm():
    rows = (TokenRow("words", 10, replaced=8, kept=2), TokenRow("punctuation", 5, kept=5))
    page = render(replace(record(), accounting=rows, findings=()))
    assert page.count('class="n alarm"') == 1


def test_both_colour_schemes_define_the_same_colours(pages):
    style = pages["passed"].split("<style>")[1].split("</style>")[0]
    light, dark = _schemes(style)
    assert light.keys() == dark.keys()
    assert set(re.findall(r"var\((--[a-z0-9-]+)\)", pages["passed"])) <= light.keys() | {"--sans"}
    assert "@media print" in style and "@page" in style


@pytest.mark.parametrize(
    "word", ["anonymous", "anonymised", "HIPAA compliant", "is safe", "guarantee"]
)
@pytest.mark.parametrize("name", PAGES)
def test_no_claim_is_made(read, name, word):
    assert not re.search(rf"\b{word}\b", read[name].said)


def _hostile_gates(bad):
    for risk in (*Limits.read().rules("agreement"), "checks", bad):
        for outcome in OUTCOMES:
            made = gate(risk, outcome, name=bad, default="0.05")
            yield replace(made, question=bad, meaning=bad, hint=bad, unit=bad, power=bad, limit=bad)
            yield replace(made, value=bad, limit=None, meaning=bad, hint=bad)


def _hostile():
    bad = HOSTILE
    finding = Finding(
        "attack.x",
        0.1,
        40,
        "lower",
        chance=0.1,
        source=bad,
        labels=(bad,),
        numbers={bad: 1},
        unit=bad,
    )
    used = [
        Finding(
            "utility.transfer", 0.5, 9, "higher", labels=(bad,), scores=GapScores(bad, score=0.4)
        ),
        Finding(
            "attack.y",
            None,
            9,
            cell=Cell("recipient", "names"),
            gated=True,
            why=bad,
        ),
    ]
    return replace(
        record(),
        title=bad,
        run=bad,
        created=bad,
        kind=bad,
        excerpts=(bad,),
        findings=(finding, *used, Finding(f"odd.{bad}", None, 0, why=bad)),
        corpus=replace(
            record().corpus, columns=(Column(bad, bad),), more=(Fact(bad, bad),), skipped={bad: 33}
        ),
        settings=(Fact(bad, bad),),
        warnings=(bad,),
        skipped=(bad,),
        verdicts=(
            Verdict("agreement", tuple(_hostile_gates(bad))),
            Verdict("public", tuple(_hostile_gates(bad))),
        ),
        recipient=bad,
        purpose=bad,
        review_on=bad,
        earlier=(bad,),
        reuses=bad,
        phi=(PhiCount(bad, bad, 1, bad),),
    )


def _hostile_note():
    tokens = (
        AlignedToken(HOSTILE, HOSTILE, "replaced"),
        AlignedToken("\x00\x1b\ufffe", "\u202e", "phi"),
    )
    return AlignedNote(HOSTILE, tokens)


@pytest.mark.parametrize("source", [render(_hostile()), render_sample([_hostile_note()], HOSTILE)])
def test_hostile_words_stay_words(source):
    page = Page(source)
    assert not {"script", "img"} & {tag for tag, _ in page.tags}
    assert "<script>alert('x')</script>" in page.said
    assert "\x00" not in page.said and "\x1b" not in page.said


def test_many_long_notes_stay_under_three_megabytes():
    tokens = tuple(AlignedToken("word" * 40, "other" * 5, "replaced") for _ in range(30_000))
    page = render_sample([AlignedNote(f"note {i}", tokens) for i in range(20)], "run")
    assert len(page.encode()) < 3_000_000
    assert page.count('class="t replaced"') > 5_000
    assert page.count("more tokens of this note are not shown") == 20
    assert "w" * (LONGEST + 1) not in page


def _schemes(style: str) -> tuple[dict[str, str], dict[str, str]]:
    light, dark = re.findall(r":root \{(.*?)\n\s*\}", style, re.S)[:2]
    pattern = r"(--[a-z0-9-]+): (#[0-9a-f]{6});"
    return dict(re.findall(pattern, light)), dict(re.findall(pattern, dark))


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [0, 1])
def test_words_and_figures_have_contrast_enough(pages, scheme):
    colours = _schemes(pages["passed"].split("<style>")[1].split("</style>")[0])[scheme]
    grounds = {
        "--ink": ("--paper", "--tint", "--ground"),
        "--soft": ("--paper", "--ground", "--vault", "--fail-tint"),
    }
    grounds |= {
        "--accent": ("--paper",),
        "--pass": ("--paper",),
        "--fail": ("--paper", "--fail-tint"),
    }
    grounds |= {"--warn": ("--paper", "--warn-tint"), "--vault-ink": ("--paper", "--vault")}
    for words, places in grounds.items():
        for place in places:
            assert _contrast(colours[words], colours[place]) >= 4.5, (words, place)
    assert _contrast(colours["--unknown"], colours["--paper"]) >= 3.0


def test_a_page_from_the_stored_record_is_the_same_page(pages):
    assert render(from_json(to_json(record()))) == pages["passed"]


def test_markdown_is_defused():
    assert (
        md("a|b\n# <i>*c*</i> `d` [e](f)") == "a\\|b \\# \\<i\\>\\*c\\*\\</i\\> \\`d\\` \\[e\\](f)"
    )


def test_sampled_notes_are_all_there(read):
    assert note().title in read["sample"].said
