"""The desk: which notes come first, what a step does, and that each is on disk, whole, before it
counts.
"""

from __future__ import annotations

import json
import os
import stat

import pytest
from review_cases import TEXTS, decision_lines, deidentify, write_notes

from clinveil.core import InputError, UsageError
from clinveil.phi import review_queue
from clinveil.phi.review import decisions as log_room
from clinveil.phi.review.past_runs import past_run, suspects


def keep(place, span):
    return {"place": list(place), "verdict": "keep", "span": list(span)}


def drop(place):
    return {"place": list(place), "verdict": "drop"}


def place_of(desk, at, words):
    start = desk.entries[at].note.text.index(words)
    return start, start + len(words)


def words_of(desk, at, state):
    text = desk.entries[at].note.text
    return [text[span["start"] : span["end"]] for span in state["spans"]]


def test_the_worst_note_comes_first_and_as_many_as_were_asked_for(made):
    run = past_run(made / "out.parquet")
    worst = review_queue(run.entries(), 2, "worst")
    assert worst[0].note.note_id == "doubtful" and len(worst) == 2
    assert worst[0].doubt > worst[1].doubt
    assert [entry.note.note_id for entry in review_queue(run.entries(), 9, "given")] == list(TEXTS)


def test_suspects_are_capitalised_words_of_no_list_that_no_span_covers():
    text = "Ms. Zylphara 😀 Quomble had pain. MRI of the Knee."
    assert [text[a:b] for a, b in suspects(text, [])] == ["Zylphara", "Quomble"]


def test_a_note_is_seen_with_its_spans_and_as_it_was_treated(open_desk, made):
    import pyarrow.parquet as pq

    treated = pq.read_table(made / "out.parquet")["text"].to_pylist()
    with open_desk() as desk:
        for at, text in enumerate(TEXTS.values()):
            seen = desk.note(at)
            assert seen["text"] == text
            assert _spliced(text, seen["pieces"]) == treated[at]
            assert all(span["state"] == "open" and 0 < span["score"] <= 1 for span in seen["spans"])


def _spliced(text, pieces):
    for start, end, new in reversed(pieces):
        text = text[:start] + new + text[end:]
    return text


def test_a_step_changes_note_and_result_and_can_be_taken_back(open_desk, made):
    with open_desk() as desk:
        before = desk.note(1)
        name = place_of(desk, 1, "Mary Okwuosa")
        state = desk.act(1, [drop(name)])
        assert {s["state"] for s in state["spans"] if tuple(s["place"]) == name} == {"dropped"}
        assert all(tuple(piece[:2]) != name for piece in state["pieces"]) and state["undo"]
        state = desk.act(1, [keep(name, (name[0], name[1] - 8, "ID"))], done=True)
        assert state["listed"]["done"] and desk.progress() == (1, len(TEXTS))
        said = place_of(desk, 1, "fine")
        assert desk.act(1, [keep(said, (*said, "CITY"))])["spans"][1]["added"]
    with open_desk() as desk:  # another session takes them back, one by one
        assert "fine" not in words_of(desk, 1, desk.undo(1))
        assert not desk.undo(1)["listed"]["done"]
        last = desk.undo(1)
        assert (
            last["spans"] == before["spans"]
            and last["pieces"] == before["pieces"]
            and not last["undo"]
        )
        assert desk.undo(1) == last
    assert [bool(line.get("undo")) for line in decision_lines(made)[1:]] == [False] * 3 + [True] * 3


@pytest.mark.parametrize(
    "wrong",
    [
        [{"place": [0, 3], "verdict": "perhaps"}],
        [keep((0, 3), (0, 10_000, "NAME"))],
        [keep((0, 20), (0, 20, "NAME"))],  # overlaps a span that was found
        [keep((0, 3), (0, 3, "NOBODY"))],
        ["x"],
        [{"place": [3, 0], "verdict": "drop"}],
    ],
)
def test_a_step_that_makes_no_sense_is_refused_and_not_written(open_desk, made, wrong):
    with open_desk() as desk:
        with pytest.raises(InputError):
            desk.act(0, wrong)
        for nowhere in (-1, 99, True, "0"):
            with pytest.raises(InputError):
                desk.note(nowhere)
    assert len(decision_lines(made)) == 1


def test_search_finds_words_in_all_notes_whatever_their_case(open_desk):
    with open_desk() as desk:
        hits = desk.search("OKWUOSA")["hits"]
        assert [at for at, _, _ in hits] == [0, 1, 2]
        assert all(desk.entries[at].note.text[start:end] == "Okwuosa" for at, start, end in hits)
        assert desk.search("   ")["hits"] == desk.search("nowhere")["hits"] == []


def test_letters_that_get_longer_in_lower_case_move_no_hit(open_desk, made):
    write_notes(made / "notes.parquet", {"n": "İİİ Mary Okwuosa"})
    assert deidentify(made / "notes.parquet", "-o", made / "out.parquet", "--spans", "--force") == 0
    with open_desk("other") as desk:
        assert desk.search("okw")["hits"] == [[0, 9, 12]]


def test_each_step_is_one_private_line_without_note_text_synced_before_it_counts(
    open_desk, made, monkeypatch
):
    synced = []
    monkeypatch.setattr(log_room.os, "fsync", lambda file: synced.append(os.fstat(file).st_size))
    path = made / "out.parquet.vault" / "review" / "first.jsonl"
    with open_desk() as desk:
        desk.act(0, [drop(place_of(desk, 0, "Xiuyingsecret"))], done=True)
        assert synced[-1] == path.stat().st_size
    assert (
        stat.S_IMODE(path.stat().st_mode) == 0o600
        and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    )
    assert b"Xiuying" not in path.read_bytes()
    assert set(json.loads(path.read_text().splitlines()[1])) == {
        "note",
        "text",
        "set",
        "done",
        "at",
    }


def test_a_full_disk_leaves_no_half_line_and_no_half_step(open_desk, made, monkeypatch):
    with open_desk() as desk:
        name = place_of(desk, 0, "Xiuyingsecret")
        write = os.write
        desk.act(0, [], done=True)
        before = decision_lines(made)

        def full(file, data):
            write(file, data[:10])
            raise OSError(28, "full")

        monkeypatch.setattr(log_room.os, "write", full)
        with pytest.raises(OSError, match="full"):
            desk.act(0, [drop(name)])
        monkeypatch.undo()
        assert all(span["state"] == "open" for span in desk.note(0)["spans"])
        assert decision_lines(made) == before
        desk.act(0, [drop(name)])
    assert len(decision_lines(made)) == len(before) + 1


def test_a_second_page_of_the_same_reviewer_is_refused_another_reviewer_is_not_and_sees_nothing(
    open_desk,
):
    with open_desk() as first:
        first.act(0, [drop(place_of(first, 0, "Xiuyingsecret"))], done=True)
        with pytest.raises(UsageError, match="another run is using this folder"), open_desk():
            pass
        with open_desk("second") as second:
            assert all(span["state"] == "open" for span in second.note(0)["spans"])
            assert second.progress() == (0, len(TEXTS))


def test_notes_that_changed_since_are_refused_with_one_line(open_desk, made):
    with open_desk() as desk:
        desk.act(0, [], done=True)
        desk.act(3, [], done=True)
    write_notes(made / "notes.parquet", TEXTS | {"empty": "Nothing to see."})
    with open_desk("second"):  # no span stood there
        pass
    with (
        pytest.raises(InputError, match="the text of 1 of 2 notes with decisions has changed"),
        open_desk(),
    ):
        pass
    write_notes(made / "notes.parquet", TEXTS | {"plain": "A note."})
    with pytest.raises(InputError, match="the notes are not those of the run"), open_desk():
        pass
    write_notes(made / "notes.parquet", {"other": "A note."})
    with pytest.raises(InputError, match="the notes are not those of the run"), open_desk():
        pass


def test_decisions_of_another_run_or_reviewer_are_not_gone_on_with(open_desk, made):
    with open_desk():
        pass
    folder = made / "out.parquet.vault" / "review"
    (folder / "first.jsonl").rename(folder / "second.jsonl")
    with pytest.raises(UsageError, match="another reviewer"), open_desk("second"):
        pass
    (made / "out.parquet.vault" / "key.bin").write_bytes(b"k" * 32)
    with pytest.raises(InputError, match="another run"), open_desk("second"):
        pass


def test_what_is_no_run_with_spans_is_said_with_the_way_out(made):
    with pytest.raises(UsageError, match="deidentify NOTES -o OUT --spans"):
        past_run(made / "notes.parquet")
    (made / "notes.parquet").rename(made / "moved.parquet")
    with pytest.raises(InputError, match="with --notes"):
        past_run(made / "out.parquet")
    assert len(list(past_run(made / "out.parquet", notes=made / "moved.parquet").entries())) == len(
        TEXTS
    )
    assert (
        past_run(made / "out.parquet.vault", notes=made / "moved.parquet").vault
        == made / "out.parquet.vault"
    )
    (made / "moved.parquet").rename(made / "notes.parquet")
    assert deidentify(made / "notes.parquet", "-o", made / "out.parquet", "--force") == 0
    with pytest.raises(UsageError, match="stored no spans"):
        past_run(made / "out.parquet")


def test_what_was_decided_is_what_deidentify_makes(open_desk, made, capsys):
    import pyarrow.parquet as pq

    with open_desk() as desk:
        desk.act(0, [drop(place_of(desk, 0, "Xiuyingsecret"))])
        quomble = place_of(desk, 4, "Zylphara")
        desk.act(4, [keep(quomble, (*quomble, "NAME"))], done=True)
    line = [
        "notes.parquet",
        "-o",
        "new.parquet",
        "--set",
        "identifiers.mode=tag",
        "--reviewed",
        made / "out.parquet.vault",
    ]
    assert deidentify(*line, "--spans") == 0
    texts = pq.read_table(made / "new.parquet")["text"].to_pylist()
    assert texts[0].startswith("Dr. Xiuyingsecret saw [NAME] on [DATE].")
    assert texts[4].startswith("It was [NAME] and then Vrantik")
    by = json.loads((made / "new.parquet.vault" / "deidentify.json").read_text())[
        "spans_by_detector"
    ]
    assert by["review"] == 1
    write_notes(made / "notes.parquet", TEXTS | {"doubtful": "Another text."})
    capsys.readouterr()
    assert deidentify(*line, "--force") == 2
    said = capsys.readouterr().err
    assert (
        "1 of 2 notes with decisions have another text than the reviewed one" in said
        and said.count("\n") == 1
    )
    assert pq.read_table(made / "new.parquet")["text"].to_pylist() == texts
    assert (
        deidentify(*line[:2], "third.parquet", *line[3:]) == 2
        and not (made / "third.parquet.vault").exists()
    )
