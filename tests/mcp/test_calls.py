"""Calls are made side by side, and each can be ended: by its client, by its deadline, and with the server."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.chips import H200
from support.fixture_kernels import triad
from support.hostile_files import hostile_files
from support.mcp_server import MOST_SECONDS, Server, within
from support.ncu_rep_writer import ReportSpec, write_report
from support.synthetic_kernels import kernel_spec

from rooflens.errors import InputError
from rooflens.mcp.children import MOST_CALLS, Children

pytest.importorskip("mcp")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

HANGS = ("spin", "match", "sleep")
THROUGH = "import subprocess, sys; subprocess.run(sys.argv[1:])"
"""A client's launcher: it hands its own stdin and stdout on, and waits."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make a folder with a report."""
    folder = tmp_path / "root"
    folder.mkdir()
    write_report(folder / "good.ncu-rep", ReportSpec(kernels=(kernel_spec(triad(H200)),)))
    return folder


@pytest.fixture
def server(root: Path, tmp_path: Path) -> Iterator[Server]:
    """Start a server whose `about` hangs, dies or eats memory where its name says so."""
    slow = tmp_path / "slow"
    slow.mkdir()
    with Server(root, slow=slow) as started:
        yield started


def test_a_call_is_answered_beside_calls_that_hang(server: Server) -> None:
    """Beside calls that hang in Python, in C and asleep others are answered, and these are not."""
    for count, name in enumerate(HANGS, start=1):
        hanging = server.call("about", name=name)
        seconds = server.timed("open_report", path="good.ncu-rep")
        print(f"beside {count} that hang: {seconds:.2f} s")  # noqa: T201 - what was measured
        assert server.said(hanging, 0.0) is None


def test_no_more_calls_than_a_few_are_made_at_once_and_the_rest_wait(server: Server) -> None:
    """With `MOST_CALLS` calls that hang another one waits, without a process, until one of them is cancelled."""
    hanging = [server.call("about", name="sleep") for _ in range(MOST_CALLS)]
    waiting = server.call("about", name="small_grid")
    assert server.said(waiting, 1.0) is None
    assert within(lambda: len(server.processes()) == 1 + MOST_CALLS) is not None
    server.cancel(hanging[0])
    assert server.text(waiting).startswith("# Too few blocks")


def test_a_cancelled_call_ends_its_process(server: Server) -> None:
    """A call that the client cancels is never answered; its process is gone, and the next call has another one."""
    for name in HANGS:
        server.timed("about", name="small_grid")
        before = server.processes()
        call = server.call("about", name=name)
        server.timed("about", name="small_grid")
        server.cancel(call)
        seconds = within(lambda before=before: len(before - server.processes()) == 1)
        assert seconds is not None
        print(f"{name}: its process was gone after {seconds:.2f} s")  # noqa: T201 - what was measured
        server.timed("about", name="small_grid")
        assert server.said(call, 0.0) is None


def test_a_call_that_dies_or_eats_memory_costs_itself(server: Server) -> None:
    """A call whose process aborts, or runs out of memory, is an error with a hint, and the next one is answered."""
    died, ate = (server.text(server.call("about", name=name)) for name in ("die", "allocate"))
    assert "damaged: the call ended with SIGABRT (hint: " in died
    assert "needs more memory than there is (hint: " in ate
    assert server.timed("about", name="small_grid") < MOST_SECONDS


@pytest.mark.parametrize("how", ["close", "SIGTERM", "SIGHUP", "SIGINT", "SIGKILL"])
def test_the_server_ends_with_its_client_and_at_a_signal(server: Server, how: str) -> None:
    """Whatever calls do, a closed stdin and every signal end the server soon, with all of its processes."""
    for name in HANGS:
        server.call("about", name=name)
    server.timed("about", name="small_grid")
    start_s = time.monotonic()
    if how == "close":
        server.close()
    else:
        server.process.send_signal(getattr(signal, how))
    status = server.process.wait(MOST_SECONDS)
    assert within(lambda: not server.processes()) is not None
    print(f"{how}: ended after {time.monotonic() - start_s:.2f} s")  # noqa: T201 - what was measured
    number = 0 if how == "close" else getattr(signal, how).value
    assert status == (-number if how == "SIGKILL" else number and 128 + number)


def test_the_server_ends_when_its_client_is_killed(root: Path, tmp_path: Path) -> None:
    """A client that is killed in the middle of a call leaves neither the server nor a process of a call."""
    slow = tmp_path / "slow"
    slow.mkdir()
    with Server(root, through=(sys.executable, "-c", THROUGH), slow=slow) as server:
        server.call("about", name="spin")
        server.timed("about", name="small_grid")
        client = server.process.pid
        start_s = time.monotonic()
        os.kill(client, signal.SIGKILL)
        server.close()  # the system closes a dead client's end
        assert within(lambda: not server.processes()) is not None
        print(f"ended {time.monotonic() - start_s:.2f} s after its client")  # noqa: T201 - what was measured


def test_a_call_that_takes_too_long_is_an_error_that_says_so() -> None:
    """The deadline ends a call that hangs; the error says how long it had, and what to do."""
    with Children() as children:
        child = children.take()
        with pytest.raises(InputError, match="the call did not finish within 1 s") as caught:
            child.call(time.sleep, 600, deadline_s=1.0)
        assert "command line" in caught.value.hint
        children.give_back(child)
        assert not child.is_alive()
        another = children.take()
        assert another is not child
        assert another.call(abs, -1, deadline_s=MOST_SECONDS) == 1


def test_calls_one_after_the_other_are_made_by_one_process() -> None:
    """The child that was used last is taken first, as it has the report analyzed; one that died is never taken."""
    with Children() as children:
        numbers = []
        for _ in range(3):
            child = children.take()
            numbers.append(child.call(os.getpid, deadline_s=MOST_SECONDS))
            children.give_back(child)
        assert len(set(numbers)) == 1
        os.kill(numbers[0], signal.SIGKILL)
        assert within(lambda: not child.is_alive()) is not None
        assert children.take().call(os.getpid, deadline_s=MOST_SECONDS) != numbers[0]


def test_beside_each_hostile_file_another_call_is_answered(root: Path) -> None:
    """Whatever a file does to the call that opens it, a call beside it is answered from the good report."""
    with Server(root) as server:
        server.timed("open_report", path="good.ncu-rep")
        worst = (0.0, "")
        for kind, file in hostile_files(root, seed=7):
            hostile = server.call("open_report", path=file.name)
            worst = max(worst, (server.timed("list_kernels", path="good.ncu-rep"), kind))
            if server.said(hostile, 0.5) is None:
                server.cancel(hostile)
            file.unlink()
        print(f"slowest beside {worst[1]}: {worst[0]:.2f} s")  # noqa: T201 - what was measured
