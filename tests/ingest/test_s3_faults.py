"""A store on S3 loses nothing and reports nothing false, whichever request is refused, dropped, cut or late."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
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
from rooflens.model.store.dataset import Store, StoredReport

TRANSIENT: tuple[Fault, ...] = ("busy", "drop", "unanswered", "cut")
"""What a client asks again for."""


class Bucket(Struct):
    """A bucket behind a proxy, and two reports.

    Attributes:
        seen: How many of the runs with a fault had each outcome.
        wrong: What was lost or falsely reported.
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

    def run(self, command: str, store: str, fault: Callable[[int], Fault] = lambda _: "") -> Result:
        """Run `ingest` or `analyze`."""
        self.proxy.begin(fault)
        given = {"ingest": ["ingest", str(self.reports)], "analyze": ["analyze", "--format", "json"]}[command]
        return CliRunner().invoke(main, [*given, "--store", f"s3://bucket/{store}"])

    def held(self, objects: Mapping[str, bytes]) -> tuple[dict[str, int], list[str]]:
        """Return the kernels of each stored report by its name, and what is wrong with the store."""
        copy = self.folder / f"copy-{next(self.stores)}"
        for name, content in objects.items():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes(content)
        if not objects:
            return {}, []
        commits, _ = Store.existing(copy).commits()
        found = list(Store.existing(copy).reports()) if commits else []
        reports = {Path(one.run.source).name: len(one.kernels) for one in found if isinstance(one, StoredReport)}
        return reports, [str(one[1]) for one in found if not isinstance(one, StoredReport)]


_OF_VERDICTS, _KEYS = ("findings", "roofline"), ["run_id", "kernel_index"]

EXPECTED = {"0.ncu-rep": 1, "1.ncu-rep": 2}


def _backend() -> Any:
    from moto.core import DEFAULT_ACCOUNT_ID  # noqa: PLC0415 - a second
    from moto.s3.models import s3_backends  # noqa: PLC0415 - as above

    return s3_backends[DEFAULT_ACCOUNT_ID]["aws"]


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    """Start a server and a proxy, and open stores through the proxy."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    folder = tmp_path_factory.mktemp("s3")
    (folder / "reports").mkdir()
    for name, kernel_count in EXPECTED.items():
        kernels = [KernelSpec(f"k{at}()", {"gpu__time_duration.sum": 1000.0 + at}) for at in range(kernel_count)]
        write_report(folder / "reports" / name, ReportSpec(kernels))
    with faulty_s3() as proxy, pytest.MonkeyPatch.context() as patched:
        files = proxy.files()
        patched.setattr(
            "rooflens.model.store.dataset.opened",
            lambda given: (files, given.removeprefix("s3://")) if is_address(given) else opened(given),
        )
        yield Bucket(proxy, folder / "reports", folder)


@pytest.fixture(scope="module")
def states(bucket: Bucket) -> dict[str, tuple[str, dict[str, bytes]]]:
    """Return each command with the contents of its store before it."""
    store = bucket.store()
    assert bucket.run("ingest", store).exit_code == 0
    whole = bucket.objects(store)
    lacking = {name: content for name, content in whole.items() if not name.startswith("kernels/")}
    return {
        "first ingest": ("ingest", {}),
        "analyze": ("analyze", whole),
        "second ingest": ("ingest", whole),
        "mending ingest": ("ingest", lacking),
    }


def _check(bucket: Bucket, what: str, state: tuple[str, dict[str, bytes]], fault: Callable[[int], Fault]) -> None:
    """Run a command with a fault, compare its output with the store, and repair the store with the next command."""
    command, before = state
    store = bucket.store(before)
    done = bucket.run(command, store, fault)
    after = bucket.objects(store)
    is_lacking = bool(before) and not any(name.startswith("kernels/") for name in before)
    is_error = isinstance(done.exception, SystemExit) and done.exit_code == 1 and "error: " in done.stderr
    is_whole = bucket.held(after) == (EXPECTED, [])
    is_kept = _has_verdicts(after)
    if command == "ingest":
        is_so = is_whole
    else:
        shown = json.loads(done.stdout)["kernels"] if not done.exit_code else ()
        is_so = len(shown) == sum(EXPECTED.values()) and (is_kept or "verdicts are not kept" in done.stderr)
    wrong = {
        "a traceback": done.exit_code and not is_error,
        "lied": not done.exit_code and not is_so,
        "called damaged": "damaged store" in done.stderr and not is_lacking,
        "lost": not is_lacking and any(after.get(name) != content for name, content in before.items()),
    }
    said = done.stderr
    if not is_whole and after != before:
        said += (again := bucket.run("ingest", store)).stderr
        mended = bucket.objects(store)
        wrong["not mended"] = again.exit_code or bucket.held(mended) != (EXPECTED, [])
        wrong["an ingest without its files stayed"] = sum(name.startswith("runs/") for name in mended) != 1
    if command == "analyze" and not is_kept and after != before:
        said += (again := bucket.run("analyze", store)).stderr
        wrong["no verdicts after another analysis"] = again.exit_code or not _has_verdicts(bucket.objects(store))
    bucket.wrong += (f"{what}: {name}: {done.exception!r} {said}" for name, is_wrong in wrong.items() if is_wrong)
    bucket.seen["error" if done.exit_code else "warning" if "warning" in done.stderr else "went on"] += 1


def _has_verdicts(objects: Mapping[str, bytes]) -> bool:
    """Return whether a store contains findings and verdicts of all kernels."""
    files = {table: {Path(name).name for name in objects if name.startswith(f"{table}/")} for table in _OF_VERDICTS}
    rows = {
        (row["run_id"], row["kernel_index"])
        for name in set.intersection(*files.values())
        for row in pq.read_table(pa.BufferReader(objects[f"roofline/{name}"]), columns=_KEYS).to_pylist()
    }
    return len(rows) == sum(EXPECTED.values())


def _campaign(bucket: Bucket, what: str, state: tuple[str, dict[str, bytes]], faults: Mapping[str, Any]) -> None:
    """Run a command once for each fault, and print the outcomes."""
    bucket.wrong.clear()
    bucket.seen.clear()
    for name, fault in faults.items():
        _check(bucket, f"{what}, {name}", state, fault)
    print(f"{what}: {len(faults)} runs with a fault, {dict(bucket.seen)}, {len(bucket.wrong)} wrong")  # noqa: T201 - for `pytest -s`
    assert not bucket.wrong, "\n".join(bucket.wrong)


def _requests(bucket: Bucket, state: tuple[str, dict[str, bytes]]) -> list[str]:
    """Return the requests that a command makes without a fault."""
    store = bucket.store(state[1])
    assert bucket.run(state[0], store).exit_code == 0
    assert len(bucket.proxy.seen) > 10
    return [one.partition(" ")[0] for one in bucket.proxy.seen]


@pytest.mark.parametrize("name", ["first ingest", "analyze", "second ingest"])
def test_no_refused_request_loses_or_hides_anything(bucket: Bucket, states: Any, name: str) -> None:
    """Each request is refused in one run: the command fails or does without, and the next command repairs the store."""
    total = len(_requests(bucket, states[name]))
    faults = {f"refused {k}": lambda n, k=k: "refuse" if n == k else "" for k in range(1, total + 1)}
    _campaign(bucket, name, states[name], faults)


@pytest.mark.parametrize("name", ["first ingest", "analyze", "second ingest", "mending ingest"])
def test_requests_that_fail_once_are_asked_again(bucket: Bucket, states: Any, name: str) -> None:
    """If the server is busy, or a connection ends before, after or within the answer, the request is repeated."""
    _campaign(bucket, name, states[name], {kind: lambda n, kind=kind: kind if n % 2 else "" for kind in TRANSIENT})
    assert bucket.seen["went on"]


def test_late_answers_lose_nothing(bucket: Bucket, states: Any) -> None:
    """The first request of each method is carried out, but answered when nobody waits any more."""

    def late(_: int) -> Fault:
        *before, method = (one.partition(" ")[0] for one in bucket.proxy.seen)
        return "" if method in before else "delay"

    _campaign(bucket, "first ingest", states["first ingest"], {"late": late})
    assert {one.partition(" ")[0] for one in bucket.proxy.seen} >= {"LIST", "HEAD", "POST", "PUT"}


def test_an_ingest_that_replaces_another_needs_no_right_to_delete(bucket: Bucket, states: Any) -> None:
    """A store that lacks a file is repaired, and files that could not be removed are named."""
    requests = _requests(bucket, states["mending ingest"])
    assert "DELETE" in requests
    store = bucket.store(states["mending ingest"][1])
    lacking = bucket.run("analyze", store)
    assert lacking.exit_code == 1
    assert "kernels/" in lacking.stderr
    assert "again into the store: that mends it" in lacking.stderr
    done = bucket.run("ingest", store, lambda n: "refuse" if n == requests.index("DELETE") + 1 else "")
    assert done.exit_code == 0
    assert "lacks files; its reports are stored again, but it could not be removed" in done.stderr
    assert bucket.held(bucket.objects(store)) == (EXPECTED, [])


@pytest.mark.parametrize("name", ["first ingest", "analyze", "second ingest", "mending ingest"])
def test_no_fault_at_all_loses_or_hides_anything(bucket: Bucket, states: Any, name: str) -> None:
    """Every fault at every single request, and servers that refuse, are busy or hang up from some request on."""
    total = len(_requests(bucket, states[name]))
    ks = range(1, total + 3)
    faults: dict[str, Any] = {f"{f} {k}": lambda n, k=k, f=f: f if n == k else "" for f in TRANSIENT for k in ks}
    faults |= {f"refuse from {k} on": lambda n, k=k: "refuse" if n >= k else "" for k in ks}
    faults |= {f"drop from {k} on": lambda n, k=k: "drop" if n >= k else "" for k in ks}
    faults |= {f"late {k}": lambda n, k=k: "delay" if n == k else "" for k in ks}
    if name == "mending ingest":
        faults |= {f"refuse {k}": lambda n, k=k: "refuse" if n == k else "" for k in ks}
    _campaign(bucket, name, states[name], faults)
