"""Read reports into a store here, in processes, and on a Dask cluster whose worker is killed: all must be equal.

    pip install '.[dask]' 'moto[server]'
    python benchmarks/executors.py [FOLDER] [--reports N] [--kernels N]

The reports are those of a folder with their blocks repeated, so that each is different. Scheduler and workers are
processes of this machine, and the S3 server of the last run answers on loopback: quote the ratios, not the seconds.
The exit code is 1 if a store differs from the first.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.fs as pafs
from msgspec import Struct, field

from rooflens.addresses import opened
from rooflens.ingest.load import ingest_reports
from rooflens.ingest.reports.inputs import find_inputs
from rooflens.model.store.dataset import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rooflens.ingest.reports.jobs import Job

REPORTS = Path(__file__).parent.parent / "fixtures" / "synthetic"
TABLES = {"runs": "digest", "kernels": "digest kernel_index", "metrics": "digest kernel_index name"}
"""Tables that are compared, and what tells their rows apart."""

CLOCK = {"ingested_unix_s"}
MAGIC_BYTES = LENGTH_BYTES = 4
BUCKET = "rooflens-benchmark"
START_SECONDS = 60.0


class Cluster(Struct):
    """A Dask scheduler and its workers, each in its own process."""

    address: str
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def cpu_seconds(self) -> list[float]:
        """Return the CPU time of the scheduler and each worker, with the children that they have waited for."""
        return [_cpu_seconds(process.pid) for process in self.processes]

    def kill_a_worker(self) -> None:
        """Kill a worker as a failing machine does, without notice."""
        self.processes[-1].send_signal(signal.SIGKILL)


def main() -> int:
    """Print one line per run; return 1 if a store differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=REPORTS, help="reports to make more of")
    parser.add_argument("--reports", type=int, default=400, help="how many to make")
    parser.add_argument("--copies", type=int, default=20, help="how often the blocks of the largest are repeated")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "reports"
        byte_count = make_reports(options.folder, made, options.reports, options.copies)
        print(f"{options.reports} reports, {byte_count / 1e6:.0f} MB")
        jobs = find_inputs([str(made)]).jobs
        return compare(jobs, Path(folder))


def make_reports(source: Path, target: Path, count: int, copies: int) -> int:
    """Write this many reports, each with the blocks of another repeated differently often; return their bytes."""
    target.mkdir()
    originals = [file.read_bytes() for file in sorted(source.glob("*.ncu-rep"))]
    byte_count = 0
    for number in range(count):
        data = originals[number % len(originals)]
        header_end = MAGIC_BYTES + LENGTH_BYTES + int.from_bytes(data[MAGIC_BYTES:][:LENGTH_BYTES], "little")
        times = 1 + (number // len(originals)) % copies
        content = data + data[header_end:] * (times - 1)
        (target / f"{number:06}.ncu-rep").write_bytes(content)
        byte_count += len(content)
    return byte_count


def compare(jobs: tuple[Job, ...], folder: Path) -> int:
    """Ingest with every executor, and compare each store with the first."""
    first = str(folder / "here")
    base_s = ingest("in this process", jobs, first)
    wanted = rows_of(first)
    print(f"  {sum(table.num_rows for table in wanted.values()):,} rows")
    stores = {}
    for name, executor in (("process:1", "process:1"), ("process:2", "process:2")):
        stores[name] = str(folder / name.replace(":", "-"))
        ingest(name, jobs, stores[name], executor, base_s=base_s)
    for workers in (1, 2):
        with cluster(workers) as dask:
            name = f"dask, {workers} workers"
            stores[name] = str(folder / f"dask-{workers}")
            before, ours = dask.cpu_seconds(), _cpu_seconds(os.getpid())
            ingest(name, jobs, stores[name], f"dask:{dask.address}", base_s=base_s)
            scheduler, *of_workers = (now - then for now, then in zip(dask.cpu_seconds(), before, strict=True))
            took = ", ".join(f"{seconds:.1f}" for seconds in of_workers)
            ours = _cpu_seconds(os.getpid()) - ours
            print(f"  CPU seconds: workers {took}, scheduler {scheduler:.1f}, this process {ours:.1f}", flush=True)
    with cluster(2) as dask:
        name = "dask, 2 workers, one killed in the middle"
        stores[name] = str(folder / "dask-killed")
        killer = at_middle(len(jobs), dask.kill_a_worker)
        ingest(name, jobs, stores[name], f"dask:{dask.address}", killer, base_s)
    with s3_server() as address:
        if address is None:
            print("no run against S3: moto is not installed")
        else:
            with cluster(2) as dask:
                stores["dask, 2 workers, S3"] = address
                ingest("dask, 2 workers, S3", jobs, address, f"dask:{dask.address}", base_s=base_s)
        different = [name for name, store in stores.items() if not same(rows_of(store), wanted)]
    for name in different:
        print(f"DIFFERENT: {name}")
    print(f"{len(stores) - len(different)} of {len(stores)} stores equal the first")
    return 1 if different else 0


def ingest(  # noqa: PLR0913, PLR0917 - one line of the comparison
    name: str,
    jobs: tuple[Job, ...],
    store: str,
    executor: str | None = None,
    on_read: Callable[[Job], None] = lambda _: None,
    base_s: float | None = None,
) -> float:
    """Ingest into a new store; print and return the seconds that it took."""
    start_s = time.monotonic()
    done = ingest_reports(jobs, Store(store), on_read, executor=executor)
    took_s = time.monotonic() - start_s
    ratio = f", {took_s / base_s:.2f} of this process's" if base_s else ""
    counts = f"{done.report_count} reports, {done.kernel_count} kernels, {len(done.failures)} failures"
    print(f"{name}: {counts}, {took_s:.1f} s{ratio}", flush=True)
    return took_s


def _cpu_seconds(process: int) -> float:
    """Return the CPU time of a process and of its ended children, as counted by Linux."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def at_middle(count: int, act: Callable[[], None]) -> Callable[[Job], None]:
    """Make a listener that acts once, when a quarter of the reports has been read."""
    left = [count // 4]

    def listen(_: Job) -> None:
        left[0] -= 1
        if left[0] == 0:
            act()

    return listen


@contextlib.contextmanager
def cluster(workers: int, *, nannies: bool = False) -> Iterator[Cluster]:
    """Start a scheduler and workers of one thread each; those with nannies are restarted when they die."""
    address = f"tcp://127.0.0.1:{free_port()}"
    port = address.rpartition(":")[2]
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as stack:
        found = Cluster(address)
        scheduler = ("scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard")
        nanny = "--nanny" if nannies else "--no-nanny"
        worker = ("worker", address, "--nthreads", "1", nanny, "--no-dashboard", "--local-directory", scratch)
        for arguments in (scheduler, *[worker] * workers):
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            stack.callback(end, process)
            found.processes.append(process)
        wait_for_workers(address, workers)
        yield found


def wait_for_workers(address: str, count: int) -> None:
    """Wait for this many workers."""
    from distributed import Client  # noqa: PLC0415 - an extra

    with Client(address, timeout=START_SECONDS, set_as_default=False) as client:
        client.wait_for_workers(count, timeout=START_SECONDS)


@contextlib.contextmanager
def s3_server() -> Iterator[str | None]:
    """Start moto's S3 server with an empty bucket; yield the address of a store in it, or None without moto."""
    if shutil.which("moto_server", path=str(Path(sys.executable).parent)) is None:
        yield None
        return
    port = free_port()
    os.environ.update(AWS_ACCESS_KEY_ID="benchmark", AWS_SECRET_ACCESS_KEY="benchmark")  # noqa: S106 - any will do
    server = subprocess.Popen(
        [Path(sys.executable).parent / "moto_server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for_answer(f"http://127.0.0.1:{port}/")
        query = f"endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"
        system, _ = pafs.FileSystem.from_uri(f"s3://{BUCKET}?{query}&allow_bucket_creation=true")
        system.create_dir(BUCKET)
        yield f"s3://{BUCKET}/store?{query}"
    finally:
        end(server)


def wait_for_answer(address: str) -> None:
    """Wait until a server answers."""
    end_s = time.monotonic() + START_SECONDS
    while True:
        try:
            urllib.request.urlopen(address, timeout=1).close()  # noqa: S310 - http, on loopback
        except OSError:
            if time.monotonic() > end_s:
                raise
            time.sleep(0.2)
        else:
            return


def end(process: subprocess.Popen[bytes]) -> None:
    """End one of our processes."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_port() -> int:
    """Return a port on which nobody listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def rows_of(store: str) -> dict[str, pa.Table]:
    """Return the sorted rows of a store's tables, without the time of the ingest."""
    files, root = opened(store)
    found = {}
    for name, keys in TABLES.items():
        table = pads.dataset(f"{root}/{name}", files).to_table()
        table = table.drop_columns([column for column in table.column_names if column in CLOCK])
        found[name] = table.sort_by([(key, "ascending") for key in keys.split()])
    return found


def same(found: dict[str, pa.Table], wanted: dict[str, pa.Table]) -> bool:
    """Return whether two stores have the same rows, compared as text, as NaN is not equal to itself."""
    return all(repr(found[name].to_pylist()) == repr(table.to_pylist()) for name, table in wanted.items())


if __name__ == "__main__":
    sys.exit(main())
