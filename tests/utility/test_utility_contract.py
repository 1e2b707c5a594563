"""The contract of utility measures, with each evaluation, task and classifier as a parameter.

Planted truth scores high, a permuted control is at chance, the same seed gives the same findings,
findings survive JSON, and unusable input gives one line without a word of a note.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from utility_cases import LABELS, MARK, Row, corpus, notes

from clinveil.channel import identity_channel
from clinveil.core import Finding, InputError, UsageError, word_spans, words
from clinveil.corpus import GoldSpans, MemoryCorpus, Note, memory_corpus
from clinveil.corpus.gold import FileMark
from clinveil.phi import DecisionFile, NoteDecisions, ReviewEntry, text_hash
from clinveil.phi.review.decisions import Kept
from clinveil.utility import (
    CLASSIFIERS,
    EVALUATIONS,
    ClassifiedNotes,
    ClassifierSettings,
    PairList,
    Texts,
    compared,
    evaluate,
    two_sample,
)
from clinveil.utility.evaluations.agreement import agreement
from clinveil.utility.tasks.labels import ArmPredictions, Label, drawn_words
from clinveil.utility.tasks.models import language_model, vectors
from clinveil.utility.tasks.notes import Sides, read_texts
from clinveil.utility.tasks.sequence import sequence
from clinveil.vectors import Vectors

Findings = Sequence[Finding]
SEEDED = np.random.default_rng
ONE_CLASS = [(note, patient, text, LABELS[0]) for note, patient, text, _ in notes(80)]


def drawn(rows: list[Row], seed: int = 3) -> list[Row]:
    """Return the rows with the words of each note drawn independently from those of its label."""
    ids, patients, texts, labels = map(list, zip(*rows, strict=True))
    targets = np.array([LABELS.index(label) for label in labels])
    classified = ClassifiedNotes(ids, patients, texts, LABELS, targets, "", {})
    drawn_texts = drawn_words(classified, np.arange(len(rows)), SEEDED(seed))
    return list(zip(ids, patients, drawn_texts, labels, strict=True))


def half_drawn(rows: list[Row]) -> list[Row]:
    """Return the rows with the words of every second pair of notes drawn."""
    pairs = zip(rows, drawn(rows), strict=True)
    return [real if i % 4 < 2 else random for i, (real, random) in enumerate(pairs)]


# Tasks: released notes between the words of a label at random (0) and real notes (1).


def sides_of(real: list[Row], released: list[Row]) -> Sides:
    """Return both sides, paired by id and word by word."""
    forms = sorted({form for _, _, text, _ in real for form in words(text)})
    return Sides(
        corpus(real),
        corpus(released),
        entered=corpus(real),
        notes={row[0]: row[0] for row in released},
        channel=identity_channel(forms),
        workers=1,
    )


def run_transfer(real: list[Row], released: list[Row]) -> Findings:
    label = Label.of(sides_of(real, released), "label", SEEDED(1))
    return [ArmPredictions(label, "lr").finding("utility.transfer", SEEDED(1))]


def run_within(real: list[Row], released: list[Row]) -> Findings:
    label = Label.of(sides_of(real, released), "label", SEEDED(1))
    return [ArmPredictions(label, "lr").finding("utility.within", SEEDED(1))]


def run_sequence(real: list[Row], released: list[Row]) -> Findings:
    sides = sides_of(real, released)
    return sequence(sides, read_texts(sides, SEEDED(1)), SEEDED(1))


def run_language_model(real: list[Row], released: list[Row]) -> Findings:
    sides = sides_of(real, released)
    return language_model(sides, read_texts(sides, SEEDED(1)), SEEDED(1))


def run_two_sample(real: list[Row], released: list[Row]) -> Findings:
    """Compare with notes of other patients by the same writer."""
    ids = [row[0] for row in real]
    owner = np.full(len(released), -1)
    texts = [[text for _, _, text, _ in side] for side in (real, released)]
    findings = two_sample(Texts(ids, ids, texts[0], texts[1], owner, 0), SEEDED(1))
    return [finding for finding in findings if finding.labels[0] == "word trigrams"]


@dataclass(frozen=True)
class UtilityTask:
    """A task of a release, and the notes that stand for a perfect release."""

    run: Callable[[list[Row], list[Row]], Findings]
    released: tuple[Row, ...] = ()  # other than the real notes


TASKS = {
    "transfer": UtilityTask(run_transfer),
    "within": UtilityTask(run_within),
    "sequence": UtilityTask(run_sequence),
    "language_model": UtilityTask(run_language_model),
    "two_sample": UtilityTask(run_two_sample, tuple(notes(seed=2))),
}
TASK_NAMES = tuple(TASKS)


@cache
def task_finding(name: str, release: str) -> Finding:
    """Return the finding of a task on real notes, half drawn or drawn ones."""
    task = TASKS[name]
    real = notes()
    source = list(task.released) or real
    released = {"real": source, "half": half_drawn(source), "drawn": drawn(source)}[release]
    (finding,) = task.run(real, released)
    return finding


@pytest.mark.parametrize("name", TASK_NAMES)
def test_real_notes_have_a_share_of_one(name: str) -> None:
    finding = task_finding(name, "real")
    assert finding.value == pytest.approx(1, abs=0.15 if TASKS[name].released else 0.02)
    assert finding.low <= finding.value <= finding.high
    assert finding.scores.score == pytest.approx(finding.scores.ceiling, abs=0.08)


@pytest.mark.parametrize("name", TASK_NAMES)
def test_words_drawn_per_label_have_a_share_of_about_zero(name: str) -> None:
    finding = task_finding(name, "drawn")
    assert -1 < finding.value < 0.3
    assert finding.low < 0.25
    gap = finding.scores.ceiling - finding.scores.floor
    assert abs(finding.scores.score - finding.scores.floor) < 0.3 * abs(gap)


@pytest.mark.parametrize("name", TASK_NAMES)
def test_a_damaged_release_lies_between_floor_and_ceiling(name: str) -> None:
    finding = task_finding(name, "half")
    scores = finding.scores
    floor, ceiling = sorted((scores.floor, scores.ceiling))
    assert floor < scores.score <= ceiling
    assert task_finding(name, "drawn").value + 0.2 < finding.value
    assert finding.value <= task_finding(name, "real").value


def test_drawn_words_keep_the_length_of_each_note() -> None:
    lengths = [[len(words(text)) for _, _, text, _ in rows] for rows in (notes(), drawn(notes()))]
    assert lengths[0] == lengths[1]


# Vectors have word pairs instead of labels: words of one topic are in the same notes.

TOPICS = [[f"{MARK}t{topic}{'abcdefgh'[i]}" for i in range(8)] for topic in "abcdef"]


def topic_texts(seed: int, mixed: bool = False) -> list[str]:
    """Return notes of 30 words of one topic, or of all topics."""
    rng = SEEDED(seed)
    every = [word for topic in TOPICS for word in topic]
    return [" ".join(rng.choice(every if mixed else TOPICS[i % 6], 30)) for i in range(120)]


def topic_pairs(seed: int = 1, permuted: bool = False) -> PairList:
    """Return pairs of words with a high score if they share a topic, or with permuted scores."""
    rng = SEEDED(seed)
    pairs = [(one, other) for one in range(48) for other in range(one) if rng.random() < 0.08]
    scores = np.array([one // 8 == other // 8 for one, other in pairs]) + rng.normal(0, 0.1)
    every = [word for topic in TOPICS for word in topic]
    terms = tuple((every[one], every[other]) for one, other in pairs)
    return PairList("topics", terms, rng.permutation(scores) if permuted else scores)


def pair_file(folder: Path, permuted: bool = False) -> Path:
    """Write the pairs."""
    pairs = topic_pairs(permuted=permuted)
    lines = [
        f"{one},{other},{score}"
        for (one, other), score in zip(pairs.terms, pairs.scores.tolist(), strict=True)
    ]
    path = folder / "topics.csv"
    path.write_text("\n".join(["term1,term2,score", *lines]))
    return path


def vectors_finding(folder: Path, released: list[str], permuted: bool = False) -> Finding:
    """Return the finding of the vectors task for released notes."""
    ids = [f"n{i}" for i in range(120)]
    real = topic_texts(1)
    sides = Sides(memory_corpus([]), memory_corpus([]), workers=1)
    texts = Texts(ids, ids, real, released, np.arange(120), 0)
    (finding,) = vectors(sides, texts, [pair_file(folder, permuted)], SEEDED(1))
    return finding


def test_vectors_of_real_notes_have_a_share_of_one_and_mixed_words_none(tmp_path: Path) -> None:
    real = vectors_finding(tmp_path, topic_texts(1))
    assert real.value == 1
    assert real.scores.floor < real.scores.ceiling
    mixed = vectors_finding(tmp_path, topic_texts(1, mixed=True))
    assert mixed.value is None
    assert abs(mixed.scores.score) < 0.2
    assert vectors_finding(tmp_path, topic_texts(1), permuted=True).why.startswith("no evidence")


# Evaluations and classifiers: findings on planted truth, on a permuted control, on bad input.


@dataclass(frozen=True)
class Member:
    """An evaluation or classifier.

    Attributes:
        run: returns the findings with planted truth or permuted.
        score: of the findings; None counts as 0.
        least: smallest score of planted truth. chance: largest score of permuted truth.
        refused: runs it on empty or one-class input.
    """

    run: Callable[[bool], Findings]
    score: Callable[[Findings], float]
    least: float
    chance: float
    refused: Callable[[Path], Findings]


def value_of(measure: str, series: str = "") -> Callable[[Findings], float]:
    """Return a function to the value of the first finding of a measure and series."""

    def value(findings: Findings) -> float:
        fitting = (f for f in findings if f.measure == measure and series in (f.series, ""))
        return next(fitting).value or 0.0

    return value


def run_evaluation_transfer(planted: bool) -> Findings:
    settings = {"label": ("label",), "model": ("lr",), "workers": 1, "quiet": True}
    evaluation = EVALUATIONS.get("transfer")(**settings)
    released = notes(80) if planted else drawn(notes(80))
    return evaluation({"original": corpus(notes(80)), "released": corpus(released)}).findings


def refused_transfer(folder: Path) -> Findings:
    evaluation = EVALUATIONS.get("transfer")(label=("label",), workers=1, quiet=True)
    return evaluation({"original": corpus(ONE_CLASS), "released": corpus(ONE_CLASS)}).findings


def run_evaluation_similarity(planted: bool) -> Findings:
    rng = SEEDED(1)
    every = [word for topic in TOPICS for word in topic]
    centres = rng.normal(size=(6, 20)).repeat(8, axis=0)
    matrix = (centres + rng.normal(size=(48, 20))).astype(np.float32)
    arguments = {"vectors": Vectors(every, matrix), "pairs": [topic_pairs(permuted=not planted)]}
    return EVALUATIONS.get("similarity")(draws=200)(arguments, seed=3).findings


def refused_similarity(folder: Path) -> Findings:
    (folder / "pairs.csv").write_text(f"term1,term2,score\n{MARK}one,{MARK}other,{MARK}high\n")
    arguments = {"vectors": Vectors(["a"], np.ones((1, 2))), "pairs": [folder / "pairs.csv"]}
    return EVALUATIONS.get("similarity")()(arguments).findings


def run_evaluation_classification(planted: bool) -> Findings:
    rows = notes(shuffled_labels=not planted)
    evaluation = EVALUATIONS.get("classification")(label=("label",), training={"min_class": 20})
    return evaluation({"original": corpus(rows), "released": corpus(rows)}).findings


def refused_classification(folder: Path) -> Findings:
    evaluation = EVALUATIONS.get("classification")(label=("label",))
    return evaluation({"original": corpus(ONE_CLASS), "released": corpus(ONE_CLASS)}).findings


def run_evaluation_perplexity(planted: bool) -> Findings:
    """Train a trigram model; in the control the words of the test notes are in random order."""
    rows = notes(60, seed=2)
    if not planted:
        rng = SEEDED(4)
        rows = [(*row[:2], " ".join(rng.permutation(row[2].split())), row[3]) for row in rows]
    evaluation = EVALUATIONS.get("perplexity")(lm={"model": "ngram"}, workers=1, quiet=True)
    return evaluation({"notes": corpus(rows), "train": corpus(notes())}).findings


def gain_of_order(findings: Findings) -> float:
    """Return by how much a model is better than its unigram control."""
    finding = next(f for f in findings if f.measure == "utility.perplexity")
    return 1 - finding.value / finding.control


def refused_perplexity(folder: Path) -> Findings:
    evaluation = EVALUATIONS.get("perplexity")(lm={"model": "unigram"}, workers=1, quiet=True)
    return evaluation({"notes": corpus([]), "train": corpus(notes(20))}).findings


def gold_notes(moved: int = 0) -> tuple[MemoryCorpus, GoldSpans, GoldSpans]:
    """Return notes of one name each, their spans, and detected spans that are moved."""
    text = f"Seen by Dr. {MARK.title()}miller for follow-up today."
    start = text.index(MARK.title())
    end = text.index(" for")
    ids = [f"n{i}" for i in range(30)]
    marked = {note: [FileMark(start, end, "NAME", "gold")] for note in ids}
    detected = {note: [FileMark(start + moved, end + moved, "NAME", "tool")] for note in ids}
    return (
        memory_corpus([(note, note, text) for note in ids]),
        GoldSpans("gold", marked),
        GoldSpans("tool", detected),
    )


def run_evaluation_deidentification(planted: bool) -> Findings:
    corpus_of_names, gold, detected = gold_notes(0 if planted else 12)
    arguments = {"notes": corpus_of_names, "gold": gold, "found": detected}
    return EVALUATIONS.get("deidentification")(workers=1, quiet=True)(arguments).findings


def refused_deidentification(folder: Path) -> Findings:
    _, gold, _ = gold_notes()
    arguments = {"notes": memory_corpus([("n0", "n0", f"{MARK}word")]), "gold": gold}
    return EVALUATIONS.get("deidentification")(workers=1, quiet=True)(arguments).findings


@dataclass(frozen=True)
class ReviewedNotes:
    """Notes that two reviewers have read."""

    texts: Sequence[str]

    def entries(self) -> Iterator[ReviewEntry]:
        """Yield the notes."""
        for row, text in enumerate(self.texts):
            yield ReviewEntry(Note(f"n{row}", f"n{row}", text), (), (), row)


def decisions(texts: Sequence[str], hidden: Sequence[int], reviewer: str) -> DecisionFile:
    """Return the decisions of a reviewer who hides one word of each note."""
    decided = {}
    for row, (text, word) in enumerate(zip(texts, hidden, strict=True)):
        start, end = list(word_spans(text))[word]
        verdicts = {(start, end): Kept(start, end, "NAME")}
        decided[f"n{row}"] = NoteDecisions(text_hash("00" * 32, text), verdicts, done=True)
    return DecisionFile("00" * 32, reviewer, decided, 0)


def run_evaluation_agreement(planted: bool) -> Findings:
    rng = SEEDED(5)
    texts = [" ".join(rng.choice(TOPICS[i % 6], 8)) for i in range(60)]
    hidden = rng.integers(8, size=60).tolist()
    other = hidden if planted else rng.permutation(hidden).tolist()
    first = decisions(texts, hidden, "first")
    second = decisions(texts, other, "second")
    return agreement(ReviewedNotes(texts), first, second)


def refused_agreement(folder: Path) -> Findings:
    """Measure on notes that have changed since the review."""
    texts = [" ".join(TOPICS[i]) for i in range(6)]
    files = [decisions(texts, [0] * 6, reviewer) for reviewer in ("first", "second")]
    return agreement(ReviewedNotes(texts[::-1]), files[0], files[1])


def run_classifier(model: str, planted: bool) -> Findings:
    """Classify notes that contain a word of their label; in the control labels are permuted."""
    rows = notes(240)
    labels = [label for *_, label in rows]
    shown = labels if planted else SEEDED(6).permutation(labels).tolist()
    marked = [
        (note, patient, f"{text} {MARK}{label}", other)
        for (note, patient, text, label), other in zip(rows, shown, strict=True)
    ]
    settings = ClassifierSettings(min_class=20)
    task = evaluate(corpus(marked).batches(), None, "label", SEEDED(1), settings)
    return compared(task, model, SEEDED(1), control=False)


def refused_classifier(model: str, folder: Path) -> Findings:
    """Train on released notes without words."""
    rows = notes(120)
    numbers = [(note, patient, "12 34", label) for note, patient, _, label in rows]
    settings = ClassifierSettings(min_class=20)
    sides = [corpus(side).batches() for side in (rows, numbers)]
    task = evaluate(sides[0], sides[1], "label", SEEDED(1), settings)
    return compared(task, model, SEEDED(1), control=False)


CLASSIFICATION = value_of("utility.classification", "released notes")
MEMBERS = {
    "transfer": Member(
        run_evaluation_transfer, value_of("utility.transfer"), 0.98, 0.3, refused_transfer
    ),
    "similarity": Member(
        run_evaluation_similarity, value_of("utility.similarity"), 0.4, 0.0, refused_similarity
    ),
    "classification": Member(
        run_evaluation_classification, CLASSIFICATION, 0.8, 0.62, refused_classification
    ),
    "perplexity": Member(run_evaluation_perplexity, gain_of_order, 0.5, 0.05, refused_perplexity),
    "deidentification": Member(
        run_evaluation_deidentification,
        value_of("phi.recall"),
        1.0,
        0.0,
        refused_deidentification,
    ),
    "agreement": Member(
        run_evaluation_agreement, value_of("utility.agreement"), 1.0, 0.1, refused_agreement
    ),
    **{
        model: Member(
            partial(run_classifier, model),
            CLASSIFICATION,
            0.9,
            0.65,
            partial(refused_classifier, model),
        )
        for model in CLASSIFIERS.names()
    },
}


@cache
def findings_of(name: str, planted: bool) -> Findings:
    """Return the findings of a member."""
    return MEMBERS[name].run(planted)


def test_each_evaluation_is_a_member() -> None:
    assert set(EVALUATIONS.names()) <= MEMBERS.keys()


@pytest.mark.parametrize("name", MEMBERS)
def test_planted_truth_scores_high(name: str) -> None:
    member = MEMBERS[name]
    assert member.score(findings_of(name, True)) >= member.least


@pytest.mark.parametrize("name", MEMBERS)
def test_permuted_truth_is_at_chance(name: str) -> None:
    member = MEMBERS[name]
    assert member.score(findings_of(name, False)) <= member.chance


@pytest.mark.parametrize("name", MEMBERS)
def test_the_same_seed_gives_the_same_findings_without_a_word_of_a_note(name: str) -> None:
    findings = list(findings_of(name, True))
    assert list(MEMBERS[name].run(True)) == findings
    text = json.dumps([finding.as_dict() for finding in findings])
    assert [Finding.from_dict(values) for values in json.loads(text)] == findings
    assert MARK not in text.lower()


@pytest.mark.parametrize("name", MEMBERS)
def test_unusable_input_gives_one_line_without_a_word_of_a_note(name: str, tmp_path: Path) -> None:
    try:
        missing = [f for f in MEMBERS[name].refused(tmp_path) if f.value is None]
        lines = [finding.why for finding in missing]
    except (InputError, UsageError) as error:
        lines = [str(error)]
    assert lines
    assert all(line and "\n" not in line for line in lines)
    assert MARK not in " ".join(lines).lower()


TOO_FEW = {
    "empty notes": [(note, patient, "", label) for note, patient, _, label in notes(60)],
    "four notes": notes(4),
}


@pytest.mark.parametrize("rows", TOO_FEW.values(), ids=TOO_FEW)
@pytest.mark.parametrize("name", TASK_NAMES)
def test_a_task_without_data_gives_one_line_without_a_word_of_a_note(
    name: str, rows: list[Row]
) -> None:
    try:
        lines = [finding.why for finding in TASKS[name].run(rows, rows)]
    except InputError as error:
        lines = [str(error)]
    assert lines
    assert all(line and "\n" not in line for line in lines)
    assert MARK not in " ".join(lines).lower()


@pytest.mark.parametrize("name", TASK_NAMES)
def test_a_task_gives_the_same_finding_again_and_in_json(name: str) -> None:
    finding = task_finding(name, "half")
    task = TASKS[name]
    again = task.run(notes(), half_drawn(list(task.released) or notes()))
    assert again == [finding]
    text = json.dumps(finding.as_dict())
    assert Finding.from_dict(json.loads(text)) == finding
    assert MARK not in text
