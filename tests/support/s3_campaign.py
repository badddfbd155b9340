"""Commands on a store in a bucket whose requests fail, and what was lost, doubled or falsely said.

`Bucket.check` runs a command with a fault, compares its output with the store, and repairs the store with the next
command.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from msgspec import Struct, field
from support.faulty_s3 import Fault, Proxy, faulty_s3
from support.ncu_rep_writer import KernelSpec, ReportSpec, write_report

from rooflens.addresses import is_address, opened
from rooflens.cli.group import main
from rooflens.model.store.dataset import VIEWS, Store, StoredReport

TRANSIENT: tuple[Fault, ...] = ("busy", "drop", "unanswered", "cut")
"""What a client asks again for."""

EXPECTED = {"0.ncu-rep": 1, "1.ncu-rep": 2}
"""Reports that are stored, and their kernels."""

_OF_VERDICTS = ("findings", "roofline", "verdicts")


def no_fault(_: int) -> Fault:
    """Pass every request on."""
    return ""


class State(Struct, frozen=True):
    """A command, and the objects of its store before it, by path."""

    command: str
    before: Mapping[str, bytes]

    @property
    def is_lacking(self) -> bool:
        """Whether the store lacks a file."""
        return bool(self.before) and not any(name.startswith("kernels/") for name in self.before)


class Bucket(Struct):
    """A bucket behind a proxy, and two reports.

    Attributes:
        seen: How many of the runs with a fault had each outcome.
        wrong: What was lost, doubled or falsely reported.
    """

    proxy: Proxy
    reports: Path
    folder: Path
    stores: Iterator[int] = field(default_factory=count)
    seen: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def store(self, objects: Mapping[str, bytes] | None = None) -> str:
        """Return the name of a new store that contains these objects."""
        name = f"store-{next(self.stores)}"
        for key, content in (objects or {}).items():
            _backend().put_object("bucket", f"{name}/{key}", content)
        return name

    def objects(self, store: str) -> dict[str, bytes]:
        """Return a store's objects by path, without a request."""
        keys = _backend().buckets["bucket"].keys
        return {
            name.removeprefix(f"{store}/"): keys[name].value
            for name in list(keys)
            if name.startswith(f"{store}/") and not name.endswith("/")
        }

    def run(self, command: str, store: str, fault: Callable[[int], Fault] = no_fault) -> Result:
        """Run `ingest` or `analyze`."""
        self.proxy.begin(fault)
        given = {"ingest": ["ingest", str(self.reports)], "analyze": ["analyze", "--format", "json"]}[command]
        return CliRunner().invoke(main, [*given, "--store", f"s3://bucket/{store}"])

    def states(self) -> dict[str, State]:
        """Return each command with the contents of its store before it."""
        store = self.store()
        assert self.run("ingest", store).exit_code == 0
        whole = self.objects(store)
        lacking = {name: content for name, content in whole.items() if not name.startswith("kernels/")}
        return {
            "first ingest": State("ingest", {}),
            "analyze": State("analyze", whole),
            "second ingest": State("ingest", whole),
            "mending ingest": State("ingest", lacking),
        }

    def requests(self, state: State) -> list[str]:
        """Return the requests that a command makes without a fault; a busy machine may be too slow for the client."""
        assert any(self.run(state.command, self.store(state.before)).exit_code == 0 for _ in range(5))
        assert len(self.proxy.seen) > 10
        return [one.partition(" ")[0] for one in self.proxy.seen]

    def held(self, objects: Mapping[str, bytes]) -> tuple[list[tuple[str, int]], list[str]]:
        """Return name and kernels of each stored report, in order, and what is wrong with the store."""
        copy = self.folder / f"copy-{next(self.stores)}"
        for name, content in objects.items():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes(content)
        if not objects:
            return [], []
        found = list(Store.existing(copy).reports()) if Store.existing(copy).digests() else []
        reports = [(Path(one.run.source).name, len(one.kernels)) for one in found if isinstance(one, StoredReport)]
        return sorted(reports), [str(one[1]) for one in found if not isinstance(one, StoredReport)]

    def is_whole(self, objects: Mapping[str, bytes]) -> bool:
        """Return whether a store holds every report once, and nothing is wrong with it."""
        return self.held(objects) == (sorted(EXPECTED.items()), [])

    def check(self, what: str, state: State, fault: Callable[[int], Fault]) -> None:
        """Run a command with a fault, compare its output with the store, and repair the store with the next command."""
        command, before = state.command, state.before
        store = self.store(before)
        done = self.run(command, store, fault)
        after = self.objects(store)
        is_error = isinstance(done.exception, SystemExit) and done.exit_code == 1 and "error: " in done.stderr
        is_whole, is_kept = self.is_whole(after), _has_verdicts(after)
        if command == "ingest":
            is_so = is_whole
        else:
            shown = json.loads(done.stdout)["kernels"] if not done.exit_code else ()
            is_so = len(shown) == sum(EXPECTED.values()) and (is_kept or "verdicts are not kept" in done.stderr)
        wrong = {
            "a traceback": done.exit_code and not is_error,
            "lied": not done.exit_code and not is_so,
            "called damaged": "damaged store" in done.stderr and not state.is_lacking,
            "lost": not state.is_lacking
            and any(after.get(name) != content for name, content in before.items() if name != VIEWS),
            "twice": any(times > 1 for times in Counter(name for name, _ in self.held(after)[0]).values()),
        }
        said = done.stderr
        if not is_whole and after != before:
            said += (again := self.run("ingest", store)).stderr
            mended = self.objects(store)
            wrong["not mended"] = again.exit_code or not self.is_whole(mended)
            wrong["runs that no report is of"] = sum(name.startswith("runs/") for name in mended) != len(EXPECTED)
        if command == "analyze" and not is_kept and after != before:
            said += (again := self.run("analyze", store)).stderr
            wrong["no verdicts after another analysis"] = again.exit_code or not _has_verdicts(self.objects(store))
        self.wrong += (f"{what}: {name}: {done.exception!r} {said}" for name, is_wrong in wrong.items() if is_wrong)
        self.seen["error" if done.exit_code else "warning" if "warning" in done.stderr else "went on"] += 1


@contextmanager
def faulty_bucket(folder: Path) -> Iterator[Bucket]:
    """Start a server and a proxy, write two reports, and open stores through the proxy."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    (folder / "reports").mkdir()
    for name, kernel_count in EXPECTED.items():
        kernels = [KernelSpec(f"k{at}()", {"gpu__time_duration.sum": 1000.0 + at}) for at in range(kernel_count)]
        write_report(folder / "reports" / name, ReportSpec(kernels))
    with faulty_s3() as proxy, pytest.MonkeyPatch.context() as patched:
        files = proxy.files()
        patched.setattr(
            "rooflens.model.store.files.opened",
            lambda given: (files, given.removeprefix("s3://")) if is_address(given) else opened(given),
        )
        yield Bucket(proxy, folder / "reports", folder)


def every_fault(requests: int) -> dict[str, Callable[[int], Fault]]:
    """Return every fault at every request, and servers that refuse or hang up from some request on.

    Args:
        requests: How many requests a command makes without a fault.
    """
    ks, kinds = range(1, requests + 3), ("refuse", *TRANSIENT, "delay")
    faults: dict[str, Any] = {f"{f} {k}": lambda n, k=k, f=f: f if n == k else "" for f in kinds for k in ks}
    for kind in ("refuse", "drop"):
        faults |= {f"{kind} from {k} on": lambda n, k=k, kind=kind: kind if n >= k else "" for k in ks}
    return faults


def _backend() -> Any:
    from moto.core import DEFAULT_ACCOUNT_ID  # noqa: PLC0415 - a second
    from moto.s3.models import s3_backends  # noqa: PLC0415 - as above

    return s3_backends[DEFAULT_ACCOUNT_ID]["aws"]


def _has_verdicts(objects: Mapping[str, bytes]) -> bool:
    """Return whether a store contains findings and verdicts of all kernels."""
    files = {table: {Path(name).name for name in objects if name.startswith(f"{table}/")} for table in _OF_VERDICTS}
    rows = [
        pq.read_metadata(pa.BufferReader(objects[f"verdicts/{name}"])).num_rows
        for name in set.intersection(*files.values())
    ]
    return sum(rows) == sum(EXPECTED.values())
