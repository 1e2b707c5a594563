"""Who is left out, and what an audit's data keeps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from leaveout_cases import WORDS, data_of, notes_of, settings_of

from clinveil.attacks import AuditData, load_data, pick_units
from clinveil.attacks.models.leaveout.data import hold_out
from clinveil.core import InputError
from clinveil.lm import encode, make_vocabulary


def rng(seed=0):
    return np.random.default_rng(seed)


def length(notes, rows):
    return sum(len(notes.texts[row]) for row in rows)


@given(st.integers(3, 20), st.integers(1, 3), st.integers(0, 50), st.data())
def test_units_are_whole_patients_one_of_each_stratum(patients, each, seed, data):
    notes = notes_of(patients, each)
    n = data.draw(st.integers(2, patients - 1))
    units = pick_units(notes, n, rng(seed))
    owners = [{notes.patients[row] for row in rows} for rows in units]
    assert all(len(owner) == 1 for owner in owners)
    assert len(set.union(*owners)) == n
    for rows, owner in zip(units, owners, strict=True):
        assert rows == [row for row, patient in enumerate(notes.patients) if patient in owner]
    order = sorted({length(notes, rows_of(notes, p)) for p in set(notes.patients)})
    strata = np.array_split(np.array(order), n) if len(order) == patients else None
    if strata is not None:
        assert all(
            length(notes, rows) in stratum for rows, stratum in zip(units, strata, strict=True)
        )


def rows_of(notes, patient):
    return [row for row, owner in enumerate(notes.patients) if owner == patient]


def test_all_units_come_up_in_some_draw():
    notes = notes_of(6, 1)
    seen = {rows[0] for seed in range(40) for rows in pick_units(notes, 2, rng(seed))}
    assert seen == set(range(6))


def test_too_few_units_are_refused():
    with pytest.raises(InputError, match="too few to leave 4 out"):
        pick_units(notes_of(4, 2), 4, rng())


def test_validation_notes_are_of_patients_who_are_not_audited():
    notes = notes_of(20, 2)
    units = pick_units(notes, 5, rng())
    aside = hold_out(notes, units, rng())
    patients = {notes.patients[row] for row in aside}
    assert len(patients) == 2
    assert sorted(aside) == sorted(row for patient in patients for row in rows_of(notes, patient))
    assert not patients & {notes.patients[row] for rows in units for row in rows}
    with pytest.raises(InputError, match="no patient remains"):
        hold_out(notes, [list(range(40))], rng())


def test_notes_without_some_keep_their_order():
    notes = notes_of(3, 2)
    encoded = encode(notes.texts, make_vocabulary(notes, settings_of().lm))
    left = AuditData(encoded, None, (np.array([1, 4]),)).without(0)
    assert len(left) == 4
    expected = [encoded.note(row).tolist() for row in (0, 2, 3, 5)]
    assert [left.note(row).tolist() for row in range(4)] == expected
    assert left.characters.tolist() == encoded.characters[[0, 2, 3, 5]].tolist()


def test_prepared_data_hold_all_notes_and_the_units_rows():
    notes = notes_of()
    settings = settings_of()
    data = data_of(notes, settings, rng(3))
    units = pick_units(notes, 3, rng(3))
    assert len(data.encoded) == len(notes)
    assert [rows.tolist() for rows in data.units] == units
    assert data.validation is None
    for row, text in enumerate(notes.texts):
        assert data.vocabulary.decode(data.encoded.note(row).tolist()) == text


def test_an_annealed_audit_keeps_validation_notes_out_and_its_rows_fit():
    notes = notes_of(12)
    settings = settings_of(mode="compat", units=4)
    data = data_of(notes, settings, rng(3))
    units = pick_units(notes, 4, rng(3))
    assert data.validation is not None
    assert len(data.encoded) + len(data.validation) == len(notes)
    for rows, own in zip(units, data.units, strict=True):
        decoded = [data.vocabulary.decode(data.encoded.note(int(row)).tolist()) for row in own]
        assert decoded == [notes.texts[row] for row in rows]


def test_validation_notes_of_ones_own_cost_no_training_note():
    notes = notes_of(12)
    own = notes_of(3, seed=5)
    data = data_of(notes, settings_of(mode="compat"), rng(3), validation=own)
    assert len(data.encoded) == len(notes)
    decoded = [
        data.vocabulary.decode(data.validation.note(row).tolist()) for row in range(len(own))
    ]
    assert decoded == list(own.texts)
    exact = data_of(notes, settings_of(mode="exact"), rng(3), validation=own)
    assert exact.validation is None
    assert [rows.tolist() for rows in data.units] == [rows.tolist() for rows in exact.units]


def test_data_there_and_back(tmp_path):
    settings = settings_of(mode="compat")
    data = data_of(notes_of(), settings, rng())
    back = load_data(data.save(tmp_path))
    assert back.digest == data.digest
    assert (back.encoded.ids == data.encoded.ids).all()
    assert (back.validation.ids == data.validation.ids).all()
    assert [rows.tolist() for rows in back.units] == [rows.tolist() for rows in data.units]
    assert not any(word in repr(data) for word in WORDS)


def test_digests_tell_data_apart():
    one = data_of(notes_of(), settings_of(), rng(0))
    assert one.digest == data_of(notes_of(), settings_of(), rng(0)).digest
    others = [
        data_of(notes_of(seed=1), settings_of(), rng(0)),
        data_of(notes_of(), settings_of(units=4), rng(0)),
    ]
    others += [AuditData(one.encoded, one.vocabulary, one.units, one.encoded)]
    cut = encode([text.replace("\n", " ") for text in notes_of().texts], one.vocabulary)
    others += [AuditData(cut, one.vocabulary, one.units)]
    assert len({data.digest for data in [one, *others]}) == 5


@pytest.mark.parametrize("damage", ["", "{}", "[1]", '{"units": 3, "vocabulary": {}}', "null"])
def test_damaged_data_are_refused(damage, tmp_path):
    folder = data_of(notes_of(), settings_of(), rng()).save(tmp_path)
    (folder / "data.json").write_text(damage)
    with pytest.raises(InputError, match=r"contains no audit data|no vocabulary"):
        load_data(folder)


def test_missing_data_are_refused(tmp_path):
    with pytest.raises(InputError, match="nowhere: contains no audit data"):
        load_data(tmp_path / "nowhere")
    folder = data_of(notes_of(), settings_of(), rng()).save(tmp_path)
    (folder / "training-ids.npy").unlink()
    with pytest.raises(InputError, match="contains no audit data"):
        load_data(folder)
    (folder / "training-ids.npy").write_bytes(b"")
    with pytest.raises(InputError, match="contains no audit data"):
        load_data(folder)


@pytest.mark.parametrize(
    "how",
    [
        {"mode": "compat", "model": "pretrained"},
        {"mode": "unigram", "from_text": True},
        {"units": 1},
    ],
)
def test_settings_that_do_not_fit_are_refused(how):
    with pytest.raises(ValueError, match="1 validation error"):
        settings_of(**how)


def test_the_mode_decides_on_the_plan():
    assert settings_of(size="paper").audit_recipe().plan == "rows"
    assert settings_of(mode="compat").audit_recipe().plan == "stream"
    assert settings_of(model="unigram").audit_recipe() is None
