"""Counting words and their patients: equal to a ten-line loop, in any amount of memory."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinveil.core import Kind, lookup_form, tokenize, words
from clinveil.corpus import MemoryCorpus, PartedCorpus, memory_corpus
from clinveil.scale import processes
from clinveil.vectors import count_words

TEXTS = st.one_of(
    st.none(),
    st.text(alphabet="abAB '-\n1é\u0301\u00ad\u200b\u00a0\u0085\u2028ßİ中Ω", max_size=30),
    st.text(max_size=30),
)
NOTES = st.lists(st.tuples(st.sampled_from("pqr"), TEXTS), max_size=12)


def slow_words(text):
    forms = (lookup_form(text[t.start : t.end]) for t in tokenize(text) if t.kind == Kind.WORD)
    return [form for form in forms if form]


def slow_counts(notes):
    counts = Counter()
    patients = defaultdict(set)
    for patient, text in notes:
        for word in slow_words(text or ""):
            counts[word] += 1
            patients[word].add(patient)
    order = sorted(counts, key=lambda word: (-counts[word], word))
    return order, [counts[w] for w in order], [len(patients[w]) for w in order]


def corpus_of(notes):
    return memory_corpus([(str(i), patient, text) for i, (patient, text) in enumerate(notes)])


@settings(max_examples=400)
@given(
    st.one_of(
        st.text(),
        st.text(alphabet="aBc 1'é\u0301\u00ad\u200d\u0345İJ\u030c中١ﷺ\t\x00-", max_size=40),
    )
)
def test_fast_words_are_the_words_of_the_tokenizer(text):
    assert words(text) == slow_words(text)


def test_every_letter_with_every_mark_reads_as_the_tokenizer_reads_it():
    marks = [chr(c) for c in range(0x300, 0x370)]
    for letter in "AIJWzéß":
        text = " ".join(letter + mark for mark in marks) + "x"
        assert words(text) == slow_words(text)


@settings(max_examples=80, deadline=None)
@given(notes=NOTES, limit=st.sampled_from([1, 3, 1 << 20]))
def test_counts_equal_the_loop(notes, limit, tmp_path_factory):
    scratch = tmp_path_factory.mktemp("scratch")
    found = count_words(corpus_of(notes), scratch, pairs_in_memory=limit)
    order, counts, patients = slow_counts(notes)
    assert list(found.words) == order
    assert found.counts.tolist() == counts
    assert found.patients.tolist() == patients
    assert found.n_tokens == sum(counts)
    assert found.n_notes == sum(text is not None for _, text in notes)
    assert found.n_patients == len({patient for patient, text in notes if text is not None})
    assert list(scratch.iterdir()) == []


def cut(corpus, rows):
    """The same notes in batches of so many."""
    batches = [
        batch.slice(at, rows) for batch in corpus.batches() for at in range(0, batch.num_rows, rows)
    ]
    return MemoryCorpus(batches)


def test_many_pairs_spill_batch_after_batch(tmp_path):
    rng = np.random.default_rng(0)
    letters = np.array([a + b for a in "abcdefghij" for b in "abcdefghij"])
    notes = [(f"p{rng.integers(40)}", " ".join(rng.choice(letters, 60))) for _ in range(200)]
    found = count_words(cut(corpus_of(notes), 9), tmp_path, pairs_in_memory=300)
    assert (list(found.words), found.counts.tolist(), found.patients.tolist()) == slow_counts(notes)


def test_processes_count_the_same(tmp_path):
    notes = [(f"p{i % 7}", f"pain {chr(97 + i % 20)} fever " * (i % 5)) for i in range(60)]
    found = count_words(cut(corpus_of(notes), 11), tmp_path, executor=processes(2))
    assert (list(found.words), found.counts.tolist(), found.patients.tolist()) == slow_counts(notes)
    assert (found.n_patients, found.n_notes) == (7, 60)


def test_parts_are_counted_where_they_are_read(tmp_path):
    notes = [(f"p{i % 7}", f"pain {chr(97 + i % 20)} fever " * (i % 5)) for i in range(60)]
    parts = [
        memory_corpus((f"{at}-{i}", who, text) for i, (who, text) in enumerate(notes[at::3]))
        for at in range(3)
    ]
    corpus = PartedCorpus(tuple(parts), "notes", parts[0].columns, ".parquet")
    sent = []

    def over(function, items):
        sent.extend(items)
        return map(function, sent)

    found = count_words(corpus, tmp_path, executor=over)
    assert sent == parts
    assert (list(found.words), found.counts.tolist(), found.patients.tolist()) == slow_counts(notes)
    assert (found.n_patients, found.n_notes) == (7, 60)


def test_spilled_files_are_private_and_go_when_the_notes_break(tmp_path):
    scratch = tmp_path / "scratch"
    modes = []

    def breaking():
        yield from cut(corpus_of([("p", "one two three"), ("q", "four five six")]), 1).batches()
        modes.extend((f.is_dir(), f.stat().st_mode & 0o777) for f in [scratch, *scratch.rglob("*")])
        raise OSError("the disk is gone")

    broken = type(corpus_of([]))(source=breaking)
    with pytest.raises(OSError, match="disk"):
        count_words(broken, scratch, pairs_in_memory=1)
    assert {mode for is_folder, mode in modes if is_folder} == {0o700}
    assert {mode for is_folder, mode in modes if not is_folder} == {0o600}
    assert list(scratch.iterdir()) == []


def test_words_do_not_show_in_the_repr(tmp_path):
    assert "secretword" not in repr(count_words(corpus_of([("p", "secretword")]), tmp_path))
