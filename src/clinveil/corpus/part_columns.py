"""One schema for all part files: missing columns, mismatches, and one type for each kept column."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from clinveil.core import InputError
from clinveil.corpus.columns import candidates
from clinveil.corpus.corpus import Columns
from clinveil.corpus.file_format import NotesSource
from clinveil.corpus.formats import format_of


@dataclass(frozen=True)
class NoRows:
    """A source without rows: all columns of several parts, or a part that could not be opened.

    `error`: raised when the part is read, so that the other parts can be processed.
    """

    names: tuple[str, ...] = ()
    optional_keys: frozenset[str] = frozenset()
    error: InputError | None = None

    def read(
        self, ids: Sequence[str], texts: Sequence[str] = (), kept: Sequence[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        """Yield no rows, or raise the error."""
        if self.error is not None:
            raise self.error.with_traceback(None)
        return iter(())


def all_columns(sources: Collection[NotesSource]) -> NoRows:
    """Return the distinct columns of all parts; those that some parts lack are optional."""
    names = tuple(dict.fromkeys(name for source in sources for name in source.names))
    in_all = frozenset.intersection(*(frozenset(source.names) for source in sources))
    return NoRows(
        names,
        frozenset(names) - in_all
        | frozenset().union(*(source.optional_keys for source in sources)),
    )


@dataclass(frozen=True)
class WithConstants:
    """A source with columns that have one value in all rows; they are added, or replace columns of
    the source.

    These are the keys of folders (`key=value`), columns that a part lacks, and untyped columns of
    nulls.
    """

    source: NotesSource
    constants: Mapping[str, pa.Scalar]

    @property
    def names(self) -> tuple[str, ...]:
        """Columns of the source, then the added ones."""
        return tuple(dict.fromkeys((*self.source.names, *self.constants)))

    @property
    def optional_keys(self) -> frozenset[str]:
        """Those of the source."""
        return self.source.optional_keys

    def read(
        self, ids: Sequence[str], texts: Sequence[str] = (), kept: Sequence[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        """All rows of the columns named."""
        wanted = list(dict.fromkeys((*ids, *texts, *kept)))
        ids, texts, kept = (
            [n for n in names if n not in self.constants] for names in (ids, texts, kept)
        )
        if not (ids or texts or kept):  # one column is needed for the number of rows
            ids = [self.source.names[0]]
        for batch in self.source.read(ids, texts, kept):
            for name, value in self.constants.items():
                rows = batch.num_rows
                column = pa.repeat(value, rows) if value.is_valid else pa.nulls(rows, value.type)
                batch = batch.append_column(name, column)
            yield batch.select(wanted)


def with_constants(source: NotesSource, constants: Mapping[str, pa.Scalar]) -> NotesSource:
    """Return the source with constant columns, or the source itself if there are none."""
    if not constants:
        return source
    inner, before = (
        (source.source, source.constants) if isinstance(source, WithConstants) else (source, {})
    )
    return WithConstants(inner, {**before, **constants})


def refuse_other_names(names: Mapping[str, NotesSource]) -> None:
    """Raise InputError for the first part with other columns than part 1; the order may differ.

    `names`: the parts by their names in messages.
    """
    (first, model), *others = names.items()
    for name, source in others:
        lacks = [column for column in model.names if column not in source.names]
        additional = [column for column in source.names if column not in model.names]
        counts = [
            f"{len(some)} {'column' if len(some) == 1 else 'columns'}"
            for some in (lacks, additional)
        ]
        if lacks or additional:
            parts = [f"lacks {counts[0]} of {first} ({candidates(lacks)})"] * bool(lacks)
            parts += [f"has {counts[1]} that {first} lacks ({candidates(additional)})"] * bool(
                additional
            )
            raise InputError(
                "; ".join(parts), where=name, hint="all parts must have the same columns"
            )


def refuse_missing(sources: Mapping[str, NotesSource], columns: Columns) -> None:
    """Raise InputError for the first JSON lines part without the text, id or patient column of the
    others.
    """
    roles = {"text": columns.text, "id": columns.note_id, "patient": columns.patient_id}
    for name, source in sources.items():
        if lacks := [
            role for role, column in roles.items() if column and column not in source.names
        ]:
            problem = f"has no {' and no '.join(lacks)} column, unlike other parts"
            raise InputError(problem, where=name, hint="all parts must have the same columns")


def typed(
    sources: Mapping[str, NotesSource], suffix: str, kept: Sequence[str]
) -> dict[str, NotesSource]:
    """Return the sources with one type for each kept column. Raises InputError for a part with
    another type.
    """
    agree = format_of(suffix).agree
    if agree is not None and kept:
        agree([s.source if isinstance(s, WithConstants) else s for s in sources.values()], kept)
    types = {name: _types(source, kept) for name, source in sources.items()}
    model: dict[str, tuple[str, pa.DataType]] = {}
    for name, of_part in types.items():
        for column, kind in of_part.items():
            if pa.types.is_null(kind):
                continue
            first, wanted = model.setdefault(column, (name, kind))
            if kind != wanted:
                problem = f"a kept column has type {kind} here and {wanted} in {first}"
                raise InputError(
                    problem, where=name, hint="use one type in all parts, or do not keep the column"
                )
    nulls = {
        name: {
            c: pa.scalar(None, model[c][1])
            for c, kind in of_part.items()
            if pa.types.is_null(kind) and c in model
        }
        for name, of_part in types.items()
    }
    return {name: with_constants(source, nulls[name]) for name, source in sources.items()}


def _types(source: NotesSource, kept: Sequence[str]) -> dict[str, pa.DataType]:
    """Return the types of the kept columns as used in a corpus, as far as they are known before
    reading.
    """
    inner, added = (
        (source.source, source.constants) if isinstance(source, WithConstants) else (source, {})
    )
    types = {**getattr(inner, "types", {}), **{name: value.type for name, value in added.items()}}
    values = {
        c: kind.value_type if pa.types.is_dictionary(kind) else kind
        for c, kind in types.items()
        if c in kept
    }
    return {
        c: pa.string() if pa.types.is_large_string(kind) else kind for c, kind in values.items()
    }
