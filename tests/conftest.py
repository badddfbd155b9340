"""Fixtures that every part of the tests shares."""

from __future__ import annotations

import fcntl
import gc
import os
import pickle
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import fake_ncu

from rooflens.ingest.load import Loaded, load_reports
from rooflens.ingest.reports.inputs import find_inputs, has_name_of_report

_REPOSITORY = Path(__file__).parent.parent

_SLOW = ("nvcc", "emulated", "browser")


def pytest_configure() -> None:
    """Collect tests without garbage collection, which took a quarter of that time."""
    gc.disable()


@pytest.fixture(scope="session", autouse=True)
def _signals_as_from_a_terminal() -> None:
    """Heed SIGINT, which background jobs ignore, and SIGHUP, which `nohup` ignores: what tests start inherits that.

    A handler that does nothing lets the tests go on at a hangup, as `nohup` promises; what they start has none.
    """
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, lambda *_: None)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run files that compile or open pages first, so that at the end no core waits for a long file."""
    slow = {item.path for item in items if any(item.get_closest_marker(name) for name in _SLOW)}
    slow |= {item.path for item in items if item.path.parent.name == "docs"}
    items.sort(key=lambda item: item.path not in slow)


def pytest_collection_finish() -> None:
    """Turn garbage collection on again, but freeze the tests."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Return the folder of published reports; skip the test if it does not exist."""
    folder = Path(os.environ.get("ROOFLENS_CORPUS") or _REPOSITORY.parent / "shared" / "corpus")
    if not folder.is_dir():
        pytest.skip(f"no corpus of published reports at {folder}: set ROOFLENS_CORPUS to one")
    return folder


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[], Any]], Any]:
    """Make something once for all workers: the first keeps it under a name for the others."""
    base = tmp_path_factory.getbasetemp()
    folder = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def once_(name: str, make: Callable[[], Any]) -> Any:
        kept = folder / f"{name}.pickle"
        with kept.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if kept.exists():
                return pickle.loads(kept.read_bytes())  # noqa: S301 - written by this very run
            made = make()
            kept.write_bytes(pickle.dumps(made, pickle.HIGHEST_PROTOCOL))
            return made

    return once_


@pytest.fixture(scope="session")
def loaded(corpus: Path, once: Callable[[str, Callable[[], Any]], Any]) -> Loaded:
    """Read the reports of the corpus, without exports, which repeat kernels of these reports."""

    def read() -> Loaded:
        return load_reports([job for job in find_inputs([str(corpus)]).jobs if has_name_of_report(job.path)])

    return once("corpus", read)


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """Return the folder of the stored reports."""
    return _REPOSITORY / "fixtures"


@pytest.fixture(autouse=True)
def _no_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide this user's calibrations, which change verdicts, and keep their cache clean."""
    home = tmp_path_factory.getbasetemp() / "home"
    monkeypatch.setenv("ROOFLENS_HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))


@pytest.fixture
def gpu_box(tmp_path: Path, fixtures: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Simulate a machine with an H200 and an ncu; return the working folder."""
    fake_ncu.install(tmp_path / "bin")
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv(fake_ncu.BEHAVIOUR, "success")
    monkeypatch.setenv(fake_ncu.REPORT, str(fixtures / "synthetic" / "attention.synthetic.ncu-rep"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return work
