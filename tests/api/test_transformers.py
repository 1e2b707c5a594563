"""`Deidentifier` and `Obfuscator`: scikit-learn's verbs over the same rooms that the commands
use.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import clinveil
from clinveil.channel import WordObfuscator as Engine
from clinveil.core import InputError, UsageError, words


@pytest.fixture(scope="module")
def corpus():
    return clinveil.demo_corpus(patients=80, seed=1)


@pytest.fixture(scope="module")
def frame(corpus):
    return pa.Table.from_batches(list(corpus.batches())).to_pandas()


@pytest.fixture(scope="module")
def fitted(corpus):
    return clinveil.Obfuscator(
        n=5, key=clinveil.Key.from_seed(1), settings={"vectors": {"epochs": 1}}
    ).fit(corpus)


def test_a_frame_is_obfuscated_as_the_room_below_does_it(fitted, corpus, frame):
    engine = Engine(fitted.channel_, fitted.key_)
    expected = [
        text
        for batch in corpus.batches()
        for text in engine(batch).batch.column("text").to_pylist()
    ]
    assert fitted.transform(frame)["text"].tolist() == expected


def test_no_word_comes_out_as_it_was(fitted, frame):
    one = frame["text"].iloc[0]
    made = fitted.transform([one])[0]
    pairs = zip(words(one), words(made), strict=False)
    assert made and sum(a.lower() == b for a, b in pairs) <= 0.2 * len(words(made))


def test_the_same_key_and_seed_give_the_same_notes(fitted, corpus, frame):
    again = (
        clinveil.Obfuscator(n=5, key=clinveil.Key.from_seed(1), settings={"vectors": {"epochs": 1}})
        .fit(frame)
        .transform(frame)
    )
    assert again["text"].tolist() == fitted.transform(frame)["text"].tolist()
    other = clinveil.Obfuscator(n=5, vectors=fitted.vectors_).fit(corpus).transform(frame)
    assert other["text"].tolist() != again["text"].tolist()


def test_they_are_scikit_learns_own_kind(frame):
    pipe = make_pipeline(
        clinveil.Deidentifier(), clinveil.Obfuscator(n=5, settings={"vectors": {"epochs": 1}})
    )
    made = pipe.fit_transform(frame)
    assert len(made) == len(frame)
    assert clone(pipe[1]).n == 5


def test_a_key_is_no_part_of_the_repr(fitted):
    assert fitted.key_._secret.hex() not in repr(fitted) and repr(fitted.key_._secret) not in repr(
        fitted
    )


def test_spans_of_one_text():
    text = "Dr. Sarah Miller"
    assert [text[span.start : span.end] for span in clinveil.Deidentifier().find(text)] == [
        "Sarah Miller"
    ]


def test_what_is_missing_or_too_small_is_told(frame):
    with pytest.raises(UsageError, match="not fitted"):
        clinveil.Obfuscator().transform(["one"])
    with pytest.raises(InputError, match="50"):
        clinveil.Obfuscator(n=2).fit(frame["text"].tolist()[:20])
    with pytest.raises(UsageError, match=r"did you mean vectors\.epochs"):
        clinveil.Obfuscator(settings={"vectors": {"epoch": 1}}).fit(frame)
    with pytest.raises(UsageError, match="the range"):
        clinveil.Obfuscator(n="14-3").fit(frame)


def test_the_window_shows_what_it_sells():
    assert set(clinveil.__all__) <= set(dir(clinveil))
    for name in clinveil.__all__:
        assert getattr(clinveil, name).__doc__


def test_no_room_hides_a_verb():
    """A package of a verb's name would take its place as soon as it is imported."""
    package = Path(clinveil.__file__).parent
    assert not {path.stem for path in package.iterdir()} & set(clinveil.__all__)
