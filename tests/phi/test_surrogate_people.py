"""Surrogates of one person agree in all forms; numbers, places and employers are plausible."""

from __future__ import annotations

import re

import pytest

from clinveil.core import Key
from clinveil.lexicons import nicknames
from clinveil.phi import NameSurrogates, NoteDeidentifier
from clinveil.phi.treatment.surrogates.names import NoteNames
from clinveil.phi.treatment.surrogates.numbers_and_places import institution
from clinveil.phi.treatment.surrogates.regions import (
    area_codes,
    postal_code,
    telephone,
    zip_prefixes,
)

KEY = Key.from_seed(2)


def new(name, note=None):
    return NameSurrogates(KEY, "p1", None, note or NoteNames("", ())).of(name)


def treated(text):
    engine = NoteDeidentifier(KEY)
    return engine.treat(text, engine.find(text, "p1"), "p1")[0]


class TestGeneration:
    @pytest.mark.parametrize("suffix", [" Jr.", ", Jr.", " Jr", " III", ", Sr.", " JR", " II"])
    def test_it_is_left_out(self, suffix):
        assert new("Walter Brandvold" + suffix) == new("Walter Brandvold")

    @pytest.mark.parametrize("suffix", ["Jr.", "III"])
    def test_it_does_not_stay_in_a_note(self, suffix):
        made = treated(f"His father, Walter Brandvold {suffix}, drives.")
        assert suffix.rstrip(".") not in made.split() and "Brandvold" not in made
        assert made.endswith(", drives.")

    def test_a_stage_is_no_generation(self):
        assert "stage III" in treated("Walter Brandvold has stage III disease.")


class TestForms:
    def test_a_nickname_is_a_short_form_of_the_surrogate(self):
        full = new("Robert")
        short = new("Bob")
        assert short != "Bob"
        assert short == full or short.lower() in nicknames()[full.lower()]

    def test_user_names_are_made_of_the_surrogates(self):
        given = new("Walter").lower()
        family = new("Brandvold").lower()
        text = (
            "Walter Brandvold, user name wbrandvold, login: walterbrandvold, mail"
            " walter.brandvold@x.org"
        )
        made = treated(text)
        assert f"login: {given}{family}" in made
        assert f"{given}.{family}@" in made
        assert re.search(rf"user name [a-z]{family}", made)

    def test_a_list_of_names_has_a_given_name_in_each(self):
        text = "Ostrava Vexley, Quentil Harbo and Zerina Plack"
        roles = NoteNames(text, [(0, len(text))]).roles
        assert {"ostrava", "quentil", "zerina"} >= set(roles)
        assert not {"vexley", "harbo", "plack"} & set(roles)
        assert set(NoteNames("Vexley, Ostrava", [(0, 15)]).roles) <= {"ostrava"}


class TestInstitutions:
    @pytest.mark.parametrize(
        ("long", "short"),
        [
            ("Riverside Community Hospital", "Riverside"),
            ("Massachusetts General Hospital", "Mass General"),
            ("St. Vincent's Medical Center", "St. Vincent's"),
            ("University Hospital of Larkmoor", "Larkmoor"),
        ],
    )
    def test_a_short_form_has_the_name_of_the_long_form(self, long, short):
        made = institution(KEY, "p1", long)
        assert institution(KEY, "p1", short) == made.split()[0]

    def test_initials_stand_for_the_long_form_of_the_note(self):
        long = "Larkmoor General Hospital"
        assert (
            institution(KEY, "p1", "LGH", others=[long, "LGH"])
            == institution(KEY, "p1", long).split()[0]
        )

    def test_an_employer_is_a_company(self):
        assert institution(KEY, "p1", "Quellmark", before="He works for ").endswith(" Company")
        assert institution(KEY, "p1", "Quellmark Foods", before="He works for ").endswith(" Foods")
        assert institution(KEY, "p1", "Quellmark", before="Seen at ").count(" ") == 0


class TestNumbers:
    @pytest.mark.parametrize(
        "original", ["617-555-0199", "(617) 555-0199", "+1 617 555 0199", "6175550199"]
    )
    def test_a_telephone_number_can_exist_in_the_state(self, original):
        for patient in map(str, range(60)):
            digits = re.sub(r"\D", "", telephone(KEY, patient, original))[-10:]
            assert digits[:3] in area_codes()["617"]
            assert digits[3] in "23456789" and digits[4:6] != "11"
            assert digits[3:] != "5550199"

    def test_a_number_agrees_with_and_without_its_area_code(self):
        full = telephone(KEY, "p1", "617-555-0199 ext 33")
        assert full.startswith(telephone(KEY, "p1", "617-555-0199") + " ext ")
        assert telephone(KEY, "p1", "617-555-0199").endswith(telephone(KEY, "p1", "555-0199"))

    @pytest.mark.parametrize(
        "original", ["+44 20 7946 0958", "07700 900123", "33456", "p12345", "020 7946 0958"]
    )
    def test_other_numbers_keep_their_format(self, original):
        made = telephone(KEY, "p1", original)
        assert made != original
        assert re.sub(r"\d", "9", made) == re.sub(r"\d", "9", original).replace(
            "p", made[0] if original[0] == "p" else "p"
        )

    def test_a_postal_code_is_of_the_state(self):
        for patient in map(str, range(200)):
            made = postal_code(KEY, patient, "02114-1234")
            assert made[:3] in zip_prefixes()["021"] and made != "02114-1234"
            assert 10 <= int(made[:3]) <= 27
        assert "02114" not in {postal_code(KEY, str(i), "02114") for i in range(3000)}

    def test_codes_of_other_countries_keep_their_format(self):
        assert re.fullmatch(r"[A-Z]\d[A-Z] \d[A-Z]\d", postal_code(KEY, "p1", "M5B 1W8"))

    def test_each_area_code_and_prefix_is_of_one_state(self):
        assert all(code in codes and len(code) == 3 for code, codes in area_codes().items())
        assert all(prefix in prefixes for prefix, prefixes in zip_prefixes().items())
