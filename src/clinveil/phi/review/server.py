"""The server of the review page: for the browser of this machine, and for nobody else.

It listens at 127.0.0.1. The address that is printed ends with a one-time word, which the browser keeps from the server
until the page trades it for the word of this session. That one goes along with every request in a header of its own,
not in a cookie: cookies are sent to all ports of a machine, and a header cannot be set from another site's page. Host
and Origin are looked at, so that no outside name and no outside page gets an answer. Nothing is logged.

This is the only file of clinveil that imports a part of the network: `lint-imports` holds it to that.
"""

from __future__ import annotations

import inspect
import json
import sys
import traceback
from collections.abc import Callable, Mapping
from hmac import compare_digest
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from importlib.resources import files
from secrets import token_urlsafe
from threading import Lock, Thread
from typing import Any

from clinveil.core.errors import ClinveilError, UsageError
from clinveil.phi.review.desk import Desk

ADDRESS = "127.0.0.1"
MOST_BYTES = 1 << 20
"""Of a request; a step that changes every span of a large note at once is far below."""
SECONDS = 30
"""So long may a request take to arrive."""
KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
SCRIPTS = "review state opened decide find keys labels lists note offsets server"
PAGE = ("review.html", "review.css", *(f"{name}.js" for name in SCRIPTS.split()))
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Refusal(Exception):
    """A request that gets no answer but a status and a line; the line says nothing about notes."""

    def __init__(self, status: int, line: str) -> None:
        super().__init__(line)
        self.status, self.line = status, line


class Pass:
    """Who may ask: the one-time word opens one session, whose word then opens everything."""

    def __init__(self) -> None:
        self.once, self._session, self._lock = token_urlsafe(32), token_urlsafe(32), Lock()
        self._used = False

    def enter(self, word: Any) -> str:
        """The word of the session for the one-time word; once."""
        with self._lock:
            if self._used or not isinstance(word, str) or not compare_digest(word.encode(), self.once.encode()):
                raise Refusal(403, "this address was used already, or is of another run: start clinveil review again")
            self._used = True
            return self._session

    def check(self, header: str | None) -> None:
        """Refuse whoever does not know the word of the session."""
        if not compare_digest((header or "").encode(), f"Bearer {self._session}".encode()):
            raise Refusal(401, "start clinveil review again, and open the address that it prints")


class ReviewServer(ThreadingHTTPServer):
    """The page and its requests for one desk. Raises UsageError where the port is taken."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, desk: Desk, port: int = 0) -> None:
        self.desk, self.guard = desk, Pass()
        try:
            super().__init__((ADDRESS, port), Handler)
        except OSError:
            raise UsageError(f"port {port} is taken", hint="another --port, or none for any that is free") from None
        page = files("clinveil.phi.review").joinpath("page")
        self.page = {f"/{name}": (KINDS[name.rpartition(".")[2]], page.joinpath(name).read_bytes()) for name in PAGE}
        self.page["/"] = self.page["/review.html"]
        self.hosts = {f"{name}:{self.server_port}" for name in (ADDRESS, "localhost")}

    def server_bind(self) -> None:
        """Bind without asking anybody for a name of this machine, as the library's own does."""
        super(HTTPServer, self).server_bind()
        self.server_name, self.server_port = ADDRESS, self.server_address[1]

    @property
    def address(self) -> str:
        """What the reviewer opens: the one-time word stands behind the #, which browsers send to nobody."""
        return f"http://{ADDRESS}:{self.server_port}/#{self.guard.once}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say where it failed; what failed may hold note text."""
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError | TimeoutError):
            sys.stderr.write(f"clinveil: internal error: {_place(error)}; please report it, without any note text\n")

    def stop(self) -> None:
        """End `serve_forever`, from a request's own thread too."""
        Thread(target=self.shutdown, daemon=True).start()

    def answers(self) -> Mapping[str, Callable[..., Mapping[str, Any]]]:
        """What each request of the page calls, with the fields of its body."""
        desk = self.desk
        steps: list[tuple[str, Callable[..., Mapping[str, Any]]]] = [("queue", desk.queue), ("note", desk.note)]
        steps += [("act", desk.act), ("undo", desk.undo), ("search", desk.search)]
        return {f"/api/{name}": function for name, function in steps}


class Handler(BaseHTTPRequestHandler):
    """One request. All that is not known is refused."""

    server: ReviewServer
    server_version, sys_version = "clinveil", ""
    protocol_version = "HTTP/1.1"
    timeout = SECONDS
    last = False
    """Whether the page asked to stop."""

    def do_GET(self) -> None:
        """A file of the page."""
        self._answer(self._file)

    def do_POST(self) -> None:
        """A request of the page's script."""
        self._answer(self._request)
        if self.last:  # only now: the process may end before a later answer is sent
            self.server.stop()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the library refuses itself, such as other methods: without a page of its own."""
        self._say(405 if code == 501 else code, "text/plain", b"refused\n", close=True)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: requests are about notes."""

    def _answer(self, make: Callable[[], tuple[str, bytes]]) -> None:
        try:
            self._check_asker()
            kind, body = make()
            self._say(200, kind, body)
        except Refusal as refused:
            self._refuse(refused.status, refused.line)
        except ClinveilError as error:
            self._refuse(400, str(error))
        except OSError as error:
            if isinstance(error, ConnectionError | TimeoutError):
                raise
            self._refuse(507, "the disk did not take it: this step is not saved")
        except Exception as error:  # noqa: BLE001  its message may hold note text
            self._refuse(500, f"internal error: {_place(error)}")

    def _check_asker(self) -> None:
        """Refuse other names for this machine (DNS rebinding) and pages of other sites."""
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1 or hosts[0] not in self.server.hosts:
            raise Refusal(403, "open the address that clinveil review prints")
        origin = self.headers.get("Origin")
        if origin != f"http://{hosts[0]}" and (origin is not None or self.command == "POST"):
            raise Refusal(403, "this is asked from another page")
        if self.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            raise Refusal(403, "this is asked from another page")

    def _file(self) -> tuple[str, bytes]:
        if self.path not in self.server.page:
            raise Refusal(404, "there is nothing here")
        return self.server.page[self.path]

    def _request(self) -> tuple[str, bytes]:
        body = self._body()
        if self.path == "/api/enter":
            return _json({"session": self.server.guard.enter(body.get("word"))})
        self.server.guard.check(self.headers.get("Authorization"))
        if self.path == "/api/stop":
            self.last = True
            return _json({})
        function = self.server.answers().get(self.path)
        if function is None:
            raise Refusal(404, "there is nothing here")
        _refuse_other_fields(function, body)
        return _json(function(**body))

    def _body(self) -> dict[str, Any]:
        length = self.headers.get("Content-Length", "")
        if self.headers.get("Transfer-Encoding") or not length.isascii() or not length.isdigit():
            raise Refusal(411, "a request says how long it is")
        if int(length) > MOST_BYTES:
            raise Refusal(413, "this request is too long")
        if self.headers.get_content_type() != "application/json":
            raise Refusal(415, "a request is JSON")
        try:
            body = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            raise Refusal(400, "this is no JSON") from None
        if not isinstance(body, dict):
            raise Refusal(400, "a request is an object")
        return body

    def _refuse(self, status: int, line: str) -> None:
        self._say(status, "application/json", json.dumps({"refused": line}).encode(), close=True)

    def _say(self, status: int, kind: str, body: bytes, *, close: bool = False) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        if close:  # what is left of a body that was not read is no next request
            self.send_header("Connection", "close")
            self.close_connection = True
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


_FIELDS: Mapping[str, Any] = {"at": int, "verdicts": list, "done": bool | None, "words": str}


def _refuse_other_fields(function: Callable[..., Any], body: Mapping[str, Any]) -> None:
    """Refuse a request whose fields are not those of its function, or of other kinds."""
    try:
        inspect.signature(function).bind(**body)
        fits = all(isinstance(value, _FIELDS[name]) for name, value in body.items())
    except TypeError:
        fits = False
    if not fits:
        raise Refusal(400, "this request has other fields than it should")


def _json(value: Mapping[str, Any]) -> tuple[str, bytes]:
    return "application/json", json.dumps(value).encode()


def _place(error: BaseException | None) -> str:
    frames = traceback.extract_tb(error.__traceback__ if error else None)
    return f"{type(error).__name__} at line {frames[-1].lineno if frames else 0}"
