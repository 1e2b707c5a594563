"""Notes in an object store: how they are read, and the messages where that fails. A real server
answers.
"""

import io
import os
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from stores import SECRET, store, without_rights

import clinveil
from clinveil.cli import main
from clinveil.core import InputError, RemotePath, UsageError, as_location, fingerprint
from clinveil.corpus import NotesCorpus, open_corpus, rows


def put(server, path: str, data: bytes) -> None:
    with server.files.open_output_stream(path, compression=None) as file:
        file.write(data)


def parquet(first: int, n: int = 3) -> bytes:
    sink = io.BytesIO()
    ids = [f"n{i}" for i in range(first, first + n)]
    pq.write_table(pa.table({"note_id": ids, "text": [f"note {i} of this" for i in ids]}), sink)
    return sink.getvalue()


def ids(corpus) -> list[str]:
    return [note.note_id for note in rows(corpus)]


@pytest.fixture(scope="module")
def server():
    with pytest.MonkeyPatch.context() as patch, store(patch) as made:
        for number in range(3):
            put(made, f"notes/in/year={2020 + number}/part.parquet", parquet(3 * number))
        put(made, "notes/in/_SUCCESS", b"")
        put(made, "notes/one.csv.gz", __import__("gzip").compress(b"id,text\n1,a\n2,b\n"))
        put(made, "notes/damaged/a.parquet", parquet(0))
        put(made, "notes/damaged/b.parquet", parquet(3)[:-30])
        yield made


def test_parts_and_files_are_read_from_a_store(server):
    corpus = open_corpus("s3://notes/in", keep=("year",))
    assert ids(corpus) == [f"n{i}" for i in range(9)]
    assert (
        pa.Table.from_batches(list(corpus.batches())).column("year").to_pylist()
        == ["2020"] * 3 + ["2021"] * 3 + ["2022"] * 3
    )
    assert ids(open_corpus("s3://notes/in/*/part.parquet")) == ids(corpus)
    assert ids(open_corpus("s3://notes/in/year=202[02]")) == ["n0", "n1", "n2", "n6", "n7", "n8"]
    assert ids(open_corpus("s3://notes/**/year=2021/*.parquet")) == ["n3", "n4", "n5"]
    one = open_corpus(as_location("s3://notes/one.csv.gz"))
    assert isinstance(one, NotesCorpus)
    assert ids(one) == ["1", "2"] == ids(one)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert list(pool.map(ids, corpus.parts))[1] == ["n3", "n4", "n5"]


def test_an_address_may_say_where_the_store_is(server, monkeypatch):
    address = os.environ["AWS_ENDPOINT_URL"].removeprefix("http://")
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    assert ids(
        open_corpus(
            f"s3://notes/one.csv.gz?endpoint_override={address}&scheme=http&region=us-east-1"
        )
    ) == [
        "1",
        "2",
    ]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("s3://notes/none", "none: no such file or folder"),
        ("s3://nobody-has-this/in/*.parquet", "the bucket does not exist"),
        ("s3://notes/in/*.csv", "no file matches the pattern"),
        ("s3://notes/in/_SUCCESS", "unknown file type"),
    ],
)
def test_what_is_not_there_is_one_line(server, url, said):
    with pytest.raises(InputError, match=said):
        open_corpus(url)


def test_a_damaged_object_is_named_and_the_others_can_be_read(server):
    corpus = open_corpus("s3://notes/damaged")
    assert ids(corpus.parts[0]) == ["n0", "n1", "n2"]
    with pytest.raises(InputError, match=r"b.parquet: not a Parquet file, or a damaged one"):
        ids(corpus)


def test_the_fingerprint_is_of_names_sizes_and_times(server):
    put(server, "notes/change/a.parquet", parquet(0))
    before = (
        fingerprint(as_location("s3://notes/change/*.parquet")),
        fingerprint(as_location("s3://notes/change")),
    )
    assert before == (
        fingerprint(as_location("s3://notes/change/*.parquet")),
        fingerprint(as_location("s3://notes/change")),
    )
    put(server, "notes/change/a.parquet", parquet(0, n=30))
    after = (
        fingerprint(as_location("s3://notes/change/*.parquet")),
        fingerprint(as_location("s3://notes/change")),
    )
    assert before[0] != after[0]
    assert before[1] != after[1]
    assert len(fingerprint(as_location("s3://notes/one.csv.gz"))) == 64


@pytest.mark.parametrize(
    "url",
    [
        "s3://me:hunter2@notes/in",
        "s3://notes/in?secret_key=hunter2",
        "abfs://c@a.dfs.core.windows.net/x?sig=hunter2",
        "https://me:hunter2@host/x",
    ],
)
def test_a_secret_in_an_address_is_refused_and_not_shown(url):
    with pytest.raises(UsageError) as caught:
        open_corpus(url)
    assert "hunter2" not in str(caught.value)


def test_a_place_of_a_store_is_no_file_of_this_machine():
    url = as_location("s3://notes/a/b.parquet?region=us-east-1")
    assert (url.name, url.suffix, str(url)) == ("b.parquet", ".parquet", "s3://notes/a/b.parquet")
    assert pickle.loads(pickle.dumps(url)) == url
    assert not isinstance(url, os.PathLike)
    assert not isinstance(as_location("a/b.parquet"), RemotePath)


def test_other_kinds_of_places(tmp_path):
    (tmp_path / "a.csv").write_text("id,text\n1,a\n")
    assert ids(open_corpus(f"file://{tmp_path}/a.csv")) == ["1"]
    assert ids(open_corpus(f"file://{tmp_path}/*.csv")) == ["1"]
    with pytest.raises(UsageError, match="unsupported URL scheme gopher://"):
        open_corpus("gopher://x/y.csv")


def test_no_address_no_store():
    code = (
        "import sys, clinveil.cli.entry, clinveil.corpus.open as o, tempfile, pathlib\n"
        "p = pathlib.Path(tempfile.mkdtemp()) / 'a.csv'; p.write_text('id,text\\n1,a\\n'); "
        "list(o.open_corpus(p).batches())\n"
        "print([m for m in ('deltalake', 'duckdb') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_store_without_rights(capfd):
    with pytest.MonkeyPatch.context() as patch, without_rights(patch):
        for url in ("s3://notes/in/*.parquet", "s3://notes/in", "s3://notes/a.csv"):
            with pytest.raises(InputError, match="the store denied access"):
                open_corpus(url)
        assert main(["inspect", "s3://notes/a.csv"]) == 3
        assert SECRET not in capfd.readouterr().err


def test_a_store_that_is_gone():
    with pytest.MonkeyPatch.context() as patch, store(patch) as gone:
        put(gone, "notes/a.parquet", parquet(0))
        corpus = open_corpus("s3://notes/a.parquet")
        gone.stop()
        with pytest.raises(InputError, match=r"a.parquet: the store cannot be reached"):
            ids(corpus)


def test_the_commands_read_a_store(server, tmp_path, capfd):
    notes = "s3://notes/in/*/*.parquet"
    out = tmp_path / "out"
    run = ["deidentify", notes, "-o", str(out), "--workers", "1", "--keep-ids"]
    assert main(run) == 0
    assert ids(open_corpus(out)) == [f"n{i}" for i in range(9)]
    assert main(["inspect", notes]) == 0
    written = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert SECRET not in capfd.readouterr().err + written.decode("latin-1")


@pytest.mark.parametrize("command", ["release", "deidentify"])
@pytest.mark.parametrize(
    "flags", [["-o", "s3://notes/out"], ["-o", "out", "--vault", "s3://notes/vault"]]
)
def test_output_is_not_written_to_a_url(command, flags, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.csv").write_text("note_id,text\n1,a\n")
    assert main([command, "notes.csv", *flags]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["notes.csv"]


def test_the_api_writes_no_folder_named_like_a_store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLINVEIL_LEDGER", str(tmp_path / "ledger"))
    with pytest.raises(UsageError, match="output is not written to a URL") as error:
        clinveil.release(
            ["one note"], "s3://user:hidden@notes/out?secret_key=hidden", kind="deidentified"
        )
    assert error.value.where == "s3://…/out"
    assert not list(tmp_path.iterdir())
