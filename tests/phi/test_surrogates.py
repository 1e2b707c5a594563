"""Surrogates: coherent under a patient, other than the original, independent of order; dates keep
their intervals.
"""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinveil.core import Key
from clinveil.corpus import Patient
from clinveil.lexicons import all_given_names, name_form, surnames
from clinveil.phi import NameSurrogates
from clinveil.phi.treatment.dates import LARGEST_OFFSET, offset, parse, shifted
from clinveil.phi.treatment.surrogates import Surrogates
from clinveil.phi.treatment.surrogates.names import email as made_email
from clinveil.phi.treatment.surrogates.numbers_and_places import (
    address,
    city,
    institution,
    internet_address,
    other_number,
    social_security_number,
    url,
)
from clinveil.phi.treatment.surrogates.pools import gender, pool

KEY = Key.from_seed(1)
OTHER = Key.from_seed(2)
names = st.sampled_from(
    [n for n, _ in Counter(surnames()).most_common(3000)] + list(all_given_names())[:1500]
)


def email(key, patient_id, text):
    return made_email(key, patient_id, text, NameSurrogates(key, patient_id))


def new(text, patient_id="p1", key=KEY, patient=None):
    return NameSurrogates(key, patient_id, patient).of(text)


class TestNames:
    @settings(max_examples=300, deadline=None)
    @given(names, st.integers(0, 50))
    def test_a_word_is_never_itself(self, name, patient):
        assert name_form(new(name, f"p{patient}")) != name_form(name)

    @settings(max_examples=50, deadline=None)
    @given(names)
    def test_case_and_accents_make_no_difference(self, name):
        assert new(name.upper()) == new(name).upper()
        assert new(name.capitalize()).lower() == new(name)
        assert new("José") == new("Jose\u0301".replace("e\u0301", "é")) == new("Jose")

    def test_mentions_agree(self):
        first, last = new("John Smith").split()
        assert new("SMITH, JOHN") == f"{last.upper()}, {first.upper()}"
        assert new("Smith") == last
        assert new("J. Smith") == f"{first[0]}. {last}"
        assert new("john smith") == f"{first} {last}".lower()
        assert new("Smith's") == f"{last}'s"

    def test_gender_is_kept(self):
        for name in ("Mary", "Linda", "James", "Robert", "Priya", "Ngozi", "Thuy"):
            made = [new(name, f"p{i}").lower() for i in range(40)]
            assert all(m in pool(gender(name.lower())).names for m in made)
            assert all(gender(m) in (gender(name.lower()), "given") for m in made)

    def test_patients_and_keys_differ(self):
        assert len({new("Smith", f"p{i}") for i in range(30)}) > 20
        assert len({new("Smith", key=Key.from_seed(i)) for i in range(30)}) > 20

    def test_the_census_is_drawn_by_frequency(self):
        made = Counter(new("Zyzzo", f"p{i}").lower() for i in range(3000))
        usual = sum(made[n] for n, _ in Counter(surnames()).most_common(100))
        share = (
            sum(s for _, s in Counter(surnames()).most_common(100)) / 90.48
        )  # what the census list covers
        assert abs(usual / 3000 - share) < 0.03

    def test_a_misspelling_of_the_known_patient_is_the_patient(self):
        patient = Patient("p1", ("John", "Smith"))
        assert new("Jhon Smtih", patient=patient) == new("John Smith", patient=patient)

    def test_the_known_patient_says_which_name_is_the_surname(self):
        patient = Patient("p1", ("Smith", "Mary"))  # family name Mary
        assert new("Mary", patient=patient).lower() in surnames()

    def test_a_number_in_what_was_taken_for_a_name_does_not_stay(self):
        assert "90417" not in new("90417736205") and new("90417736205").isdigit()
        assert "90417" not in new("John Smith 90417736205")
        assert not set(new("सीता देवी")) & set("सीता देवी") - {" "}

    def test_scripts_without_census_names_get_latin_ones(self):
        made = new("Иванов")
        assert made.isascii()
        assert made == new("ИВАНОВ").capitalize()


FORMATS = [
    ("03/04/2019", "%m/%d/%Y"),
    ("2019-03-04", "%Y-%m-%d"),
    ("20190304", "%Y%m%d"),
    ("03-04-19", "%m-%d-%y"),
    ("March 04, 2019", "%B %d, %Y"),
    ("04 March 2019", "%d %B %Y"),
    ("04-Mar-2019", "%d-%b-%Y"),
    ("Mar 04 2019", "%b %d %Y"),
    ("2019/03/04", "%Y/%m/%d"),
]
days = st.dates(date(1951, 1, 1), date(2048, 12, 31))


class TestDates:
    @settings(max_examples=200, deadline=None)
    @given(
        days,
        days,
        st.integers(0, 20),
        st.sampled_from([f for _, f in FORMATS]),
        st.sampled_from([f for _, f in FORMATS]),
    )
    def test_intervals_are_kept_across_formats(self, one, two, patient, first, second):
        made = [
            shifted(KEY, f"p{patient}", day.strftime(f)) for day, f in ((one, first), (two, second))
        ]
        read = [parse(text)[0] for text in made]
        assert read[1] - read[0] == two - one or abs(read[1] - read[0] - (two - one)) > timedelta(
            days=30_000
        )

    @pytest.mark.parametrize(("text", "form"), FORMATS)
    def test_the_format_is_kept(self, text, form):
        from datetime import datetime

        made = shifted(KEY, "p1", text)
        assert datetime.strptime(made, form).date() == date(2019, 3, 4) + offset(KEY, "p1")
        assert len(made) == len(text) or "March" in text

    @pytest.mark.parametrize(
        ("text", "day"),
        [
            ("3/4/2019", date(2019, 3, 4)),
            ("25/12/2019", date(2019, 12, 25)),
            ("3/4/49", date(2049, 3, 4)),
            ("3/4/50", date(1950, 3, 4)),
            ("March 4th, 2019", date(2019, 3, 4)),
            ("4th of March 2019", date(2019, 3, 4)),
            ("2/29/2020", date(2020, 2, 29)),
            ("Dec '19", date(2019, 12, 15)),
            ("March 2019", date(2019, 3, 15)),
            ("Sept. 3, 2001", date(2001, 9, 3)),
        ],
    )
    def test_read(self, text, day):
        assert parse(text)[0] == day

    @pytest.mark.parametrize(
        "text",
        [
            "3/4",
            "Christmas",
            "2/30/2019",
            "13/13/2019",
            "March",
            "3/4-3/11",
            "Mayor 3, 2019",
            "",
            "12/2019/3",
        ],
    )
    def test_what_cannot_be_read_is_not_guessed(self, text):
        assert parse(text) is None
        assert shifted(KEY, "p1", text) is None

    def test_offsets_are_secret_non_zero_and_cover_their_range(self):
        all_days = [offset(KEY, f"p{i}").days for i in range(4000)]
        assert 0 not in all_days
        assert max(all_days) <= LARGEST_OFFSET
        assert min(all_days) >= -LARGEST_OFFSET
        assert len(set(all_days)) > 700
        assert abs(sum(d > 0 for d in all_days) / 4000 - 0.5) < 0.04
        assert offset(KEY, "p1") != offset(OTHER, "p1")

    def test_the_end_of_time_has_no_surrogate(self):
        forward = next(f"p{i}" for i in range(50) if offset(KEY, f"p{i}").days > 0)
        assert shifted(KEY, forward, "12/31/9999") is None


class TestNumbers:
    @settings(max_examples=200, deadline=None)
    @given(
        st.from_regex(
            r"[0-9]{2,12}|[A-Z]{1,3}-[0-9]{3,8}|[0-9]{3}-[0-9]{2}-[0-9]{4}|[a-z][0-9]",
            fullmatch=True,
        ),
        st.integers(0, 9),
    )
    def test_shape_is_kept_and_the_number_is_another(self, text, patient):
        made = other_number(KEY, f"p{patient}", text)
        assert made != text
        assert [(c.isdigit(), c.isupper(), c.islower()) for c in made] == [
            (c.isdigit(), c.isupper(), c.islower()) for c in text
        ]
        assert [c for c in made if not c.isalnum()] == [c for c in text if not c.isalnum()]

    def test_separators_make_no_difference(self):
        assert other_number(KEY, "p1", "123-45-67").replace("-", "") == other_number(
            KEY, "p1", "1234567"
        )
        assert other_number(KEY, "p1", "(416) 555 0199") != other_number(
            KEY, "p2", "(416) 555 0199"
        )

    def test_uniform_on_everything_else(self):
        made = Counter(other_number(KEY, f"p{i}", "7") for i in range(9000))
        assert set(made) == set("012345689")
        assert all(850 < count < 1150 for count in made.values())

    def test_nothing_of_another_script_stays(self):
        for text in ("ЖЦ-123", "१२३४", "Қызқұрттан", "स7", "٣٤٥"):
            made = other_number(KEY, "p1", text)
            assert made.isascii() and not set(filter(str.isalnum, made)) & set(text) - set(
                "0123456789"
            )

    def test_long_numbers_do_not_hang(self):
        assert len(other_number(KEY, "p1", "9" * 400)) == 400

    def test_no_letters_or_digits_is_no_number(self):
        assert other_number(KEY, "p1", "--") is None
        assert social_security_number(KEY, "p1", "***") is None

    @settings(max_examples=100, deadline=None)
    @given(st.from_regex(r"[0-9]{3}-[0-9]{2}-[0-9]{4}", fullmatch=True))
    def test_social_security_numbers_are_never_real(self, text):
        made = social_security_number(KEY, "p1", text)
        assert made[0] == "9"
        assert made != text


class TestContactsAndPlaces:
    def test_the_domain_of_an_address_is_not_kept(self):
        made = email(KEY, "p1", "john.smith@hosp.org")
        assert made.split("@")[1] in {"example.com", "example.net", "example.org"}
        assert "smith" not in made
        assert (
            made == email(KEY, "p1", "JOHN.SMITH@HOSP.ORG").lower()
            or made.lower() != "john.smith@hosp.org"
        )
        assert "@" in email(KEY, "p1", "rsmith at gmail dot com")

    def test_urls_keep_their_scheme_only(self):
        made = url(KEY, "p1", "https://www.hosp.org/john-smith")
        assert made.startswith("https://www.example.")
        assert "smith" not in made

    def test_internet_addresses_are_for_documentation(self):
        assert internet_address(KEY, "p1", "10.0.0.1").rpartition(".")[0] in {
            "192.0.2",
            "198.51.100",
            "203.0.113",
        }
        assert internet_address(KEY, "p1", "fe80::1:2").startswith("2001:db8::")

    @pytest.mark.parametrize(
        "original", ["123 Oak Street", "4 ELM ROAD", "77 Main St, Apt 4", "P.O. Box 45"]
    )
    def test_streets(self, original):
        made = address(KEY, "p1", original)
        assert made != original
        assert not {"oak", "elm", "main", "123", "77", "45"} & set(
            made.lower().replace(".", "").split()
        )
        assert made.isupper() == original.isupper()

    def test_kinds_of_institutions_are_kept(self):
        assert institution(KEY, "p1", "Mercy Hospital").endswith(" Hospital")
        assert institution(KEY, "p1", "Elm Clinic").endswith(" Clinic")
        assert institution(KEY, "p1", "Smith Foods").endswith(" Foods")
        assert "Mercy" not in institution(KEY, "p1", "Mercy Hospital")

    def test_an_invented_town_is_never_the_original(self):
        towns = {city(KEY, f"p{i}", "Alderbourne") for i in range(300)}
        assert "Alderbourne" not in towns
        assert len(towns) > 200


@pytest.mark.parametrize(
    ("label", "original"), [("AGE", "94"), ("AGE", "ninety-three"), ("AGE", "90s")]
)
def test_old_ages_are_one_class(label, original):
    assert Surrogates(KEY).make(label, original, "p1") == "90+"


@pytest.mark.parametrize("original", ["1925", "3/4/1921"])
def test_a_birth_that_gives_an_old_age_away_is_tagged(original):
    assert Surrogates(KEY).make("AGE", original, "p1") is None


def test_nothing_depends_on_what_was_asked_before():
    asked = [
        ("NAME", "Smith"),
        ("DATE", "3/4/2019"),
        ("PHONE", "617-555-0199"),
        ("CITY", "Boston"),
        ("NAME", "J. Smith"),
    ]
    forth = [Surrogates(KEY).make(*a, "p1") for a in asked]
    maker = Surrogates(KEY)
    assert [maker.make(*a, "p1") for a in reversed(asked)] == forth[::-1]
    assert forth != [Surrogates(OTHER).make(*a, "p1") for a in asked]
