"""The places that were drawn, as a private CSV and as a page to mark them with keys; and the marks read back.

Both hold note text. The page is one file that asks nothing of any other place, and keeps marks in the browser's store
by the name of the run, without any text. Neither says whether the engine found a place: who judges should not know.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from clinveil.core.errors import InputError
from clinveil.core.files import private_text, read_json
from clinveil.phi.validation.design import KINDS, Seen

CSV, PAGE, DESIGN, SCHEMA = "spots.csv", "spots.html", "design.json", "clinveil.spots/1"
COLUMNS = ("run", "spot", "mark", "kind", "note_id", "start", "end", "before", "text", "after")
UNSURE = -1
_MARKS = {
    "identifier": 1,
    "i": 1,
    "yes": 1,
    "y": 1,
    "not": 0,
    "n": 0,
    "no": 0,
    "unsure": UNSURE,
    "u": UNSURE,
    "?": UNSURE,
}
MARKS = "identifier, not, unsure, or of a passage the number of identifiers in it"
_MOST = 99
Piece = tuple[str, bool]
"""Text, and whether it is asked about; what is not is shown so that the rest can be understood."""


@dataclass(frozen=True)
class Spot:
    """A place that was drawn. Its repr shows no text.

    Attributes:
        pieces: the text of the place; before, after: what stands around it.
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
        """Whether it is a passage, which can hold several identifiers."""
        return self.stratum in ("cued", "rest")


class Design(NamedTuple):
    """How places were drawn.

    Attributes:
        run: the name of the run, which each row of the CSV carries. notes: fingerprint of the notes.
        sizes: places of each stratum. spots: the stratum of each that was drawn, by its number.
    """

    run: str
    notes: str
    sizes: Mapping[str, int]
    spots: Mapping[str, str]


def write_sheet(folder: Path, run: str, notes: str, sizes: Mapping[str, int], spots: Sequence[Spot]) -> None:
    """Write design.json, spots.csv and spots.html, each whole and for the owner only; spots are in random order."""
    numbered = {str(number): spot for number, spot in enumerate(spots, 1)}
    of = {number: spot.stratum for number, spot in numbered.items()}
    design = {"schema": SCHEMA, "run": run, "notes": notes, "sizes": dict(sizes), "spots": of}
    private_text(folder / DESIGN, json.dumps(design))
    private_text(folder / CSV, _csv(run, numbered))
    private_text(folder / PAGE, _page(run, numbered))


def _csv(run: str, spots: Mapping[str, Spot]) -> str:
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow(COLUMNS)
    for number, spot in spots.items():
        text = "".join(piece if asked else f"⟪{piece}⟫" for piece, asked in spot.pieces)
        told = (spot.note_id, spot.start, spot.end, *map(_cell, (spot.before, text, spot.after)))
        writer.writerow((run, number, "", "passage" if spot.several else "place", *told))
    return made.getvalue()


def _cell(text: str) -> str:
    """Text that a spreadsheet does not take for a formula."""
    return f" {text}" if text[:1] in ("=", "+", "-", "@", "\t") else text


@cache
def _template() -> str:
    return files("clinveil.phi.validation").joinpath("page.html").read_text(encoding="utf-8")


def _page(run: str, spots: Mapping[str, Spot]) -> str:
    data = [
        {"spot": n, "passage": s.several, "note": s.note_id,
         "before": s.before, "pieces": s.pieces, "after": s.after}
        for n, s in spots.items()
    ]  # fmt: skip
    told = json.dumps({"run": run, "spots": data}, ensure_ascii=False)
    # Nothing of a note may end the script that it stands in.
    return _template().replace("@DATA@", told.replace("<", "\\u003c").replace("\u2028", " ").replace("\u2029", " "))


def read_design(folder: Path) -> Design:
    """The design of a validation's folder. Raises InputError where there is none."""
    said: Any = read_json(folder / DESIGN)
    fits = isinstance(said, dict) and said.get("schema") == SCHEMA and isinstance(said.get("spots"), dict)
    if not fits or not set(said["spots"].values()) <= KINDS.keys():
        raise InputError("is no folder of a finished clinveil validate", where=folder.name, hint="name its OUT")
    return Design(said["run"], said["notes"], said["sizes"], said["spots"])


def read_marks(path: Path, design: Design) -> dict[str, int]:
    """The marks of a CSV by the number of the spot: how many identifiers, or UNSURE; spots without a mark are left out.

    Raises:
        InputError: no CSV with the columns run, spot, mark; a row of another run; a spot twice, or not of this run;
            a mark that is none; no mark at all.
    """
    marks: dict[str, int] = {}
    for number, row in _rows(path):
        if row["run"].strip() != design.run:
            hint = "mark the spots of this folder, or name the folder that they are of"
            raise InputError(f"row {number} is of another run", where=path.name, hint=hint)
        spot, mark = row["spot"].strip(), row["mark"].strip().casefold()
        if spot not in design.spots:
            raise InputError(f"row {number} is of a spot that was not drawn", where=path.name)
        if spot in marks:
            raise InputError(f"row {number} marks a spot a second time", where=path.name, hint="one row a spot")
        if mark:
            marks[spot] = _mark(mark, number, path, several=design.spots[spot] in ("cued", "rest"))
    if not marks:
        raise InputError("no spot is marked", where=path.name, hint=f"marks are {MARKS}")
    return marks


def _mark(mark: str, row: int, path: Path, *, several: bool) -> int:
    if mark.isascii() and mark.isdigit() and int(mark) <= (_MOST if several else 1):
        return int(mark)
    if mark not in _MARKS:
        raise InputError(f"row {row} has a mark that is none", where=path.name, hint=f"marks are {MARKS}")
    return _MARKS[mark]


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            head = file.readline()
            file.seek(0)
            rows = csv.DictReader(file, delimiter=";" if head.count(";") > head.count(",") else ",", restval="")
            if not {"run", "spot", "mark"} <= set(rows.fieldnames or ()):
                hint = f"name {CSV} with its marks, or the marks.csv of the page"
                raise InputError("it lacks the columns run, spot, mark", where=path.name, hint=hint)
            yield from enumerate(rows, 2)  # as a spreadsheet counts: text of notes may go over several lines
    except (OSError, UnicodeDecodeError, csv.Error):
        raise InputError("it cannot be read as CSV in UTF-8", where=path.name) from None


def seen(design: Design, marks: Mapping[str, int], *, unsure: tuple[int, int] = (0, 1)) -> dict[str, Seen]:
    """What was seen of each stratum.

    Args:
        unsure: what an unsure mark counts as, of a place that was found and of one that was not.

    Raises InputError where of some stratum nothing is marked.
    """
    made = {}
    for name, size in design.sizes.items():
        counts = [marks[spot] for spot, stratum in design.spots.items() if stratum == name and spot in marks]
        if size and not counts:
            hint = "mark at least one of each kind; in the order of the file, the first ones are a random sample"
            raise InputError(f"no spot is marked of those {KINDS[name].says}", hint=hint)
        found = KINDS[name].found
        each = [unsure[not found] if count == UNSURE else count for count in counts]
        made[name] = Seen(found, size, len(counts), tuple(n for n in each if n))
    return made
