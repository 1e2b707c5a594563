"""Kept columns leave with their values and nothing else, however deep they are nested."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clinveil.core import InputError
from clinveil.corpus import ROLE_FIELDS, Columns, Writer, open_corpus
from clinveil.corpus.roles import plain_array, plain_type, to_roles

UNUSED = "zyzzyva"
WHERE = "/home/bob/ward7"
NOTED = {"path": WHERE}
WORDS = pa.dictionary(pa.int8(), pa.string())
INDEX = pa.array([0, 1, 0], pa.int8())
STEPS = pa.array([0, 1, 2, 3], pa.int32())


def coded(index: pa.Array = INDEX) -> pa.DictionaryArray:
    """a, b, a, of three categories."""
    return pa.DictionaryArray.from_arrays(index, pa.array(["a", "b", UNUSED]))


def in_list(child: pa.Array) -> pa.Array:
    kind = pa.list_(pa.field("e", child.type, metadata=NOTED))
    return pa.ListArray.from_arrays(STEPS, child, type=kind)


def in_large_list(child: pa.Array) -> pa.Array:
    kind = pa.large_list(pa.field("e", child.type, metadata=NOTED))
    return pa.LargeListArray.from_arrays(STEPS.cast(pa.int64()), child, type=kind)


NESTS = [in_list, in_large_list]
NESTED = {
    "plain": coded(),
    **{f"{one.__name__}": one(coded()) for one in NESTS},
    "metadata alone": in_list(pa.array(["a", "b", "a"])),
}


def parquet(folder: Path, kept: pa.Array) -> Path:
    path = folder / "a.parquet"
    fields = [
        pa.field("note_id", pa.string()),
        pa.field("text", pa.string()),
        pa.field("kept", kept.type, True, NOTED),
    ]
    ids = [str(i) for i in range(len(kept))]
    pq.write_table(
        pa.table([pa.array(ids), pa.array(["x"] * len(kept)), kept], schema=pa.schema(fields)), path
    )
    return path


def arrow_schema(path: Path) -> bytes:
    """What the file's footer says of Arrow types; it stands there in base64."""
    return base64.b64decode(pq.read_metadata(path).metadata[b"ARROW:schema"])


def has_wrappings(kind: pa.DataType) -> bool:
    if isinstance(kind, pa.BaseExtensionType) or pa.types.is_dictionary(kind):
        return True
    children = [kind.field(i) for i in range(kind.num_fields)]
    return any(child.metadata or has_wrappings(child.type) for child in children)


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
@pytest.mark.parametrize("kept", NESTED.values(), ids=NESTED.keys())
def test_no_unused_category_and_no_metadata_comes_out(
    kept: pa.Array, suffix: str, tmp_path: Path
) -> None:
    source = parquet(tmp_path, kept)
    corpus = open_corpus(source, keep=("kept",))
    out = tmp_path / f"b{suffix}"
    with Writer(out, corpus.columns, suffix) as writer:
        for batch in corpus.batches():
            assert not has_wrappings(batch.schema.field("kept").type)
            writer.write(batch)
    for secret in (UNUSED, WHERE, "ward7"):
        assert secret.encode() not in out.read_bytes()
    if suffix == ".parquet":
        assert pq.read_table(out).column("kept").to_pylist() == kept.to_pylist()
        assert not pq.read_schema(out).metadata
        assert WHERE.encode() not in arrow_schema(out)
    else:
        back = [json.loads(line)["kept"] for line in out.read_text().splitlines()]
        assert back == json.loads(json.dumps(kept.to_pylist()))


@pytest.mark.parametrize("nest", NESTS)
def test_the_source_does_hold_what_must_not_come_out(
    nest: Callable[[pa.Array], pa.Array], tmp_path: Path
) -> None:
    path = parquet(tmp_path, nest(coded()))
    assert UNUSED.encode() in path.read_bytes()
    assert WHERE.encode() in arrow_schema(path)
    assert has_wrappings(pq.read_schema(path).field("kept").type)


def test_nulls_slices_and_emptiness_stay() -> None:
    for values in (
        pa.array([["a"], None, [], ["b", None], [None]], pa.list_(WORDS)),
        pa.array([None, "a", None, "b"], WORDS),
        pa.array([], pa.list_(WORDS)),
    ):
        for part in (values, values.slice(1), values.slice(1, 2), values.slice(0, 0)):
            assert plain_array(part).to_pylist() == part.to_pylist()
            plain_array(part).validate(full=True)


def test_plain_types_stay_what_they_are() -> None:
    for kind in (
        pa.int8(), pa.string(), pa.large_string(), pa.timestamp("ns", "UTC"), pa.decimal128(9, 2),
        pa.binary(16),
        pa.list_(pa.field("element", pa.float32(), nullable=False)), pa.large_list(pa.bool_()),
        pa.null(),
    ):  # fmt: skip
        assert plain_type(kind).equals(kind, check_metadata=True)
        assert plain_array(pa.nulls(2, kind)).equals(pa.nulls(2, kind))


def test_other_types_are_refused() -> None:
    for kind in (
        pa.struct([("x", pa.string())]), pa.map_(pa.string(), pa.string()),
        pa.list_(pa.list_(pa.int8())), pa.uuid(),
        pa.list_(pa.int8(), 2), pa.run_end_encoded(pa.int32(), pa.string()), pa.list_(pa.uuid()),
    ):  # fmt: skip
        with pytest.raises(TypeError):
            plain_type(kind)


def test_what_cannot_be_rebuilt_is_refused_by_name() -> None:
    union = pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array([UNUSED, UNUSED])])
    [roles] = pa.table({"note_id": ["1", "2"], "text": ["x", "y"]}).to_batches()
    raw = pa.record_batch([*roles.columns, union], names=["note_id", "text", "kept"])
    columns = Columns(text="text", note_id="note_id", keep=("kept",))
    with pytest.raises(
        InputError, match=r"^a\.x: kept column 'kept' has an unsupported type"
    ) as caught:
        to_roles(raw, columns, "a.x", 0)
    assert caught.value.exit_code == 3
    assert UNUSED not in str(caught.value)


def test_text_in_a_list_that_is_not_utf8_names_the_row(tmp_path: Path) -> None:
    broken = pa.StringArray.from_buffers(
        2, pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0"), pa.py_buffer(b"a\xe9")
    )
    path = parquet(tmp_path, pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), broken))
    with pytest.raises(InputError, match=r"^a\.parquet, row 2: not valid UTF-8"):
        list(open_corpus(path, keep=("kept",)).batches())


def test_the_fields_of_the_roles_hold_no_metadata(tmp_path: Path) -> None:
    [batch] = open_corpus(parquet(tmp_path, coded()), keep=("kept",)).batches()
    assert batch.schema.equals(
        pa.schema([*ROLE_FIELDS, pa.field("kept", pa.string())]), check_metadata=True
    )
