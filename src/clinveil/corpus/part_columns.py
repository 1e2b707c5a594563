"""One schema for all part files: missing columns, mismatches, and one type for each kept column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from clinveil.core.errors import InputError
from clinveil.corpus.columns import candidates
from clinveil.corpus.corpus import Columns
from clinveil.corpus.file_format import Source, agree_on_types
from clinveil.corpus.part_files import KeyedSource, types_of


@dataclass(frozen=True)
class Damaged:
    """A part that could not be opened; reading it raises the error, so that the other parts can be processed."""

    error: tuple[str, str, str]
    names: tuple[str, ...] = ()
    optional_keys: frozenset[str] = frozenset()

    @classmethod
    def by(cls, error: InputError) -> Damaged:
        """Create from the error that occurred."""
        return cls((error.what, error.where, error.hint))

    def read(self, ids: Sequence[str], texts: Sequence[str] = (), kept: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """Raise the InputError."""
        what, where, hint = self.error
        raise InputError(what, where=where, hint=hint)


@dataclass(frozen=True)
class AllNames:
    """The columns of all parts, as one source without rows."""

    sources: Sequence[Source] = field(repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Distinct column names, in order of first occurrence."""
        return tuple(dict.fromkeys(name for source in self.sources for name in source.names))

    @property
    def optional_keys(self) -> frozenset[str]:
        """Columns that some rows or some parts lack."""
        in_all = frozenset.intersection(*(frozenset(source.names) for source in self.sources))
        return frozenset(self.names) - in_all | frozenset().union(*(source.optional_keys for source in self.sources))

    def read(self, ids: Sequence[str], texts: Sequence[str] = (), kept: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """Yield no rows."""
        return iter(())


@dataclass(frozen=True)
class Typed:
    """A source with untyped columns of nulls, which get the type of the other parts."""

    source: Source
    to: Mapping[str, pa.DataType]

    @property
    def names(self) -> tuple[str, ...]:
        """Columns of the source."""
        return self.source.names

    @property
    def optional_keys(self) -> frozenset[str]:
        """Those of the source."""
        return self.source.optional_keys

    def read(self, ids: Sequence[str], texts: Sequence[str] = (), kept: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """All rows of the columns named."""
        for batch in self.source.read(ids, texts, kept):
            for name, kind in self.to.items():
                if name in batch.schema.names:
                    index = batch.schema.get_field_index(name)
                    batch = batch.set_column(index, pa.field(name, kind), pa.nulls(batch.num_rows, kind))
            yield batch


@dataclass(frozen=True)
class Filled:
    """A source with missing columns, which are null in all its rows."""

    source: Source
    missing: Mapping[str, pa.DataType]

    @property
    def names(self) -> tuple[str, ...]:
        """Columns of the source, then the missing ones."""
        return (*self.source.names, *self.missing)

    @property
    def optional_keys(self) -> frozenset[str]:
        """Those of the source."""
        return self.source.optional_keys

    @property
    def types(self) -> Mapping[str, pa.DataType]:
        """Types of all columns."""
        return {**types_of(self.source), **self.missing}

    def read(self, ids: Sequence[str], texts: Sequence[str] = (), kept: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """All rows of the columns named."""
        wanted = list(dict.fromkeys((*ids, *texts, *kept)))
        present = [name for name in wanted if name not in self.missing] or [self.source.names[0]]
        for batch in self.source.read(present):
            for name, kind in self.missing.items():
                batch = batch.append_column(pa.field(name, kind), pa.nulls(batch.num_rows, kind))
            yield batch.select(wanted)


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
    agree_on_types(suffix, [_inner(source) for source in sources.values()], kept)
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
    return Typed(source, {column: model[column][1] for column in untyped}) if untyped else source


def _types(source: Source, kept: Sequence[str]) -> dict[str, pa.DataType]:
    """Return the types of the kept columns, as used in a corpus."""
    return {column: _plain(kind) for column, kind in types_of(source).items() if column in kept}


def _plain(kind: pa.DataType) -> pa.DataType:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.string() if pa.types.is_large_string(kind) else kind


def _inner(source: Source) -> Source:
    return source.source if isinstance(source, KeyedSource) else source


def _count(names: Sequence[str]) -> str:
    return f"{len(names)} {'column' if len(names) == 1 else 'columns'}"
