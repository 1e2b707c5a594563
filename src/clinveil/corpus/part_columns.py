"""One set of columns for all parts: what a part may lack, what is refused, and one type for each kept column."""

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
    """A part that could not be opened; whoever reads it is told why, so that the others can be worked on."""

    error: tuple[str, str, str]
    names: tuple[str, ...] = ()
    optional_keys: frozenset[str] = frozenset()

    @classmethod
    def by(cls, error: InputError) -> Damaged:
        """Of what was wrong with it."""
        return cls((error.what, error.where, error.hint))

    def read(self, ids: Sequence[str], texts: Sequence[str] = (), kept: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """Raises InputError."""
        what, where, hint = self.error
        raise InputError(what, where=where, hint=hint)


@dataclass(frozen=True)
class AllNames:
    """The columns of all parts, as one source that is not read."""

    sources: Sequence[Source] = field(repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Each once, in the order of appearance."""
        return tuple(dict.fromkeys(name for source in self.sources for name in source.names))

    @property
    def optional_keys(self) -> frozenset[str]:
        """Those that not every row has, or not every part."""
        in_all = frozenset.intersection(*(frozenset(source.names) for source in self.sources))
        return frozenset(self.names) - in_all | frozenset().union(*(source.optional_keys for source in self.sources))

    def read(self, ids: Sequence[str], texts: Sequence[str] = (), kept: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """No rows."""
        return iter(())


@dataclass(frozen=True)
class Typed:
    """A source some of whose columns hold nothing but nulls, without a type: they get that of the other parts."""

    source: Source
    to: Mapping[str, pa.DataType]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the source."""
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
                    at = batch.schema.get_field_index(name)
                    batch = batch.set_column(at, pa.field(name, kind), pa.nulls(batch.num_rows, kind))
            yield batch


@dataclass(frozen=True)
class Filled:
    """A source that lacks some columns, which are null in all its rows."""

    source: Source
    lacks: Mapping[str, pa.DataType]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the source, then the others."""
        return (*self.source.names, *self.lacks)

    @property
    def optional_keys(self) -> frozenset[str]:
        """Those of the source."""
        return self.source.optional_keys

    @property
    def types(self) -> Mapping[str, pa.DataType]:
        """The types of all columns."""
        return {**types_of(self.source), **self.lacks}

    def read(self, ids: Sequence[str], texts: Sequence[str] = (), kept: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """All rows of the columns named."""
        wanted = list(dict.fromkeys((*ids, *texts, *kept)))
        own = [name for name in wanted if name not in self.lacks] or [self.source.names[0]]
        for batch in self.source.read(own):
            for name, kind in self.lacks.items():
                batch = batch.append_column(pa.field(name, kind), pa.nulls(batch.num_rows, kind))
            yield batch.select(wanted)


def refuse_other_names(names: Mapping[str, Source]) -> None:
    """Raise InputError for the first part whose columns are not those of the first; their order may differ.

    `names`: of each part by what messages call it.
    """
    (first, model), *others = names.items()
    for name, source in others:
        lacks = [column for column in model.names if column not in source.names]
        more = [column for column in source.names if column not in model.names]
        if lacks or more:
            said = [f"{_count(lacks)} of {first} ({candidates(lacks)}) not in it"] * bool(lacks)
            said += [f"{_count(more)} in it ({candidates(more)}) not in {first}"] * bool(more)
            raise InputError("; ".join(said), where=name, hint="all parts must have the same columns")


def refuse_missing(sources: Mapping[str, Source], columns: Columns) -> None:
    """Raise InputError for the first part of JSON lines without the text, the id or the patient of the others."""
    roles = {"text": columns.text, "id": columns.note_id, "patient": columns.patient_id}
    for name, source in sources.items():
        if lacks := [role for role, column in roles.items() if column and column not in source.names]:
            what = f"has no column of the {' and the '.join(lacks)}, which other parts have"
            raise InputError(what, where=name, hint="all parts must have the same columns")


def typed(sources: Mapping[str, Source], suffix: str, kept: Sequence[str]) -> dict[str, Source]:
    """The sources, with one type for each kept column. Raises InputError for a part that has another type."""
    agree_on_types(suffix, [_inner(source) for source in sources.values()], kept)
    model: dict[str, tuple[str, pa.DataType]] = {}
    for name, source in sources.items():
        for column, kind in _types(source, kept).items():
            if pa.types.is_null(kind):
                continue
            first, wanted = model.setdefault(column, (name, kind))
            if kind != wanted:
                what = f"a kept column is {kind} in it and {wanted} in {first}"
                raise InputError(what, where=name, hint="store it as one type in all parts, or do not keep it")
    return {name: _with_types(source, kept, model) for name, source in sources.items()}


def _with_types(source: Source, kept: Sequence[str], model: Mapping[str, tuple[str, pa.DataType]]) -> Source:
    bare = [column for column, kind in _types(source, kept).items() if pa.types.is_null(kind) and column in model]
    return Typed(source, {column: model[column][1] for column in bare}) if bare else source


def _types(source: Source, kept: Sequence[str]) -> dict[str, pa.DataType]:
    """The types of the kept columns as a corpus has them."""
    return {column: _plain(kind) for column, kind in types_of(source).items() if column in kept}


def _plain(kind: pa.DataType) -> pa.DataType:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.string() if pa.types.is_large_string(kind) else kind


def _inner(source: Source) -> Source:
    return source.source if isinstance(source, KeyedSource) else source


def _count(names: Sequence[str]) -> str:
    return f"{len(names)} {'column' if len(names) == 1 else 'columns'}"
