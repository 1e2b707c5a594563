"""Notes in a store of objects: read from it, written to it, and what is said where it fails. A real
server answers.
"""

import io
import json
import os
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from stores import SECRET, store, without_rights

from clinveil.cli.main import main
from clinveil.core.errors import DiskError, InputError, UsageError
from clinveil.core.locations import RemotePath, failing, place
from clinveil.core.runfolder import fingerprint
from clinveil.core.upload import MARKER, SUCCESS, ready, send, through
from clinveil.corpus.corpus import rows
from clinveil.corpus.open import NotesCorpus, open_corpus


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
    one = open_corpus(place("s3://notes/one.csv.gz"))
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
        fingerprint(place("s3://notes/change/*.parquet")),
        fingerprint(place("s3://notes/change")),
    )
    assert before == (
        fingerprint(place("s3://notes/change/*.parquet")),
        fingerprint(place("s3://notes/change")),
    )
    put(server, "notes/change/a.parquet", parquet(0, n=30))
    after = (
        fingerprint(place("s3://notes/change/*.parquet")),
        fingerprint(place("s3://notes/change")),
    )
    assert before[0] != after[0]
    assert before[1] != after[1]
    assert len(fingerprint(place("s3://notes/one.csv.gz"))) == 64


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
    url = place("s3://notes/a/b.parquet?region=us-east-1")
    assert (url.name, url.suffix, str(url)) == ("b.parquet", ".parquet", "s3://notes/a/b.parquet")
    assert pickle.loads(pickle.dumps(url)) == url
    with pytest.raises(UsageError, match="a remote path is not supported here"):
        os.stat(url)
    assert not isinstance(place("a/b.parquet"), RemotePath)


def test_other_kinds_of_places(tmp_path):
    (tmp_path / "a.csv").write_text("id,text\n1,a\n")
    assert ids(open_corpus(f"file://{tmp_path}/a.csv")) == ["1"]
    assert ids(open_corpus(f"file://{tmp_path}/*.csv")) == ["1"]
    with pytest.raises(UsageError, match="unsupported URL scheme gopher://"):
        open_corpus("gopher://x/y.csv")


def test_no_address_no_store():
    code = (
        "import sys, clinveil.cli.main, clinveil.corpus.open as o, tempfile, pathlib\n"
        "p = pathlib.Path(tempfile.mkdtemp()) / 'a.csv'; p.write_text('id,text\\n1,a\\n'); "
        "list(o.open_corpus(p).batches())\n"
        "print([m for m in ('deltalake', 'duckdb') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def folder(tmp_path, n: int = 2):
    made = tmp_path / "made"
    (made / "sub").mkdir(parents=True)
    for number in range(n):
        (made / "sub" / f"part-{number}.parquet").write_bytes(parquet(3 * number))
    return made


def names(server, path: str) -> list[str]:
    infos = server.files.get_file_info(
        pafs.FileSelector(path, recursive=True, allow_not_found=True)
    )
    return sorted(one.path[len(path) + 1 :] for one in infos if one.type == pafs.FileType.File)


def test_a_folder_is_sent_whole_with_its_sign_last(server, tmp_path):
    out = place("s3://notes/sent")
    ready(out, command="test", force=False)
    assert names(server, "notes/sent") == [MARKER]  # the store can be written
    send(folder(tmp_path), out, command="test", force=False)
    assert names(server, "notes/sent") == [
        MARKER,
        SUCCESS,
        "sub/part-0.parquet",
        "sub/part-1.parquet",
    ]
    assert ids(open_corpus(out)) == [f"n{i}" for i in range(6)]
    with pytest.raises(UsageError, match="sent: already exists"):
        ready(out, command="test", force=False)
    with pytest.raises(UsageError, match="not an output folder of clinveil other"):
        ready(out, command="other", force=True)
    (tmp_path / "made" / "sub" / "part-1.parquet").unlink()
    send(tmp_path / "made", out, command="test", force=True)
    assert names(server, "notes/sent") == [MARKER, SUCCESS, "sub/part-0.parquet"]
    put(server, "notes/sent/of_others.txt", b"x")
    with pytest.raises(UsageError, match="contains 1 files that clinveil did not write"):
        send(tmp_path / "made", out, command="test", force=True)
    with pytest.raises(UsageError, match="not an output folder of clinveil test"):
        ready(place("s3://notes/in"), command="test", force=True)


def test_what_was_cut_short_has_no_sign_and_is_overwritten(server, tmp_path, monkeypatch):
    out = place("s3://notes/cut")
    made = folder(tmp_path)
    put_one = __import__("clinveil.core.upload", fromlist=["_put"])._put
    calls = []

    def fails(system, local, path):
        calls.append(path)
        if len(calls) == 2:
            raise OSError("AWS Error NETWORK_CONNECTION")
        put_one(system, local, path)

    monkeypatch.setattr("clinveil.core.upload._put", fails)
    with pytest.raises(DiskError, match="the store cannot be reached"):
        send(made, out, command="test", force=False)
    assert names(server, "notes/cut") == [MARKER, "sub/part-0.parquet"]
    send(made, out, command="test", force=False)
    assert SUCCESS in names(server, "notes/cut")


def test_a_run_that_cannot_send_keeps_what_it_made_and_the_next_only_sends(
    server, tmp_path, monkeypatch
):
    out = place("s3://notes/kept.parquet")
    vault = tmp_path / "vault"
    made = []

    def make(at):
        made.append(at)
        at.write_bytes(parquet(0))
        return "counts"

    how = {"asked": lambda: "a", "command": "test", "force": False, "say": lambda line: None}
    with pytest.raises(UsageError, match="a vault is required"):
        through(out, None, make, **how)
    with monkeypatch.context() as patch:
        patch.setattr(
            "clinveil.core.upload._put", lambda *_: (_ for _ in ()).throw(OSError("ACCESS_DENIED"))
        )
        with pytest.raises(
            DiskError, match=r"denied access \(the complete output is in vault.upload"
        ):
            through(out, vault, make, **how)
    assert (tmp_path / "vault.upload").stat().st_mode & 0o777 == 0o700
    with pytest.raises(UsageError, match="contains the output of another run"):
        through(out, vault, make, **how | {"asked": lambda: "b"})
    assert through(out, vault, make, **how) is None
    assert len(made) == 1
    assert not (tmp_path / "vault.upload").exists()
    assert ids(open_corpus(out)) == ["n0", "n1", "n2"]
    with pytest.raises(UsageError, match="already exists"):
        through(out, vault, make, **how)


def test_a_bucket_that_is_not_there_stops_a_run_before_its_work(server, tmp_path):
    how = {"asked": lambda: "a", "command": "test", "force": False, "say": lambda line: None}
    with pytest.raises((DiskError, InputError), match="the bucket does not exist"):
        through(
            place("s3://nobody-has-this/out"),
            tmp_path / "vault",
            lambda at: pytest.fail("worked"),
            **how,
        )
    assert not list(tmp_path.iterdir())


def test_a_store_without_rights(tmp_path, capfd):
    with pytest.MonkeyPatch.context() as patch, without_rights(patch):
        for url in ("s3://notes/in/*.parquet", "s3://notes/in", "s3://notes/a.csv"):
            with pytest.raises(InputError, match="the store denied access"):
                open_corpus(url)
        (tmp_path / "a.csv").write_text("id,text\n1,a\n")
        run = [
            "deidentify",
            str(tmp_path / "a.csv"),
            "-o",
            "s3://notes/out",
            "--vault",
            str(tmp_path / "vault"),
        ]
        assert main(run) in (3, 5)
        assert sorted(item.name for item in tmp_path.iterdir()) == ["a.csv"]
        assert SECRET not in capfd.readouterr().err


def test_a_store_that_is_gone(tmp_path):
    with pytest.MonkeyPatch.context() as patch, store(patch) as gone:
        put(gone, "notes/a.parquet", parquet(0))
        corpus = open_corpus("s3://notes/a.parquet")
        gone.stop()
        with pytest.raises(InputError, match=r"a.parquet: the store cannot be reached"):
            ids(corpus)
        with (
            pytest.raises(DiskError, match="the store cannot be reached"),
            failing("x", writing=True),
        ):
            place("s3://notes/b").system()[0].open_output_stream("notes/b").close()
        how = {"command": "test", "force": False, "say": lambda line: None}
        gone.start()

        def make(at):
            at.write_bytes(parquet(0))
            gone.stop()

        gone_now = f"s3://notes/late.parquet?endpoint_override=127.0.0.1:{gone.port}&scheme=http"
        with pytest.raises(
            DiskError, match=r"the store cannot be reached \(the complete output is in v.upload"
        ):
            through(place(gone_now), tmp_path / "v", make, lambda: "a", **how)


def test_the_marker_holds_names_only(server, tmp_path):
    send(folder(tmp_path, 1), place("s3://notes/marked"), command="test", force=False)
    with server.files.open_input_stream(f"notes/marked/{MARKER}") as file:
        assert set(json.loads(file.read())) == {"schema", "command", "files"}


def test_the_commands_read_and_write_a_store_and_the_vault_stays_here(server, tmp_path, capfd):
    out = "s3://notes/free"
    vault = str(tmp_path / "vault")
    run = [
        "deidentify",
        "s3://notes/in/*/*.parquet",
        "-o",
        out,
        "--workers",
        "1",
        "--keep-ids",
        "--vault",
        vault,
    ]
    assert main(run[:-2]) == 2
    assert main(run) == 0
    assert names(server, "notes/free") == [
        MARKER,
        SUCCESS,
        *(f"part-{n:05d}.parquet" for n in (1, 2, 3)),
    ]
    assert ids(open_corpus(out)) == [f"n{i}" for i in range(9)]
    assert main(run) == 2  # taken
    assert main(["inspect", out]) == 0
    written = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()).decode(
        "latin-1"
    )
    assert SECRET not in capfd.readouterr().err + written
    assert not (tmp_path / "vault.upload").exists()


@pytest.mark.parametrize(
    "flags", [["-o", "s3://notes/out"], ["-o", "out", "--vault", "s3://notes/vault"]]
)
def test_what_must_lie_here_is_no_folder_named_like_a_store(flags, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.csv").write_text("note_id,text\n1,a\n")
    assert main(["release", "notes.csv", *flags]) == 2
    assert capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["notes.csv"]
