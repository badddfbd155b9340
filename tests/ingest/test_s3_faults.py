"""A store on S3 loses nothing and reports nothing false, whichever request is refused, dropped, cut or late.

Each request is refused in one run here; every kind of fault at every request is a campaign of `make faults`, as answers
that come late take their time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from support.faulty_s3 import Fault
from support.s3_campaign import TRANSIENT, Bucket, State, faulty_bucket


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    """Return a bucket whose requests fail as a test wants."""
    with faulty_bucket(tmp_path_factory.mktemp("s3")) as bucket:
        yield bucket


@pytest.fixture(scope="module")
def states(bucket: Bucket) -> dict[str, State]:
    """Return each command with the contents of its store before it."""
    return bucket.states()


def _campaign(bucket: Bucket, what: str, state: State, faults: Mapping[str, Any]) -> None:
    """Run a command once for each fault, and print the outcomes."""
    bucket.wrong.clear()
    bucket.seen.clear()
    for name, fault in faults.items():
        bucket.check(f"{what}, {name}", state, fault)
    print(f"{what}: {len(faults)} runs with a fault, {dict(bucket.seen)}, {len(bucket.wrong)} wrong")  # noqa: T201 - for `pytest -s`
    assert not bucket.wrong, "\n".join(bucket.wrong)


@pytest.mark.parametrize("name", ["first ingest", "analyze", "second ingest"])
def test_no_refused_request_loses_or_hides_anything(bucket: Bucket, states: dict[str, State], name: str) -> None:
    """Each request is refused in one run: the command fails or does without, and the next command repairs the store."""
    total = len(bucket.requests(states[name]))
    faults = {f"refused {k}": lambda n, k=k: "refuse" if n == k else "" for k in range(1, total + 1)}
    _campaign(bucket, name, states[name], faults)


@pytest.mark.parametrize("name", ["first ingest", "analyze", "second ingest", "mending ingest"])
def test_requests_that_fail_once_are_asked_again(bucket: Bucket, states: dict[str, State], name: str) -> None:
    """If the server is busy, or a connection ends before, after or within the answer, the request is repeated.

    The first request of each method for each file is the one that fails: files are sent and read side by side.
    """

    def first(kind: Fault) -> Fault:
        *before, request = bucket.proxy.seen
        return "" if request in before else kind

    _campaign(bucket, name, states[name], {kind: lambda _, kind=kind: first(kind) for kind in TRANSIENT})
    assert bucket.seen["went on"]


def test_late_answers_lose_nothing(bucket: Bucket, states: dict[str, State]) -> None:
    """The first request of each method is carried out, but answered when nobody waits any more."""

    def late(_: int) -> Fault:
        *before, method = (one.partition(" ")[0] for one in bucket.proxy.seen)
        return "" if method in before else "delay"

    _campaign(bucket, "first ingest", states["first ingest"], {"late": late})
    assert {one.partition(" ")[0] for one in bucket.proxy.seen} >= {"LIST", "HEAD", "POST", "PUT"}


def test_nothing_is_ever_deleted(bucket: Bucket, states: dict[str, State]) -> None:
    """A store that lacks a file says which and how to repair it, and is repaired without the right to delete."""
    requests = bucket.requests(states["mending ingest"])
    assert "DELETE" not in requests
    store = bucket.store(states["mending ingest"].before)
    lacking = bucket.run("analyze", store)
    assert lacking.exit_code == 1
    assert "kernels/" in lacking.stderr
    assert "again into the store: that mends it" in lacking.stderr
    assert bucket.run("ingest", store).exit_code == 0
    assert bucket.is_whole(bucket.objects(store))
