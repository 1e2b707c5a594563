"""The gate of own e-mails and addresses: chance passes, what was left in does not; drawn notes, and
the command.
"""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from release_cases import release

from clinveil.attacks.text.identifiers import Identifiers, identifiers
from clinveil.channel import apply
from clinveil.cli.main import main
from clinveil.core.tokens import words
from clinveil.corpus.corpus import memory_corpus
from clinveil.corpus.people import read_patients
from clinveil.releases import measured
from clinveil.releases.attack_gates import patient_gates
from clinveil.report.outward import outward_finding, outward_value
from clinveil.report.record import tally

MEASURES = True

LEXICON = [
    f"{a}{b}{c}{d}" for a in "bdfgklmnprst" for b in "aeiou" for c in "lmnrst" for d in "abcdefghij"
]
# words by rank
RARE = range(2_000, 3_600)
COMMON = 12
MET = "own address no more often than by chance"
ANY = "no own address"


def drawn(rng, n, common, *, length=280, planted=0, size=2):
    """The finding of n patients with a note each of Zipf's words; addresses of `common` words, the
    first ones left in.

    The words of a note stand in a random order; an address that is left in, of `size` words, stands
    whole.
    """
    weights = 1 / np.arange(1, len(LEXICON) + 1)
    people = {}
    notes = []
    for i in range(n):
        own = [LEXICON[j] for j in rng.choice(common, size, replace=False)]
        text = rng.choice(LEXICON, length, p=weights / weights.sum()).tolist()
        if i < planted:
            at = int(rng.integers(length - size))
            text[at : at + size] = own
        fields = {"name": ("x",), "record_numbers": (), "phones": (), "emails": ()}
        people[f"p{i}"] = SimpleNamespace(**fields, addresses=(f"12 {' '.join(own)}",))
        notes.append((f"n{i}", f"p{i}", " ".join(text)))
    return next(
        f
        for f in identifiers(memory_corpus(notes), people, rng, replicates=1)
        if f.measure.endswith("address")
    )


def refused(finding):
    gate = next(g for g in patient_gates([finding], shuffled=True) if g.name == MET)
    return not gate.passed


def test_chance_is_what_random_notes_hold_and_is_seldom_refused():
    """Addresses of the commonest words in 80 releases: as many found as expected, and 1 % refused
    at most.
    """
    rng = np.random.default_rng(5)
    found = [drawn(rng, 30, COMMON) for _ in range(80)]
    count = sum(f.count for f in found)
    expected = sum(f.detail["expected"] for f in found)
    assert abs(count - expected) < 3 * expected**0.5 and expected > 200
    assert sum(map(refused, found)) <= 4
    assert (
        sum(f.count > 0 for f in found) > 60
    )  # each of these was refused when any was one too many


@pytest.mark.parametrize(
    ("common", "size", "planted", "caught"),
    [
        (RARE, 2, 1, 10),  # one is enough
        (COMMON, 5, 1, 8),  # common words, but five of them
        (COMMON, 2, 1, 0),  # two common words: one more is what chance brings
        (COMMON, 2, 15, 8),
    ],
)
def test_addresses_left_in_are_refused(common, size, planted, caught):
    rng = np.random.default_rng(11)
    assert (
        sum(refused(drawn(rng, 30, common, planted=planted, size=size)) for _ in range(10))
        >= caught
    )


def test_the_gate_says_from_where_on_it_refuses_and_an_order_that_is_kept_excuses_none():
    rng = np.random.default_rng(2)
    clean = drawn(rng, 40, RARE)
    busy = drawn(rng, 40, COMMON)
    said = [patient_gates([f], shuffled=True)[0] for f in (clean, busy)]
    assert "fewer than one of 125 orders" in said[0].power and "2 or more patients" in said[0].power
    assert "fewer than one of 125 " not in said[1].power
    assert busy.count and said[1].passed and tally([said[1].outcome]) == "1 of 1 gates passed"
    (kept,) = patient_gates([busy])
    assert (kept.name, kept.passed, kept.value) == (ANY, False, busy.count)


def test_few_that_stand_there_by_chance_are_not_counted_outside():
    busy = drawn(np.random.default_rng(2), 40, COMMON)
    assert 0 < busy.count < 11
    (gate,) = patient_gates([busy], shuffled=True)
    assert outward_value(gate, 40) == "<11"
    (unasked,) = patient_gates([dataclasses.replace(busy, p=None)], shuffled=True)
    assert not unasked.passed  # nobody knows, so nothing leaves
    said = outward_finding(busy)
    assert (
        said["hidden"] and [said[k] for k in ("value", "count", "p", "low", "high")] == [None] * 5
    )
    assert said["detail"] == {}


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """Notes of a few demo patients, and the words of all addresses."""
    folder = tmp_path_factory.mktemp("own-words")
    assert (
        main(
            [
                "demo",
                "--notes-only",
                "-o",
                str(folder / "demo"),
                "--patients",
                "24",
                "--seed",
                "3",
                "--quiet",
            ]
        )
        == 0
    )
    people = read_patients(folder / "demo/patients.parquet").values()
    kept = sorted(
        {word for person in people for address in person.addresses for word in words(address)}
    )
    (folder / "kept.txt").write_text("\n".join(kept))
    return folder


@pytest.mark.parametrize(("flags", "name"), [(["--set", "shuffle=none"], ANY), ([], MET)])
def test_addresses_that_nobody_took_out_are_refused(desk, flags, name, monkeypatch, capsys):
    """PHI off, the words of addresses kept, and an order that is not random: by request, or as it
    was not applied.
    """
    monkeypatch.setattr(
        measured, "of_release", lambda: [Identifiers]
    )  # the others take most of the time
    monkeypatch.setattr(apply, "_order", lambda aligned, *rest: np.arange(aligned[-1]))
    left_in = [
        "--set",
        "phi=false",
        "--set",
        f"keep_words={desk / 'kept.txt'}",
        "--min-patients",
        "1",
        "--set",
        "vary_length=0",
        "--set",
        "allow_small=true",
    ]
    assert main(release(desk, f"out{len(flags)}", *left_in, *flags)) == 4
    assert f"FAILED  {name}: " in capsys.readouterr().out
