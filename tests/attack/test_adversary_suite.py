"""The ladder on whole notes: what is drawn, laid side by side, refused, and said of each reader."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from suite_cases import context, language

from clinveil.attacks import AdversarySuite
from clinveil.attacks.adversary import ADVERSARIES
from clinveil.attacks.channel._view import adversary_views, aligned, halves
from clinveil.core import InputError
from clinveil.corpus import memory_corpus, rows


def found(case, **settings):
    got = AdversarySuite(**{"canaries": 4, **settings})(case, np.random.default_rng(1))
    return {(one.measure.rpartition(".")[2], one.attack): one for one in got}


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    return context(tmp_path_factory.mktemp("counts"))


def test_every_reader_stands_beside_chance_and_control(case):
    got = found(case)
    assert {reader for _, reader in got} >= {
        "bigram",
        "own-vectors",
        "known-pairs, 20 notes",
    }
    pairs = got["all", "bigram"]
    assert pairs.value > pairs.chance + 0.1
    assert pairs.low < pairs.value < pairs.high and pairs.n == sum(
        len(t.text.split()) for t in rows(case.released)
    )
    assert pairs.control < 0.15 and pairs.control_kind == "negative"
    assert got["unprotected", "bigram"].value > 0.99
    assert "other notes" in pairs.knowledge


def test_chance_is_that_of_all_attacked_words_for_an_adversary_of_few_words_too(case, monkeypatch):
    """The most frequent of a few words has a large share by chance, which would hide what the
    adversary recovers.
    """
    monkeypatch.setattr(ADVERSARIES.get("own-vectors"), "max_words", 60)
    got = found(case)
    few = got["all", "own-vectors"]
    many = got["all", "bigram"]
    assert few.n < many.n / 2 and few.chance == many.chance
    truth = [word for note in rows(case.entered) for word in note.text.replace(".", "").split()]
    assert many.chance == pytest.approx(Counter(truth).most_common(1)[0][1] / len(truth))


def test_planted_names_are_read_in_copies_alone(case):
    got = found(case)["canaries", "bigram"]
    assert got.numbers["planted"] == 4 and 3 * 4 <= got.n <= 13 * 4
    assert got.value > 0.2  # among four names, each of which few outputs hide
    assert ("canaries", "bigram") not in found(case, canaries=0)


def test_a_reader_holds_other_patients_notes_only(case):
    sides = halves(case, 10**6, 10**6, np.random.default_rng(0))
    assert {n.patient for n in sides.held[0]}.isdisjoint(n.patient for n in sides.held[1])
    first, second = adversary_views(case, sides)
    assert sum(map(len, first.others)) == sum(len(t.entered.split()) for t in sides.held[1])
    assert len(first.notes) == len(sides.attacked[0]) and len(second.notes) == len(
        sides.attacked[1]
    )


def test_released_words_are_laid_beside_their_sources(case):
    sides = halves(case, 10**6, 0, np.random.default_rng(0))
    for note in sides.attacked[0]:
        got = aligned(note, case.channel)
        source = [case.channel.ids[w] for w in note.entered.replace(".", "").split()]
        assert got.truth.tolist() == source
        possible = case.channel.matrix()[got.truth, got.outputs]
        assert (np.asarray(possible) > 0).all()


def test_numbers_do_not_depend_on_threads(case):
    one, two = (found(replace(case, workers=n), tokens=500) for n in (1, 2))
    assert {key: (f.value, f.control) for key, f in one.items()} == {
        key: (f.value, f.control) for key, f in two.items()
    }


def test_notes_of_another_place_serve_as_knowledge(case):
    other = memory_corpus(language(np.random.default_rng(9), 5))
    assert found(replace(case, others=other))["all", "bigram"].value > 0.3
    foreign = memory_corpus([("a", "a", "lorem ipsum dolor sit amet " * 30 + "bao")])
    with pytest.raises(InputError, match=r"only 0\.7% of the words of --prior"):
        found(replace(case, others=foreign))


def test_what_does_not_belong_together_is_refused(case, tmp_path):
    other = context(tmp_path, seed=3)
    with pytest.raises(InputError, match="cannot come from"):
        found(replace(case, channel=other.channel))
    with pytest.raises(InputError, match="cannot be aligned"):
        found(replace(case, entered=shorter(case.entered)))
    single = context(tmp_path / "one", patients=1) if (tmp_path / "one").mkdir() is None else None
    with pytest.raises(InputError, match="fewer than two patients"):
        found(single)


def shorter(corpus):
    return memory_corpus(
        [(n.note_id, n.patient_id, n.text.rpartition(" ")[0]) for n in rows(corpus)]
    )
