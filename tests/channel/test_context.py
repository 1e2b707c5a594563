"""The mechanism `contextual`: equal to its slow reference, for any batches, and exactly known."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from channel_cases import all_others, batch_of, texts_of
from context_cases import LABEL, LANGUAGE, contextual, labelled_notes
from context_reference import (
    STOP,
    PlainModel,
    chances_reference,
    context_words,
    draw_note_reference,
)
from scipy.stats import chisquare

from clinveil.channel import (
    Channel,
    NeighbourRange,
    WordObfuscator,
    channel_digest,
    load_channel,
    mechanism_of,
    neighbour_channel,
    released_notes,
    save_channel,
    with_context,
)
from clinveil.channel.mechanism import ContextMechanism
from clinveil.core import InputError, Key
from clinveil.corpus import MemoryCorpus, corpus_of_texts, rows_with
from clinveil.lm import NoteIds, count_contexts
from clinveil.scale import threads

KEY = Key.from_seed(3)
WAYS = [(0.6, 1.0), (0.3, 0.5), (0.0, 1.0), (1.0, 0.0), (0.6, 0.0)]


@pytest.fixture(scope="module")
def channel(tmp_path_factory: pytest.TempPathFactory) -> Channel:
    """The channel of the small language."""
    return contextual(tmp_path_factory.mktemp("context"))


@pytest.fixture(scope="module")
def plain() -> PlainModel:
    """The same model, counted with dictionaries."""
    notes = list(rows_with(labelled_notes(), LABEL))
    return PlainModel(
        [context_words(note.text) for note, _ in notes],
        [note.patient_id for note, _ in notes],
        [label for _, (label,) in notes],
        LANGUAGE,
        5,
    )


def policy(channel: Channel, background: float, strength: float) -> Channel:
    return channel.under(layout="sentences", background=background, context_strength=strength)


def whole(notes: MemoryCorpus) -> list[tuple[str, str, str]]:
    return [(note.note_id, note.text, label) for note, (label,) in rows_with(notes, LABEL)]


def test_the_counts_equal_the_slow_reference(channel, plain):
    model = channel.context
    assert set(model.labels) == set(plain.factors)
    for label, factors in zip(model.labels, model.factors, strict=True):
        expected = [plain.factors[label][word] for word in LANGUAGE]
        assert factors == pytest.approx(expected, rel=1e-5)
    names = [*LANGUAGE, STOP]
    first, second = model.levels
    contexts = [(name,) for name in names]
    for level in (first, second):
        found = {}
        following = []
        for context, (start, end) in enumerate(
            zip(level.starts[:-1].tolist(), level.starts[1:].tolist(), strict=True)
        ):
            tokens = level.tokens[start:end].tolist()
            following += [(*contexts[context], names[token]) for token in tokens]
            shares = {
                names[token]: share
                for token, share in zip(tokens, level.shares[start:end].tolist(), strict=True)
                if share
            }
            if shares:
                found[contexts[context]] = shares
        order = len(contexts[0])
        expected = {
            context: {w: n for w, n in counts.items() if n}
            for context, counts in plain.next.items()
            if len(context) == order and sum(counts.values())
        }
        assert found.keys() == expected.keys()
        for context, counts in expected.items():
            total = sum(counts.values())
            assert found[context] == pytest.approx({w: c / total for w, c in counts.items()})
        contexts = following


@pytest.mark.parametrize("background, strength", WAYS)
def test_equals_the_slow_reference(channel, plain, background, strength):
    batch = next(iter(labelled_notes().batches())).slice(0, 12)
    engine = WordObfuscator(policy(channel, background, strength), KEY)
    expected = [
        draw_note_reference(plain, channel, (note, text), label, KEY, background, strength)
        for note, text, label in whole(MemoryCorpus((batch,)))
    ]
    assert texts_of(engine(batch).batch) == expected


def test_the_same_bytes_for_any_batches_and_workers(channel):
    engine = WordObfuscator(policy(channel, 0.6, 1.0), KEY)
    batch = next(iter(labelled_notes().batches()))
    expected = texts_of(engine(batch).batch)
    for rows, workers in ((1, 3), (7, 1), (90, 2)):
        parts = [batch.slice(i, rows) for i in range(0, 90, rows)]
        results = threads(workers)(engine, parts)
        assert [text for one in results for text in texts_of(one.batch)] == expected


@pytest.mark.parametrize("layout", ["plain", "sentences", "keep"])
def test_without_background_and_strength_it_is_neighbours_to_the_byte(channel, layout):
    batch = next(iter(labelled_notes().batches()))
    alone = replace(channel, context=None).under(layout=layout)
    expected = WordObfuscator(alone, KEY)(batch)
    found = WordObfuscator(channel.under(layout=layout), KEY)(batch)
    assert found.batch.equals(expected.batch)
    assert found.tally == expected.tally


def test_known_words_are_drawn_as_by_neighbours_where_the_model_is_loaded(channel):
    """The kernel itself: b = 0 and a = 0 draw each known word from the same random bits."""
    batch = next(iter(labelled_notes().batches()))
    texts = [text.replace("Zebra, 12 units", "") for text in batch.column("text").to_pylist()]
    batch = batch_of(*((f"n{i}", f"p{i}", text) for i, text in enumerate(texts)))
    engine = WordObfuscator(channel, KEY)
    expected = texts_of(engine(batch).batch)
    engine._mechanism = ContextMechanism(channel)
    assert texts_of(engine(batch).batch) == expected


@pytest.mark.parametrize("background, strength", WAYS)
def test_likelihoods_equal_the_slow_reference(channel, plain, background, strength):
    here = policy(channel, background, strength)
    batch = next(iter(labelled_notes().batches())).slice(0, 2)
    mechanism = mechanism_of(here)
    texts = texts_of(WordObfuscator(here, KEY)(batch).batch)
    labels = mechanism.labels_of(batch)
    released = list(released_notes(here, texts, labels.tolist()))
    for note, text, label in zip(released, texts, ("left", "right"), strict=True):
        found = mechanism.likelihood(note)
        before = [STOP, STOP]
        t = 0
        written = context_words(text)
        for place, word in enumerate(written):
            is_last = written[place + 1] == STOP if place + 1 < len(written) else True
            if word == STOP:
                before.append(STOP)
                continue
            near = dict(
                zip(
                    found.rows[found.starts[t] : found.starts[t + 1]].tolist(),
                    found.chances[found.starts[t] : found.starts[t + 1]].tolist(),
                    strict=True,
                )
            )
            for row in (0, 7, *list(near)[:4]):
                expected = chances_reference(
                    plain,
                    channel,
                    LANGUAGE[row],
                    tuple(before[-2:]),
                    label,
                    background,
                    strength,
                    is_last,
                )[word]
                assert near.get(row, found.others[t]) == pytest.approx(expected, rel=1e-5)
            expected = chances_reference(
                plain, channel, "zebra", tuple(before[-2:]), label, background, strength, is_last
            )[word]
            assert found.unknown[t] == pytest.approx(expected, rel=1e-5)
            before.append(word)
            t += 1
        assert t == note.outputs.size


def test_draws_have_the_frequencies_of_the_likelihood(channel, plain):
    """Chi-square of the second word of many notes that begin alike."""
    background = 0.5
    here = policy(channel, background, 1.0)
    batch = batch_of(*((f"n{i}", f"p{i}", f"{LANGUAGE[0]} {LANGUAGE[9]}") for i in range(30_000)))
    words = [text.rstrip(".").split() for text in texts_of(WordObfuscator(here, KEY)(batch).batch)]
    first = Counter(pair[0] for pair in words).most_common(1)[0][0]
    seconds = Counter(pair[1] for pair in words if pair[0] == first)
    chances = chances_reference(
        plain, channel, LANGUAGE[9], (STOP, first), "", background, 1.0, True
    )
    often = [w for w in chances if chances[w] * seconds.total() >= 5]
    observed = [seconds[w] for w in often]
    expected = [chances[w] * seconds.total() for w in often]
    observed.append(seconds.total() - sum(observed))
    expected.append(seconds.total() - sum(expected))
    assert chisquare(observed, expected).pvalue > 1e-4


def test_with_background_1_the_words_of_the_note_change_nothing(channel):
    """Only length and sentence ends of a note, its label and its key are left."""
    here = policy(channel, 1.0, 0.0)
    one = ("n", "p", "waa wab wac. wad wae. waf.")
    other = ("n", "p", "wzz was war. zebra wad. giraffe!")
    for engine in (WordObfuscator(here, KEY), WordObfuscator(here, Key.from_seed(8))):
        assert texts_of(engine(batch_of(one)).batch) == texts_of(engine(batch_of(other)).batch)


def test_rare_sequences_and_words_of_few_patients_are_not_in_the_model(tmp_path):
    rng = np.random.default_rng(4)
    texts = [" ".join(rng.choice(LANGUAGE, 30)) + "." for _ in range(60)]
    texts[:4] = ["waa wab wac. " * 9] * 4  # four patients
    texts[4:9] = ["wba wbb wbc. " * 3] * 5  # five patients
    channel = replace(contextual(tmp_path / "a"), context=None)
    model = with_context(
        channel, corpus_of_texts(texts), ngram_patients=5, label=None, workers=1, scratch=tmp_path
    ).context
    second = model.levels[1]
    drawn = second.tokens[second.shares > 0].tolist()
    assert {LANGUAGE[token] for token in drawn} == {"wba", "wbb", "wbc"}


def test_the_model_does_not_depend_on_batches_or_spilled_counts(channel, tmp_path):
    notes = labelled_notes()
    again = with_context(
        replace(channel, context=None),
        MemoryCorpus(tuple(b.slice(i, 13) for b in notes.batches() for i in range(0, 90, 13))),
        ngram_patients=5,
        label=LABEL,
        workers=2,
        scratch=tmp_path,
    )
    assert channel_digest(again) == channel_digest(channel)


def test_a_saved_channel_draws_the_same(channel, tmp_path):
    save_channel(channel, tmp_path / "channel")
    back = load_channel(tmp_path / "channel", policy(channel, 0.6, 1.0).policy)
    batch = next(iter(labelled_notes().batches()))
    expected = WordObfuscator(policy(channel, 0.6, 1.0), KEY)(batch).batch
    assert WordObfuscator(back, KEY)(batch).batch.equals(expected)
    assert channel_digest(back) == channel_digest(channel)
    (tmp_path / "channel" / "context" / "0-shares.npy").write_bytes(b"broken")
    with pytest.raises(InputError, match="not a channel folder"):
        load_channel(tmp_path / "channel")


def test_a_label_with_a_thousand_values_steers_nothing_and_works(channel, tmp_path):
    notes = labelled_notes(1000)
    batches = list(notes.batches())
    names = [f"value {i}" for i in range(1000)]
    column = batches[0].schema.get_field_index(LABEL)
    renamed = [
        batch.set_column(column, LABEL, pa.array(names[90 * i : 90 * i + batch.num_rows]))
        for i, batch in enumerate(batches)
    ]
    many = with_context(
        replace(channel, context=None),
        MemoryCorpus(tuple(renamed)),
        ngram_patients=5,
        label=LABEL,
        workers=1,
        scratch=tmp_path,
    )
    assert many.context.labels == () and many.context.label == ""
    engine = WordObfuscator(policy(many, 0.6, 1.0), KEY)
    assert texts_of(engine(renamed[0]).batch) == texts_of(engine(batches[0]).batch)


def test_a_label_of_few_patients_does_not_steer(channel, tmp_path):
    batch = next(iter(labelled_notes(60).batches()))
    labels = ["few"] * 19 + ["enough"] * 20 + [None] * 21
    column = batch.schema.get_field_index(LABEL)
    batch = batch.set_column(column, LABEL, pa.array(labels))
    model = with_context(
        replace(channel, context=None),
        MemoryCorpus((batch,)),
        ngram_patients=5,
        label=LABEL,
        workers=1,
        scratch=tmp_path,
    ).context
    assert model.labels == ("enough",)


def test_notes_with_too_few_words_name_the_settings_that_would_allow_them(tmp_path):
    table = all_others(LANGUAGE[:199], 8)
    small = neighbour_channel(LANGUAGE[:199], NeighbourRange(low=3, high=8), table)
    with pytest.raises(InputError, match=r"199 words may be written.*needs 200") as refused:
        with_context(
            small, labelled_notes(), ngram_patients=5, label=None, workers=1, scratch=tmp_path
        )
    assert "channel.min_patients" in str(refused.value) and "channel.mechanism=neighbours" in str(
        refused.value
    )


@pytest.mark.parametrize("in_memory", [0, 300])
def test_counts_beyond_memory_go_to_files_and_give_the_same_model(in_memory, tmp_path):
    rng = np.random.default_rng(6)
    batches = [
        NoteIds(
            rng.integers(-1, 11, 600),
            np.arange(0, 601, 20),
            rng.integers(0, 9, 30).astype(np.uint64),
            [str(i % 2) for i in range(30)],
        )
        for _ in range(6)
    ]
    rows = np.arange(10, dtype=np.int32)
    here, spilled = (
        count_contexts(batches, rows, tmp_path, patients=3, label="kind", in_memory=limit)
        for limit in (1 << 20, in_memory)
    )
    for (name, values), (_, others) in zip(here.arrays(), spilled.arrays(), strict=True):
        assert np.array_equal(values, others), name
    assert here.labels == spilled.labels
    assert sum(level.tokens.size for level in here.levels) and not list(tmp_path.iterdir())
