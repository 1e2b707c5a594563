"""Write spans as other tools do: JSON lines, BRAT standoff, i2b2/n2c2 XML."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

from clinveil.core import Span
from clinveil.corpus.formats.folders import document
from clinveil.corpus.gold import Offsets, offset_map

TYPES = {
    "NAME": "PATIENT",
    "ADDRESS": "STREET",
    "CITY": "CITY",
    "ZIP": "ZIP",
    "HOSPITAL": "HOSPITAL",
    "DATE": "DATE",
}
TYPES |= {
    "PHONE": "PHONE",
    "FAX": "FAX",
    "EMAIL": "EMAIL",
    "SSN": "SSN",
    "MRN": "MEDICALRECORD",
    "ID": "IDNUM",
}
TYPES |= {
    "HEALTH_PLAN": "HEALTHPLAN",
    "ACCOUNT": "ACCOUNT",
    "LICENSE": "LICENSE",
    "VEHICLE": "VEHICLE",
}
TYPES |= {
    "DEVICE": "DEVICE",
    "URL": "URL",
    "IP": "IPADDRESS",
    "BIOMETRIC": "BIOID",
    "PHOTO": "PHOTO",
    "AGE": "AGE",
}
Notes = Iterable[tuple[str, str, Sequence[Span]]]


def write_spans(place: Path, notes: Notes, kind: str, offsets: Offsets = "codepoints") -> None:
    """A .jsonl file, or a folder of BRAT or i2b2 files with the notes."""
    lines = []
    for note_id, text, spans in notes:
        at = offset_map(text, offsets)
        ends = [
            (at[span.start], at[span.end], span.label, text[span.start : span.end])
            for span in spans
        ]
        file = place / note_id
        if kind == "jsonl":
            lines += [
                {"note_id": note_id, "start": a, "end": b, "label": label}
                for a, b, label, _ in ends
            ]
            lines += [] if ends else [{"note_id": note_id}]
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        if kind == "brat":
            marks = [
                f"T{n}\t{label} {a} {b}\t{' '.join(t.split())}\n"
                for n, (a, b, label, t) in enumerate(ends, 1)
            ]
            file.with_name(file.name + ".txt").write_bytes(
                ("\ufeff" * text.startswith("\ufeff") + text).encode()
            )
            file.with_name(file.name + ".ann").write_bytes("".join(marks).encode())
        else:
            tags = "".join(_tag(*one) for one in ends)
            xml = document(text).replace(
                b"<TAGS>\n</TAGS>", b"<TAGS>\n" + tags.encode() + b"</TAGS>"
            )
            file.with_name(file.name + ".xml").write_bytes(xml)
    if kind == "jsonl":
        place.write_text("".join(json.dumps(line) + "\n" for line in lines))


def _tag(start: int, end: int, label: str, text: str) -> str:
    quoted = quoteattr(text, {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})
    return (
        f'<{label} id="P0" start="{start}" end="{end}" text={quoted} TYPE="{TYPES[label]}"'
        ' comment="" />\n'
    )
