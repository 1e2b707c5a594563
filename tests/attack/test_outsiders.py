"""Readers who make vectors of their own: they read where neighbours are stable, and nothing in a scattered release."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from outsider_scenes import blind, class_scene, scattered
from scenes import right

from clinveil.attacks.channel.ladder import _unprotected
from clinveil.attacks.reader import Scene, readers
from clinveil.attacks.readers._shadow import shadow_matrix

OUTSIDERS = ("own-vectors", "release-vectors", "shadow-pairs")


@pytest.fixture(scope="module")
def scene():
    return class_scene()


def told(readings, scene):
    """Every reading has a place for each output, and chances that are probabilities."""
    for reading, note in zip(readings, scene.notes, strict=True):
        sums = [reading.chances[a:b].sum() for a, b in zip(reading.starts, reading.starts[1:], strict=False)]
        assert reading.starts.size == len(note) + 1 and max(sums) <= 1 + 1e-9
        assert (reading.chances > 0).all() and reading.rows.max() < len(scene.channel.words)
    return readings


@pytest.mark.parametrize("name", OUTSIDERS)
def test_where_neighbours_are_stable_the_channel_need_not_be_held(name, scene):
    reader = readers.get(name)()
    assert reader.can(scene) and "channel" not in reader.knows
    found = right(told(reader.read(scene, np.random.default_rng(0)), scene), scene)
    assert found > 3 * blind(scene)


@pytest.mark.parametrize("name", OUTSIDERS)
def test_nothing_is_read_of_a_scattered_release(name, scene):
    nothing = scattered(scene, np.random.default_rng(1))
    found = right(readers.get(name)().read(nothing, np.random.default_rng(0)), nothing)
    assert found < blind(scene) + 0.03


def test_no_reader_of_ours_looks_at_what_is_secret(scene):
    """The same readings where truth and places of the attacked notes, and the channel, are other ones."""
    other = replace(scene.channel, indices=np.roll(scene.channel.indices, 7), parameters={"low": 3, "high": 3})
    notes = [replace(n, truth=np.zeros_like(n.truth), places=np.zeros_like(n.places)) for n in scene.notes]
    hidden = replace(scene, notes=notes, channel=other, pairs=(), counts=None)
    for name in (*OUTSIDERS, "decipher"):
        one, two = (readers.get(name)().read(s, np.random.default_rng(0)) for s in (scene, hidden))
        assert all(
            (a.rows == b.rows).all() and np.allclose(a.chances, b.chances) for a, b in zip(one, two, strict=True)
        )


def test_without_a_shadow_the_tool_itself_is_run(tmp_path):
    """Vectors are trained and a channel is built of the other notes; words have no digits, so that it reads them."""
    here = class_scene(3, others=120)
    words = [f"{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(48)]
    channel = replace(here.channel, words=words, parameters={"low": 3, "high": 3, "n_per": "occurrence"})
    made = shadow_matrix(
        replace(here, channel=channel, shadow=None, scratch=tmp_path), here.others, np.random.default_rng(0)
    )
    assert made.shape == (48, 48) and np.allclose(made.sum(axis=1), 1) and (np.diff(made.indptr) == 3).all()
    assert not any(tmp_path.iterdir())
    few = Scene(channel, (), others=here.others[:1])
    assert shadow_matrix(few, [here.others[0][:2]], np.random.default_rng(0)).nnz == 0


def test_public_texts_stand_in_for_other_notes(scene, tmp_path):
    words = [f"{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(48)]

    def shadow(notes, patients):
        own, out = scene.shadow(notes, patients)
        return replace(own, words=words), out

    here = replace(scene, channel=replace(scene.channel, words=words), others=(), shadow=shadow)
    rows = [f"{i},{' '.join(words[x] for x in note)}" for i, note in enumerate(scene.others)]
    (tmp_path / "public.csv").write_text("\n".join(["note_id,text", *rows]))
    reader = readers.get("own-vectors")
    assert not reader().can(here) and reader(public=tmp_path / "public.csv").can(here)
    found = right(reader(public=tmp_path / "public.csv").read(here, np.random.default_rng(0)), here)
    assert found > 3 * blind(scene)


@pytest.mark.parametrize("name", [*OUTSIDERS, "decipher", "known-pairs", "repeats"])
def test_where_words_come_out_as_they_went_in_nearly_all_is_read(name):
    plain = _unprotected(class_scene(pairs=40))
    assert right(readers.get(name)().read(plain, np.random.default_rng(0)), plain) > 0.9
