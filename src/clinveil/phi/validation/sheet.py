"""The sample as a private CSV and as an HTML page for annotation, and the reader of the marks.

Both files contain note text. The page is self-contained, makes no requests, and stores marks
without text in the browser's local storage under the name of the run. Neither file shows whether
the engine detected a location: the annotator should be blind to it.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from clinveil.core.errors import InputError
from clinveil.core.files import private_text, read_json
from clinveil.phi.validation.design import KINDS, Annotated

CSV = "locations.csv"
PAGE = "locations.html"
DESIGN = "design.json"
SCHEMA = "clinveil.locations/1"
COLUMNS = ("run", "location", "mark", "kind", "note_id", "start", "end", "before", "text", "after")
UNSURE = -1
_MARKS = {
    **dict.fromkeys(("identifier", "i", "yes", "y"), 1),
    **dict.fromkeys(("not", "n", "no"), 0),
    **dict.fromkeys(("unsure", "u", "?"), UNSURE),
}
MARKS = "identifier, not, unsure, or for a passage the number of identifiers"
_MAX_COUNT = 99
Piece = tuple[str, bool]
"""Text, and whether it is to be judged; the other text is context."""


@dataclass(frozen=True)
class Sample:
    """A sampled location. Its repr contains no text.

    Attributes:
        pieces: text of the location. before, after: text around it.
    """

    note_id: str = field(repr=False)
    start: int
    end: int
    stratum: str
    pieces: tuple[Piece, ...] = field(repr=False)
    before: str = field(repr=False, default="")
    after: str = field(repr=False, default="")

    @property
    def several(self) -> bool:
        """Whether it is a passage, which may contain several identifiers."""
        return self.stratum in ("cued", "rest")


class Design(NamedTuple):
    """The sampling design of a run.

    Attributes:
        run: name of the run, which each row of the CSV contains.
        notes: fingerprint of the notes.
        sizes: number of locations per stratum.
        locations: stratum of each sampled location, by its number.
    """

    run: str
    notes: str
    sizes: Mapping[str, int]
    locations: Mapping[str, str]


def write_sheet(
    folder: Path, run: str, notes: str, sizes: Mapping[str, int], samples: Sequence[Sample]
) -> None:
    """Write design.json, locations.csv and locations.html atomically, readable by the owner only.

    Args:
        samples: in random order.
    """
    numbered = {str(number): sample for number, sample in enumerate(samples, 1)}
    strata = {number: sample.stratum for number, sample in numbered.items()}
    design = {
        "schema": SCHEMA,
        "run": run,
        "notes": notes,
        "sizes": dict(sizes),
        "locations": strata,
    }
    private_text(folder / DESIGN, json.dumps(design))
    private_text(folder / CSV, _csv(run, numbered))
    private_text(folder / PAGE, _page(run, numbered))


def _csv(run: str, samples: Mapping[str, Sample]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    for number, sample in samples.items():
        text = "".join(piece if asked else f"⟪{piece}⟫" for piece, asked in sample.pieces)
        cells = (
            sample.note_id,
            sample.start,
            sample.end,
            *map(_cell, (sample.before, text, sample.after)),
        )
        writer.writerow((run, number, "", "passage" if sample.several else "place", *cells))
    return buffer.getvalue()


def _cell(text: str) -> str:
    """Return text that a spreadsheet does not interpret as a formula."""
    return f" {text}" if text[:1] in ("=", "+", "-", "@", "\t") else text


def _page(run: str, samples: Mapping[str, Sample]) -> str:
    data = [
        {"location": n, "passage": s.several, "note": s.note_id,
         "before": s.before, "pieces": s.pieces, "after": s.after}
        for n, s in samples.items()
    ]  # fmt: skip
    content = json.dumps({"run": run, "locations": data}, ensure_ascii=False)
    # Escape characters that could end the script element.
    template = files("clinveil.phi.validation").joinpath("page.html").read_text(encoding="utf-8")
    return template.replace(
        "@DATA@", content.replace("<", "\\u003c").replace("\u2028", " ").replace("\u2029", " ")
    )


def read_design(folder: Path) -> Design:
    """Read the design of a validation folder. Raises InputError if there is none."""
    record: Any = read_json(folder / DESIGN)
    fits = (
        isinstance(record, dict)
        and record.get("schema") == SCHEMA
        and isinstance(record.get("locations"), dict)
    )
    if not fits or not set(record["locations"].values()) <= KINDS.keys():
        raise InputError(
            "not the folder of a finished validate run",
            where=folder.name,
            hint="pass its OUT folder",
        )
    return Design(record["run"], record["notes"], record["sizes"], record["locations"])


def read_marks(path: Path, design: Design) -> dict[str, int]:
    """Read the marks of a CSV: number of the location -> number of identifiers, or UNSURE. Empty
    marks are omitted.

    Raises InputError: missing columns run, location, mark; a row of another run; a repeated or
    unknown one; an invalid mark; no marks.
    """
    marks: dict[str, int] = {}
    for number, row in _rows(path):
        if row["run"].strip() != design.run:
            hint = "pass the marks together with the folder of their run"
            raise InputError(f"row {number} belongs to another run", where=path.name, hint=hint)
        location = row["location"].strip()
        mark = row["mark"].strip().casefold()
        if location not in design.locations:
            raise InputError(f"row {number}: unknown location", where=path.name)
        if location in marks:
            raise InputError(
                f"row {number}: duplicate location",
                where=path.name,
                hint="keep one row per location",
            )
        if mark:
            several = design.locations[location] in ("cued", "rest")
            count = int(mark) if mark.isascii() and mark.isdigit() else _MAX_COUNT + 1
            if count > (_MAX_COUNT if several else 1) and mark not in _MARKS:
                raise InputError(
                    f"row {number}: invalid mark", where=path.name, hint=f"use the marks {MARKS}"
                )
            marks[location] = _MARKS.get(mark, count)
    if not marks:
        raise InputError("no marks", where=path.name, hint=f"use the marks {MARKS}")
    return marks


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            head = file.readline()
            file.seek(0)
            rows = csv.DictReader(
                file, delimiter=";" if head.count(";") > head.count(",") else ",", restval=""
            )
            if not {"run", "location", "mark"} <= set(rows.fieldnames or ()):
                hint = f"pass the annotated {CSV}, or the marks.csv saved by the page"
                raise InputError("missing columns run, location, mark", where=path.name, hint=hint)
            yield from enumerate(rows, 2)  # cells may contain line breaks, so rows are counted
    except (OSError, UnicodeDecodeError, csv.Error):
        raise InputError("not a CSV file in UTF-8", where=path.name) from None


def annotated(
    design: Design, marks: Mapping[str, int], *, unsure: tuple[int, int] = (0, 1)
) -> dict[str, Annotated]:
    """Return the annotations per stratum.

    Args:
        unsure: values of an unsure mark for a detected and an undetected location.

    Raises InputError if a stratum has no marks.
    """
    strata = {}
    for name, size in design.sizes.items():
        counts = [
            marks[n] for n, stratum in design.locations.items() if stratum == name and n in marks
        ]
        if size and not counts:
            hint = (
                "mark more locations in the order of the file, which is random, until each stratum"
                " has one"
            )
            raise InputError(f"no marks in stratum '{KINDS[name].description}'", hint=hint)
        found = KINDS[name].found
        values = [unsure[not found] if count == UNSURE else count for count in counts]
        strata[name] = Annotated(found, size, len(counts), tuple(n for n in values if n))
    return strata
