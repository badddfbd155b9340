"""Read reports and stores at addresses, and with Dask workers."""

from __future__ import annotations

import contextlib
import os
import signal
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.dataset as pads
import pyarrow.fs as pafs
import pytest
from click.testing import CliRunner
from support.ncu_rep_writer import KernelSpec, ReportSpec, write_report

from rooflens.addresses import joined, opened, shown, without_secrets
from rooflens.analyzing import analyze_paths, analyze_store
from rooflens.cli.group import main
from rooflens.errors import EnvironmentMissingError, InputError
from rooflens.ingest.load import ingest_reports, load_reports
from rooflens.ingest.reports.inputs import find_inputs
from rooflens.ingest.running import find_workers
from rooflens.model.store.dataset import Store
from rooflens.model.store.files import Files
from rooflens.model.unprofiled import Unprofiled


class Killed(BaseException):
    """Raised by a test to end a writer."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Five reports, one of which is cut, and another file."""
    (tmp_path / "reports" / "old").mkdir(parents=True)
    for number in range(5):
        kernels = [KernelSpec(f"kernel_{number}()", {"gpu__time_duration.sum": 1000.0 + number})]
        write_report(tmp_path / "reports" / ("old" if number == 1 else "") / f"{number}.ncu-rep", ReportSpec(kernels))
    cut = tmp_path / "reports" / "3.ncu-rep"
    cut.write_bytes(cut.read_bytes()[:-1])
    (tmp_path / "reports" / "notes.txt").write_text("no report")
    return tmp_path / "reports"


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """Return the address of a bucket on an S3 server in this process, ending with options."""
    from moto.server import ThreadedMotoServer  # noqa: PLC0415 - a second

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    with pytest.MonkeyPatch.context() as patched:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patched.setenv(name, "test")
        server.start()
        try:
            host, port = server.get_host_and_port()
            options = f"endpoint_override={host}:{port}&scheme=http&region=us-east-1"
            pafs.FileSystem.from_uri(f"s3://bucket?{options}&allow_bucket_creation=true")[0].create_dir("bucket")
            yield f"s3://bucket/{uuid.uuid4().hex}?{options}"
        finally:
            server.stop()


@pytest.fixture
def memory() -> Iterator[str]:
    """Return an address in memory, which fsspec opens."""
    import fsspec  # noqa: PLC0415 - beside its one use

    yield "memory://here"
    with contextlib.suppress(FileNotFoundError):
        fsspec.filesystem("memory").rm("/here", recursive=True)


def _upload(folder: Path, address: str) -> None:
    system, root = opened(address)
    pafs.copy_files(str(folder), root, source_filesystem=pafs.LocalFileSystem(), destination_filesystem=system)


def _check_reports_at(address: str, folder: Path, store: str) -> None:
    """Check that reports at an address are read like those in the folder."""
    _upload(folder, address)
    inputs, local = find_inputs([address]), load_reports(find_inputs([str(folder)]).jobs)
    where = shown(address)
    assert [job.source for job in inputs.jobs] == [f"{where}/{name}.ncu-rep" for name in ("0", "2", "3", "4", "old/1")]
    assert [path.name for path in inputs.ignored] == ["notes.txt"]
    done = ingest_reports(inputs.jobs, Store(store))
    assert (done.report_count, [source for source, _ in done.failures]) == (4, [f"{where}/3.ncu-rep"])
    assert str(done.failures[0][1]) == str(local.failures[0][1])
    assert ingest_reports(inputs.jobs, Store(store)).skipped_count == 4
    found = analyze_paths([joined(address, "2.ncu-rep")])
    assert [report.run.digest for report in found.reports] == [local.reports[1][0].digest]
    assert {report.run.digest for report in analyze_store(store).reports} == {run.digest for run, _ in local.reports}
    with pytest.raises(InputError, match="does not exist"):
        find_inputs([joined(address, "nothing")])


def test_reports_at_an_address_are_read_as_files_are(tmp_path: Path, folder: Path, memory: str) -> None:
    """Reports are fetched from folders, a damaged one is named by its address, and stored ones are skipped."""
    _check_reports_at(f"{memory}/reports", folder, str(tmp_path / "store"))


def test_an_address_is_shown_without_its_secrets() -> None:
    """Options and keys are needed to open an address and are not shown."""
    address = "s3://key:secret@bucket/folder?endpoint_override=host"
    assert shown(address) == "s3://bucket/folder"
    assert joined(address, "a.ncu-rep") == "s3://key:secret@bucket/folder/a.ncu-rep?endpoint_override=host"


@pytest.mark.parametrize(
    ("address", "seen"),
    [
        ("s3://AKIAKEY:wJalr/XUtnFEMI@bucket/a@b?region=x", "s3://bucket/a@b"),
        ("s3://bucket/a@b?access_key=AKIAKEY&secret_key=wJalr%2FXUtnFEMI", "s3://bucket/a@b"),
        ("hdfs://host:9000/a@b", "hdfs://host:9000/a@b"),
        ("abfs://:wJalr/XUtnFEMI@account.dfs.core.windows.net/a", "abfs://account.dfs.core.windows.net/a"),
        ("folder/what?@b", "folder/what?@b"),
    ],
)
def test_no_key_of_an_address_is_shown(address: str, seen: str) -> None:
    """Keys are shown neither in the address nor in a library's errors, even with slashes or among the options."""
    assert shown(address) == seen
    told = without_secrets(f"cannot parse {address}: AKIAKEY may not, nor wJalr/XUtnFEMI or wJalr%2FXUtnFEMI", address)
    assert told.startswith(f"cannot parse {seen}: ")
    if seen != address:
        assert "wJalr" not in told


@pytest.mark.parametrize(
    "address", ["s3://AKIAKEY:wJalr/XUtn@bucket/s", "s3://AKIAKEY:wJalrXUtn@bucket/s?secret_key=wJalrXUtn&no=such"]
)
@pytest.mark.parametrize(
    "command",
    [
        ("analyze", "--store", "{}"),
        ("analyze", "{}"),
        ("report", "--store", "{}", "-o", "-", "--format", "json"),
        ("compare", "{}", "{}"),
        ("compare", "{}", "--format", "json"),
        ("ingest", "fixtures", "--store", "{}"),
    ],
    ids=lambda command: command[0],
)
def test_no_command_prints_the_keys_of_an_address(command: tuple[str, ...], address: str) -> None:
    """Whatever is wrong with an address, no message contains its keys."""
    told = CliRunner().invoke(main, [part.format(address) for part in command])
    assert told.exit_code != 0
    assert "bucket" in told.output or "fixtures" in told.output
    assert "wJalr" not in told.output


def test_a_store_that_is_opened_with_keys_shows_none(folder: Path, s3: str) -> None:
    """Neither messages nor the JSON show the keys, whoever opens the store."""
    store = joined(s3, "keys").replace("s3://", "s3://AKIAKEY:wJalrXUtn@")
    reports = joined(s3, "keyed").replace("s3://", "s3://AKIAKEY:wJalrXUtn@")
    _upload(folder, reports)
    for command in (
        ["ingest", reports, "--store", store],
        ["analyze", reports, "--format", "json"],
        ["analyze", "--store", store, "--format", "json"],
        ["analyze", "--store", store],
        ["analyze", "--store", store, "--gpu", "none"],
        ["compare", store, "--kernel", "none"],
        ["compare", store, store],
    ):
        told = CliRunner().invoke(main, command)
        assert told.exception is None or isinstance(told.exception, SystemExit), told.exception
        assert told.output
        assert "wJalr" not in told.output
        assert "AKIA" not in told.output


def test_reports_and_store_may_both_be_on_s3(folder: Path, s3: str) -> None:
    """Reports in one folder of a bucket are ingested into a store in another and read from it."""
    _check_reports_at(joined(s3, "reports"), folder, joined(s3, "both"))


def test_a_store_on_s3_holds_what_a_local_one_does(tmp_path: Path, folder: Path, s3: str) -> None:
    """Two ingests at once fill it, it is analyzed and queried; a writer killed before its commit leaves no trace."""
    jobs, remote, local = find_inputs([str(folder)]).jobs, joined(s3, "store"), str(tmp_path / "store")
    ingest_reports(jobs, Store(local))

    def send(files: Files, name: str, content: bytes) -> None:
        if name.startswith("runs/"):
            raise Killed
        real(files, name, content)

    real = Files._send
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Files, "_send", send)
        with pytest.raises(Killed):
            ingest_reports(jobs, Store(remote))
    with pytest.raises(InputError, match="is empty"):
        list(Store.existing(remote).reports())
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda some: ingest_reports(some, Store(remote)), (jobs[:3], jobs)))
    assert [len(one.failures) for one in done] == [1, 1]
    wanted = analyze_store(local).reports
    found = analyze_store(remote, keep=True)
    assert (found.reports, found.not_kept) == (wanted, None)
    assert analyze_store(remote).reports == wanted
    files, root = opened(remote)
    assert {pads.dataset(f"{root}/{table}", filesystem=files).count_rows() for table in ("runs", "verdicts")} == {4}
    shown_by_cli = CliRunner().invoke(main, ["analyze", "--store", remote, "--format", "json"])
    assert shown_by_cli.exit_code == 0, shown_by_cli.output
    assert all(f"kernel_{number}" in shown_by_cli.stdout for number in (0, 1, 2, 4))


@pytest.fixture(scope="module")
def dask_workers() -> Iterator[str]:
    """Start a cluster of two worker processes here, whose scheduler gives up a task that killed a worker."""
    from dask import config  # noqa: PLC0415 - a second
    from distributed import LocalCluster  # noqa: PLC0415 - as above; its settings must be there before one is changed

    with (
        config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            host="127.0.0.1",
            silence_logs=50,
        ) as cluster,
    ):
        yield f"dask:{cluster.scheduler_address}"


def test_workers_of_dask_read_what_this_process_reads(tmp_path: Path, folder: Path, dask_workers: str) -> None:
    """Workers of a local cluster read reports, including the damaged one, into memory and into a store."""
    jobs = find_inputs([str(folder)]).jobs
    done = ingest_reports(jobs, Store(tmp_path / "there"), executor=dask_workers)
    loaded = load_reports(jobs, executor=dask_workers)
    here = load_reports(jobs)
    ingest_reports(jobs, Store(tmp_path / "here"))
    assert (done.report_count, len(done.failures)) == (4, 1)
    assert loaded.reports == here.reports
    assert [str(error) for _, error in loaded.failures] == [str(error) for _, error in here.failures]
    assert analyze_store(tmp_path / "there").reports == analyze_store(tmp_path / "here").reports


def die_at_two(path: Path) -> Unprofiled | None:
    """Kill the worker at one report, as a failing machine does."""
    if path.name == "2.ncu-rep":
        os.kill(os.getpid(), signal.SIGKILL)
    return None


def test_a_report_that_kills_workers_of_dask_is_named_and_the_others_are_stored(
    tmp_path: Path, folder: Path, dask_workers: str
) -> None:
    """The other reports of its group are read again, and the store says which report is missing and why."""
    jobs, store = find_inputs([str(folder)]).jobs, Store(tmp_path / "store")
    done = ingest_reports(jobs, store, unprofiled_of=die_at_two, executor=dask_workers)
    died, damaged = done.failures
    assert (done.report_count, died[0], damaged[0]) == (3, jobs[1].source, jobs[2].source)
    assert str(died[1]) == "the process that read it died, as happens when memory runs out"
    assert [source for source, _ in store.failures()] == [jobs[1].source, jobs[2].source]


def test_a_cluster_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the address has no scheduler, or the scheduler no workers, the error says what to start."""
    from distributed import LocalCluster  # noqa: PLC0415 - a second

    monkeypatch.setattr("rooflens.ingest.running._CONNECT_SECONDS", 0.5)
    with pytest.raises(EnvironmentMissingError, match="no Dask scheduler answers") as caught:
        find_workers("dask:tcp://127.0.0.1:1")
    assert "dask scheduler" in caught.value.hint
    with (
        LocalCluster(n_workers=0, dashboard_address=":0", host="127.0.0.1") as cluster,
        pytest.raises(EnvironmentMissingError, match="has no workers"),
    ):
        find_workers(f"dask:{cluster.scheduler_address}")
