"""Each gate opens on a clean run and closes on its own breach, and only on that."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from clinveil.attacks import FullNameIndex, own_names
from clinveil.channel import TokenTally
from clinveil.core import Finding, KnownList
from clinveil.corpus import Accounting
from clinveil.releases import patient_gates
from clinveil.releases.check import OutputCheck
from clinveil.releases.gates import (
    PLANNED,
    accounting_gates,
    effective_number,
    judged,
    output_gates,
    seed_gate,
    use_gates,
    variety_gate,
)
from clinveil.report import Limits
from clinveil.report import tally as summary_of
from no_limits import NO_LIMITS

CLEAN = OutputCheck(
    notes=100,
    words=900,
    compared=900,
    self_replaced=0,
    kept=0,
    out_of_vocabulary=0,
    below_floor=0,
    stray=0,
    unmatched=0,
    unaligned=0,
)
TALLY = TokenTally(notes=100, words=900, known=900, replaced=900, released=900)
ROWS = Accounting(101, 100, Counter({"null text": 1}))


def score(gates):
    return summary_of(gate.outcome for gate in gates)


def failed(gates):
    return {gate.name for gate in gates if not gate.passed}


def test_a_clean_run_passes():
    gates = [*output_gates(CLEAN, TALLY), *accounting_gates(ROWS, CLEAN), seed_gate(())]
    assert not failed(gates)
    assert all(gate.meaning and gate.hint and gate.question.endswith("?") for gate in gates)


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("self_replaced", "no word replaced by itself"),
        ("out_of_vocabulary", "no unknown word passed"),
        ("stray", "no unknown word passed"),
        ("below_floor", "rare-word floor held"),
        ("unmatched", "every note accounted for"),
        ("unaligned", "every note accounted for"),
    ],
)
def test_one_breach_closes_one_gate(field, name):
    check = replace(CLEAN, **{field: 1})
    assert failed([*output_gates(check, TALLY), *accounting_gates(ROWS, check)]) == {name}


def test_the_hot_loops_own_count_closes_the_gate_too():
    tally = replace(TALLY, self_replaced=1)
    assert failed(output_gates(CLEAN, tally)) == {"no word replaced by itself"}


def test_lost_notes_and_notes_from_nowhere():
    for rows in (
        Accounting(102, 100, Counter(x=1)),
        Accounting(100, 100, Counter(x=1)),
        Accounting(101, 99, Counter(x=2)),
    ):
        assert "every note accounted for" in failed(accounting_gates(rows, CLEAN))


def test_one_in_a_hundred_may_fail_and_planned_rows_do_not_count():
    assert not failed(accounting_gates(ROWS, CLEAN))
    assert failed(accounting_gates(ROWS, CLEAN, balanced=False)) == {"every note accounted for"}
    many = Accounting(102, 100, Counter({"detector raised": 2}))
    assert failed(accounting_gates(many, CLEAN)) == {"few notes failed"}
    planned = Accounting(150, 100, Counter({next(iter(PLANNED)): 50}))
    assert not failed(accounting_gates(planned, CLEAN))


def own(kind, count=0, control=0.9, p=None, n=200, chance=None, in_feed=None, in_release=None):
    known = KnownList(
        in_feed=n if in_feed is None else in_feed,
        in_release=n if in_release is None else in_release,
    )
    return Finding(
        f"attack.own_{kind}",
        count / n,
        n,
        "lower",
        chance=chance,
        control=control,
        known_list=known,
        count=count,
        p=p,
    )


def test_the_feed_closes_gates():
    clean = [own(k) for k in ("record_number", "phone", "email", "address")] + [own("name", p=0.4)]
    assert not failed(patient_gates(clean))
    assert len(patient_gates(clean)) == 6
    assert all(
        gate.power for gate in patient_gates(clean) if gate.name.startswith(("no own", "own name"))
    )
    for kind in ("phone", "email"):
        assert failed(patient_gates([own(kind, 1)])) == {f"no own {kind}"}
    assert failed(patient_gates([own("name", 3, p=0.001)])) == {
        "own name no more often than others'"
    }
    assert not failed(patient_gates([own("name", 3, p=0.2)]))
    for strangers in (own("name", in_release=0), own("name", in_release=0, control=0.0)):
        assert failed(patient_gates([strangers])) == {"known patients occur in the notes"}
    (unlisted,) = patient_gates([])
    assert unlisted.outcome == "not decided" and "--patients" in unlisted.meaning


def test_without_digits_the_gates_of_numbers_hold_by_construction_and_do_not_count():
    findings = [own(k) for k in ("record_number", "phone", "email", "address")]
    certain = [gate for gate in patient_gates(findings, digits=False) if gate.by_construction]
    assert [gate.name for gate in certain] == ["no own record number", "no own phone"]
    assert all("by construction" in gate.meaning and not gate.power for gate in certain)
    assert not any(gate.by_construction for gate in patient_gates(findings))
    assert score(patient_gates(findings)) == "4 held"
    broken = patient_gates([*findings[1:], own("record_number", 1)], digits=False)
    assert score(broken) == "1 not held, 3 held"


NAMES = [
    (f"{a}{b}an", f"{b}{a}son")
    for a in ("br", "kl", "st", "tr", "gl")
    for b in ("abi", "emo", "ilu", "ova")
] * 8
NAMES = [
    (first + chr(97 + i % 26) + chr(97 + i // 26), last) for i, (first, last) in enumerate(NAMES)
]


def scanned(n, leaks, *, others=()):
    """The own-name finding of n patients; `leaks` rows name their bearer, `others` are (patient,
    name).
    """
    rng = np.random.default_rng(n)
    notes = [["seen"] for _ in range(n)]
    patients = np.arange(n)
    for patient, name in [*((i, i) for i in range(leaks)), *others]:
        notes[patient] += [*NAMES[name], "and"]
    index = FullNameIndex(NAMES[:n], rng, replicates=1)
    return own_names(index, patients, [index.search(patients, notes)], rng)


@pytest.mark.parametrize("n", [1, 2, 5, 10, 50, 100, 101, 160])
def test_one_own_name_in_clear_is_refused_at_any_size(n):
    """Of 1 to 5 patients all names could leak, and of 50 one: the test has no power there."""
    for leaks in (1, n):
        gates = patient_gates([scanned(n, leaks)])
        assert failed(gates) == {"own name no more often than others'"}
        assert "from 1 leaked name" in gates[-1].power
    assert not failed(patient_gates([scanned(n, 0)]))


@pytest.mark.parametrize("n", [10, 50])
def test_a_name_that_comes_for_others_too_is_chance(n):
    others = [(5, 0), (6, 0)]
    assert not failed(patient_gates([scanned(n, 1, others=others)]))
    assert failed(patient_gates([scanned(n, 1, others=others[:1])]))


def test_many_names_by_chance_take_power_and_the_gate_says_how_much():
    """Everybody's notes hold somebody's name: one own name more is what comes by chance, and five
    are not.
    """
    n = 160
    others = [(i, (i + 7) % n) for i in range(n)]
    one, many = (patient_gates([scanned(n, leaks, others=others)])[-1] for leaks in (1, 6))
    assert one.passed and not many.passed
    assert "from 5 leaked names of 160 on" in one.power


def test_the_gate_of_own_names_keeps_its_level():
    """Everybody's notes hold a random name, the own one now and then: refused in 1 % at most."""
    rng = np.random.default_rng(3)
    n = 120
    refused = 0
    for _ in range(300):
        others = list(enumerate(rng.permutation(n).tolist()))
        refused += bool(failed(patient_gates([scanned(n, 0, others=others)])))
    assert refused <= 9


def test_what_was_not_looked_for_has_no_gate():
    nothing = Finding(
        "attack.own_phone",
        None,
        n=0,
        why="none is known",
        known_list=KnownList(in_feed=9, in_release=9),
    )
    (gate,) = patient_gates([nothing])
    assert gate.outcome == "not decided" and gate.meaning == "none is known"


def test_a_public_seed_closes_its_gate():
    assert failed([seed_gate(("notes",))]) == {"no test seed"}


@pytest.mark.parametrize(
    ("n", "said"), [(1, "ewer than 11"), (5, "ewer than 11"), (10, "ewer than 11"), (80, "80")]
)
def test_no_sentence_of_a_gate_holds_a_small_count_of_the_feed(n, said):
    """The report, which hides small counts, prints these sentences as they are."""
    known = KnownList(in_feed=n, in_release=n)
    found = [
        Finding(f"attack.own_{kind}", 0.0, n, count=0, unit="patients", known_list=known)
        for kind in ("name", "phone")
    ]
    sentences = [f"{gate.meaning} {gate.power}" for gate in patient_gates(found)]
    assert sum(said in sentence for sentence in sentences) == 2
    assert n >= 11 or not any(f"mong {n} " in one or one.startswith(f"{n} ") for one in sentences)


def variety(outputs):
    return variety_gate(replace(CLEAN, outputs=Counter(outputs)))


@pytest.mark.parametrize(
    ("outputs", "passed", "value"),
    [
        ({"and": 2, "date": 2}, False, 2),
        ({f"w{i}": 100 for i in range(10)}, False, 10),
        ({f"w{i}": 100 for i in range(40)}, True, 40.0),
        ({"the": 100_000, **{f"w{i}": 1 for i in range(200)}}, False, 1.0),
        ({}, False, 0),
    ],
)
def test_a_release_of_few_words_is_refused(outputs, passed, value):
    gate = variety(outputs)
    assert (gate.passed, gate.value) == (passed, value)


def test_the_effective_number_by_hand():
    assert effective_number({"a": 5, "b": 5}) == pytest.approx(2)
    assert effective_number({"a": 2, "b": 1, "c": 1}) == pytest.approx(2**1.5)
    assert effective_number({}) == 0


def task(name, value, low, high):
    return Finding(f"utility.{name}", value, 200, "higher", low, high, unit="test notes")


@pytest.mark.parametrize(
    ("tasks", "outcome"),
    [
        ([("transfer", 0.4, 0.2, 0.6)], "held"),
        ([("transfer", -0.4, -0.8, -0.1), ("sequence", 0.2, 0.1, 0.3)], "held"),
        ([("transfer", 0.1, -0.2, 0.4)], "held"),
        ([("transfer", -0.4, -0.8, -0.1), ("sequence", -0.1, -0.3, 0.1)], "not held"),
        ([("transfer", -0.1, -0.3, 0.2)], "not held"),
        ([("transfer", -0.1, -1.0, 0.9)], "not decided"),  # could be halfway to real notes
        ([("language_model", 0.9, 0.8, 1.0)], "not decided"),  # bits per word alone do not count
        ([], "not decided"),
    ],
)
def test_a_release_of_no_use_is_refused(tasks, outcome):
    (gate,) = use_gates([task(*one) for one in tasks])
    assert gate.outcome == outcome and gate.risk == "use"
    assert "--as deidentified" in gate.hint


def test_use_that_is_not_decided_does_not_refuse_a_release_for_the_public():
    rules = Limits.read().rules("public")
    (gate,) = judged(use_gates([task("transfer", -0.1, -1.0, 0.9)]), rules)
    assert gate.outcome == "not decided" and gate.passed


def test_what_is_known_before_the_work_is_refused_before_it(tmp_path, capsys):
    from clinveil.cli import main

    rows = "".join(f"{i},p{i},seen for cough,{i}\n" for i in range(60))
    (tmp_path / "notes.csv").write_text(f"note_id,patient_id,text,case\n{rows}")
    (tmp_path / "others.csv").write_text("patient_id,name\nq1,Jo Li\n")
    plan = ["release", str(tmp_path / "notes.csv"), "--as", "obfuscated"]
    assert main([*plan, "--label", "case"]) == 3
    assert (
        "case: 100.0% of the notes have unique kept values (allowed: 1.0%)"
        in capsys.readouterr().err
    )
    assert main([*plan, "--label", "case", "--limits", str(NO_LIMITS)]) == 0
    assert main([*plan, "--patients", str(tmp_path / "others.csv")]) == 3
    assert "none of its 1 patients has a note here" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "code"), [("Jo Li", 3), ("Ann Bo", 0)])
def test_a_synthetic_label_with_a_known_name_is_refused(tmp_path, capsys, name, code):
    from clinveil.cli import main

    rows = "".join(f'{i},p{i},seen for cough,"Dr. Li, Jo"\n' for i in range(60))
    (tmp_path / "notes.csv").write_text(f"note_id,patient_id,text,doctor\n{rows}")
    (tmp_path / "known.csv").write_text(f"patient_id,name\np1,{name}\n")
    plan = ["release", str(tmp_path / "notes.csv"), "--as", "synthetic", "--label", "doctor"]
    assert main([*plan, "--patients", str(tmp_path / "known.csv")]) == code
    message = capsys.readouterr().err
    assert ("doctor: contains the full name of a known patient" in message) == bool(
        code
    ) and "Jo" not in message
