"""The sampling design of a `clinveil validate` run, and the marks of its sample.

The folder of a run contains offsets and invented identifiers, no note text. A sampled location is
judged in an excerpt of its note. Decisions have offsets in this excerpt, where a planted identifier
moves the offsets after it.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from clinveil.core import (
    InputError,
    Key,
    LabelledNotesSettings,
    Location,
    Span,
    UsageError,
    as_location,
    code_version,
    identity,
    private_text,
    read_json,
)
from clinveil.phi.detection.names.kinds import label_of
from clinveil.phi.detection.names.state import NameState
from clinveil.phi.detection.note import NoteView
from clinveil.phi.review.decisions import (
    DecisionFile,
    Kept,
    NoteDecisions,
    Offsets,
    Verdict,
    hash_key,
    read_file,
    refuse_overlaps,
    text_hash,
)
from clinveil.phi.settings import PhiSettings, ValidateSettings
from clinveil.phi.treatment.policy import Treatment
from clinveil.phi.validation.design import STRATA, JudgedStratum, Planted
from clinveil.phi.validation.sample import AROUND, Plant, Sample

DESIGN = "design.json"
SCHEMA = "clinveil.locations/2"
UNSURE = -1
"""Mark of a detected location that the reviewer left undecided."""
DETECTION = (
    "patients",
    "staff",
    "also",
    "engine",
    "propagate",
    "tagger",
    "no_tagger",
    "second_opinion",
)
"""Settings that decide what is detected; a policy adds its kept labels and its word lists."""


class Design(NamedTuple):
    """The sampling design of a run.

    Attributes:
        run: name of the run, from its settings and notes.
        notes: path of the notes. columns: how they are read. fingerprint: their hash.
        options: those of the command that a release of these notes needs too.
        detection: hashes of what decides the detection, by setting.
        sizes: number of locations per stratum.
        samples: in random order.
    """

    run: str
    notes: Location
    columns: LabelledNotesSettings
    options: str
    fingerprint: str
    detection: Mapping[str, str]
    sizes: Mapping[str, int]
    samples: tuple[Sample, ...]

    @property
    def key(self) -> Key:
        """Key of the text hashes in the files of decisions, which tells the runs apart."""
        return Key.from_seed(int(self.run, 16))

    def write(self, folder: Path) -> None:
        """Write the design, readable by the owner only."""
        record = {
            "schema": SCHEMA,
            "run": self.run,
            "notes": str(self.notes.absolute()),
            "columns": self.columns.model_dump(mode="json"),
            "options": self.options,
            "fingerprint": self.fingerprint,
            "detection": dict(self.detection),
            "sizes": dict(self.sizes),
            "samples": [list(sample) for sample in self.samples],
        }
        private_text(folder / DESIGN, json.dumps(record))


def read_design(folder: Path) -> Design:
    """Read the design of a validation folder. Raises InputError if there is none."""
    record: Any = read_json(folder / DESIGN)
    try:
        if record["schema"] != SCHEMA:
            raise ValueError
        samples = tuple(_sample(*fields) for fields in record["samples"])
        if not {sample.stratum for sample in samples} <= STRATA.keys():
            raise ValueError
        return Design(
            run=record["run"],
            notes=as_location(record["notes"]),
            columns=LabelledNotesSettings.model_validate(record["columns"]),
            options=record["options"],
            fingerprint=record["fingerprint"],
            detection=dict(record["detection"]),
            sizes=record["sizes"],
            samples=samples,
        )
    except (KeyError, TypeError, ValueError):
        raise InputError(
            "not the folder of a finished validate run",
            where=folder.name,
            hint="pass its OUT folder",
        ) from None


def _sample(
    note_id: str,
    start: int,
    end: int,
    stratum: str,
    parts: Sequence[Sequence[int]],
    planted: Sequence[tuple[int, int, str]],
) -> Sample:
    ranges = tuple((first, last) for first, last in parts)
    plants = tuple(Plant(first, last, text) for first, last, text in planted)
    return Sample(note_id, start, end, stratum, ranges, plants)


_FLAGS = {
    "identifiers.patients": "--patients",
    "identifiers.staff": "--staff",
    "notes.text": "--text",
    "notes.id": "--id",
    "notes.patient": "--patient",
}


def options_of(settings: ValidateSettings) -> str:
    """Return the given settings of identifiers and of reading notes as options of a command."""
    options: list[str] = []
    for name, value in settings.given_values().items():
        if name.partition(".")[0] not in ("identifiers", "notes") or value is None:
            continue
        for one in value if isinstance(value, tuple) else (value,):
            written = str(one).lower() if isinstance(one, bool) else str(one)
            flag = _FLAGS.get(name)
            options += [flag, written] if flag else ["--set", f"{name}={written}"]
    return shlex.join(options)


def next_command(design: Design, folder: Path) -> str:
    """Return the command that releases the notes of a sample with its marks."""
    notes = shlex.quote(_near(design.notes))
    options = f" {design.options}" if design.options else ""
    reviewed = shlex.quote(str(folder))
    return f"clinveil release {notes} -o OUT --as deidentified{options} --reviewed {reviewed}"


def _near(path: Location) -> str:
    """Return a path relative to the working folder, if it is below it."""
    if isinstance(path, Path) and path.is_relative_to(Path.cwd()):
        return str(path.relative_to(Path.cwd()))
    return str(path)


def detection_of(settings: PhiSettings) -> dict[str, str]:
    """Return hashes of what decides which identifiers are detected, by setting."""
    policy = settings.policy()
    content = identity(settings)
    values: dict[str, Any] = {name: content[name] for name in DETECTION}
    lists = {
        name: content
        for name, content in policy.record().items()
        if name.endswith("_sha256") or name == "recall_first"
    }
    shifting = policy["DATE"] is Treatment.SHIFT
    values["phi_profile"] = [sorted(policy.kept), lists, shifting]
    values["version"] = code_version()
    return {
        name: sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
        for name, value in values.items()
    }


def location_name(number: int) -> str:
    """Return the name of a sampled location on the page and in the files of decisions."""
    return f"location {number + 1}"


def first_of(sample: Sample) -> int:
    """Return the offset of a sample's excerpt in its note."""
    return max(0, sample.start - AROUND)


def excerpt(sample: Sample, text: str) -> str:
    """Return the excerpt of a note that is shown for a sample."""
    end = sample.end + AROUND
    if not sample.planted:
        return text[first_of(sample) : end]
    plant = sample.planted[0]
    return text[first_of(sample) : plant.start] + plant.text + text[plant.end : end]


def judged_parts(sample: Sample) -> list[Offsets]:
    """Return the parts of a sample to be judged, without planted ones, with offsets in the
    excerpt.
    """
    return [(_in_excerpt(sample, start), _in_excerpt(sample, end)) for start, end in sample.parts]


def shown_parts(sample: Sample) -> list[Offsets]:
    """Return the parts to be judged and the planted identifier as one list, so that no border shows
    which part is planted.
    """
    shown: list[Offsets] = []
    for start, end in sorted([*judged_parts(sample), *planted_range(sample)]):
        if shown and shown[-1][1] == start:
            start = shown.pop()[0]
        shown.append((start, end))
    return shown


def planted_range(sample: Sample) -> list[Offsets]:
    """Return the range of the planted identifier in the excerpt, if there is one."""
    starts = ((plant.start - first_of(sample), plant.text) for plant in sample.planted)
    return [(start, start + len(text)) for start, text in starts]


def _in_excerpt(sample: Sample, offset: int) -> int:
    return offset - first_of(sample) + sum(_moved(p) for p in sample.planted if offset >= p.end)


def _in_note(sample: Sample, offset: int) -> int:
    """Return the offset in the note of an offset in the excerpt outside the planted text."""
    source = offset + first_of(sample)
    moved = (_moved(p) for p in sample.planted if source >= p.start + len(p.text))
    return source - sum(moved)


def _moved(plant: Plant) -> int:
    return len(plant.text) - (plant.end - plant.start)


@dataclass
class Marks:
    """Marks of a sample, by the number of the sampled location.

    Attributes:
        counts: number of marked identifiers, or `UNSURE`. planted: whether the planted identifier
            was marked, for the passages with one.
    """

    counts: dict[int, int] = field(default_factory=dict)
    planted: dict[int, bool] = field(default_factory=dict)

    @property
    def of_planted(self) -> Planted:
        """How many of the planted identifiers were marked."""
        return Planted(sum(self.planted.values()), len(self.planted))

    def joined(self, other: Marks) -> Marks:
        """Return the marks of two reviewers: an identifier that one of them marked counts."""
        counts = dict(self.counts)
        for number, count in other.counts.items():
            pair = (counts.get(number, count), count)
            counts[number] = UNSURE if max(pair) == 0 and UNSURE in pair else max(pair)
        planted = self.planted | {
            number: marked or self.planted.get(number, False)
            for number, marked in other.planted.items()
        }
        return Marks(counts, planted)


def read_marks(path: Path, design: Design) -> Marks:
    """Return the marks in a file of decisions.

    Only locations that the reviewer has finished count. Raises UsageError for a file of another run
    and if no location is finished, InputError if it is damaged.
    """
    decided = decisions_on(path, design)
    marks = Marks()
    for number, sample in enumerate(design.samples):
        decisions = decided.notes.get(location_name(number))
        if decisions is None or not decisions.done:
            continue
        marks.counts[number] = _count(sample, decisions)
        for plant in planted_range(sample):
            marks.planted[number] = any(_touches(kept, [plant]) for kept in _kept(decisions))
    if not marks.counts:
        raise UsageError("no marks", where=path.name, hint="judge the sample: clinveil review OUT")
    return marks


def decisions_on(path: Path, design: Design) -> DecisionFile:
    """Read a file of decisions on a sample. Raises UsageError for a file of another run."""
    decided = read_file(path)
    if decided.key != hash_key(design.key):
        hint = "pass the marks together with the folder of their run"
        raise UsageError("belongs to another run", where=path.name, hint=hint)
    refuse_overlaps(decided, path)
    return decided


def _kept(decisions: NoteDecisions) -> list[Kept]:
    return [verdict for verdict in decisions.verdicts.values() if verdict is not None]


def _touches(kept: Kept, ranges: Iterable[Offsets]) -> bool:
    return any(kept.start < end and start < kept.end for start, end in ranges)


def _missed(sample: Sample, decisions: NoteDecisions) -> list[Kept]:
    """Return the marked identifiers in the parts to be judged; what touches a planted identifier is
    a mark of that one.
    """
    parts = judged_parts(sample)
    planted = planted_range(sample)
    return [
        kept for kept in _kept(decisions) if _touches(kept, parts) and not _touches(kept, planted)
    ]


def _count(sample: Sample, decisions: NoteDecisions) -> int:
    """Return the number of marked identifiers; at most 1 for a detected location."""
    hits = len(_missed(sample, decisions))
    if not STRATA[sample.stratum].detected:
        return hits
    if hits:
        return 1
    return 0 if judged_parts(sample)[0] in decisions.verdicts else UNSURE


def annotated(
    design: Design, marks: Mapping[int, int], *, unsure: tuple[int, int] = (0, 1)
) -> dict[str, JudgedStratum]:
    """Return the annotations per stratum.

    Args:
        unsure: values of an unsure mark for a detected and an undetected location.

    Raises UsageError if a stratum has no marks.
    """
    strata = {}
    for name, size in design.sizes.items():
        counts = [
            marks[n] for n, s in enumerate(design.samples) if s.stratum == name and n in marks
        ]
        if size and not counts:
            hint = (
                "judge more locations in the order of the page, which is random, until each stratum"
                " has one"
            )
            raise UsageError(
                f"no marks in stratum '{STRATA[name].description}' ({len(marks)} of"
                f" {len(design.samples)} locations are marked)",
                hint=hint,
            )
        detected = STRATA[name].detected
        values = [unsure[not detected] if count == UNSURE else count for count in counts]
        strata[name] = JudgedStratum(detected, size, len(counts), tuple(n for n in values if n))
    return strata


@dataclass(frozen=True)
class MarkedNote:
    """The missed identifiers that a reviewer marked in the excerpts of one note.

    Attributes:
        key: of the text hashes. excerpts: the samples with the hashes of their excerpts.
        marked: offsets of the missed identifiers in the note.
        kept: labels that the policy keeps unchanged; a marked identifier never gets one.
    """

    key: str
    excerpts: tuple[tuple[Sample, str], ...]
    marked: tuple[Offsets, ...] = field(repr=False)
    kept: frozenset[str]

    @property
    def decided(self) -> Mapping[Offsets, Verdict]:
        """The marked identifiers as verdicts, without their class."""
        return {(start, end): Kept(start, end, "ID") for start, end in self.marked}

    def matches(self, text: str) -> bool:
        """Return whether a note has the text that was judged."""
        return max(end for _, end in self.marked) <= len(text) and all(
            text_hash(self.key, excerpt(sample, text)) == digest for sample, digest in self.excerpts
        )

    def verdicts(self, text: str, spans: Sequence[Span]) -> Mapping[Offsets, Verdict]:
        """Return the marked identifiers with their class, and the same words elsewhere in the note
        outside the detected spans.
        """
        view = NoteView(text)
        taken = [(span.start, span.end) for span in spans] + list(self.marked)
        verdicts: dict[Offsets, Verdict] = {}
        for start, end in self.marked:
            label = label_at(view, start, end, self.kept)
            verdicts[start, end] = Kept(start, end, label)
            for same in _same_words(text, text[start:end]):
                if not any(same[0] < last and first < same[1] for first, last in taken):
                    verdicts[same] = Kept(*same, label)
        return verdicts


_SHORTEST = 3  # characters of a marked identifier that is searched for elsewhere in its note


def _same_words(text: str, marked: str) -> Iterator[Offsets]:
    """Yield the other places of a marked identifier that has a capital letter."""
    if len(marked) < _SHORTEST or marked == marked.lower():
        return
    for match in re.finditer(rf"(?<!\w){re.escape(marked)}(?!\w)", text):
        yield match.span()


_DATE = re.compile(r"\d{1,4}[/.-]\d{1,2}(?:[/.-]\d{2,4})?")
_PHONE = re.compile(r"\+?[\d\s().-]{7,}")
_SHAPES = (
    ("EMAIL", re.compile(r"\S+@\S+")),
    ("URL", re.compile(r"(?:https?://|www\.)\S+")),
    ("DATE", _DATE),
    ("PHONE", _PHONE),
    ("ID", re.compile(r".*\d.*", re.DOTALL)),
)


def label_at(view: NoteView, start: int, end: int, kept: frozenset[str]) -> str:
    """Return the class of a marked identifier, by its shape and by the words next to it; never one
    of `kept`, unless the policy keeps names and numbers too.
    """
    text = view.text[start:end].strip()
    shaped = next((label for label, shape in _SHAPES if shape.fullmatch(text)), "")
    label = shaped or _label_of_words(view, start, end)
    return next((name for name in (label, "NAME", "ID") if name not in kept), label)


def _label_of_words(view: NoteView, start: int, end: int) -> str:
    """Return NAME, CITY or HOSPITAL."""
    state = NameState(view)
    offsets = (view.aligned.source_offsets(word.start, word.end) for word in state.words)
    inside = [i for i, (first, last) in enumerate(offsets) if first < end and start < last]
    return label_of(state, inside[0], inside[-1] + 1) if inside else "ID"


def marked_notes(
    design: Design, files: Iterable[DecisionFile], kept: frozenset[str]
) -> dict[str, list[MarkedNote]]:
    """Return the missed identifiers that reviewers marked in a sample, by note id.

    A detected location that a reviewer rejected stays detected: an excerpt does not show enough to
    restore its text.
    """
    notes: dict[str, list[MarkedNote]] = {}
    for file in files:
        marked: dict[str, list[tuple[Sample, str, list[Offsets]]]] = {}
        for number, sample in enumerate(design.samples):
            decisions = file.notes.get(location_name(number))
            if decisions is None or STRATA[sample.stratum].detected:
                continue
            missed = [
                (_in_note(sample, span.start), _in_note(sample, span.end))
                for span in _missed(sample, decisions)
            ]
            if missed:
                marked.setdefault(sample.note_id, []).append((sample, decisions.text, missed))
        for note_id, found in marked.items():
            excerpts = tuple((sample, digest) for sample, digest, _ in found)
            ranges = tuple(sorted({span for _, _, spans in found for span in spans}))
            notes.setdefault(note_id, []).append(MarkedNote(file.key, excerpts, ranges, kept))
    return notes
