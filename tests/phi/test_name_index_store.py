"""What is heard waits on disk: the same as sets would hold, in any order, and in bounded memory."""

from __future__ import annotations

import errno
import random
import sqlite3
import tracemalloc
from collections import defaultdict

import pytest

from clinveil.phi import NameIndex
from clinveil.phi.name_index_store import COMMON, USUAL, NameIndexStore, open_name_index


def batches(count, patients=40, seed=3):
    """Invented (heard, lower) of some batches; some words are names of several patients and in
    lower case too.
    """
    rng = random.Random(seed)
    made = []
    for _ in range(count):
        who = [f"p{rng.randrange(patients)}" for _ in range(4)]
        names = {one: frozenset({(f"okwu{rng.randrange(30)}", f"zwi{one}")}) for one in who}
        lower = {f"okwu{rng.randrange(30)}": frozenset({rng.choice(who)}) for _ in range(3)}
        made.append((NameIndex(names, frozenset({f"staff{rng.randrange(9)}"})), lower))
    return made


def in_memory(some):
    """The same by sets."""
    names = defaultdict(set)
    staff = set()
    lower = defaultdict(set)
    for heard, words in some:
        for patient, found in heard.patients.items():
            names[patient] |= found
        staff |= heard.staff
        for word, patients in words.items():
            lower[word] |= patients
    usual, common = ({w for w, found in lower.items() if len(found) >= n} for n in (USUAL, COMMON))
    known = {patient: frozenset(found) for patient, found in names.items()}
    return NameIndex(known, frozenset(staff), frozenset(common)).without(frozenset(usual))


def same(one, other):
    return (dict(one.patients), one.staff, one.vocabulary) == (
        dict(other.patients),
        other.staff,
        other.vocabulary,
    )


def test_a_store_gives_back_what_it_took_in_any_order():
    some = batches(120)
    want = in_memory(some)
    assert len(want.vocabulary) > 5 and any(
        len(name) == 1 for found in want.patients.values() for name in found
    )
    for order in (some, some[::-1]):
        store = NameIndexStore()
        for heard, lower in order:
            store.add(heard, lower)
        assert same(store.index(), want)
        assert store.index().for_patients(["p1", "nobody"]).patients == {"p1": want.patients["p1"]}


def test_stores_of_parts_merge_into_one_that_another_process_reads(tmp_path):
    some = batches(90)
    places = []
    for part in range(3):
        places.append(tmp_path / f"{part}.heard")
        store = NameIndexStore(places[-1])
        for heard, lower in some[part::3]:
            store.add(heard, lower)
        store.close()
    store = NameIndexStore(tmp_path / "all.heard")
    for place in places:
        store.merge(place)
    store.close()
    assert same(open_name_index(tmp_path / "all.heard", 1), in_memory(some))


def test_a_full_disk_is_said_without_a_word(monkeypatch):
    class Full:
        def executemany(self, *_):
            error = sqlite3.OperationalError("database or disk is full: okwuosa")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error

    store = NameIndexStore()
    monkeypatch.setattr(store, "_file", Full())
    with pytest.raises(OSError, match="scratch") as caught:
        store.add(*batches(1)[0])
    assert caught.value.errno == errno.ENOSPC and "okwuosa" not in str(caught.value)


@pytest.mark.slow
def test_ten_times_the_patients_take_no_more_memory():
    peaks = []
    for patients in (2_000, 20_000):
        tracemalloc.start()
        store = NameIndexStore()
        for at in range(0, patients, 100):
            some = {f"p{n}": frozenset({(f"name{n}", "x")}) for n in range(at, at + 100)}
            store.add(NameIndex(some, frozenset()), {f"word{at % 50}": frozenset({f"p{at}"})})
        assert len(store.index().for_patients([f"p{n}" for n in range(50)]).patients) == 50
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0] + 10_000
