"""A Postgres of Debian's, started in a folder of its own, for tests that read from one."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PASSWORD = "postgres-secret-91c2"
USER = "reader"


class Postgres:
    """A running server: `uri` needs no password (a socket), `by_tcp` does; `sql` runs
    statements.
    """

    def __init__(self, folder: Path, port: int, tools: Path, who: list[str]) -> None:
        self.folder = folder
        self.port = port
        self._tools = tools
        self._who = who
        self.uri = f"postgresql://{USER}@/postgres?host={folder}&port={port}"
        self.by_tcp = f"postgresql://{USER}@127.0.0.1:{port}/postgres"

    def run(self, tool: str, *arguments: str) -> None:
        done = subprocess.run(
            [*self._who, str(self._tools / tool), *arguments],
            capture_output=True,
            text=True,
            cwd="/",
            timeout=60,
        )
        assert done.returncode == 0, done.stderr

    def sql(self, statements: str) -> None:
        where = ("-h", str(self.folder), "-p", str(self.port), "-U", USER, "-d", "postgres")
        self.run("psql", "-q", "-v", "ON_ERROR_STOP=1", *where, "-c", statements)

    def stop(self) -> None:
        self.run("pg_ctl", "-D", str(self.folder / "data"), "stop", "-m", "immediate")


@contextmanager
def postgres() -> Iterator[Postgres]:
    """A new server; skips the test where Debian's package `postgresql` is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found or (os.geteuid() == 0 and shutil.which("runuser") is None):
        pytest.skip("no Postgres is installed here")
    folder = Path(tempfile.mkdtemp(prefix="clinveil-pg-", dir="/tmp"))
    who = []
    if os.geteuid() == 0:  # Postgres refuses to run as root
        shutil.chown(folder, "postgres", "postgres")
        who = ["runuser", "-u", "postgres", "--"]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = Postgres(folder, port, found[-1].parent, who)
    secret = folder / "password"
    secret.write_text(PASSWORD)
    secret.chmod(0o644)
    data = str(folder / "data")
    try:
        auth = ("--auth-local=trust", "--auth-host=scram-sha-256", f"--pwfile={secret}")
        server.run("initdb", "-D", data, "-U", USER, "--no-sync", "-E", "UTF8", "--locale=C", *auth)
        options = f"-k {folder} -p {port} -c listen_addresses=127.0.0.1 -c fsync=off"
        server.run("pg_ctl", "-D", data, "-o", options, "-l", str(folder / "log"), "-w", "start")
        yield server
    finally:
        try:
            server.stop()
        except AssertionError:
            """It is down already."""
        shutil.rmtree(folder, ignore_errors=True)
