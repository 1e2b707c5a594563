"""The whole study of paper C on few invented patients: tables, page, floors, and a second run that
trains nothing.
"""

from __future__ import annotations

import csv
import io
import re
import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from clinveil.attacks.models.leaveout.pdtp import leave_out
from clinveil.core.errors import InputError, UsageError
from clinveil.core.finding import read_findings
from clinveil.corpus.corpus import rows
from clinveil.corpus.demo import write_demo
from clinveil.corpus.open import open_corpus
from clinveil.stats.intervals import t_interval
from clinveil.study.clinicalnlp_2019 import study
from clinveil.study.clinicalnlp_2019.settings import SAME, SCALES, StudySettings
from clinveil.study.clinicalnlp_2019.study import (
    ClinicalNlp2019,
    audits_of,
    fall,
    rarities,
    run_study,
    tables,
)
from clinveil.study.clinicalnlp_2019.tasks import by_unit, lines_of
from clinveil.study.inputs import Source
from clinveil.study.tables import read_paper, terminal

pytest.importorskip("torch")
TINY = {
    "size": "tiny",
    "words": 8_000,
    "valid": 10,
    "test": 40,
    "units": 2,
    "reseeds": 1,
    "epochs": 1,
    "workers": 1,
}
PATIENTS = 50
PAPER = read_paper(study.__file__)


@pytest.fixture(scope="module", autouse=True)
def quick():
    """Language models of 16 units, and letter case with a network of 8 units, trained once over the
    text.
    """
    tiny = SCALES["tiny"]
    model = {**tiny.model, "width": 16, "layers": 1}
    casing = tiny.casing.model_copy(update={"epochs": 1, "hidden": 8, "beam": 2})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "clinveil.study.clinicalnlp_2019.settings.SCALES",
            {**SCALES, "tiny": replace(tiny, casing=casing, model=model)},
        )
        yield


def settings(**more):
    return StudySettings(**{**TINY, **more})


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A demo corpus, and word and sentence pairs of words that stand in it."""
    out = tmp_path_factory.mktemp("study-c")
    write_demo(out / "demo", PATIENTS, 3)
    pairs = [("pain", "chest"), ("patient", "history"), ("left", "right"), ("blood", "pressure")]
    rows = "".join(f"{one},{other},{score}\n" for score, (one, other) in enumerate(pairs))
    (out / "pairs.csv").write_text("term1,term2,score\n" + rows, encoding="utf-8")
    return out


@pytest.fixture(scope="module")
def finished(demo):
    """A study done in this process: its folder, results, and what it said."""
    said = []
    out = demo / "finished"
    how = settings(pairs=(demo / "pairs.csv",), min_pair_count=1)
    results = run_study(demo / "demo" / "notes.parquet", out, how, said.append)
    return out, results, said


def test_the_hours_are_said_before_the_models(finished):
    _, _, said = finished
    each = r"\d+ models of [\d,]+ tokens a second and [\d,]+ s each"
    assert re.fullmatch(each + ": about (a second|[\\d.]+ (hours|minutes|seconds))", said[0])
    # two dropouts: of all (2), reseeded (2), without (4), under a second seed (4); compat: 2 + 4;
    # the unigram is counted, not trained
    assert said[0].startswith("18 models")


def test_it_leaves_tables_findings_and_a_row_a_unit_all_private(finished):
    out, results, _ = finished
    for name in ("tables.md", "findings.json", "units-exact-0.csv", "SECRET.txt"):
        assert stat.S_IMODE((out / name).stat().st_mode) == 0o600, name
    assert len(read_findings(out / "findings.json")) == len(results.findings)


def test_a_second_run_trains_nothing_and_finds_the_same(finished, demo):
    out, results, _ = finished
    said = []
    how = settings(pairs=(demo / "pairs.csv",), min_pair_count=1)
    again = run_study(demo / "demo" / "notes.parquet", out, how, said.append)
    assert said == []
    assert [f.as_dict() for f in again.findings] == [f.as_dict() for f in results.findings]


def test_every_privacy_score_has_its_floors(finished):
    _, results, _ = finished
    scores = [f for f in results.findings if f.measure == "attack.pdtp"]
    # model and text by dropout, compat, unigram of all and of the same patients
    assert len(scores) == 2 * 2 + 2 + 2
    assert all(f.control is not None for f in scores)
    for dropout in ("0.0", "0.5"):
        for by in ("the model", "released notes"):
            floor = results.of(
                "attack.pdtp_reseed_floor",
                corpus=f"lstm, dropout {dropout}",
                mode="exact",
                **{"from": by},
            )
            assert floor is not None and floor.value > 0


def test_the_unigram_is_held_against_the_lstm_on_the_same_patients(finished):
    _, results, _ = finished
    same = results.of("attack.pdtp", corpus=SAME)
    everybody = results.of("attack.pdtp", corpus="unigram")
    assert same.n == 2 < everybody.n
    fall = results.of("attack.pdtp_fall", corpus=SAME, against="lstm, dropout 0.0", of="score")
    lstm = results.of(
        "attack.pdtp", corpus="lstm, dropout 0.0", mode="exact", **{"from": "the model"}
    )
    assert fall.value == pytest.approx(lstm.value - same.value) and fall.n == 2
    rows = [row[:4] for table in results.tables if table.ident == "falls" for row in table.rows]
    assert (SAME, "lstm, dropout 0.0", "exact", "score") in rows


def test_the_effect_is_measured_across_seeds_and_its_fall_told(finished):
    _, results, _ = finished
    for label in ("lstm, dropout 0.0", "lstm, dropout 0.5"):
        for by in ("the model", "released notes"):
            effect = results.of("attack.pdtp_effect", corpus=label, mode="exact", **{"from": by})
            assert effect.detail["seeds"] == 2 and effect.n == 2
        assert (
            results.of("attack.pdtp_effect", corpus=label, mode="compat") is None
        )  # one seed: nothing to measure on
    fall = results.of("attack.pdtp_fall", corpus="lstm, dropout 0.5", mode="exact", of="effect")
    values = [
        results.of("attack.pdtp_effect", corpus=label, mode="exact").value
        for label in results.facts["labels"][1:3]
    ]
    assert fall.value == pytest.approx(values[0] - values[1])
    assert results.of("attack.pdtp_excess", corpus="lstm, dropout 0.5") is None


def test_the_tables_hold_no_word_of_a_note(finished):
    out, results, _ = finished
    text = terminal(results.tables)
    notes = [note.text for note in rows(open_corpus(next((out / "tasks").glob("*/train.parquet"))))]
    ours = set(re.findall(r"[A-Za-z]{6,}", terminal(results.tables).lower()))
    told = [Path(study.__file__).with_name(name).read_text() for name in ("paper.toml", "study.py")]
    allowed = set(re.findall(r"[A-Za-z]{6,}", " ".join([*told, *results.facts["labels"]]).lower()))
    seen = {word.lower() for note in notes for word in note.split()} & ours - allowed
    assert not seen, f"{len(seen)} words"
    assert "Figure 1" not in text and "Figure 1" in (out / "tables.md").read_text(encoding="utf-8")


def test_real_notes_are_the_positive_control_of_every_attack(finished):
    _, results, _ = finished
    copied = results.of("attack.copies", corpus="real notes", span=20)
    assert copied.value > 0.95 > copied.detail["held_out"]
    auc = results.of(
        "attack.membership",
        corpus="real notes",
        attacker="loss threshold",
        **{"from": "released notes"},
    )
    assert auc.value > 0.95
    synthetic = results.of("attack.copies", corpus="unigram", span=20)
    assert synthetic.value == 0.0


def test_word_pairs_come_for_every_corpus(finished):
    _, results, _ = finished
    assert all(
        results.of("utility.similarity", corpus=label) is not None
        for label in results.facts["labels"]
    )
    assert results.facts["labels"] == (
        "real notes",
        "lstm, dropout 0.0",
        "lstm, dropout 0.5",
        "unigram",
    )


def test_the_row_of_a_unit_holds_numbers_only(finished):
    out, _, _ = finished
    rows = list(
        csv.DictReader(io.StringIO((out / "units-exact-0.csv").read_text(encoding="utf-8")))
    )
    assert len(rows) == 2
    for row in rows:
        plain = [value for name, value in row.items() if name not in ("sign", "planted", "on_name")]
        assert all(np.isfinite(float(value)) for value in plain)


def test_another_study_is_not_overwritten(finished, demo):
    (demo / "other").mkdir()
    (demo / "other" / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="not a study folder"):
        run_study(demo / "demo" / "notes.parquet", demo / "other", settings())
    assert (demo / "other" / "mine.txt").read_text() == "mine"


def test_too_few_notes_say_what_to_give(demo):
    with pytest.raises(InputError, match="too few"):
        run_study(demo / "demo" / "notes.parquet", demo / "few", settings(valid=10_000))


def test_too_few_patients_are_refused_before_any_training(demo):
    with pytest.raises(InputError, match="the train part has 2 patients"):
        run_study(demo / "demo" / "notes.parquet", demo / "alone", settings(words=1_000))
    assert not list((demo / "alone" / "tasks").glob("*/logs.npy"))


def test_split_by_note_counts_every_note_as_a_patient(demo):
    from clinveil.lm.notes import PlainNotes

    notes = PlainNotes(("one", "two"), ("n1", "n2"), ("p", "p"))
    assert by_unit(notes, True).patients == ("n1", "n2")
    assert by_unit(notes, False) is notes


def test_too_many_hours_are_refused_before_any_training(demo):
    with pytest.raises(UsageError, match=r", more than"):
        run_study(demo / "demo" / "notes.parquet", demo / "long", settings(max_hours=1e-9))
    assert not list((demo / "long" / "tasks").glob("*/logs.npy"))


@pytest.mark.parametrize("values", [(), (1.0,), (-0.1,), (float("nan"),), (0.0, float("nan"))])
def test_dropouts_that_make_no_sense_are_refused(values):
    with pytest.raises(ValueError, match="below 1"):
        settings(dropout=values)


def test_sizes_are_profiles_that_flags_win_over():
    assert settings().units == 2 and StudySettings(size="paper").units == 30
    assert StudySettings(size="paper").leave_out(0.3, "exact").audit_recipe().width == 650
    assert StudySettings().leave_out(0.0, "compat").audit_recipe().plan == "stream"


def test_compat_is_annealed_at_every_size_and_fills_table_2_at_the_papers():
    for size in ("tiny", "small", "paper"):
        how = StudySettings(size=size)
        compat, exact = (how.leave_out(0.3, mode).audit_recipe() for mode in ("compat", "exact"))
        assert (compat.plan, exact.plan) == ("stream", "rows")
        assert how.main == ("compat" if size == "paper" else "exact")
    assert compat.epochs == 20 and StudySettings(size="paper", compat=False).main == "exact"
    assert StudySettings(epochs=3).leave_out(0.0, "compat").audit_recipe().epochs == 3


def planned(demo, out, how):
    """The study with its audits, nothing trained."""
    from clinveil.scale.tasks import perform, study_folder

    study = ClinicalNlp2019(how, Source.of(demo / "demo" / "notes.parquet", how.notes))
    with study_folder(out, force=False) as store:
        perform(store, study.parts)
        return study, store, audits_of(store, study.parts, how)[0]


def test_the_papers_recipe_writes_the_notes_where_it_is_the_main_one(demo, monkeypatch):
    own, _, audits = planned(demo, demo / "planned", settings())
    assert [c.model.mode for c in own.corpora(audits) if c.model] == ["exact", "exact"]
    assert [a.full.write for (mode, _), a in audits.items() if mode == "compat"] == [0, 0]
    monkeypatch.setattr(StudySettings, "main", "compat")
    own, _, audits = planned(demo, demo / "planned-paper", settings())
    for corpus in own.corpora(audits)[1:3]:
        assert (corpus.model.mode, corpus.model.keep) == ("compat", True) and corpus.model.write > 0
    compat = [audit for (mode, _), audit in audits.items() if mode == "compat"]
    assert all(one.write == 0 for audit in compat for one in audit.left_out)


def test_annealing_looks_at_the_studys_own_validation_notes(demo):
    from clinveil.attacks.models.leaveout.data import load_data

    study, store, audits = planned(demo, demo / "planned-valid", settings())
    valid, train = (study.parts.load(store, name) for name in ("valid", "train"))
    data = load_data(audits["compat", 0.0].data)
    assert (len(data.validation), len(data.encoded)) == (len(valid), len(train))
    assert data.vocabulary.decode(data.validation.note(0).tolist()) == valid.texts[0]
    assert load_data(audits["exact", 0.0].data).validation is None


def test_letter_case_is_of_whole_notes_and_every_line_has_its_owner(finished, demo):
    from clinveil.lm.notes import PlainNotes

    notes = PlainNotes(("One\ntwo", "Three"), ("n1", "n2"), ("p", "p"))
    assert lines_of(notes, "test notes").owners == ["p", "p", "p"]
    by_note = lines_of(notes, "test notes", by_note=True)
    assert (by_note.lines, by_note.owners) == (["One", "two", "Three"], ["n1", "n1", "n2"])
    out, results, _ = finished
    texts = [note.text for note in rows(open_corpus(next((out / "tasks").glob("*/test.parquet"))))]
    cased = results.of("utility.casing", corpus="real notes", series="model")
    assert (cased.detail["notes"], cased.detail["lines"]) == (
        len(texts),
        sum(text.count("\n") + 1 for text in texts),
    )


def test_vectors_are_of_medtexts_own_tokens(finished):
    from clinveil.vectors.files import load_vectors

    out, _, _ = finished
    seen = [set(load_vectors(folder).words) for folder in (out / "tasks").glob("*/vectors")]
    assert len(seen) == 4
    for words in seen:
        assert {".", ":"} <= words and "unk" not in words and "<unk>" in words
        assert any(word != word.lower() for word in words)


def nli_of(value, low, high, chance):
    from clinveil.core.finding import Finding

    detail = {"corpus": "real notes", "series": "vectors"}
    return Finding("utility.nli", value, 899, "higher", low, high, chance, detail=detail)


@pytest.mark.parametrize(("low", "says"), [(0.50, "has no power"), (0.60, "has power")])
def test_inference_says_whether_real_notes_beat_the_majority(finished, low, says):
    _, results, _ = finished
    with_nli = replace(results, findings=(*results.findings, nli_of(0.62, low, 0.7, 0.563)))
    text = terminal(tables(with_nli, PAPER))
    assert f"Inference {says}" in text and "0.563" in text.split("| by chance |")[1].split("\n")[0]


def test_the_page_says_what_differs_from_the_papers_code(finished):
    out, _, _ = finished
    text = (out / "tables.md").read_text(encoding="utf-8")
    listed = text.split("## What differs from the paper's code")[1]
    for part in (
        "learning rate",
        "left out",
        "word vectors",
        "inference",
        "letter case",
        "writing",
        "end of a note",
    ):
        assert f"| {part} |" in listed, part
    assert "compat: the same (epochs: 1)" in listed


def test_the_fall_of_a_score_is_paired():
    found = fall(np.array([1.0, 1.2, 0.8, 1.1, 0.9, 1.0, 1.3, 0.7]), {"corpus": "x"}, 1)
    assert abs(found.value - 1.0) < 1e-12 and found.low > 0.8 and found.p == 1 / 2**8
    assert (found.low, found.high) == t_interval([1.0, 1.2, 0.8, 1.1, 0.9, 1.0, 1.3, 0.7])
    assert found.method == "Student's t over patients, 95 %, paired"
    none = fall(np.array([1.0, -1.0, 0.5, -0.5]), {"corpus": "x"}, 1)
    assert none.low < 0 < none.high and none.p > 0.3


def test_the_papers_table_is_whole():
    small, large = (PAPER.tables[f"table-2-{size}"].paper for size in ("small", "large"))
    assert PAPER.tables["table-2-small"].paper["lstm, dropout 0.5"] == [
        "12.5",
        "9.6",
        ".259",
        ".160",
        ".692",
        ".895",
    ]
    assert len(small) == 7 and len(large) == 5
    assert all(len(row) == 6 for row in (*small.values(), *large.values()))


def test_rarities_by_hand():
    from clinveil.attacks.models.leaveout.data import AuditData
    from clinveil.lm.notes import encode
    from clinveil.lm.vocabulary import WordVocabulary

    words = WordVocabulary(["a", "b", "c", "d"])
    data = AuditData(encode(["a b c", "a b", "a d"], words), words, (np.array([0]), np.array([1])))
    full = [np.zeros(5), np.zeros(4)]
    # unit 1: the third word, c, which stands nowhere else; unit 2: its second, b, whose pair with a
    # is in note 1 too
    peak = [np.array([0, 0, -2.0, 0, 0]), np.array([0, -1.0, 0, 0])]
    compared = leave_out(full, [[peak[0], np.zeros(4)], [np.zeros(5), peak[1]]])
    said = rarities(data, compared)
    assert (said["units"], said["positive"]) == (2, 2)
    assert (said["only_here"], said["before_only_here"], said["pair_only_here"]) == (1, 0, 1)
    assert said["occurrences"] == 1.5
