"""The character model: weights and steps by hand, beam search against all casings, known truth, per
seed.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from papers.clinicalnlp_2019.case_lines import NEWLINE, Lines, alphabet_of, encoded
from papers.clinicalnlp_2019.casing import CasingSettings, casing

from clinveil import InputError

torch = pytest.importorskip("torch", reason="the extra [neural] is not installed")
from papers.clinicalnlp_2019.case_model import (  # noqa: E402
    CharacterLstm,
    restore,
)

from clinveil.core import seeded  # noqa: E402

TINY = CasingSettings(layers=1, hidden=32, batch=16, sequence=20, epochs=4, learning_rate=0.01)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Models this small are slower on many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


NAMES = ["Anna", "Bob", "Carla", "Dana"]
WORDS = ["saw", "the", "dog", "near", "a", "house", "and", "left"]


def sentences(n, seed=0):
    """A sentence begins with a capital, names have one wherever they stand."""
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(n):
        words = [(NAMES if rng.random() < 0.25 else WORDS)[rng.integers(4)] for _ in range(5)]
        lines.append(words[0].capitalize() + " " + " ".join(words[1:]))
    return lines


def parts_of(n=500):
    return (
        Lines("train", sentences(n)),
        Lines("dev", sentences(40, 1)),
        Lines("test", sentences(60, 2)),
    )


def model_of(characters, layers=2, hidden=8, seed=0):
    with seeded(seed):
        model = CharacterLstm(len(characters), layers, hidden, 0.25)
        with torch.no_grad():  # weights large enough that hypotheses differ
            for weight in model.parameters():
                weight.mul_(12)
    return model.eval()


@pytest.mark.parametrize("layers", [1, 3])
def test_a_step_equals_the_layers_of_pytorch(layers):
    model = model_of(alphabet_of(["abcdef"]), layers)
    rows = torch.randint(0, 8, (6, 4), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        scores, (h, c) = model(rows, model.start(4))
        state = model.start(4)
        for row, expected in zip(rows, torch.log_softmax(scores, dim=2), strict=True):
            found, state = model.step(row, state)
            torch.testing.assert_close(found, expected)
    torch.testing.assert_close(state, (h, c))


def log_p(model, characters, text):
    """The log-probability of a text after a newline."""
    numbers = torch.from_numpy(np.concatenate([[NEWLINE], encoded(characters, text)]))
    with torch.no_grad():
        scores, _ = model(numbers[:-1, None], model.start(1))
    return float(torch.log_softmax(scores[:, 0], dim=1).gather(1, numbers[1:, None]).sum())


def casings(text):
    return ["".join(c) for c in itertools.product(*[sorted({c, c.upper()}) for c in text])]


@settings(max_examples=10)
@given(st.text("ab c", min_size=1, max_size=4), st.integers(0, 50))
def test_a_wide_beam_finds_the_best_of_all_casings(text, seed):
    characters = alphabet_of(["abcABC "])
    model = model_of(characters, seed=seed)
    (found,) = restore(model, characters, [text], TINY.model_copy(update={"beam": 16}))
    assert found.lower() == text
    best = max(log_p(model, characters, cased) for cased in casings(text))
    assert log_p(model, characters, found) == pytest.approx(best, abs=1e-4)


def slow_beam(model, characters, text, beam):
    """Beam search as one would write it down: whole prefixes, scored anew."""
    live = [(0.0, "")]
    for position, character in enumerate(text):
        forms = [character] + (
            [character.upper()] if character.upper() in characters.ids and character != " " else []
        )
        new = [
            (log_p(model, characters, prefix + form), prefix + form)
            for _, prefix in live
            for form in forms
        ]
        live = sorted(new, reverse=True)[:beam]
        assert len(live[0][1]) == position + 1
    return live[0][1]


@pytest.mark.parametrize("beam", [1, 2, 3])
def test_a_narrow_beam_equals_a_slow_reference(beam):
    characters = alphabet_of(["abcAB "])  # no C: it cannot be written
    for seed in range(4):
        model = model_of(characters, seed=seed)
        (found,) = restore(model, characters, ["ab cab"], TINY.model_copy(update={"beam": beam}))
        assert found == slow_beam(model, characters, "ab cab", beam)
        assert "C" not in found


@given(
    st.lists(
        st.text(st.characters(exclude_characters="\n"), max_size=8).map(str.lower),
        min_size=1,
        max_size=4,
    )
)
@settings(max_examples=25)
def test_restoring_changes_letter_case_only(lines):
    characters = alphabet_of(["abcßİéÉABC", "Ǆǅǆſς"])
    restored = restore(model_of(characters), characters, lines, TINY)
    assert [len(line) for line in restored] == [len(line) for line in lines]
    assert all(
        a == b or a.lower() == b
        for x, y in zip(restored, lines, strict=True)
        for a, b in zip(x, y, strict=True)
    )


def test_a_planted_rule_is_learnt():
    own, usual, gain = casing(parts_of(), np.random.default_rng(0), TINY)
    assert own.value > 0.95
    assert own.low <= own.value <= own.high
    assert usual.value < own.value - 0.05
    assert own.chance == 0
    assert own.control < 0.6
    assert gain.value == pytest.approx(own.value - usual.value)
    assert gain.low > 0
    assert own.n == 300


@pytest.mark.slow
def test_the_unit_of_an_interval_is_the_owner_of_the_lines():
    """Each line of a patient stands twenty times: by line the interval was a fifth as wide as by
    patient.
    """
    own = [
        f"{name} saw the dog" if place % 3 else "the DOG left"
        for place, name in enumerate(NAMES * 3)
    ]
    lines = [line for line in own for _ in range(20)]
    train = Lines("train", sentences(60))
    dev = Lines("dev", sentences(20, 1))
    quick = TINY.model_copy(update={"epochs": 1, "hidden": 8, "beam": 1})
    owners = [f"p{row // 20}" for row in range(len(lines))]
    settings = (np.random.default_rng(0), quick)
    by_patient = casing((train, dev, Lines("test", lines, owners)), *settings)
    by_line = casing((train, dev, Lines("test", lines)), np.random.default_rng(0), quick)
    usual = by_patient[1]
    gain = by_patient[-1]
    assert usual.numbers["independent"] == 12 and by_line[1].numbers["independent"] == 240
    assert (
        "patients" in usual.method
        and "patients" in gain.method
        and "test lines" in by_line[1].method
    )
    assert usual.value == by_line[1].value
    assert usual.high - usual.low > 3 * (by_line[1].high - by_line[1].low)
    assert gain.high - gain.low > 3 * (by_line[-1].high - by_line[-1].low)
    assert (usual.unit, usual.control_kind) == ("words", "negative")
    alone = casing(
        (train, dev, Lines("test", lines, ["p"] * len(lines))), np.random.default_rng(0), quick
    )
    assert alone[-1].low is None and alone[-1].method.startswith("none")
    assert alone[1].high - alone[1].low > 0.5


def test_casing_at_random_is_not_learnt():
    rng = np.random.default_rng(9)
    train, dev, test = (
        Lines(
            p.name,
            [
                " ".join(w.title() if rng.random() < 0.5 else w.lower() for w in x.split())
                for x in p.lines
            ],
        )
        for p in parts_of(200)
    )
    own = casing((train, dev, test), np.random.default_rng(0), TINY)[0]
    assert own.value < 0.75
    assert own.numbers["precision"] < 0.65


def test_text_without_capitals_restores_none():
    train, dev, test = parts_of(100)
    lower = [Lines(p.name, [line.lower() for line in p.lines]) for p in (train, dev)]
    own, usual, *_ = casing((*lower, test), np.random.default_rng(0), TINY)
    assert own.value == usual.value == 0
    with pytest.raises(InputError, match="no capital"):
        casing((train, dev, lower[0]), np.random.default_rng(0), TINY)


def test_the_same_seed_gives_the_same_findings():
    quick = TINY.model_copy(update={"epochs": 1})
    first, again, other = (casing(parts_of(60), np.random.default_rng(s), quick) for s in (1, 1, 2))
    assert first == again
    assert first != other
