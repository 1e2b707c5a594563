"""A policy says of every label what becomes of it; what a file leaves out is not kept, and a bad
file is one line.
"""

from __future__ import annotations

import pytest

from clinveil.core import LABELS, Key, Span, UsageError, load_settings
from clinveil.phi import DeidentifySettings, NoteDeidentifier
from clinveil.phi.detection.finder import resolve
from clinveil.phi.treatment.policy import MASK, Policy, Treatment, allowed, profiles, tag
from clinveil.phi.treatment.surrogates import Surrogates

EXAMPLES = {
    "NAME": "Smith",
    "ADDRESS": "12 Oak Street",
    "CITY": "Seattle",
    "ZIP": "02114",
    "HOSPITAL": "Mercy Hospital",
    "DATE": "3/4/2019",
    "AGE": "94",
    "PHONE": "617-555-0199",
    "FAX": "617-555-0100",
    "EMAIL": "a@b.org",
    "SSN": "536-22-1234",
    "MRN": "1234567",
    "HEALTH_PLAN": "X12345",
    "ACCOUNT": "9318",
    "LICENSE": "D123",
    "VEHICLE": "ABC 123",
    "DEVICE": "77X8",
    "URL": "www.x.org",
    "IP": "10.0.0.1",
    "BIOMETRIC": "thumb print",
    "PHOTO": "face.jpg",
    "ID": "S19-12345",
}
KEY = Key.from_seed(1)
MATRIX = [(label, what) for label in LABELS for what in Treatment]


def policy(tmp_path, text):
    path = tmp_path / "site.toml"
    path.write_text(text)
    return Policy.read(path)


def settings(**flags):
    return load_settings(DeidentifySettings, {"identifiers": flags}).identifiers


@pytest.mark.parametrize(("label", "what"), MATRIX)
def test_each_label_by_each_treatment(tmp_path, label, what):
    text = f'[labels]\n{label} = "{what.value}"\n'
    if what not in allowed(label):
        with pytest.raises(
            UsageError, match=rf"site\.toml: labels\.{label}: .*{allowed(label)[-1].value}"
        ):
            policy(tmp_path, text)
        return
    original = EXAMPLES[label]
    done = NoteDeidentifier(KEY, policy=policy(tmp_path, text))
    made, tagged = done.treat(f"Of {original}.", [Span(3, 3 + len(original), label)], "p1")
    within = made.removeprefix("Of ").removesuffix(".")
    fixed = {
        Treatment.KEEP: original,
        Treatment.REMOVE: "",
        Treatment.TAG: tag(label),
        Treatment.MASK: MASK,
    }
    assert within == fixed[what] if what in fixed else within not in (original, tag(label), "")
    assert not tagged


def test_coarser_values(tmp_path):
    done = NoteDeidentifier(KEY, policy=Policy.of_profile("safe-harbor"))

    def coarse(label, original, after=""):
        return done.treat(original + after, [Span(0, len(original), label)])[0].removesuffix(after)

    assert (
        coarse("DATE", "3/4/2019")
        == coarse("DATE", "March 4th, 2019")
        == coarse("DATE", "20190304")
        == "2019"
    )
    assert (
        coarse("DATE", "3/4/2019 - 3/11/2019")
        == coarse("DATE", "Fall 2019")
        == coarse("DATE", "Tue 3/5/2019")
        == "2019"
    )
    assert coarse("DATE", "4-Mar-19") == coarse("DATE", "Fall '19") == "'19"
    assert coarse("DATE", "12/8/61") == "'61"
    assert coarse("DATE", "Dec '19") == "'19"
    # One that may be the birth of somebody over 89, one without a year, and two years are no year.
    assert (
        coarse("DATE", "3/4/1921")
        == coarse("DATE", "3/4")
        == coarse("DATE", "12/2018-1/2019")
        == "[DATE]"
    )
    assert coarse("ZIP", "02114-1234") == "021**"
    assert coarse("ZIP", "03601") == coarse("ZIP", "82100") == "000**"
    assert coarse("ZIP", "M5B 1W8") == "[ZIP]"
    assert coarse("CITY", "Seattle") == "Washington"
    assert coarse("CITY", "Seattle", ", WA") == coarse("CITY", "Springfield") == "[CITY]"
    assert coarse("AGE", "97") == "90+"
    assert coarse("AGE", "1925") == "[AGE]"


def test_profiles_name_every_label():
    assert set(profiles()) == {"safe-harbor", "limited-dataset", "research", "max-recall"}
    for name in profiles():
        found = Policy.of_profile(name)
        assert set(found.treatments) == set(LABELS)
        assert all(found[label] in allowed(label) for label in LABELS)
    assert [name for name in profiles() if Policy.of_profile(name).kept] == ["limited-dataset"]
    assert Policy.of_profile("limited-dataset").kept == {"DATE", "AGE", "ZIP", "CITY"}


def test_modes_are_short_for_policies():
    assert set(Policy.of_mode("remove").treatments.values()) == {Treatment.REMOVE}
    assert set(Policy.of_mode("tag").treatments.values()) == {Treatment.TAG}
    assert Policy.of_mode("replace").record() == Policy.of_profile("research").record()
    with pytest.raises(UsageError, match="remove, replace or tag"):
        Policy.of_mode("keep")


def test_what_a_file_leaves_out_is_treated_as_its_base(tmp_path):
    own = policy(tmp_path, '[labels]\nNAME = "surrogate"\n')
    assert own["NAME"] is Treatment.SURROGATE
    assert all(
        own[label] is Policy.of_profile("safe-harbor")[label] for label in LABELS if label != "NAME"
    )
    based = policy(tmp_path, 'base = "research"\nrecall_first = true\n')
    assert based.treatments == Policy.of_profile("research").treatments
    assert based.recall_first
    assert policy(tmp_path, "").kept == frozenset()
    assert own.digest != based.digest


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[labels]\nNAMES = "tag"', "labels: unknown label 'NAMES' \\(one of NAME, ADDRESS"),
        (
            '[labels]\nNAME = "shift"',
            (
                "labels.NAME: not a treatment of this label \\(one of keep, remove, tag, mask,"
                " surrogate"
            ),
        ),
        ("[labels]\nNAME = 3", "labels.NAME: not a treatment"),
        ("[labels]\nNAME = []", "labels.NAME: not a treatment"),
        ("labels = 3", "labels: not a table"),
        ('base = "hipaa"', "base: unknown profile .*safe-harbor"),
        ("base = []", "base: unknown profile"),
        ("recall_first = 1", "recall_first: not true or false"),
        ('NAME = "keep"', "unknown key 'NAME' \\(one of base, labels"),
        ("[labels", "file not found or not valid TOML"),
    ],
)
def test_a_bad_file_is_one_line(tmp_path, text, said):
    with pytest.raises(UsageError, match=f"site\\.toml: .*{said}") as error:
        policy(tmp_path, text)
    assert "\n" not in str(error.value)


def test_settings_name_one_policy(tmp_path):
    assert settings().policy().record() == Policy.of_profile("research").record()
    assert settings(phi_profile="safe-harbor").policy().name == "safe-harbor"
    for flags in (
        {"phi_profile": "hipaa"},
        {"phi_profile": "research", "phi_policy": tmp_path / "x.toml"},
        {"phi_profile": "research", "mode": "tag"},
    ):
        with pytest.raises(UsageError):
            settings(**flags)
    with pytest.raises(UsageError, match=r"x\.toml: file not found"):
        settings(phi_policy=tmp_path / "x.toml").policy()


def test_what_may_be_a_name_is_not_kept_as_a_town():
    spans = [Span(0, 10, "CITY", "a", 0.9), Span(0, 7, "NAME", "b", 0.5)]
    assert [span.label for span in resolve("Jackson, MS", spans)] == ["CITY"]
    assert resolve("Jackson, MS", spans, {"CITY"}) == [Span(0, 10, "NAME", "b", 0.5)]


@pytest.mark.parametrize(
    "label", sorted(label for label in LABELS if Treatment.SURROGATE in allowed(label))
)
def test_every_label_that_may_have_a_surrogate_has_a_maker(label):
    made = Surrogates(KEY).make(label, EXAMPLES[label], "p1")
    assert made
    assert made != EXAMPLES[label]
