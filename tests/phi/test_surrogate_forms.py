"""Surrogates in running text: names in all their forms, accounts made of names, dates with what
stands beside them.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinveil.core import Key, Span
from clinveil.corpus import Patient
from clinveil.lexicons import all_given_names, surnames
from clinveil.phi import NameSurrogates, NoteDeidentifier
from clinveil.phi.name_variants import within_one_edit
from clinveil.phi.treatment.dates import WEEKDAYS, offset, parse, shifted
from clinveil.phi.treatment.policy import Policy
from clinveil.phi.treatment.surrogates import names as surrogate_names
from clinveil.phi.treatment.surrogates.names import NoteNames, email, number_or_account
from clinveil.phi.treatment.surrogates.pools import (
    _FREQUENT,
    _RARE,
    _TIMES,
    RAREST,
    _share,
    culture_of,
    gender,
    listed,
    pool,
    usual_spelling,
)

KEY = Key.from_seed(1)
FIRST = [name.capitalize() for name, _ in Counter(all_given_names()).most_common(400)]
LAST = [name.capitalize() for name, _ in Counter(surnames()).most_common(2000)]
MISSPELT = [
    ("Smtih", "Smith"),
    ("Jhon", "John"),
    ("Wiliams", "Williams"),
    ("Rodrigez", "Rodriguez"),
]

ORIGINS = {
    "nguyen": "vietnamese", "garcia": "spanish", "wang": "chinese", "tanaka": "japanese",
    "patel": "indian", "okafor": "west-african", "rossi": "italian", "smith": "", "lee": "",
    "martin": "", "taylor": "",
}  # fmt: skip


def new(text, patient_id="p1", patient=None):
    return NameSurrogates(KEY, patient_id, patient).of(text)


def treated(text, *marked, policy="research", patient_id="p1"):
    """The text under a policy, with spans at the words that are given with their labels."""
    spans = []
    at = 0
    for label, word in marked:
        at = text.index(word, at)
        spans.append(Span(at, at + len(word), label))
        at += len(word)
    return NoteDeidentifier(KEY, policy=Policy.of_profile(policy)).treat(text, spans, patient_id)[0]


class TestNames:
    @settings(max_examples=150, deadline=None)
    @given(st.sampled_from(FIRST), st.sampled_from(LAST), st.integers(0, 9))
    def test_all_forms_of_a_name_agree(self, first, last, patient):
        who = f"p{patient}"
        given_ = new(first, who)
        family = new(last, who)
        assert new(f"{first} {last}", who) == f"{given_} {family}"
        assert new(f"{last.upper()}, {first.upper()}", who) == f"{family.upper()}, {given_.upper()}"
        assert new(f"{first[0]}. {last}", who).endswith(family)
        made = email(KEY, who, f"{first}.{last}@hosp.org".lower(), NameSurrogates(KEY, who))
        assert made.split("@")[0] == f"{given_}.{family}".lower()

    def test_initials_are_those_of_the_name(self):
        for who in (f"p{i}" for i in range(20)):
            first, last = new("John Smith", who).split()
            assert new("J. Smith", who) == f"{first[0]}. {last}"
            assert new("J.S.", who) == f"{first[0]}.{last[0]}."
            assert new("JS", who) == first[0] + last[0]
            assert (
                email(KEY, who, "jsmith@x.org", NameSurrogates(KEY, who)).split("@")[0]
                == (first[0] + last).lower()
            )

    def test_user_names_go_with_the_name(self):
        names = NameSurrogates(KEY, "p1")
        first, last = new("John Smith").lower().split()
        assert number_or_account(KEY, "p1", "jsmith", names) == first[0] + last
        assert re.fullmatch(
            rf"{first}_{last}\d\d", number_or_account(KEY, "p1", "john_smith72", names)
        )
        assert re.fullmatch(r"[A-Z]\d{2}-\d{5}", number_or_account(KEY, "p1", "S19-12345", names))

    def test_what_is_no_name_in_an_address_goes_too(self):
        for local in ("xqzwv", "x", "ab12", "hospital.billing"):
            assert (
                email(KEY, "p1", f"{local}@hosp.org", NameSurrogates(KEY, "p1")).split("@")[0]
                != local
            )

    @pytest.mark.parametrize(("wrong", "right"), MISSPELT)
    def test_misspellings_map_as_the_name(self, wrong, right):
        assert new(wrong) == new(right)

    def test_misspellings_within_a_note(self):
        text = "Ms. Okwuosa came. Okwuosa is well. Okwousa left."
        made = treated(text, ("NAME", "Okwuosa"), ("NAME", "Okwuosa"), ("NAME", "Okwousa"))
        one, two, three = re.fullmatch(
            r"Ms\. (\w+) came\. (\w+) is well\. (\w+) left\.", made
        ).groups()
        assert one == two == three

    def test_hyphenated_surnames_go_whole(self):
        for name in ("Okwuosa-Adeyemi", "Shea-Porter", "Smith-James", "Garcia-Lopez"):
            made = new(name)
            assert not {*name.lower().split("-")} & {*made.lower().split("-")}
            assert made.count("-") == 1
        assert new("Al-Khatib") == new("Khatib")

    def test_van_der_berg_in_all_forms(self):
        forms = [
            "van der Berg",
            "Van der Berg",
            "Van Der Berg",
            "van den Berg",
            "Vandenberg",
            "Berg",
            "Berg, van der",
        ]
        assert len({new(form) for form in forms}) == 1
        assert new("VAN DER BERG") == new("Berg").upper()
        assert new("Le") != "Le" and "," in new("Le, Anh")  # a surname of Vietnam

    def test_a_daughter_gets_a_first_name(self):
        for who in (f"p{i}" for i in range(12)):
            made = treated(
                "Her daughter Zyxelle came; Zyxelle left.",
                ("NAME", "Zyxelle"),
                ("NAME", "Zyxelle"),
                patient_id=who,
            )
            one, two = re.fullmatch(r"Her daughter (\w+) came; (\w+) left\.", made).groups()
            assert one == two
            assert one.lower() in pool("female").names
            assert new("Kateline", who).lower() in pool("given").names

    @pytest.mark.parametrize(("name", "culture"), ORIGINS.items())
    def test_origin_is_kept_where_it_can_be_told(self, name, culture):
        assert culture_of(name, "family") == culture
        if culture:
            assert {culture_of(new(name, f"p{i}"), "family") for i in range(20)} == {culture}

    def test_gender_and_origin_of_a_whole_name_are_kept(self):
        for who in (f"p{i}" for i in range(20)):
            given, family = new("Anna-Lisa Södergren", who).lower().split()
            assert {gender(part) for part in given.split("-")} == {"female"}
            assert culture_of(family, "family") == "nordic"

    def test_no_name_of_the_patient_stands_for_another(self):
        patient = Patient("p1", ("Jose", "Garcia", "Lopez"))
        for i in range(60):
            made = {NameSurrogates(KEY, f"p{i}", patient).of(word).lower() for word in patient.name}
            assert not made & {"jose", "garcia", "lopez"}


DAYS = st.dates(date(1951, 1, 1), date(2048, 12, 31))


class TestDates:
    @settings(max_examples=150, deadline=None)
    @given(DAYS, st.integers(0, 20))
    def test_zeros_stay_as_they_were(self, day, patient):
        who = f"p{patient}"
        wide = shifted(KEY, who, f"{day:%m/%d/%Y}")
        if "0" in (f"{day:%m}"[0], f"{day:%d}"[0]):
            assert re.fullmatch(r"\d\d/\d\d/\d{4}", wide)
        if day.month < 10 or day.day < 10:
            narrow = shifted(KEY, who, f"{day.month}/{day.day}/{day.year}")
            assert not re.search(r"(?:^|/)0", narrow)
            assert parse(narrow)[0] == parse(wide)[0] == day + offset(KEY, who)

    @settings(max_examples=150, deadline=None)
    @given(DAYS, st.integers(0, 20), st.integers(1, 60))
    def test_both_ends_of_a_range_move(self, day, patient, length):
        who = f"p{patient}"
        end = day + timedelta(length)
        made = shifted(KEY, who, f"{day:%m/%d/%Y} - {end:%m/%d/%Y}")
        one, two = (parse(part)[0] for part in made.split(" - "))
        assert (one - day, two - end) == (offset(KEY, who), offset(KEY, who))

    @settings(max_examples=150, deadline=None)
    @given(DAYS, st.integers(0, 20), st.integers(1, 20))
    def test_days_of_one_month(self, day, patient, length):
        who = f"p{patient}"
        end = day + timedelta(length)
        if end.month != day.month:
            return
        made = shifted(KEY, who, f"{day:%B} {day.day}-{end.day}, {day.year}")
        by = offset(KEY, who)
        one = day + by
        two = end + by
        whole = f"{one:%B} {one.day}-{two.day}, {one.year}"
        months = f"{one:%B} {one.day}-{two:%B} {two.day}, {two.year}"
        years = f"{one:%B} {one.day}, {one.year}-{two:%B} {two.day}, {two.year}"
        assert made == (
            whole if one.month == two.month else months if one.year == two.year else years
        )

    @settings(max_examples=200, deadline=None)
    @given(
        DAYS,
        st.integers(0, 20),
        st.sampled_from(["{w}, {d}", "{w} {d}", "{d} ({w})", "{d}, {w}"]),
        st.booleans(),
    )
    def test_a_weekday_moves_with_its_date(self, day, patient, form, short):
        who = f"p{patient}"
        by = offset(KEY, f"p{patient}")

        def weekday(of):
            return WEEKDAYS[of.weekday()][: 3 if short else None]

        want = form.format(w=weekday(day + by), d=shifted(KEY, who, f"{day:%m/%d/%Y}"))
        text = form.format(w=weekday(day), d=f"{day:%m/%d/%Y}")
        assert shifted(KEY, who, text) == want  # in the span
        assert (
            treated(f"Seen {text}!", ("DATE", f"{day:%m/%d/%Y}"), patient_id=who) == f"Seen {want}!"
        )  # beside it

    @settings(max_examples=200, deadline=None)
    @given(DAYS, st.integers(0, 40))
    def test_a_month_never_stays(self, day, patient):
        for text in (f"{day:%B %Y}", f"{day:%m/%Y}", f"{day:%b '%y}"):
            assert shifted(KEY, f"p{patient}", text) != text

    def test_years_alone_are_tags_where_dates_move(self):
        text = "MI in 2012, seen since 1998. Took 2000 mg in 2000 ml of water."
        assert treated(text) == text.replace("2012", "[DATE]").replace("1998", "[DATE]")
        assert treated(text, policy="safe-harbor") == text

    @pytest.mark.parametrize(
        "text", ["3/4-3/11", "2019", "May", "13/13/2019 - 3/4/2019", "Christmas 2019"]
    )
    def test_what_cannot_be_read_is_a_tag(self, text):
        assert shifted(KEY, "p1", text) is None
        assert treated(f"On {text}.", ("DATE", text)) == "On [DATE]."


def test_earlier_marks_stay():
    text = "Dr. [**Name**] and [NAME] saw ___ at [**Hospital1 18**]."
    done = NoteDeidentifier(KEY)
    assert done.treat(text, done.find(text))[0] == text


def test_a_kept_date_keeps_its_weekday():
    text = "Seen Tuesday, 3/5/2019, in 2019."
    assert treated(text, ("DATE", "3/5/2019"), policy="limited-dataset") == text


@given(st.sampled_from(sorted(all_given_names())[::7] + sorted(surnames())[::997]), st.data())
@settings(deadline=None)
def test_usual_spelling_is_the_most_usual_name_within_one_edit(name, data):
    """By all words within one edit: slow, and plain."""
    edits = sorted(_one_edit(name))
    for form in (name, *(data.draw(st.sampled_from(edits)) for _ in range(3))):
        assert usual_spelling(form) == _usual_spelling(form)


@given(
    st.lists(st.text("abc", min_size=5, max_size=7), min_size=1, max_size=12),
    st.text("abc", min_size=5, max_size=7),
)
@settings(deadline=None)
def test_spelling_within_a_note_is_the_most_frequent_name_within_one_edit(names, form):
    """By comparison with each name of the note."""
    text = " ".join(names)
    note = NoteNames(text, [(match.start(), match.end()) for match in re.finditer(r"\w+", text)])
    near = [name for name in names if within_one_edit(form, name) and name != form]
    expected = max([form, *sorted(near)], key=lambda name: (names.count(name), name == form))
    assert note.spelling(form) == (form if listed(form) else expected)


def test_many_names_in_a_note_take_linear_work(monkeypatch):
    compared = []
    monkeypatch.setattr(
        surrogate_names,
        "within_one_edit",
        lambda *pair: compared.append(pair) or within_one_edit(*pair),
    )
    letters = "bdfgklmnprstvz"
    names = [f"{a}a{b}e{c}oqu" for a in letters for b in letters for c in letters]
    text = " ".join(names)
    at = [(match.start(), match.end()) for match in re.finditer(r"\w+", text)]
    note = NoteNames(text, at)
    assert [note.spelling(name) for name in names] == names
    assert len(compared) < 60 * len(names)


def _usual_spelling(form):
    if len(form) < 4 or _share(form) > _RARE:
        return form
    found = [name for name in sorted(_one_edit(form)) if name[:1] == form[0] and listed(name)]
    best = max(found, key=_share, default=form)
    return (
        best
        if _share(best) >= (_TIMES * max(_share(form), RAREST) if listed(form) else _FREQUENT)
        else form
    )


def _one_edit(form):
    cuts = [(form[:i], form[i:]) for i in range(len(form) + 1)]
    letters = "abcdefghijklmnopqrstuvwxyz"
    return {
        *(a + b[1:] for a, b in cuts if b),
        *(a + b[1] + b[0] + b[2:] for a, b in cuts if len(b) > 1),
        *(a + c + b[1:] for a, b in cuts if b for c in letters),
        *(a + c + b for a, b in cuts for c in letters),
    }
