"""Run `clinveil validate`: stages with stored results, so that an interrupted run resumes, and
evaluation of marks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator, default_rng

from clinveil.core import (
    Finding,
    FolderKind,
    InputError,
    Key,
    RunFolder,
    Say,
    Span,
    fingerprint,
    owner_only,
    private_folder,
    private_text,
    read_findings,
    read_markup,
    refuse_nested,
    run_folder,
    run_hash,
    splice,
    track,
    words,
    write_findings,
)
from clinveil.corpus import Note, OpenedCorpus, open_corpus, read_patients, rows
from clinveil.lexicons import name_form
from clinveil.phi.settings import ValidateSettings
from clinveil.phi.treatment.deidentifier import NoteDeidentifier
from clinveil.phi.treatment.passes import check_known_patients, found_spans
from clinveil.phi.treatment.policy import TreatedSpan, Treatment
from clinveil.phi.validation.corrections import sample_of
from clinveil.phi.validation.design import (
    CLUMP,
    LOCATIONS,
    METHOD,
    STRATA,
    JudgedStratum,
    Planted,
    minutes_of_marks,
    recall,
    what_marks_prove,
)
from clinveil.phi.validation.marks import (
    DESIGN,
    UNSURE,
    Design,
    Marks,
    annotated,
    detection_of,
    next_command,
    options_of,
    read_design,
    read_marks,
)
from clinveil.phi.validation.sample import Draw, Invent, suspected, usual_forms
from clinveil.scale import processes
from clinveil.stats import HitCounts, MeasureSpec, clopper_pearson, sum_of_intervals

if TYPE_CHECKING:
    from clinveil.corpus import Patient

SHORTEST = 3  # minimum letters of a part of a name
KNOWN_SOURCE = "known patients' own names, compared word by word"
CHANCE_IS = "another patient's name in the same notes"
KNOWN_PATIENTS = MeasureSpec(
    measure="validate.known_patients",
    over="patients",
    chance_is=CHANCE_IS,
    source=KNOWN_SOURCE,
)
KNOWN_MENTIONS = MeasureSpec(
    measure="validate.known_mentions",
    over="patients",
    unit="mentions",
    chance_is=CHANCE_IS,
    source=KNOWN_SOURCE,
)


class NameSurvival:
    """Count each known patient's own name in the notes and in the text left by the engine."""

    def __init__(self, patients: Mapping[str, Patient], rng: Generator) -> None:
        ids = list(patients)
        order = [ids[i] for i in rng.permutation(len(ids))]
        self._other = dict(zip(order, order[1:] + order[:1], strict=True))
        self._own = {
            patient_id: {
                form
                for token in patient.name
                for part in words(token)
                if len(form := name_form(part)) >= SHORTEST
            }
            for patient_id, patient in patients.items()
        }
        self._counts: dict[str, Counter[str]] = {}

    def add(self, note: Note, detected: Sequence[Span]) -> None:
        """Count names in one note, and in the note without its detected spans."""
        if note.patient_id not in self._own:
            return
        counts = self._counts.setdefault(note.patient_id, Counter())
        own = self._own[note.patient_id]
        other = self._own[self._other[note.patient_id]] - own
        left = Counter(
            name_form(word) for word in words(splice(note.text, detected, [" "] * len(detected)))
        )
        counts["before"] += sum(name_form(word) in own for word in words(note.text))
        counts["left"] += sum(left[form] for form in own)
        counts["other"] += sum(left[form] for form in other)

    def findings(self, feed: str) -> list[Finding]:
        """Return the share of patients with a surviving own name, and the share of surviving
        mentions.

        Args:
            feed: "without the patient list" or "with the patient list".

        Raises:
            InputError: no patient of the feed has a note.

        Warns with InputWarning if some patients have none.
        """
        check_known_patients(self._own.keys(), self._counts.keys())
        named = [counts for counts in self._counts.values() if counts["before"]]
        labels = (feed,)
        numbers = {
            "in_feed": len(self._own),
            "in_notes": len(self._counts),
            "named": len(named),
        }
        if not named:
            why = "no known patient's own name occurs in these notes"
            return [KNOWN_PATIENTS.missing(why, labels=labels, numbers=numbers)]
        of_patients = KNOWN_PATIENTS.share(
            HitCounts(
                hits=sum(counts["left"] > 0 for counts in named),
                tries=len(named),
                chance=sum(counts["other"] > 0 for counts in named) / len(named),
            ),
            labels=labels,
            numbers=numbers,
        )
        mentions = np.array(
            [[counts["left"], counts["before"]] for counts in named], dtype=np.int64
        )
        of_others = sum(counts["other"] for counts in named)
        chance = min(1.0, of_others / int(mentions[:, 1].sum()))
        of_mentions = KNOWN_MENTIONS.share(
            HitCounts.of_clusters(mentions, chance=chance), labels=labels, numbers=numbers
        )
        return [of_patients, of_mentions]


PLANTED_FOUND = MeasureSpec(
    measure="validate.planted",
    over="places",
    better="higher",
    source="invented identifiers, shown instead of detected ones in sampled passages",
)
SOURCE = "stratified random sample with known inclusion probabilities (Horvitz & Thompson 1952)"
EACH = "Clopper-Pearson, 95 %"
SUMMED = "Clopper-Pearson by stratum, then MOVER, 95 %"
# values of an unsure mark for a detected and an undetected location
WORST = (0, 1)
BEST = (1, 0)


def marked_findings(design: Design, marks: Marks) -> list[Finding]:
    """Return recall and precision with their intervals, the share of planted identifiers that the
    reviewer found, and the share of locations with identifiers per stratum.

    Unsure marks count against the engine in the value and the lower end, and for it in the upper
    end. Raises UsageError if a stratum has no marks.
    """
    worst, best = (annotated(design, marks.counts, unsure=unsure) for unsure in (WORST, BEST))
    planted = marks.of_planted
    about = {
        "marked": len(marks.counts),
        "unsure": sum(mark == UNSURE for mark in marks.counts.values()),
        "planted": planted.total,
        "planted_marked": planted.marked,
    }
    return [
        _recall(worst, best, planted, about),
        _precision(worst, best, about),
        _of_planted(planted),
        *_strata(worst),
    ]


def reviewed_findings(folders: Sequence[Path]) -> list[Finding]:
    """Return recall and precision of the detection, from the marks of `clinveil validate` in the
    folders of `identifiers.reviewed`; nothing without marks.

    The recall is that before the marked misses were replaced. Its remarks state what was replaced
    and how many identifiers may be left.
    """
    sample = sample_of(folders)
    if sample is None:
        return []
    design, marks = sample
    of_recall, of_precision, *_ = marked_findings(design, marks)
    if of_recall.value is None:
        return [of_recall, of_precision]
    replaced = sum(
        count
        for number, count in marks.counts.items()
        if not STRATA[design.samples[number].stratum].detected
    )
    missed = of_recall.numbers["missed"] or 0.0
    most_missed = of_recall.numbers["most_missed"] or 0.0
    left = max(0.0, missed - replaced)
    most_left = max(0.0, most_missed - replaced)
    numbers = {**of_recall.numbers, "replaced": replaced, "left": left, "most_left": most_left}
    remarks = (
        "The recall is that of the detection, before corrections.",
        f"Marked misses, replaced in this release: {replaced}. Still in the notes: an estimated"
        f" {left:,.0f}, at most {most_left:,.0f}.",
        *of_recall.remarks,
    )
    return [replace(of_recall, numbers=numbers, remarks=remarks), of_precision]


def without_marks(words: int, detected: int, n_marks: int = LOCATIONS) -> str:
    """Return what a release without marks lacks, and what they would cost and prove at most.

    Args:
        words, detected: number of words and of detected identifiers of the notes.
    """
    density = 1000 * detected / words if words else 0.0
    proven = what_marks_prove(n_marks, words, density)
    minutes = minutes_of_marks(n_marks, words, density)
    if not proven:
        return "not measured: no identifier was detected in these notes"
    # Rounded down: marks never prove more than is stated here.
    at_most = f"{floor(1000 * proven) / 1000:.3f}".rstrip("0").removeprefix("0").rstrip(".")
    return (
        f"not measured: {n_marks} marks of these notes, about {minutes} minutes, would prove a"
        f" recall of at most {at_most} (clinveil validate)"
    )


FEWEST_FOUND = 0.8
"""Share of the planted identifiers that a reviewer should find; below it, the finding warns."""


def _recall(
    worst: Mapping[str, JudgedStratum],
    best: Mapping[str, JudgedStratum],
    planted: Planted,
    about: Mapping[str, int],
) -> Finding:
    low = recall([*worst.values()], planted)
    high = recall([*best.values()], planted)
    if low is None or high is None:
        why = (
            f"the reviewer found none of {planted.total} planted identifiers"
            if planted.total and not planted.marked
            else "no detected location was marked as an identifier"
        )
        return Finding("validate.recall", None, 0, "higher", numbers=about, why=why)
    return Finding(
        "validate.recall",
        low.value,
        about["marked"],
        "higher",
        low.low,
        high.high,
        unit="places",
        method=METHOD,
        source=SOURCE,
        numbers={
            **about,
            "found": low.detected,
            "missed": low.missed,
            "most_missed": low.most_missed,
        },
        warning=_careless(planted),
        remarks=(_of_reviewer(planted), _assumption()),
    )


def _careless(planted: Planted) -> str:
    if planted.total and planted.marked < FEWEST_FOUND * planted.total:
        return (
            f"The reviewer found {planted.marked} of {planted.total} planted identifiers: let"
            " another person judge the sample."
        )
    return ""


def _of_reviewer(planted: Planted) -> str:
    if not planted.total:
        return "No passage allowed a planted identifier: the reviewer was not measured."
    return (
        f"The reviewer found {planted.marked} of {planted.total} planted identifiers, and the"
        " interval allows for it; missed ones may be harder to see than planted ones."
    )


def _assumption() -> str:
    return (
        f"A passage with missed identifiers is assumed to have {CLUMP} on average where no mark"
        " shows one."
    )


def _of_planted(planted: Planted) -> Finding:
    if not planted.total:
        why = "no sampled passage allowed a planted identifier"
        return PLANTED_FOUND.missing(why)
    return PLANTED_FOUND.share(HitCounts(hits=planted.marked, tries=planted.total))


def _precision(
    worst: Mapping[str, JudgedStratum], best: Mapping[str, JudgedStratum], about: Mapping[str, int]
) -> Finding:
    locations = sum(stratum.size for stratum in worst.values() if stratum.detected)
    looked = sum(stratum.looked for stratum in worst.values() if stratum.detected)
    if not looked:
        return Finding(
            "validate.precision",
            None,
            0,
            "higher",
            numbers=about,
            why="the engine detected nothing",
        )
    value, low, _ = _share(worst, locations)
    high = _share(best, locations)[2]
    return Finding(
        "validate.precision",
        value,
        looked,
        "higher",
        low,
        high,
        unit="places",
        method=SUMMED,
        source=SOURCE,
        numbers=about,
    )


def _share(strata: Mapping[str, JudgedStratum], locations: int) -> tuple[float, float, float]:
    found = [stratum for stratum in strata.values() if stratum.detected and stratum.size]
    values = [stratum.size / locations * len(stratum.hits) / stratum.looked for stratum in found]
    ends = [
        [s.size / locations * end for end in clopper_pearson(len(s.hits), s.looked)] for s in found
    ]
    low, high = sum_of_intervals(values, ends)
    return sum(values), max(low, 0.0), min(high, 1.0)


def _strata(strata: Mapping[str, JudgedStratum]) -> Iterator[Finding]:
    """Yield, per stratum, the share of marked locations that contain an identifier."""
    for name, stratum in strata.items():
        if not stratum.size:
            continue
        hits = len(stratum.hits)
        looked = stratum.looked
        low, high = clopper_pearson(hits, looked)
        yield Finding(
            "validate.places",
            hits / looked,
            looked,
            low=low,
            high=high,
            count=hits,
            unit="places",
            method=EACH,
            source=SOURCE,
            labels=(STRATA[name].description,),
            numbers={"places": stratum.size, "identifiers": sum(stratum.hits)},
        )


_SECTIONS = {
    "validate.recall": (
        "Recall, from the annotated sample",
        (
            "The share of identifiers in these notes that the engine detects. The undetected rest"
            " of a partly detected identifier counts as missed. The interval refers to these notes"
            " and uses no model."
        ),
    ),
    "validate.planted": (
        "Planted identifiers that the reviewer found",
        "Invented identifiers in sampled passages. The recall above allows for those not found.",
    ),
    "validate.precision": (
        "Precision, from the annotated sample",
        "The share of detected spans that are identifiers.",
    ),
    "validate.places": (
        "Share of identifiers in the sample, by stratum",
        "The share of locations in a stratum that contain an identifier.",
    ),
    "validate.known_patients": (
        "Known patients whose own name was missed at least once",
        (
            "Own names on the patient list, with the engine run without (or with) the list."
            " Patients whose notes do not name them are excluded. Chance: another patient's name in"
            " the same notes."
        ),
    ),
    "validate.known_mentions": (
        "Missed mentions of known patients' own names",
        "As above, per mention.",
    ),
}
_HEAD = "# Detection recall on these notes\n"
_JUDGE = """
## What to do next

Judge the sample with `clinveil review OUT`, then run
`clinveil validate --marked OUT/review/first.jsonl OUT`.
"""
_RELEASE = """
## What to do next

Release the notes with the marked misses replaced and with this recall in the report:
`{}`.
"""


def report(findings: Sequence[Finding], release: str = "") -> str:
    """Return the report as Markdown.

    Args:
        release: the command that releases the notes with the marks, if they were read.
    """
    lines = [_HEAD]
    for measure, (head, meaning) in _SECTIONS.items():
        if rows := [_row(finding) for finding in findings if finding.measure == measure]:
            lines += [f"## {head}", "", meaning, ""]
            lines += [
                "| subject | value | 95 % | chance | n |",
                "| --- | ---: | --- | ---: | ---: |",
                *rows,
                "",
            ]
            remarks = (
                remark for one in findings if one.measure == measure for remark in one.remarks
            )
            lines += [f"- {remark}" for remark in remarks]
    return "\n".join(lines) + (_RELEASE.format(release) if release else _JUDGE)


def _row(finding: Finding) -> str:
    subject = ", ".join(filter(None, (*finding.labels, finding.series)))
    if finding.value is None:
        return f"| {subject} | not measured: {finding.why} | | | |"
    ends = (
        ""
        if finding.low is None or finding.high is None
        else f"{finding.low:.4f} to {finding.high:.4f}"
    )
    chance = "" if finding.chance is None else f"{finding.chance:.4f}"
    return f"| {subject} | {finding.value:.4f} | {ends} | {chance} | {finding.n:,} {finding.unit} |"


FINDINGS = "findings.json"
REPORT = "report.md"
RECALL = "recall.json"
README = """Estimates of detection recall on your own notes. CONFIDENTIAL: do not share this folder.

report.md      the results
findings.json  the same results for programs
design.json    the sampled locations as offsets in the notes, which clinveil review OUT shows
review/        the reviewers' decisions, one file each, without note text
recall.json    recall from these, after clinveil validate --marked OUT/review/first.jsonl OUT
"""
_FILES = frozenset({"stages", FINDINGS, REPORT, RECALL, DESIGN})
KIND = FolderKind("folder of clinveil validate", outputs=_FILES, notes={"README.txt": README})


@dataclass(frozen=True)
class Validation:
    """State shared by the stages of a run."""

    settings: ValidateSettings
    corpus: OpenedCorpus
    patients: Mapping[str, Patient] | None = field(repr=False)
    seed: int
    say: Say

    def engine(self, *, feed: bool) -> Iterator[tuple[Note, list[Span]]]:
        """Yield each note with all spans that the engine detects, with or without the known
        patients.
        """
        patients = self.patients if feed else None
        key = Key.from_seed(self.seed)  # temporary; its output is discarded
        engine = NoteDeidentifier.of(
            self.settings.identifiers, key, patients=patients, keep_spans=True
        )
        return found_spans(self.corpus, engine, processes(self.settings.workers))


def validate_notes(
    notes: Path, out: Path, settings: ValidateSettings, *, say: Say
) -> tuple[list[Finding], int]:
    """Estimate recall on notes without annotations, and draw the sample of locations to annotate.

    Returns the findings and the seed. Without a configured seed, it is derived from the notes, so
    that a run can resume.

    Args:
        out: a private folder, which will contain note text.

    Raises:
        UsageError: conflicting paths or settings.
        InputError: invalid notes or patients.
    """
    feed = settings.identifiers.patients
    refuse_nested(OUT=out, NOTES=notes, patients=feed)
    corpus = open_corpus(notes, settings.notes)
    hashed = fingerprint(notes)
    seed = int(hashed[:8], 16) if settings.seed is None else settings.seed
    run = Validation(settings, corpus, read_patients(feed) if feed else None, seed, say)
    asked = run_hash(settings.but(seed=seed), hashed)
    with owner_only(), run_folder(out, KIND, asked, force=settings.force) as folder:
        findings = _kept(
            folder, "locations", lambda: _sampled(run, folder, asked, notes, hashed), seed
        )
        findings += _kept(folder, "known", lambda: _known(run), seed)
        write_findings(folder.vault / FINDINGS, "validate", findings, seed=seed)
        private_text(folder.vault / REPORT, report(findings))
        folder.finish()
    return findings, seed


def recall_of_marks(marks: Path, out: Path) -> tuple[list[Finding], str]:
    """Estimate recall from a reviewer's decisions on the sample, and store it in the run's folder.

    Returns the findings, and the command that releases the notes with the marks.

    Raises InputError for a folder that is not that of a run, UsageError for decisions on another
    run or too few of them.
    """
    design = read_design(out)
    findings = marked_findings(design, read_marks(marks, design))
    write_findings(out / RECALL, "validate", findings, seed=None)
    earlier = read_findings(out / FINDINGS) if (out / FINDINGS).exists() else []
    command = next_command(design, out)
    private_text(out / REPORT, report([*findings, *earlier], release=command))
    return findings, command


def _kept(
    folder: RunFolder, name: str, stage: Callable[[], list[Finding]], seed: int
) -> list[Finding]:
    """Return the findings of a stage, stored by an earlier run or computed now."""
    path = private_folder(folder.vault / "stages") / f"{name}.json"
    if not path.exists():
        write_findings(path, "validate", stage(), seed=seed)
    return read_findings(path)


def _sampled(
    run: Validation, folder: RunFolder, asked: str, notes: Path, hashed: str
) -> list[Finding]:
    settings = run.settings
    usual = usual_forms(track(rows(run.corpus), "notes read", run.say))
    draw = Draw(
        settings.locations, settings.passage, usual, default_rng([run.seed, 3]), inventor(run)
    )
    survival = NameSurvival(run.patients, default_rng([run.seed, 4])) if run.patients else None
    for note, found in track(run.engine(feed=True), "notes searched", run.say):
        draw.add(note, found, suspected(note))
        if survival:
            survival.add(note, found)
    if not draw.sizes:
        raise InputError("contains no text", where=run.corpus.name)
    name = sha256(f"{asked} locations".encode()).hexdigest()[:12]
    design = Design(
        run=name,
        notes=notes,
        columns=settings.notes,
        options=options_of(settings),
        fingerprint=hashed,
        detection=detection_of(settings.identifiers),
        sizes=draw.sizes,
        samples=tuple(draw.drawn()),
    )
    design.write(folder.vault)
    return survival.findings("with the patient list") if survival else []


def inventor(run: Validation) -> Invent:
    """Return a function that invents identifiers of the classes of detected ones that the policy
    treats.
    """
    kept = run.settings.identifiers.policy().kept
    engine = NoteDeidentifier(Key.from_seed(run.seed), mode="replace")  # not the key of a release

    def invent(note: Note, detected: Sequence[Span]) -> list[str | None]:
        if read_markup(note.text) is not None:
            return [None] * len(detected)
        treated = engine.treated(note.text, detected, note.patient_id)
        return [
            item.text if _is_plantable(item, note.text[span.start : span.end], span, kept) else None
            for span, item in zip(detected, treated, strict=True)
        ]

    return invent


_SHORTEST_PLANTED = 4  # characters; below, initials and abbreviations


def _is_plantable(item: TreatedSpan, source: str, span: Span, kept: frozenset[str]) -> bool:
    """Return whether a replacement is an invented identifier on one line, unlike the source, and
    long enough to be seen.
    """
    invented = item.action in (Treatment.SURROGATE, Treatment.SHIFT)
    return (
        invented
        and min(len(item.text), len(source)) >= _SHORTEST_PLANTED
        and span.label not in kept
        and item.text.strip() not in ("", source)
        and "\n" not in item.text + source
    )


def _known(run: Validation) -> list[Finding]:
    if not run.patients:
        return []
    survival = NameSurvival(run.patients, default_rng([run.seed, 4]))
    for note, found in track(
        run.engine(feed=False), "notes searched without the patient list", run.say
    ):
        survival.add(note, found)
    return survival.findings("without the patient list")
