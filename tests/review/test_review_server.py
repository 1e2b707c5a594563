"""The page's server: for this machine's browser and its own page only, and without a word in any
log.
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from http.client import HTTPConnection
from importlib.resources import files

import pytest
from review_cases import TEXTS, decision_lines, served, serving

from clinveil.cli import main
from clinveil.core import UsageError
from clinveil.phi import ReviewServer
from clinveil.phi.review.server import HEADERS, MAX_BYTES, PAGE


class Client:
    """A browser without its manners."""

    def __init__(self, server):
        self.server = server
        self.word = None
        self.host = f"127.0.0.1:{server.server_port}"

    def send(self, method, path, body=None, **headers):
        connection = HTTPConnection("127.0.0.1", self.server.server_port, timeout=60)
        own = {
            "Host": self.host,
            "Origin": f"http://{self.host}",
            "Content-Type": "application/json",
        }
        own |= {"Authorization": f"Bearer {self.word}"} if self.word else {}
        own |= {name.replace("_", "-"): value for name, value in headers.items()}
        sent = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in {"Content-Length": str(len(sent or b"")), **own}.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders(sent)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()

    def ask(self, name, body=None, **headers):
        status, _, said = self.send("POST", f"/api/{name}", {} if body is None else body, **headers)
        return status, json.loads(said)

    def enter(self):
        status, said = self.ask("enter", {"word": self.server.guard.once})
        assert status == 200
        self.word = said["session"]
        return self


@pytest.fixture()
def server(open_desk):
    with open_desk() as desk, serving(desk) as running:
        yield running


@pytest.fixture()
def client(server):
    return Client(server)


def test_it_listens_to_this_machine_only_and_asks_for_no_name(open_desk, monkeypatch):
    monkeypatch.setattr(socket, "getfqdn", lambda *_: pytest.fail("a name was asked for"))
    with open_desk() as work, ReviewServer(work) as server:
        assert server.socket.getsockname()[0] == "127.0.0.1"


def test_the_address_keeps_its_word_from_servers(server):
    assert server.address.startswith("http://127.0.0.1:")
    assert "#" in server.address and "?" not in server.address


def test_the_page_comes_with_its_files_its_headers_and_nothing_from_outside(client):
    for name in ("", *PAGE):
        status, headers, body = client.send("GET", f"/{name}", Origin=None)
        assert status == 200 and HEADERS.items() <= headers.items()
        assert headers["Server"].strip() == "clinveil"
        text = body.decode()
        assert "http:" not in text and "https:" not in text and "//" not in text.replace("// ", "")
        assert not any(
            told in text for told in ("innerHTML", "eval(", "insertAdjacent", "style=", "onclick=")
        )
    assert (
        headers["Cache-Control"] == "no-store"
        and "default-src 'none'" in headers["Content-Security-Policy"]
    )
    listed = {item.name for item in files("clinveil.phi.review").joinpath("page").iterdir()}
    assert listed == set(PAGE)


@pytest.mark.parametrize(
    "path",
    [
        "/../server.py",
        "/page/review.js",
        "/%2e%2e/server.py",
        "/review.js?x",
        "/review.js/",
        "/api/note",
    ],
)
def test_nothing_else_is_there(client, path):
    assert client.send("GET", path)[0] == 404
    assert client.enter().send("POST", f"{path}x")[0] in (400, 404)


def test_the_one_time_word_opens_once_and_its_session_opens_the_rest(client, server):
    for name in ("queue", "note", "act", "undo", "search", "stop", "nothing"):
        assert client.ask(name)[0] == 401
    for wrong in ("", "x", 5, None, "\ud800", server.guard.once + "x"):
        assert client.ask("enter", {"word": wrong})[0] == 403
    other = Client(server)
    client.enter()
    assert client.ask("queue")[0] == 200
    assert other.ask("enter", {"word": server.guard.once})[0] == 403
    other.word = server.guard.once
    assert other.ask("queue")[0] == 401
    other.word = "ü"
    assert other.ask("queue")[0] == 401


def test_other_names_of_this_machine_and_other_pages_get_nothing(client):
    client.enter()
    port = client.server.server_port
    for host in (
        f"evil.example:{port}",
        "127.0.0.1",
        f"127.0.0.1:{port + 1}",
        f"127.0.0.1.nip.io:{port}",
        "",
        None,
    ):
        assert client.ask("queue", Host=host)[0] == 403
        assert client.send("GET", "/", Host=host)[0] == 403
    for origin in (
        "https://evil.example",
        "null",
        None,
        f"http://localhost:{port}",
        f"https://{client.host}",
    ):
        assert client.ask("queue", Origin=origin)[0] == 403
    assert client.send("GET", "/review.js", Origin="https://evil.example")[0] == 403
    for site in ("cross-site", "same-site"):
        assert client.ask("queue", Sec_Fetch_Site=site)[0] == 403
    assert client.ask("queue", Sec_Fetch_Site="same-origin")[0] == 200
    local = f"localhost:{port}"
    assert client.ask("queue", Host=local, Origin=f"http://{local}")[0] == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE", "BREW"])
def test_other_methods_are_refused(client, method):
    status, headers, _ = client.send(method, "/")
    assert status == 405 and headers["Content-Security-Policy"]


def test_bodies_that_are_too_long_or_no_json_are_refused_and_the_next_request_is_answered(client):
    client.enter()
    assert client.ask("search", b"x" * 10, Content_Length=str(MAX_BYTES + 1))[0] == 413
    assert (
        client.send(
            "POST", "/api/search", b"0\r\n\r\n", Content_Length=None, Transfer_Encoding="chunked"
        )[0]
        == 411
    )
    for length in (None, "-1", "1e3", "x", "²"):
        assert (
            client.ask("search", b"", Content_Length=length.encode() if length else None)[0] == 411
        )
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert client.ask("search", {"words": "x"}, Content_Type=kind)[0] == 415
    for body in (b"", b"{", b"[]", b"\xff", b"[" * 100_000):
        assert client.ask("search", body)[0] == 400
    for body in ({}, {"words": 5}, {"words": "x", "more": 1}, {"at": 0}, {"words": None}):
        assert client.ask("search", body)[0] == 400
    assert client.ask("search", {"words": "Okwuosa"})[0] == 200


def test_a_step_goes_to_the_disk_and_a_refused_one_says_why(client, made):
    client.enter()
    _, said = client.ask("note", {"at": 0})
    assert said["text"] == TEXTS["plain"]
    place = said["spans"][0]["place"]
    status, said = client.ask(
        "act", {"at": 0, "verdicts": [{"place": place, "verdict": "drop"}], "done": True}
    )
    assert status == 200 and said["listed"]["done"]
    assert decision_lines(made)[-1]["set"] == [{"place": place, "verdict": "drop"}]
    status, said = client.ask("act", {"at": 99, "verdicts": []})
    assert (status, said) == (400, {"refused": "no such note in the queue"})


def test_a_full_disk_and_a_fault_of_ours_are_said_without_their_message(client, monkeypatch, capfd):
    client.enter()
    for error, status in ((OSError(28, "Okwuosa"), 507), (RuntimeError("Okwuosa"), 500)):

        def fail(at, verdicts, done=None, error=error):
            raise error

        monkeypatch.setattr(client.server.desk, "act", fail)
        code, said = client.ask("act", {"at": 0, "verdicts": []})
        assert code == status and "Okwuosa" not in said["refused"]
    assert capfd.readouterr() == ("", "")


def test_no_request_leaves_a_line(client, capfd):
    client.enter()
    client.ask("note", {"at": 0})
    client.send("GET", "/Okwuosa")
    with socket.create_connection(("127.0.0.1", client.server.server_port)) as raw:
        raw.sendall(b"Okwuosa\r\n\r\n")
        assert raw.recv(1000) == b"refused\n"
    with socket.create_connection(("127.0.0.1", client.server.server_port)) as raw:
        raw.sendall(b"POST /api/note HTTP/1.1\r\nContent-Length: 50\r\n\r\nOkw")
    assert client.ask("queue")[0] == 200
    assert capfd.readouterr() == ("", "")


def test_a_port_that_is_taken_is_said(client):
    with pytest.raises(UsageError, match="is in use"):
        ReviewServer(client.server.desk, client.server.server_port)


def test_the_command_serves_until_it_is_stopped_and_only_the_address_goes_to_stdout(
    made, monkeypatch
):
    monkeypatch.setenv("CLINVEIL_TEST_NETWORK_LOG", str(made / "asked"))
    with served(made, stderr=subprocess.PIPE) as (process, address):
        host, _, word = address.removeprefix("http://").partition("/#")
        connection = HTTPConnection(host, timeout=10)
        headers = {"Origin": f"http://{host}", "Content-Type": "application/json"}
        connection.request("POST", "/api/enter", json.dumps({"word": word}), headers)
        session = json.loads(connection.getresponse().read())["session"]
        headers["Authorization"] = f"Bearer {session}"
        connection.request(
            "POST", "/api/act", json.dumps({"at": 3, "verdicts": [], "done": True}), headers
        )
        assert connection.getresponse().read()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert process.returncode == 130 and out == ""
    assert "1 of 5 notes are reviewed" in err and "--reviewed out.parquet.vault" in err
    assert not any(word in err for text in TEXTS.values() for word in text.split() if len(word) > 5)
    assert not (made / "asked").exists()


@pytest.mark.parametrize(
    ("name", "flag"),
    [
        ("reviewer", ["--reviewer", "../x"]),
        ("reviewer", ["--reviewer", ""]),
        ("port", ["--port", "70000"]),
        ("most", ["--set", "most=0"]),
    ],
)
def test_flags_that_make_no_sense_are_refused(made, name, flag, capsys):
    assert main(["review", "out.parquet", *flag]) == 2
    assert capsys.readouterr().err.startswith(f"clinveil: {name}: ")
