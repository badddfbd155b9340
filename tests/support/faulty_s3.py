"""An S3 server in this process (moto) behind a proxy that refuses, drops, cuts or delays chosen requests."""

from __future__ import annotations

import io
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, TypeAlias
from urllib.parse import unquote

import pyarrow.fs as pafs
from msgspec import Struct, field
from werkzeug.test import run_wsgi_app

Fault: TypeAlias = Literal["", "refuse", "busy", "drop", "unanswered", "cut", "delay"]
"""What becomes of a request: it is passed on; answered by 403, or by 503; its connection ends before it is carried out,
after that, or within the answer; it is carried out, and answered when the client has given up."""

DELAY_SECONDS = 2.2
"""How long a delayed answer takes: clients of `Proxy.files` wait for a second, the least that libcurl counts."""

_ERROR = '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{}</Code><Message>{}</Message></Error>'
_WHO = "test/1/us-east-1/s3/aws4_request"
_OF_A_CONNECTION = ("connection", "expect", "transfer-encoding")
_ANSWERS = {"refuse": (403, "AccessDenied"), "busy": (503, "SlowDown")}


class Proxy(Struct):
    """The proxy.

    Attributes:
        port: Its port.
        fault: Gives the fault for the number of a request, from 1 on.
        seen: The requests since `begin`: the method (`LIST` for a list) and the end of the path.
    """

    port: int = 0
    fault: Callable[[int], Fault] = lambda _: ""
    seen: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, fault: Callable[[int], Fault] = lambda _: "") -> None:
        """Start counting from 1, with other faults."""
        self.fault, self.seen = fault, []

    def files(self) -> pafs.S3FileSystem:
        """Open the server through the proxy, as a client with a short timeout."""
        return pafs.S3FileSystem(
            access_key="test",
            secret_key="test",  # noqa: S106 - of a server of this process
            region="us-east-1",
            scheme="http",
            endpoint_override=f"127.0.0.1:{self.port}",
            request_timeout=0.5,
            retry_strategy=pafs.AwsStandardS3RetryStrategy(max_attempts=2),
        )


@contextmanager
def faulty_s3() -> Iterator[Proxy]:
    """Start a proxy and a server behind it, with a bucket called `bucket`."""
    from moto.moto_server.werkzeug_app import (  # noqa: PLC0415 - a second
        DomainDispatcherApplication,
        create_backend_app,
    )

    proxy = Proxy()
    to = (proxy, DomainDispatcherApplication(create_backend_app))
    listener = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"to": to}))
    listener.daemon_threads = True
    proxy.port = listener.server_address[1]
    threading.Thread(target=listener.serve_forever, args=(0.02,), daemon=True).start()
    try:
        made = HTTPConnection("127.0.0.1", proxy.port)
        made.request("PUT", "/bucket", headers={"Authorization": f"AWS4-HMAC-SHA256 Credential={_WHO}"})
        assert made.getresponse().status == 200
        made.close()
        yield proxy
    finally:
        listener.shutdown()
        listener.server_close()


class _Handler(BaseHTTPRequestHandler):
    """A connection to a proxy."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    to: tuple[Proxy, Any]

    def __getattr__(self, name: str) -> Callable[[], None]:
        if name.startswith("do_"):
            return self._answer
        raise AttributeError(name)

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def _answer(self) -> None:
        proxy, server = self.to
        body = self._body()
        place, _, query = self.path.partition("?")
        with proxy.lock:
            name = "/".join(place.split("/")[3:])
            proxy.seen.append(f"{'LIST' if 'list-type' in query else self.command} {name}")
            fault = proxy.fault(len(proxy.seen))
        if fault in _ANSWERS:
            status, code = _ANSWERS[fault]
            self._send(status, {"Content-Type": "application/xml"}, _ERROR.format(code, code).encode())
            return
        self.close_connection = bool(fault)
        if fault == "drop":
            return
        content, status, headers = run_wsgi_app(server, self._environ(body), buffered=True)
        answer = b"".join(content)
        if fault == "delay":
            time.sleep(DELAY_SECONDS)
        if fault != "unanswered":
            self._send(int(status.split()[0]), dict(headers.items()), answer, is_cut=fault == "cut")

    def _environ(self, body: bytes) -> dict[str, Any]:
        """Convert a request to WSGI's form."""
        place, _, query = self.path.partition("?")
        kept = {name: self.headers[name] for name in self.headers if name.lower() not in _OF_A_CONNECTION}
        return {
            "REQUEST_METHOD": self.command,
            "SCRIPT_NAME": "",
            "PATH_INFO": unquote(place, "latin-1"),
            "RAW_URI": self.path,
            "QUERY_STRING": query,
            "CONTENT_LENGTH": str(len(body)),
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "SERVER_NAME": "127.0.0.1",
            "SERVER_PORT": str(self.to[0].port),
            "SERVER_PROTOCOL": "HTTP/1.1",
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(body),
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
            **{f"HTTP_{name.upper().replace('-', '_')}": value for name, value in kept.items()},
        }

    def _body(self) -> bytes:
        """Read the request's body, in one piece or in chunks."""
        if "Transfer-Encoding" not in self.headers:
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        chunks = []
        while size := int(self.rfile.readline(), 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def _send(self, status: int, headers: dict[str, str], content: bytes, *, is_cut: bool = False) -> None:
        """Answer in one packet, or cut in the middle of the body, or of the head if there is no body."""
        if self.command == "HEAD":
            content = b""
        else:
            headers["Content-Length"] = str(len(content))
        kept = (f"{name}: {value}\r\n" for name, value in headers.items() if name.lower() not in _OF_A_CONNECTION)
        head = f"HTTP/1.1 {status} -\r\n{''.join(kept)}\r\n".encode()
        whole = head + content
        half = len(head) + len(content) // 2 if content else len(head) // 2
        with suppress(OSError):  # the client may have given up
            self.connection.sendall(whole[:half] if is_cut else whole)
