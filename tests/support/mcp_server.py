"""Start the MCP server as a client does, speak to it line by line, and watch its processes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import rooflens

MOST_SECONDS = 20.0
"""Long enough on any loaded machine: what has not happened by then will not happen."""

MARK = "ROOFLENS_TEST_SERVER"

SLOW = """
import functools, re, time
from rooflens.mcp import answers

def slow(about):
    @functools.wraps(about)
    def tool(self, name="", offset=0):
        while name == "spin":
            pass
        if name == "match":
            re.match("(a+)+$", "a" * 60 + "b")
        if name == "die":
            import os; os.abort()
        if name == "allocate":
            bytearray(1 << 50)
        if name == "sleep":
            time.sleep(600)
        return about(self, name, offset)
    return tool

before = answers.Answers.about
answers.Answers.about = slow(before)
answers.TOOLS = {answers.Answers.about if one is before else one: schema for one, schema in answers.TOOLS.items()}
"""
"""A `sitecustomize` with which `about` hangs in Python, in C or asleep, dies, or eats memory."""


class Server:
    """A server and its only client.

    Attributes:
        process: The server.
    """

    def __init__(self, root: Path, *, through: tuple[str, ...] = (), slow: Path | None = None) -> None:
        """Start a server, and shake hands.

        Args:
            root: The folder that it may read.
            through: A program, with its arguments, that starts the command that follows.
            slow: An empty folder for a module with which `about` takes names such as `spin`.
        """
        self._mark = uuid.uuid4().hex
        path = [str(Path(rooflens.__file__).parents[1])]
        if slow is not None:
            (slow / "sitecustomize.py").write_text(SLOW, "utf-8")
            path.insert(0, str(slow))
        self.process = subprocess.Popen(  # noqa: S603 - our own command
            [*through, sys.executable, "-m", "rooflens", "mcp", "--root", str(root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path), MARK: self._mark},
        )
        self._said: dict[int, dict[str, Any]] = {}
        self._times_s: dict[int, float] = {}
        self._heard = threading.Condition()
        self._count = 0
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        assert self.said(self._ask("initialize", hello), 60.0)
        self._send({"method": "notifications/initialized"})

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            with self._heard:
                self._said[message["id"]] = message
                self._times_s[message["id"]] = time.monotonic()
                self._heard.notify_all()

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def _ask(self, method: str, parameters: Mapping[str, Any]) -> int:
        self._count += 1
        self._send({"id": self._count, "method": method, "params": parameters})
        return self._count

    def call(self, tool: str, /, **arguments: Any) -> int:
        """Call a tool without waiting; return the number of the call."""
        return self._ask("tools/call", {"name": tool, "arguments": arguments})

    def cancel(self, call: int) -> None:
        """Say that nobody waits for a call any more."""
        self._send({"method": "notifications/cancelled", "params": {"requestId": call}})

    def said(self, call: int, timeout_s: float = MOST_SECONDS) -> dict[str, Any] | None:
        """Wait for what was said to a call; None if that takes too long."""
        with self._heard:
            self._heard.wait_for(lambda: call in self._said, timeout_s)
            return self._said.get(call)

    def text(self, call: int, timeout_s: float = MOST_SECONDS) -> str:
        """Wait for the text that answers a call, an error's included."""
        said = self.said(call, timeout_s)
        assert said is not None, f"call {call} is not answered"
        return "".join(part["text"] for part in said["result"]["content"])

    def timed(self, tool: str, /, **arguments: Any) -> float:
        """Make a call that must succeed; return the seconds that it took."""
        start_s = time.monotonic()
        call = self.call(tool, **arguments)
        said = self.said(call)
        assert said is not None, f"{tool} is not answered"
        assert not said["result"].get("isError"), said
        return self._times_s[call] - start_s

    def processes(self) -> set[int]:
        """Return the server and everything that it started and that still runs, zombies left out."""
        entry = f"{MARK}={self._mark}".encode()
        found = set()
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if entry in (folder / "environ").read_bytes().split(b"\0") and not _is_zombie(folder):
                    found.add(int(folder.name))
        return found

    def close(self) -> None:
        """Close stdin, as a client does that is done."""
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.close()

    def __enter__(self) -> Self:
        """Begin a block after which no process is left."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End what is left."""
        self.close()
        within(lambda: not self.processes(), 5.0)
        for process in self.processes():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.process.wait()
        self._listener.join()
        assert self.process.stdout is not None
        self.process.stdout.close()


def within(is_so: Callable[[], bool], timeout_s: float = MOST_SECONDS) -> float | None:
    """Wait until something is so; return the seconds that took, None if it took too long."""
    start_s = time.monotonic()
    while not is_so():
        if time.monotonic() - start_s > timeout_s:
            return None
        time.sleep(0.01)
    return time.monotonic() - start_s


def _is_zombie(folder: Path) -> bool:
    return re.search(r"\) [ZX] ", (folder / "stat").read_text("utf-8")) is not None
