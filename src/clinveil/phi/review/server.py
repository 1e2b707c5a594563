"""The server of the review page, reachable only from the local machine.

It listens on 127.0.0.1. The printed address contains a one-time token in its fragment, which
browsers do not send. The page exchanges it for a session token, which accompanies every request in
a header. A cookie would be sent to all ports of the machine, and a header cannot be set by a page
of another site. Host and Origin are checked against DNS rebinding and cross-site requests. Nothing
is logged.

This is the only module of clinveil that imports an HTTP server; `lint-imports` enforces this.
"""

from __future__ import annotations

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

from clinveil.core import ClinveilError, UsageError
from clinveil.phi.review.desk import Desk

ADDRESS = "127.0.0.1"
MAX_BYTES = 1 << 20
"""Maximum size of a request, far above a step that changes every span of a large note."""
SECONDS = 30
"""Time limit for receiving a request."""
KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
SCRIPTS = "review state opened decide find labels lists note offsets server"
PAGE = ("review.html", "review.css", *(f"{name}.js" for name in SCRIPTS.split()))
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


FIELDS: Mapping[str, Mapping[str, Any]] = {
    "/api/queue": {},
    "/api/note": {"at": int},
    "/api/act": {"at": int, "verdicts": list, "done": bool | None},
    "/api/undo": {"at": int},
    "/api/search": {"words": str},
}
"""Fields of each API request with their types."""
OPTIONAL = {"done"}


class Refusal(Exception):
    """A request refused with a status and a one-line message without note text."""

    def __init__(self, status: int, line: str) -> None:
        super().__init__(line)
        self.status = status
        self.line = line


class Authentication:
    """Authentication: a one-time token opens one session, whose token authorises all requests."""

    def __init__(self) -> None:
        self.once = token_urlsafe(32)
        self._session = token_urlsafe(32)
        self._lock = Lock()
        self._used = False

    def enter(self, word: Any) -> str:
        """Exchange the one-time token for the session token. Works once."""
        with self._lock:
            sent = word.encode("utf-8", "surrogatepass") if isinstance(word, str) else b""
            if self._used or not compare_digest(sent, self.once.encode()):
                raise Refusal(
                    403, "this address was already used or is outdated: start clinveil review again"
                )
            self._used = True
            return self._session

    def check(self, header: str | None) -> None:
        """Refuse requests without the session token."""
        if not compare_digest((header or "").encode(), f"Bearer {self._session}".encode()):
            raise Refusal(
                401, "not authorised: start clinveil review again and open the printed address"
            )


class ReviewServer(ThreadingHTTPServer):
    """The page and API for one desk. Raises UsageError if the port is in use."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, desk: Desk, port: int = 0) -> None:
        self.desk = desk
        self.guard = Authentication()
        try:
            super().__init__((ADDRESS, port), Handler)
        except OSError:
            raise UsageError(
                f"port {port} is in use",
                hint="choose another --port, or omit it to use any free port",
            ) from None
        page = files("clinveil.phi.review").joinpath("page")
        self.page = {
            f"/{name}": (KINDS[name.rpartition(".")[2]], page.joinpath(name).read_bytes())
            for name in PAGE
        }
        self.page["/"] = self.page["/review.html"]
        self.hosts = {f"{name}:{self.server_port}" for name in (ADDRESS, "localhost")}

    def server_bind(self) -> None:
        """Bind without the reverse name look-up of the base class."""
        super(HTTPServer, self).server_bind()
        self.server_name = ADDRESS
        self.server_port = self.server_address[1]

    @property
    def address(self) -> str:
        """The address to open. The one-time token is in the fragment, which browsers do not
        send.
        """
        return f"http://{ADDRESS}:{self.server_port}/#{self.guard.once}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report the location of an internal error without its message, which may contain note
        text.
        """
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError | TimeoutError):
            sys.stderr.write(
                f"clinveil: internal error: {_location(error)}; please report it, without any note"
                " text\n"
            )

    def stop(self) -> None:
        """Stop `serve_forever`; may be called from a request's thread."""
        Thread(target=self.shutdown, daemon=True).start()

    def answer(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the answer to an API request, whose body has the fields of `FIELDS`."""
        match path:
            case "/api/note":
                return self.desk.note(body["at"])
            case "/api/act":
                return self.desk.act(body["at"], body["verdicts"], body.get("done"))
            case "/api/undo":
                return self.desk.undo(body["at"])
            case "/api/search":
                return self.desk.search(body["words"])
            case _:
                return self.desk.queue()


class Handler(BaseHTTPRequestHandler):
    """One request. Unknown paths and methods are refused."""

    server: ReviewServer
    server_version = "clinveil"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = SECONDS
    last = False
    """Whether the page requested a stop."""

    def do_GET(self) -> None:
        """Serve a file of the page."""
        self._answer(self._file)

    def do_POST(self) -> None:
        """Serve an API request."""
        self._answer(self._request)
        if self.last:  # after the answer, because the process may end
            self.server.stop()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer errors of the library, such as unknown methods, without its HTML page."""
        self._send(405 if code == 501 else code, "text/plain", b"refused\n", close=True)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: requests contain note data."""

    def _answer(self, make: Callable[[], tuple[str, bytes]]) -> None:
        try:
            self._check_origin()
            kind, body = make()
            self._send(200, kind, body)
        except Refusal as refused:
            self._refuse(refused.status, refused.line)
        except ClinveilError as error:
            self._refuse(400, str(error))
        except OSError as error:
            if isinstance(error, ConnectionError | TimeoutError):
                raise
            self._refuse(507, "write failed: this step is not saved")
        except Exception as error:  # noqa: BLE001  its message may contain note text
            self._refuse(500, f"internal error: {_location(error)}")

    def _check_origin(self) -> None:
        """Refuse other host names (DNS rebinding) and pages of other sites."""
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1 or hosts[0] not in self.server.hosts:
            raise Refusal(403, "open the address printed by clinveil review")
        origin = self.headers.get("Origin")
        if origin != f"http://{hosts[0]}" and (origin is not None or self.command == "POST"):
            raise Refusal(403, "cross-site request refused")
        if self.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            raise Refusal(403, "cross-site request refused")

    def _file(self) -> tuple[str, bytes]:
        if self.path not in self.server.page:
            raise Refusal(404, "not found")
        return self.server.page[self.path]

    def _request(self) -> tuple[str, bytes]:
        body = self._body()
        if self.path == "/api/enter":
            return _json({"session": self.server.guard.enter(body.get("word"))})
        self.server.guard.check(self.headers.get("Authorization"))
        if self.path == "/api/stop":
            self.last = True
            return _json({})
        fields = FIELDS.get(self.path)
        if fields is None:
            raise Refusal(404, "not found")
        if not (
            fields.keys() - OPTIONAL <= body.keys() <= fields.keys()
            and all(isinstance(value, fields[name]) for name, value in body.items())
        ):
            raise Refusal(400, "unexpected or invalid fields")
        return _json(self.server.answer(self.path, body))

    def _body(self) -> dict[str, Any]:
        length = self.headers.get("Content-Length", "")
        if self.headers.get("Transfer-Encoding") or not length.isascii() or not length.isdigit():
            raise Refusal(411, "Content-Length required")
        if int(length) > MAX_BYTES:
            raise Refusal(413, "request too large")
        if self.headers.get_content_type() != "application/json":
            raise Refusal(415, "request must be application/json")
        try:
            body = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            raise Refusal(400, "invalid JSON") from None
        if not isinstance(body, dict):
            raise Refusal(400, "request must be a JSON object")
        return body

    def _refuse(self, status: int, line: str) -> None:
        self._send(status, "application/json", json.dumps({"refused": line}).encode(), close=True)

    def _send(self, status: int, kind: str, body: bytes, *, close: bool = False) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        if close:  # the rest of an unread body must not be parsed as a request
            self.send_header("Connection", "close")
            self.close_connection = True
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def _json(value: Mapping[str, Any]) -> tuple[str, bytes]:
    return "application/json", json.dumps(value).encode()


def _location(error: BaseException | None) -> str:
    frames = traceback.extract_tb(error.__traceback__ if error else None)
    return f"{type(error).__name__} at line {frames[-1].lineno if frames else 0}"
