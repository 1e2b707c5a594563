"""A server of objects at this machine, for tests that read and write `s3://`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.request import Request, urlopen

import pytest

SECRET = "moto-secret-7f3a"


@contextmanager
def without_rights(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A server that lets nobody do anything, to which the environment points."""

    class Refusing(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
            self.send_response(403)
            self.send_header("Content-Type", "application/xml")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_HEAD = do_PUT = do_POST = answer

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        _point(monkeypatch, f"127.0.0.1:{server.server_port}")
        yield
        server.shutdown()


def _point(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    for name, value in {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL": f"http://{address}",
    }.items():
        monkeypatch.setenv(name, value)


@contextmanager
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """A moto server with a bucket `notes`, to which the environment points; what is yielded can be stopped."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    _point(monkeypatch, f"{host}:{port}")
    urlopen(Request(f"http://{host}:{port}/moto-api/reset", method="POST"))  # all servers of a process hold the same
    from pyarrow import fs

    made = fs.S3FileSystem(endpoint_override=f"{host}:{port}", scheme="http", allow_bucket_creation=True)
    made.create_dir("notes")
    server.files = made
    try:
        yield server
    finally:
        server.stop()
