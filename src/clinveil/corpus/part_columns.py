"""One schema for all part files: missing columns, mismatches, and one type for each kept column."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from clinveil.core.errors import InputError
from clinveil.corpus.columns import candidates
from clinveil.corpus.corpus import Columns
from clinveil.corpus.file_format import Source, format_of


@dataclass(frozen=True)
class NoRows:
    """A source without rows: all columns of several parts, or a part that could not be opened.

    `error`: raised when the part is read, so that the other parts can be processed.
    """

    names: tuple[str, ...] = ()
    optional_keys: frozenset[str] = frozenset()
    error: InputError | None = None

    def read(self, ids: Sequence[str], texts: Sequence[str] = (), kept: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """Yield no rows, or raise the error."""
        if self.error is not None:
            raise self.error.with_traceback(None)
        return iter(())


def all_columns(sources: Collection[Source]) -> NoRows:
    """Return the distinct columns of all parts; those that some parts lack are optional."""
    names = tuple(dict.fromkeys(name for source in sources for name in source.names))
    in_all = frozenset.intersection(*(frozenset(source.names) for source in sources))
    return NoRows(names, frozenset(names) - in_all | frozenset().union(*(source.optional_keys for source in sources)))


@dataclass(frozen=True)
class WithConstants:
    """A source with columns that have one value in all rows; they are added, or replace columns of the source.

    These are the keys of folders (`key=value`), columns that a part lacks, and untyped columns of nulls.
    """

    source: Source
    constants: Mapping[str, pa.Scalar]

    @property
    def names(self) -> tuple[str, ...]:
        """Columns of the source, then the added ones."""
        return tuple(dict.fromkeys((*self.source.names, *self.constants)))

    @property
    def optional_keys(self) -> frozenset[str]:
        """Those of the source."""
        return self.source.optional_keys

    @property
    def types(self) -> Mapping[str, pa.DataType]:
        """Types of the columns, as far as they are known before reading."""
        return {**types_of(self.source), **{name: value.type for name, value in self.constants.items()}}

    def read(self, ids: Sequence[str], texts: Sequence[str] = (), kept: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """All rows of the columns named."""
        wanted = list(dict.fromkeys((*ids, *texts, *kept)))
        ids, texts, kept = ([n for n in names if n not in self.constants] for names in (ids, texts, kept))
        if not (ids or texts or kept):  # one column is needed for the number of rows
            ids = [self.source.names[0]]
        for batch in self.source.read(ids, texts, kept):
            for name, value in self.constants.items():
                kind, rows = value.type, batch.num_rows
                column = pa.repeat(value, rows) if value.is_valid else pa.nulls(rows, kind)
                batch = batch.append_column(pa.field(name, kind), column)
            yield batch.select(wanted)


def with_constants(source: Source, constants: Mapping[str, pa.Scalar]) -> Source:
    """Return the source with constant columns, or the source itself if there are none."""
    if not constants:
        return source
    if isinstance(source, WithConstants):
        return WithConstants(source.source, {**source.constants, **constants})
    return WithConstants(source, constants)


def types_of(source: Source) -> Mapping[str, pa.DataType]:
    """Return the types of a source's columns; empty if its format has no types."""
    types: Mapping[str, pa.DataType] = getattr(source, "types", {})
    return types


def refuse_other_names(names: Mapping[str, Source]) -> None:
    """Raise InputError for the first part with other columns than part 1; the order may differ.

    `names`: the parts by their names in messages.
    """
    (first, model), *others = names.items()
    for name, source in others:
        lacks = [column for column in model.names if column not in source.names]
        more = [column for column in source.names if column not in model.names]
        if lacks or more:
            parts = [f"lacks {_count(lacks)} of {first} ({candidates(lacks)})"] * bool(lacks)
            parts += [f"has {_count(more)} that {first} lacks ({candidates(more)})"] * bool(more)
            raise InputError("; ".join(parts), where=name, hint="all parts must have the same columns")


def refuse_missing(sources: Mapping[str, Source], columns: Columns) -> None:
    """Raise InputError for the first JSON lines part without the text, id or patient column of the others."""
    roles = {"text": columns.text, "id": columns.note_id, "patient": columns.patient_id}
    for name, source in sources.items():
        if lacks := [role for role, column in roles.items() if column and column not in source.names]:
            what = f"has no {' and no '.join(lacks)} column, unlike other parts"
            raise InputError(what, where=name, hint="all parts must have the same columns")


def typed(sources: Mapping[str, Source], suffix: str, kept: Sequence[str]) -> dict[str, Source]:
    """Return the sources with one type for each kept column. Raises InputError for a part with another type."""
    agree = format_of(suffix).agree
    if agree is not None and kept:
        agree([_inner(source) for source in sources.values()], kept)
    model: dict[str, tuple[str, pa.DataType]] = {}
    for name, source in sources.items():
        for column, kind in _types(source, kept).items():
            if pa.types.is_null(kind):
                continue
            first, wanted = model.setdefault(column, (name, kind))
            if kind != wanted:
                what = f"a kept column has type {kind} here and {wanted} in {first}"
                raise InputError(what, where=name, hint="use one type in all parts, or do not keep the column")
    return {name: _with_types(source, kept, model) for name, source in sources.items()}


def _with_types(source: Source, kept: Sequence[str], model: Mapping[str, tuple[str, pa.DataType]]) -> Source:
    untyped = [column for column, kind in _types(source, kept).items() if pa.types.is_null(kind) and column in model]
    return with_constants(source, {column: pa.scalar(None, model[column][1]) for column in untyped})


def _types(source: Source, kept: Sequence[str]) -> dict[str, pa.DataType]:
    """Return the types of the kept columns, as used in a corpus."""
    return {column: _plain(kind) for column, kind in types_of(source).items() if column in kept}


def _plain(kind: pa.DataType) -> pa.DataType:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.string() if pa.types.is_large_string(kind) else kind


def _inner(source: Source) -> Source:
    return source.source if isinstance(source, WithConstants) else source


def _count(names: Sequence[str]) -> str:
    return f"{len(names)} {'column' if len(names) == 1 else 'columns'}"
