"""Audits by leaving out: against slow references, zero against itself, and taken up again."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from functools import partial
from shutil import rmtree

import numpy as np
import pytest
from leaveout_cases import data_of, notes_of, settings_of

from clinveil.attacks import audit_of, closed_form, compare, cross_fit, leave_out, train_audits
from clinveil.attacks.models.leaveout import AuditModel, audit_notes, load_logs
from clinveil.attacks.models.leaveout.pdtp import unigram_pdtp
from clinveil.core import InputError, UsageError
from clinveil.lm import PlainNotes, train_ngram
from clinveil.scale import Store, perform, serial

SEED = 5


def quiet(line):
    pass


def rng():
    return np.random.default_rng(0)


def lay(folder, **how):
    """Prepare an audit of settings: its store, audit and data."""
    settings = settings_of(**how)
    data = data_of(notes_of(), settings, np.random.default_rng(SEED))
    return Store(folder), audit_of(data.save(folder), settings, seed=SEED), data


@pytest.fixture
def laid(tmp_path):
    """An audit of settings that nothing was trained for."""
    return partial(lay, tmp_path)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """An audit of an LSTM, all its models trained; do not change it."""
    store, audit, data = lay(tmp_path_factory.mktemp("trained"))
    run(store, audit)
    return store, audit, data


def run(store, audit):
    train_audits(store, [audit], serial, quiet, workers=1, most_hours=1.0)


def scores(store, audit, data):
    read = [load_logs(store, model, data) for model in (audit.full, *audit.left_out)]
    return leave_out(read[0], read[1:])


def slow_unigram(data, unit):
    """Equation 4 with and without a unit, token by token; ends of lines and notes are tokens."""
    every = data.encoded.ids.tolist()
    left = [token for note in data.notes_of(unit) for token in note.tolist()]
    size = data.vocabulary.size
    best = 0.0
    for token in set(left):
        with_unit = math.log((every.count(token) + 1) / (len(every) + size))
        gone = math.log(
            (every.count(token) - left.count(token) + 1) / (len(every) - len(left) + size)
        )
        best = max(best, abs(with_unit - gone))
    return best


def test_the_unigrams_models_against_a_slow_reference_and_the_closed_form(laid):
    store, audit, data = laid(model="unigram", units=5)
    assert audit.reseeded == ()
    run(store, audit)
    found = scores(store, audit, data).scores
    assert found == pytest.approx([slow_unigram(data, unit) for unit in range(5)], abs=1e-12)
    counts = np.bincount(data.encoded.ids, minlength=data.vocabulary.size)
    units = [
        np.unique(np.concatenate(data.notes_of(unit)), return_counts=True) for unit in range(5)
    ]
    assert found == pytest.approx(unigram_pdtp(counts, units), abs=1e-12)
    assert found.min() > 0.5  # each patient has a word that no other has


def test_the_closed_form_of_notes_against_a_slow_reference():
    notes = notes_of()
    words = " ".join(notes.texts).split()
    expected = []
    for patient in dict.fromkeys(notes.patients):
        left = " ".join(
            t for t, p in zip(notes.texts, notes.patients, strict=True) if p == patient
        ).split()
        size = len(set(words))
        best = 0.0
        for word in set(left):
            with_unit = math.log((words.count(word) + 1) / (len(words) + size))
            gone = math.log(
                (words.count(word) - left.count(word) + 1) / (len(words) - len(left) + size)
            )
            best = max(best, abs(with_unit - gone))
        expected.append(best)
    found, effect = closed_form(notes, rng())
    assert effect.low < effect.value < effect.high and effect.control < effect.low
    assert found.value == pytest.approx(np.mean(expected), abs=1e-12)
    assert found.numbers["largest"] == pytest.approx(max(expected), abs=1e-12)
    assert (found.n, found.unit, found.numbers["words"]) == (8, "patients", len(set(words)))
    assert found.low < found.value < found.high
    assert 0 < found.control < found.value


def test_the_placebo_of_the_closed_form_against_a_slow_reference():
    """Two patients: each is the other's only placebo."""
    notes = PlainNotes(("a b b c", "b d d"), ("1", "2"), ("p", "q"))
    found, effect = closed_form(notes, rng())
    every = list("abbcbdd")
    size = 4

    def change(word, left):
        gone = math.log(
            (every.count(word) - left.count(word) + 1) / (len(every) - len(left) + size)
        )
        return abs(math.log((every.count(word) + 1) / (len(every) + size)) - gone)

    texts = [text.split() for text in notes.texts]
    expected = [max(change(word, left) for word in scored) for scored, left in (texts, texts[::-1])]
    assert found.control == pytest.approx(np.mean(expected), abs=1e-12)

    def log_p(word, left):
        return math.log(
            (every.count(word) - left.count(word) + 1) / (len(every) - len(left) + size)
        )

    best = [
        max(log_p(w, other) - log_p(w, own) for w in own) for own, other in (texts, texts[::-1])
    ]
    assert effect.value == pytest.approx(np.mean(best), abs=1e-12)
    assert effect.control is None  # two patients: no third model to compare the placebo with
    alone = closed_form(PlainNotes(("a b",), ("1",), ("p",)), rng())
    assert len(alone) == 1 and alone[0].control is None


def test_the_ngrams_models_are_counted_without_the_unit(laid):
    store, audit, data = laid(model="ngram")
    run(store, audit)
    for unit in range(3):
        model = train_ngram(data.without(unit), data.vocabulary)
        logs = load_logs(store, audit.left_out[unit], data)
        for j in range(3):
            expected = np.concatenate(model.score(data.notes_of(j)))
            assert logs[j] == pytest.approx(expected, abs=1e-12)
    measured = scores(store, audit, data)
    assert (measured.scores > measured.placebos).all()
    assert (measured.signed > 0).all()


from clinveil.lm import load_model  # noqa: E402

NETWORKS = {
    "lstm": {},
    "lstm-adamw": {"optimizer": "adamw", "rate": 0.01, "tied": False},
}
networks = pytest.mark.parametrize("how", NETWORKS.values(), ids=NETWORKS)


@networks
def test_a_model_trained_twice_scores_nothing_against_itself(how, laid):
    store, audit, data = laid(**how)
    for model in (audit.full, *audit.left_out):
        perform(store, model)
    full = load_logs(store, audit.full, data)
    rmtree(store.folder(audit.full))
    perform(store, audit.full)
    again = load_logs(store, audit.full, data)
    assert all((one == other).all() for one, other in zip(full, again, strict=True))
    assert not leave_out(full, [again] * 3).largest.any()
    assert scores(store, audit, data).scores.min() > 0


def test_leaving_a_unit_out_does_not_touch_what_came_before_it(laid):
    """In exact mode the plan is one for all; in compat mode the text is cut anew."""
    _, audit, data = laid()
    full, less = (model.plan(data, model.recipe) for model in (audit.full, audit.left_out[0]))
    assert (full.notes == less.notes).all()
    assert np.flatnonzero(less.masked).tolist() == data.units[0].tolist()
    _, audit, data = laid(mode="compat")
    full, less = (model.plan(data, model.recipe) for model in (audit.full, audit.left_out[0]))
    kept = data.without(0).ids
    rows = kept.size // 3
    assert less.text.shape == (rows, 3)
    assert less.text.T.ravel().tolist() == kept[: rows * 3].tolist()
    assert full.text.shape[0] > rows


def test_tasks_of_an_audit_are_told_apart(laid):
    store, audit, _ = laid(units=4, reseeds=2)
    names = {store.folder(model).name for model in audit.models}
    assert len(names) == len(audit.models) == 1 + 2 + 4 + 4
    assert store.folder(replace(audit.full, device="cuda")).name not in names
    assert store.folder(replace(audit.full, mode="compat")).name not in names
    titles = [model.title for model in audit.left_out]
    assert [title.partition("exact, ")[2] for title in titles] == [
        f"without unit {unit}, seed {SEED}" for unit in (1, 2, 3, 4)
    ]
    (again,) = audit.other_seeds
    assert [model.left_out for model in again] == [0, 1, 2, 3]
    assert {model.seed for model in again} == {audit.reseeded[0].seed} != {audit.full.seed}
    assert all(title.startswith("lstm, dropout ") for title in titles)


@pytest.mark.parametrize("damage", [b"", None, np.zeros(3)])
def test_damaged_logs_of_a_member_say_what_to_remove(laid, damage):
    store, audit, data = laid(model="unigram")
    run(store, audit)
    path = store.folder(audit.full) / "logs.npy"
    path.unlink()
    if isinstance(damage, bytes):
        path.write_bytes(damage)
    elif damage is not None:
        np.save(path, damage)
    with pytest.raises(InputError, match="remove tasks/"):
        load_logs(store, audit.full, data)


def test_a_killed_run_goes_on_and_repeats_nothing(laid, monkeypatch):
    store, audit, _ = laid()
    trained = []
    train = AuditModel.train

    def counted(self, data, folder):
        trained.append(folder.name)
        if len(trained) == 4:
            raise KeyboardInterrupt
        return train(self, data, folder)

    monkeypatch.setattr(AuditModel, "train", counted)
    with pytest.raises(KeyboardInterrupt):
        run(store, audit)
    done = [model for model in audit.models if store.done(model)]
    assert len(done) == 3
    before = {model: (store.folder(model) / "logs.npy").stat().st_mtime_ns for model in done}
    run(store, audit)
    assert len(trained) == len(audit.models) + 1
    assert len(set(trained)) == len(audit.models)
    assert trained.count(trained[3]) == 2
    assert {
        model: (store.folder(model) / "logs.npy").stat().st_mtime_ns for model in done
    } == before
    run(store, audit)
    assert len(trained) == len(audit.models) + 1


def test_what_would_take_too_long_is_refused_before_anything_is_trained(laid, trained):
    store, audit, _ = laid()
    said = []
    with pytest.raises(
        UsageError, match=r"about [\d.e-]+ hours, more than max_hours 1e-09 \(use fewer units"
    ):
        train_audits(store, [audit], serial, said.append, workers=1, most_hours=1e-9)
    assert said[0].startswith(
        "8 models of "
    )  # 1, a reseed, 3 without a unit under each of two seeds
    assert not any(store.done(model) for model in audit.models)
    store, audit, _ = trained
    train_audits(
        store, [audit], serial, said.append, workers=1, most_hours=1e-9
    )  # all is done already
    assert len(said) == 1


def measured_by_name(measured):
    return {finding.measure: finding for finding in measured.findings}


def test_the_table_has_a_row_a_unit_and_no_word(laid):
    store, audit, data = laid(model="ngram", units=4)
    run(store, audit)
    measured = compare(store, audit, rng())
    rows = list(csv.DictReader(measured.table.splitlines()))
    assert len(rows) == 4
    counts = np.bincount(data.encoded.ids)
    for unit, row in enumerate(rows):
        ids = np.concatenate(data.notes_of(unit))
        place = int(row["place"])
        assert int(row["tokens"]) == ids.size
        assert int(row["occurrences_of_token"]) == counts[ids[place]]
    assert {row.pop("reseed") for row in rows} == {"nan"}  # counting models have no seed
    cells = {cell for row in rows for cell in row.values()} - {"+", "-"}
    assert all(math.isfinite(float(cell)) for cell in cells)


def test_compat_scores_from_the_second_token_on(laid):
    store, audit, data = laid(mode="compat", units=3)
    run(store, audit)
    measured = compare(store, audit, rng())
    reads = [load_logs(store, model, data) for model in audit.models]
    cut = [[logs[1:] for logs in read] for read in reads]
    first = slice(-6, -3)  # without a unit each, under the first seed; the second seed's come last
    assert measured.leave_out.scores == pytest.approx(leave_out(cut[0], cut[first]).scores)
    assert measured.effects.own == pytest.approx(cross_fit([cut[first], cut[-3:]]).own)
    recipe = audit.full.recipe
    assert recipe.plan == "stream"
    assert all(len(store.result(model)["perplexities"]) == recipe.epochs for model in audit.models)
    for unit, row in enumerate(csv.DictReader(measured.table.splitlines())):
        difference = np.abs(reads[0][unit] - reads[-6 + unit][unit])
        difference[0] = -1
        assert int(row["place"]) == difference.argmax()


def test_the_effect_is_measured_on_the_seed_that_did_not_choose_the_word(trained):
    store, audit, data = trained
    measured = compare(store, audit, rng())
    seeds = [
        [load_logs(store, model, data) for model in models]
        for models in (audit.left_out, *audit.other_seeds)
    ]
    own = []
    for unit in range(3):
        others = [[model[unit] for i, model in enumerate(models) if i != unit] for models in seeds]
        gone = [
            np.mean(other, axis=0) - models[unit][unit]
            for other, models in zip(others, seeds, strict=True)
        ]
        own.append(np.mean([gone[1][gone[0].argmax()], gone[0][gone[1].argmax()]]))
    found = measured_by_name(measured)["attack.pdtp_effect"]
    assert measured.effects.own == pytest.approx(own, abs=1e-12)
    assert found.value == pytest.approx(np.mean(own)) and found.numbers["seeds"] == 2
    one = compare(store, replace(audit, other_seeds=()), rng())
    assert one.effects is None and "attack.pdtp_effect" not in measured_by_name(one)
    assert {row["effect"] for row in csv.DictReader(one.table.splitlines())} == {"nan"}


def test_a_kept_model_is_the_one_that_was_scored(laid):
    store, audit, data = laid()
    kept = replace(audit.full, keep=True)
    perform(store, kept)
    model, about = load_model(store.folder(kept) / "model")
    assert about["seed"] == SEED
    logs = load_logs(store, kept, data)
    notes = [note for unit in range(3) for note in data.notes_of(unit)]
    assert np.concatenate(model.score(notes)) == pytest.approx(np.concatenate(logs), abs=1e-6)


def test_a_whole_audit_by_text_too(tmp_path):
    settings = settings_of(model="unigram", from_text=True, mode="exact")
    said = []
    found = audit_notes(
        notes_of(), settings, SEED, Store(tmp_path), tmp_path, said.append, executor=serial
    )
    assert [f.labels[2] for f in found if f.measure == "attack.pdtp"] == [
        "the model",
        "released notes",
    ]
    assert {path.name for path in tmp_path.glob("units-*.csv")} == {
        "units-model.csv",
        "units-text.csv",
    }
    again = audit_notes(
        notes_of(), settings, SEED, Store(tmp_path), tmp_path, said.append, executor=serial
    )
    assert [f.value for f in again] == [f.value for f in found]
    assert not any("own" in line for line in said)
