"""A server of objects at this machine, for tests that read and write `s3://`."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

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


class Store:
    """A moto server in a process of its own: two in one process would hold the same objects."""

    def start(self) -> None:
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
        with tempfile.NamedTemporaryFile() as said:
            self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
            until = time.monotonic() + 60
            while not (
                found := re.search(r"http://(127\.0\.0\.1:\d+)", Path(said.name).read_text())
            ):
                assert self._process.poll() is None, Path(said.name).read_text()
                assert time.monotonic() < until, "moto does not start"
                time.sleep(0.05)
        self.address = found[1]

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def port(self) -> str:
        return self.address.partition(":")[2]


@contextmanager
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A store with a bucket `notes`, to which the environment points; it can be stopped and
    started, then empty.
    """
    pytest.importorskip("moto.server")
    made = Store()
    made.start()
    try:
        _point(monkeypatch, made.address)
        from pyarrow import fs

        made.files = fs.S3FileSystem(
            endpoint_override=made.address, scheme="http", allow_bucket_creation=True
        )
        made.files.create_dir("notes")
        yield made
    finally:
        made.stop()
