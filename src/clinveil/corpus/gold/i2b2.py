"""Notes and gold spans as i2b2/n2c2 de-identification XML: `<TEXT>` and `<TAGS>`, one file per note.

The parser rejects document types, entities and external references. XML normalises line breaks to line feeds, so a
carriage return is written as a character reference.
Source: Stubbs & Uzuner 2015, J. Biomed. Inform. 58:S20 (the 2014 corpus); 2016 CEGEMS N-GRID has the same format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clinveil.core.errors import InputError
from clinveil.corpus.gold.marks import OVER_89, Mark
from clinveil.corpus.note_files import note_files

ROOT = "deIdi2b2"
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# CDATA must be split at its end marker and at a carriage return, which parsers turn into a line feed.
_SPLIT = re.compile(r"(?<=\]\])>|\r")


def read_text(file: Path) -> str:
    """Return the note of a file. Raises InputError."""
    return _text(_root(file), file.name)


def read_i2b2(path: Path) -> Iterator[tuple[str, Mark | None]]:
    """Yield (note id, None) for each .xml file of a folder, or for one file, and (note id, mark) for each tag."""
    for file, note_id in note_files(path, ".xml") if path.is_dir() else [(path, path.name[: -len(".xml")])]:
        yield note_id, None
        root = _root(file)
        _text(root, file.name)
        for tags in root.iter("TAGS"):
            for tag in tags:
                yield note_id, _mark(tag, file.name)


def _root(file: Path) -> Any:
    from xml.etree.ElementTree import ParseError

    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import fromstring

    try:
        return fromstring(file.read_bytes(), forbid_dtd=True)
    except ParseError as error:
        line, _ = error.position
        hint = "check that it is an intact i2b2/n2c2 file"
        raise InputError("not well-formed XML", where=f"{file.name}, line {line}", hint=hint) from None
    except DefusedXmlException:
        hint = "remove the <!DOCTYPE …>"
        raise InputError("document types and entities are not allowed", where=file.name, hint=hint) from None
    except (ValueError, LookupError):
        raise InputError("unknown encoding", where=file.name, hint="convert the file to UTF-8") from None


def _text(root: Any, name: str) -> str:
    texts = root.findall("TEXT")
    if len(texts) != 1 or len(texts[0]):
        raise InputError("must have exactly one <TEXT> without tags", where=name, hint="use the format of i2b2 2014")
    return texts[0].text or ""


def _mark(tag: Any, name: str) -> Mark:
    where = f"{name}, a {tag.tag[:20]} tag" if str(tag.tag).isalnum() else name
    try:
        start, end = int(tag.attrib["start"]), int(tag.attrib["end"])
    except (KeyError, ValueError):
        hint = 'write for example <NAME start="5" end="9" TYPE="PATIENT"/>'
        raise InputError("a tag without start and end", where=where, hint=hint) from None
    label = tag.attrib.get("TYPE") or str(tag.tag)
    # i2b2 marks all ages.
    return Mark(start, end, OVER_89 if label.upper() == "AGE" else label, where, tag.attrib.get("text"))


def document(text: str, where: str = "") -> bytes:
    """Return a note as XML in UTF-8, without tags. Raises InputError for a character not allowed in XML."""
    if _ILLEGAL.search(text):
        what = "a note contains a control character, which XML does not allow"
        raise InputError(what, where=where, hint="write .jsonl or .parquet")
    head = f'<?xml version="1.0" encoding="UTF-8" ?>\n<{ROOT}>\n'
    return f"{head}<TEXT>{_cdata(text)}</TEXT>\n<TAGS>\n</TAGS>\n</{ROOT}>\n".encode()


def _cdata(text: str) -> str:
    safe = _SPLIT.sub(lambda match: f"]]>&#{ord(match[0])};<![CDATA[", text)
    return f"<![CDATA[{safe}]]>"
