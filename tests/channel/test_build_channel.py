"""From vectors to a channel: the floor, the neighbours, the pool, the kept words."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from clinveil.channel import ChannelSettings, build_channel, channel_digest, read_words
from clinveil.core import InputError
from clinveil.corpus import memory_corpus
from clinveil.lexicons import word_list
from clinveil.vectors import Vectors, count_words

N_WORDS = 60


def spelled(i: int) -> str:
    return "w" + "".join(chr(ord("a") + int(d)) for d in f"{i:03d}")


def vectors(*, patients: bool = True, n_patients: int = 100) -> Vectors:
    """60 words in random directions; the first 40 occur with many patients, the rest with 4 or
    fewer.
    """
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(N_WORDS, 8)).astype(np.float32)
    counts = np.arange(N_WORDS, 0, -1, dtype=np.int64)
    seen = np.where(np.arange(N_WORDS) < 40, 5 + counts // 10, counts % 5).astype(np.int64)
    words = [spelled(i) for i in range(N_WORDS)]
    return Vectors(
        words, matrix, counts, seen if patients else None, n_patients if patients else None
    )


def built(settings: ChannelSettings | None = None, of: Vectors | None = None, **more):
    return build_channel(of or vectors(), settings or ChannelSettings(), threads=1, **more)


def test_rows_are_the_nearest_eligible_words_by_brute_force():
    of = vectors()
    channel, table = built(ChannelSettings(n="3"), of)
    unit = of.matrix / np.linalg.norm(of.matrix, axis=1, keepdims=True)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -9)
    cosines[:, 40:] = -9
    nearest = np.argsort(-cosines, axis=1, kind="stable")[:, :3]
    assert (table.ids == nearest).all()
    for row in range(N_WORDS):
        assert channel.row(row)[0].tolist() == nearest[row].tolist()


def test_words_of_few_patients_never_come_out():
    channel, _ = built()
    assert channel.eligible.tolist() == [True] * 40 + [False] * 20
    assert channel.indices.max() < 40
    assert np.diff(channel.indptr)[:-1].tolist() == [14] * N_WORDS


def test_unknown_words_draw_from_common_words_or_are_dropped():
    channel, _ = built()
    outputs, chances = channel.row(channel.unknown)
    assert outputs.tolist() == list(range(40))
    assert (np.diff(chances) < 0).all()
    assert built(ChannelSettings(unknown="drop"))[0].row(N_WORDS)[0].size == 0


def test_the_same_settings_give_the_same_channel():
    one = built()
    other = build_channel(vectors(), ChannelSettings(), threads=3)
    assert channel_digest(one[0]) == channel_digest(other[0])


def test_kept_words_stay(tmp_path):
    file = tmp_path / "keep.txt"
    file.write_text(f"{spelled(3).upper()}\n\n{spelled(50)}\nunheard\n")
    channel, _ = built(ChannelSettings(keep_words=file))
    assert channel.kept == {spelled(3), spelled(50)}
    assert channel.row(50)[0].tolist() == [50]


def test_dropped_words_are_not_written_unless_they_are_kept_too(tmp_path):
    keep = tmp_path / "keep.txt"
    drop = tmp_path / "drop.txt"
    keep.write_text(spelled(3))
    drop.write_text(f"{spelled(3)}\n{spelled(4)}\n")
    channel, _ = built(ChannelSettings(keep_words=keep, drop_words=drop))
    assert np.flatnonzero(~channel.has_output).tolist() == [4]
    assert channel.row(3)[0].tolist() == [3]


def test_stop_words_hold_no_negation():
    stop_words = word_list("function")
    assert {"the", "of", "and", "with", "is"} <= stop_words
    assert not stop_words & {
        "no",
        "not",
        "nor",
        "never",
        "none",
        "nothing",
        "without",
        "cannot",
        "neither",
    }


def test_the_settings_reach_the_policy():
    channel, _ = built(ChannelSettings(layout="keep", numbers="mask", background=0.5))
    assert vars(channel.policy) == {
        "layout": "keep",
        "numbers": "mask",
        "background": 0.5,
        "context_strength": 0.0,
    }


@pytest.mark.parametrize("wrong", [{"background": 1.01}, {"layout": "all"}])
def test_settings_of_no_policy_are_refused(wrong):
    with pytest.raises(ValidationError):
        ChannelSettings(**wrong)


def test_words_are_read_as_lookup_forms(tmp_path):
    file = tmp_path / "keep.txt"
    file.write_bytes("\ufeffJosé\r\n  Jose\u0301 \r\nThe\r\n\r\n...\r\n".encode())
    assert read_words(file) == {"josé", "the"}


@pytest.mark.parametrize(
    "raw, said", [(b"one\nshort of\n", "line 2 contains 2 words"), (b"\xff\xfe", "not UTF-8 text")]
)
def test_a_bad_word_file_is_refused_without_its_words(tmp_path, raw, said):
    file = tmp_path / "keep.txt"
    file.write_bytes(raw)
    with pytest.raises(InputError, match=said) as refusal:
        read_words(file)
    assert "short" not in str(refusal.value) and "keep.txt" in str(refusal.value)


def test_a_missing_word_file_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"keep\.txt"):
        read_words(tmp_path / "keep.txt")


def test_too_few_eligible_words_are_refused():
    with pytest.raises(InputError, match="41 are required"):
        built(ChannelSettings(n="3-40"))
    built(ChannelSettings(n="3-39"))


def test_imported_vectors_take_patients_and_frequencies_from_the_notes(tmp_path):
    notes = [
        (f"n{i}", f"p{i}", " ".join([spelled(0)] * 9 + [spelled(j) for j in range(1, 30)]))
        for i in range(60)
    ]
    imported = vectors(patients=False)
    bare = Vectors(imported.words, imported.matrix)
    counts = count_words(memory_corpus(notes), tmp_path)
    channel, _ = built(of=bare, counts=counts)
    assert channel.eligible.tolist() == [True] * 30 + [False] * 30
    outputs, chances = channel.row(channel.unknown)
    assert outputs[0] == 0 and chances[0] == pytest.approx(9 / (9 + 29))
    with pytest.raises(InputError, match="no patient counts of their words"):
        built(of=bare)
