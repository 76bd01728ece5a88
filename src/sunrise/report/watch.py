"""The page on a small server of its own, for one person's browser: it answers GET, at three addresses.

Whoever may reach it is not trusted: other pages in the same browser (they can name us by a host name that they point
here, or send what forms send), other users of the machine, and whoever wrote the runs' folders.
"""

import gzip
import ipaddress
import json
import logging
import re
import socket
import socketserver
import sys
import threading
import time
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, BinaryIO
from urllib.parse import parse_qs, urlsplit

from sunrise.errors import SunriseError
from sunrise.report.live import Live
from sunrise.report.page.html import page_html, policy

log = logging.getLogger("sunrise")
CONNECTIONS = 32
"""At once; a browser opens six."""
PATIENCE, SENDING, VIDEO = 10.0, 60.0, 600.0
"""Seconds for a request to arrive, for an answer to be taken, and for a video to be."""
LARGEST_VIDEO = 2**31
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Server(ThreadingHTTPServer):
    """Serves what a `Live` knows. Connections are bounded in number and in time."""

    daemon_threads = True
    request_queue_size = CONNECTIONS

    def __init__(self, live: Live, host: str = "127.0.0.1", port: int = 8000) -> None:
        self.live, self.host = live, host
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.deadlines: dict[socket.socket, float] = {}
        """When each open connection is ended."""
        self._places = threading.BoundedSemaphore(CONNECTIONS)
        try:
            super().__init__((host, port), Handler)
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            raise SunriseError(f"{host}, port {port}, cannot be listened to: {why}. Choose another --port.") from None

    def server_bind(self) -> None:
        """Take the address without asking a name server what it is called."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.host, self.server_address[1]

    @property
    def address(self) -> str:
        """What to type into a browser."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.server_port}/"

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches it."""
        return ipaddress.ip_address(str(self.server_address[0])).is_loopback

    def knows(self, host: str) -> bool:
        """Whether a Host header names us. A page elsewhere can make its own name point here, but not become another."""
        found = re.fullmatch(r"(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(?::(\d{1,5}))?", host.lower())
        if found is None or int(found[2] or 80) != self.server_port:
            return False
        name = found[1]
        if name in LOOPBACK or name == self.host.lower():
            return True
        if self.is_local:
            return False
        with suppress(ValueError):
            return bool(ipaddress.ip_address(name.strip("[]")))
        return name == socket.gethostname().lower()

    def process_request(self, request: Any, client_address: Any) -> None:
        """In a thread of its own, if there is room for one more."""
        if not self._places.acquire(blocking=False):
            with suppress(OSError):
                request.setblocking(False)
                request.send(b"HTTP/1.0 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
            self.shutdown_request(request)
            return
        self.deadlines[request] = time.monotonic() + PATIENCE
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Whatever comes of it, the place is free again."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.deadlines.pop(request, None)
            self._places.release()

    def service_actions(self) -> None:
        """End what has had its time, whether it drips or is silent."""
        now = time.monotonic()
        for request in [request for request, until in list(self.deadlines.items()) if until < now]:
            with suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that broke is no news; anything else is a line, not a traceback."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            log.warning("A request could not be answered: %r", error)


class Handler(BaseHTTPRequestHandler):
    """One request, one answer, then the connection ends."""

    server: Server
    server_version, sys_version = "sunrise", ""
    timeout = PATIENCE

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def parse_request(self) -> bool:
        """Read what is asked; whoever wants to change something is refused."""
        if not super().parse_request():
            return False
        if self.command in ("GET", "HEAD"):
            return True
        self._send(HTTPStatus.METHOD_NOT_ALLOWED, b"only GET\n", "text/plain", {"Allow": "GET, HEAD"})
        return False

    def _answer(self) -> None:
        self.server.deadlines[self.connection] = time.monotonic() + SENDING
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1 or not self.server.knows(hosts[0].strip()):
            self._send(HTTPStatus.FORBIDDEN, b"this server does not go by that name\n", "text/plain")
            return
        try:
            address = urlsplit(self.path if self.path.startswith("/") and not self.path.startswith("//") else "")
            asked = {name: values[0] for name, values in parse_qs(address.query, max_num_fields=4).items()}
        except ValueError:
            self._send(HTTPStatus.BAD_REQUEST, b"that is no address\n", "text/plain")
            return
        if address.path == "/":
            page = page_html(self.server.live.content(), live=True)
            self._send(HTTPStatus.OK, page.encode(), "text/html; charset=utf-8", {"Content-Security-Policy": POLICY})
        elif address.path == "/data":
            change = json.dumps(self.server.live.since(asked.get("since", "")), allow_nan=False, separators=(",", ":"))
            self._send(HTTPStatus.OK, change.encode(), "application/json")
        elif address.path == "/video":
            self._video(asked.get("run", ""), asked.get("name", ""))
        else:
            self._send(HTTPStatus.NOT_FOUND, b"there is nothing here\n", "text/plain")

    def _send(self, status: HTTPStatus, body: bytes, kind: str, more: dict[str, str] | None = None) -> None:
        headers = {"Content-Type": kind, **(more or {})}
        if len(body) > 1000 and "gzip" in self.headers.get("Accept-Encoding", ""):
            body = gzip.compress(body, 1)
            headers["Content-Encoding"] = "gzip"
        self._begin(status, {**headers, "Content-Length": str(len(body))})
        if self.command != "HEAD":
            self.wfile.write(body)

    def _begin(self, status: HTTPStatus, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**HEADERS, **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def _video(self, run: str, name: str) -> None:
        folder = self.server.live.video(run, name)
        if folder is None:
            self._send(HTTPStatus.NOT_FOUND, b"there is no such video\n", "text/plain")
            return
        self.server.deadlines[self.connection] = time.monotonic() + VIDEO
        try:
            with folder.open(name, LARGEST_VIDEO) as file:
                self._send_part(file)
        except (SunriseError, FileNotFoundError):
            self._send(HTTPStatus.NOT_FOUND, b"there is no such video\n", "text/plain")

    def _send_part(self, file: BinaryIO) -> None:
        """The file, or the part of it that a player jumps to."""
        size = file.seek(0, 2)
        asked = re.fullmatch(r"bytes=(\d{1,12})-(\d{0,12})", self.headers.get("Range", ""))
        first, last = (int(asked[1]), min(int(asked[2] or size), size - 1)) if asked else (0, size - 1)
        if first > last and size:
            self._send(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, b"", "text/plain")
            return
        headers = {"Content-Type": "video/mp4", "Accept-Ranges": "bytes", "Content-Length": str(last - first + 1)}
        if asked:
            headers["Content-Range"] = f"bytes {first}-{last}/{size}"
        self._begin(HTTPStatus.PARTIAL_CONTENT if asked else HTTPStatus.OK, headers)
        left = last - first + 1 if self.command != "HEAD" else 0
        file.seek(first)
        while left > 0 and (chunk := file.read(min(left, 2**16))):
            self.wfile.write(chunk)
            left -= len(chunk)

    def log_message(self, format: str, *arguments: Any) -> None:
        """A page asks every two seconds: nobody wants to read that."""


POLICY = policy(live=True) + "; frame-ancestors 'none'"
