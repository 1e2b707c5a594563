"""Measuring drawn patients: all sides of their notes and of no others', and what must see every
note still does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clinveil.attacks import Attack, Context, Inversion, Linkage
from clinveil.attacks.text.identifiers import Identifiers
from clinveil.attacks.text.uniqueness import Uniqueness
from clinveil.channel import Channel
from clinveil.core import Finding
from clinveil.corpus import Patient, memory_corpus, open_corpus, rows
from clinveil.releases import patient_gates
from clinveil.releases.crosswalk import CROSSWALK, TableWriter
from clinveil.releases.measured import sample_case
from clinveil.stats import HitCounts, MeasureSpec
from clinveil.vectors import count_words

PATIENTS = 120
NOTES = 3
LENGTH = 30
WORDS = np.array([f"{a}{b}o" for a in "bcdfghjklm" for b in "aeiouyrlst"])


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """Notes of which some released ones share a run with their source, their ids, not yet
    measured.
    """
    rng = np.random.default_rng(11)
    source = []
    released = []
    walk = []
    for patient in range(PATIENTS):
        shared = int(rng.integers(0, 12))
        for note in range(NOTES):
            words = rng.choice(WORDS, LENGTH)
            drawn = np.concatenate([words[:shared], rng.choice(WORDS, LENGTH - shared)])
            old = f"s{patient}.{note}"
            new = f"r{patient}.{note}"
            source.append((old, f"p{patient}", " ".join(words)))
            released.append((new, f"q{patient}", " ".join(drawn)))
            walk.append((old, f"p{patient}", new, f"q{patient}"))
    crosswalk = pa.record_batch(list(map(list, zip(*walk, strict=True))), schema=CROSSWALK)
    original = memory_corpus(source)
    counts = count_words(original, tmp_path_factory.mktemp("counts"))
    order = np.random.default_rng(1).permutation(len(released))
    sides = {
        "original": original,
        "entered": original,
        "released": memory_corpus([released[i] for i in order]),
    }
    vault = tmp_path_factory.mktemp("vault")
    with TableWriter(vault / "crosswalk.parquet") as file:
        file.write(crosswalk)
    return Context(**sides, counts=counts), vault


def drawn(case, tmp_path, words=PATIENTS * NOTES * LENGTH // 4, salt=b"salt", **more):
    whole, vault = case
    return sample_case(replace(whole, **more), vault, words, salt, tmp_path / "measured")


def identity(n):
    """The arrays of a channel in which every word stays."""
    rows = np.arange(n + 1)
    return np.append(rows, n), rows[:n].astype(np.int32), np.ones(n), np.ones(n, dtype=np.bool_)


def of_words(seen, rng):
    """The findings of inversion under a channel that leaves every word unchanged."""
    channel = Channel(list(seen.context.counts.words), *identity(len(seen.context.counts)))
    return replace(seen, context=replace(seen.context, channel=channel)).run(Inversion(), rng)


class SameFirst(Attack):
    """Measure how many released notes begin with the word of their source; clustered by patient."""

    needs = frozenset({"original", "released", "notes"})
    words: ClassVar = {"attack.same_first": None}

    def __call__(self, context: Context, rng: np.random.Generator) -> list[Finding]:
        """Return one finding."""
        first = {note.note_id: note.text.split()[0] for note in rows(context.original)}
        owners = {}
        counts = np.zeros((PATIENTS, 2), dtype=np.int64)
        for note in rows(context.released):
            row = owners.setdefault(note.patient_id, len(owners))
            counts[row] += [note.text.split()[0] == first[context.notes[note.note_id]], 1]
        spec = MeasureSpec(measure="attack.same_first", over="patients")
        return [spec.share(HitCounts.of_clusters(counts[: len(owners)]), labels=("a",))]


def ids(corpus):
    return {note.note_id for note in rows(corpus)}


def test_small_releases_and_a_setting_of_all_are_measured_whole(case, tmp_path):
    for words in (0, PATIENTS * NOTES * LENGTH):
        seen = drawn(case, tmp_path, words)
        assert not seen.description and seen.context is seen.whole
        assert (
            len(seen.context.notes) == PATIENTS * NOTES and len(seen.context.patients) == PATIENTS
        )
    assert not (tmp_path / "measured").exists()


def test_all_sides_hold_the_same_whole_patients(case, tmp_path):
    seen = drawn(case, tmp_path)
    some = seen.context
    assert ids(some.released) == set(some.notes)
    assert ids(some.original) == ids(some.entered) == set(some.notes.values())
    assert len(some.notes) == NOTES * len(some.patients)
    assert 10 < len(some.patients) < 60
    notes = f"{len(some.notes)} of {PATIENTS * NOTES}"
    patients = f"{len(some.patients)} of {PATIENTS}"
    assert seen.description == f"{notes} notes, those of {patients} patients sampled with the key"
    assert ids(seen.whole.released) == ids(case[0].released)
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in (tmp_path / "measured").iterdir())


def test_part_files_are_copied_where_they_are_read(case, tmp_path):
    """Three parts of each side, and of the tables; the released ones in another order."""
    whole, vault = case
    sent = []
    parts = {}
    for side in ("original", "entered", "released"):
        (tmp_path / side).mkdir()
        table = pa.Table.from_batches(getattr(whole, side).batches())
        for part in range(3):
            pq.write_table(table.slice(120 * part, 120), tmp_path / side / f"{part}.parquet")
        parts[side] = open_corpus(tmp_path / side)
    (tmp_path / "crosswalk.parquet").mkdir()
    table = pq.read_table(vault / "crosswalk.parquet")
    for part in range(3):
        pq.write_table(
            table.slice(120 * part, 120), tmp_path / "crosswalk.parquet" / f"part-{part}.parquet"
        )

    def over(function, items):
        sent.append(list(items))
        return map(function, sent[-1])

    seen = sample_case(replace(whole, **parts), tmp_path, 2700, b"salt", tmp_path / "some", over)
    assert list(map(len, sent)) == [3] * 4
    one = drawn(case, tmp_path).context
    other = seen.context
    assert (one.notes, one.patients, drawn(case, tmp_path).description) == (
        other.notes,
        other.patients,
        seen.description,
    )
    for side in ("original", "entered", "released"):
        assert sorted(rows(getattr(one, side))) == sorted(rows(getattr(other, side)))


def test_the_key_decides_who_is_drawn(case, tmp_path):
    one, again, other = (
        set(drawn(case, tmp_path, salt=salt).context.notes) for salt in (b"a", b"a", b"b")
    )
    assert one == again != other


def test_findings_say_on_what_they_were_measured_and_exact_ones_do_not(case, tmp_path):
    seen = drawn(case, tmp_path)
    rng = np.random.default_rng(0)
    marked = seen.run(Linkage(own_vectors=False), rng)
    assert marked and all(f.sample == seen.description for f in marked)
    assert not any(f.sample for f in of_words(seen, rng))
    exact = seen.run(Uniqueness(), rng)
    assert all(not f.sample and f.n == PATIENTS * NOTES for f in exact)


def test_findings_of_an_attack_that_is_not_ours_say_it_too_and_nothing_else(case, tmp_path):
    seen = drawn(case, tmp_path)
    marked = seen.run(SameFirst(), np.random.default_rng(0))
    assert marked and all(f.sample == seen.description and not f.method for f in marked)


def test_one_leak_outside_of_the_drawn_patients_is_still_refused(case, tmp_path):
    clean = drawn(case, tmp_path)
    left_out = next(f"p{i}" for i in range(PATIENTS) if f"q{i}" not in clean.context.patients)
    known = {
        f"p{i}": Patient(
            f"p{i}", ("Zyra", f"Quux{chr(97 + i % 26)}"), record_numbers=(f"77{i:05d}",)
        )
        for i in range(PATIENTS)
    }
    number = known[left_out].record_numbers[0]
    leaking = [
        (*note[:2], f"{note.text} {number}" if note.note_id == f"r{left_out[1:]}.1" else note.text)
        for note in rows(case[0].released)
    ]
    gates = []
    for released in (case[0].released, memory_corpus(leaking)):
        seen = drawn(case, tmp_path, known=known, released=released)
        gates.append(patient_gates(seen.run(Identifiers(), np.random.default_rng(0))))
    found = seen.run(Identifiers(), np.random.default_rng(0))
    assert all("of sampled patients" in f.control_is for f in found if f.control is not None)
    assert all(gate.passed for gate in gates[0])
    assert [gate.value for gate in gates[1] if not gate.passed] == [1]


@pytest.mark.slow
def test_intervals_of_drawn_patients_cover_the_figures_of_all(case, tmp_path):
    def same_first(words, key):
        seen = drawn(case, tmp_path, words, salt=bytes([key]))
        return seen.run(SameFirst(), np.random.default_rng(key))[0]

    exact = same_first(0, 0).value
    keys = 40
    some = PATIENTS * NOTES * LENGTH // 4
    covered = [
        found.low <= exact <= found.high for found in (same_first(some, key) for key in range(keys))
    ]
    assert (
        sum(covered) >= 0.85 * keys
    )  # 95 % intervals; a quarter of all is drawn without replacement


def test_a_sample_never_has_a_patient_or_two(case, tmp_path):
    whole, vault = case
    seen = sample_case(whole, vault, 1, b"salt", tmp_path / "drawn")
    assert seen.description and len(seen.context.patients) >= 25
