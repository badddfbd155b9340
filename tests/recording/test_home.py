"""Files from a GPU are laid out, split, judged and adopted; missing ones are named and cost only themselves."""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
import sys
import tarfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

import adopting
import arriving
import cases
import home
import pytest
import write_accuracy
from check import SCHEMA_VERSION
from msgspec.structs import replace
from slim import slim
from stored import ALL_FIXTURES_BYTES, read_entries, write_entries
from support.cases import in_case
from support.chips import H200
from support.cubin_writer import source_of
from support.fixture_kernels import Gemm, tensor_gemm, triad
from support.loops import for_all
from support.ncu_rep_writer import KernelSpec, NvtxRange, ReportSpec, SessionSpec, encode_report
from support.recorded import ENTRY
from support.synthetic_kernels import kernel_spec

from rooflens.errors import InputError
from rooflens.ingest.reports.container import inspect
from rooflens.workloads import commands
from rooflens.workloads.recognize import recognize

DIGEST = "0123456789abcdef" * 4
SAXPY = f"/home/someone/.cache/rooflens/cuda/saxpy-sm_90a-{DIGEST}"
NCU = "/opt/ncu --nvtx --nvtx-include rooflens --clock-control none --launch-count 2000"
IN_TURN = " ".join(
    (
        *(NCU, "python", "-m", commands.IN_TURN, "--seconds", "55"),
        *("ROOFLENS_CASE=saxpy.n28", SAXPY, "--n", "268435456", "--iterations", "1", "--check", "0"),
        *("ROOFLENS_CASE=saxpy.n16", SAXPY, "--n", "65536", "--iterations", "1", "--check", "0"),
    )
)
GANG = f"{NCU} python -m {commands.HARNESS} gemm.bf16_4096 softmax.bf16_4096 --iterations 1 --check 0 --mark-cases"


CALIBRATION = {
    "gpu": "NVIDIA H200",
    "compute_capability": "9.0",
    "driver": "580.65.06",
    "sm_clock_hz": 1.9e9,
    "rates": {"fp32": {"unit": "FLOP/s", "median": 6e13, "min": 5e13, "max": 7e13, "repetitions": 9}},
}


def report(kernels: Sequence[KernelSpec], command_line: str, **session: object) -> bytes:
    """Write a report of many cases, marked as synthetic by default."""
    told = SessionSpec(process_name="/usr/bin/python", command_line=command_line, clock_control="None", **session)  # type: ignore[arg-type]
    return encode_report(ReportSpec(kernels, told, sources=[source_of(b"some code")], kernels_per_block=2))


def products() -> list[KernelSpec]:
    """Describe the product of the first case of `gemm`, in two launches although PyTorch counted one."""
    gemm = kernel_spec(tensor_gemm("gemm", H200, Gemm(4096, 4096, 4096), 200_000))
    return [in_case(gemm, "gemm.bf16_4096", "a library's")]


def vectors() -> list[KernelSpec]:
    """Describe both cases of `saxpy`, each in its own process."""
    large, small = (kernel_spec(triad(H200, elements=elements)) for elements in (1 << 28, 1 << 16))
    return [
        in_case(replace(large, process=(11, "/cache/saxpy"), module=1), "saxpy.n28"),
        in_case(replace(small, process=(12, "/cache/saxpy"), module=1), "saxpy.n16"),
    ]


def answer(name: str, launches: int = 20, **more: object) -> str:
    """Write the output of a workload for a case without ncu."""
    workload, _, case = name.partition(".")
    said = {"workload": workload, "case": case, "iterations": 20, "launches": launches, "wall_ns": 1_000_000}
    return json.dumps(
        said
        | {"kernel_ns": 990_000, "cold_ns": 1_400_000, "max_relative_error": 0.0, "tolerance": 1e-6, "ok": True}
        | more
    )


def brought(**session: object) -> dict[str, bytes]:
    """Return the files of a small day: two reports, their times, and the output of the steps."""
    done = [
        {"stage": "seeds", "name": "seeds", "at_s": 1, "s": 9, "detail": "standard"},
        {"stage": "roofs", "name": "roofs", "at_s": 2, "s": 9, "detail": "standard"},
        {"stage": "exact", "name": "exact", "at_s": 3, "s": 9, "detail": "deep"},
        {"stage": "exact", "name": "passes.standard", "at_s": 4, "s": 3, "ncu_s": 2.5, "passes": 6, "kernels": 1},
        {"stage": "doors", "name": "script", "at_s": 5, "s": 21, "status": 0},
    ]
    step = [NvtxRange("step", thread_id=None)]
    script = [replace(vectors()[1], ranges=[*step, *inner]) for inner in ((), (NvtxRange("forward"),))]
    return {
        "done.json": json.dumps(done).encode(),
        "env/gpu.out": b"name, driver_version\nNVIDIA H200, 580.65.06\n",
        "seeds/seeds.ncu-rep": report(products(), GANG, **session),
        "seeds/seeds.alone.out": f"warm\n{answer('gemm.bf16_4096')}\n{answer('softmax.bf16_4096')}\n".encode(),
        "roofs/roofs.ncu-rep": report(vectors(), IN_TURN, **session),
        "roofs/roofs.alone.out": f"{answer('saxpy.n28')}\n{answer('saxpy.n16')}\n".encode(),
        "roofs/tiny.alone.out": f"{answer('tiny_launches.graph', 20_000)}\n".encode(),
        "exact/exact.ncu-rep": report(vectors()[:1], IN_TURN, **session),
        "exact/passes.standard.ncu-rep": report(vectors()[1:], IN_TURN, **session),
        "exact/passes.again.ncu-rep": report(vectors()[1:], IN_TURN, **session),
        "doors/script.ncu-rep": report(script, f"{NCU} python train.py", **session),
        "doors/one_of_each.ncu-rep": report(vectors(), f"{NCU} sh -c true", **session),
        "roofs/calibration.out": json.dumps(CALIBRATION).encode(),
    }


def packed(files: Mapping[str, bytes]) -> bytes:
    """Pack files as first light does: gzipped one by one, in an uncompressed tar."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        for name, content in files.items():
            member = gzip.compress(content, mtime=0)
            about = tarfile.TarInfo(f"{name}.gz")
            about.size = len(member)
            tar.addfile(about, io.BytesIO(member))
    return whole.getvalue()


@pytest.fixture
def came(tmp_path: Path) -> Path:
    """Return the folder with the archives of a day."""
    folder = tmp_path / "came"
    folder.mkdir()
    (folder / "first_light.1.tar").write_bytes(packed(brought()))
    return folder


def entries(folder: Path) -> dict[str, dict[str, object]]:
    """Return the entries in the manifest of the recordings."""
    return tomllib.loads((folder / "recordings/manifest.toml").read_text())


def test_every_case_has_a_report_a_run_and_an_entry(came: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No launch is lost; GPU, ncu, date, arguments and the original report are recorded, and missing files named."""
    assert home.main([str(came)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "missing: asked for, but not in `seeds/seeds.ncu-rep`: softmax.bf16_4096",
        "missing: asked for, but not in `exact/exact.ncu-rep`: saxpy.n16",
        "missing: timed, but in no report: tiny_launches.graph, softmax.bf16_4096",
        f"4 recordings of 3 cases, 4 kernels, in `{came}.home/recordings`",
    ]
    told = entries(Path(f"{came}.home"))
    assert list(told) == [f"h200/{name}.ncu-rep" for name in ("gemm", "saxpy.deep", "saxpy.n16", "saxpy")]
    assert sum(int(str(entry["kernels"])) for entry in told.values()) == len(products()) + len(vectors()) + 1
    assert {key: value for key, value in told["h200/saxpy.n16.ncu-rep"].items() if key != "sm_clock_hz"} == {
        "synthetic": True,
        "gpu": "NVIDIA H200",
        "workload": "saxpy",
        "case": "n16",
        "parameters": {"n": 65536},
        "dtype": "fp32",
        "detail": "standard",
        "command": "rooflens collect saxpy --case n16 --detail standard --clock-control none",
        "clock_control": "none",
        "driver": "unknown",
        "ncu": "2025.3.0.0",
        "date": "2025-01-01",
        "kernels": 1,
        "ncu_passes": 4,
        "wall_ns": 1_000_000,
        "iterations": 20,
        "kernel_ns": 990_000,
        "cold_ns": 1_400_000,
        "launches": 20,
        "part_of": "roofs/roofs.ncu-rep",
        "argv": [f"saxpy-sm_90a-{DIGEST}", "--n", "65536", "--iterations", "1", "--check", "0"],
        "made_by": "fixtures/record.py",
    }
    assert [path for path, entry in told.items() if entry.get("code")] == [
        "h200/saxpy.deep.ncu-rep",
        "h200/saxpy.ncu-rep",
    ]
    for path, entry in told.items():
        (session,) = inspect(Path(f"{came}.home/recordings/{path}")).sessions
        ran = recognize(session.command_line)
        assert ran is not None
        assert (ran.workload.name, ran.case.name) == (entry["workload"], entry["case"])
        assert Path(f"{came}.home/recordings/{path.removesuffix('ncu-rep')}unprofiled.json").exists()


@pytest.mark.corpus
def test_the_driver_is_what_a_real_report_names(corpus: Path) -> None:
    """The driver is taken from the report, as every report of ncu names the versions of driver and CUDA."""
    (real,) = corpus.rglob("nsight-training__manual_nvtx.ncu-rep")
    versions = cases._versions(real.read_bytes())
    assert (versions[cases._DRIVER], versions["CUDA Version"]) == ("520.61.05", "11.8")


def test_all_is_judged_without_nvidias_module(
    came: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Verdicts, FLOPs, bytes and launches are compared with each workload's predictions; deviations set exit code 1."""
    monkeypatch.setitem(sys.modules, "ncu_report", None)
    status = home.main([str(came), "--check"])
    out = capsys.readouterr().out
    results = json.loads(Path(f"{came}.home/results.json").read_text())
    assert results["schema_version"] == SCHEMA_VERSION
    assert results["is_checked"]
    states = {one["name"]: one["state"] for one in results["truths"]}
    assert states["FLOP of saxpy n28"] == states["DRAM bytes of saxpy n28"] == states["verdict of saxpy n28"] == "pass"
    assert states["launches of saxpy n28"] == states["FLOP of gemm bf16_4096"] == "pass"
    wrong = [name for name, state in states.items() if state == "fail"]
    assert all(f"off: {name}: " in out for name in wrong)
    assert status == bool(wrong)
    assert {row["name"]: row["is_off"] for row in results["rows"]}[
        "saxpy.n28: DRAM bytes against the compulsory ones"
    ] is False
    assert [(one["way"], one["passes"], one["wall_s"]) for one in results["costs"]] == [("standard", 6, 2.5)]
    assert results["doctor"] == [{"name": "GPU, driver", "finding": "NVIDIA H200, 580.65.06"}]
    assert {one["name"]: one["launches"] for one in results["overhead"]}["tiny_launches.graph"] == 1000
    assert [(one["way"], one["missing"], one["largest"]) for one in results["switches"]] == [("again", [], None)]
    assert results["replay_passes"] == {"fma.iters_64.standard": 4, "fma.iters_64.again": 4}
    assert [one["rates"]["fp32"]["median"] for one in results["calibrations"]] == [6e13]
    assert [one["by_range"] for one in results["script"]] == [{"step": 1, "step/forward": 1}]
    assert [state for name, state in states.items() if name.startswith(("script", "launches that"))] == ["pass"] * 3
    written = write_accuracy.render(results, {})
    assert all(word in written for word in ("NVIDIA H200", "60 TFLOP/s", "| 21 |", "1 in `step/forward`"))
    assert written.count("Not yet run on a GPU.") == 0


def test_what_is_off_is_said(came: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An additional launch, a wrong result and other amounts are deviations, and the exit code says so."""
    files = brought()
    files["seeds/seeds.ncu-rep"] = report([*products(), *products()], GANG)
    files["roofs/roofs.alone.out"] = f"{answer('saxpy.n28', ok=False)}\n{answer('saxpy.n16')}\n".encode()
    (came / "first_light.1.tar").write_bytes(packed(files))
    assert home.main([str(came), "--check"]) == 1
    told = capsys.readouterr().out
    assert "off: launches of gemm bf16_4096: 2, wanted 1" in told
    assert "off: FLOP of gemm bf16_4096: 2.00000, wanted 1 within 0.1%" in told
    assert "off: result of saxpy.n28: wrong, wanted right" in told
    assert "missing: saxpy.n28: its result was wrong without ncu: it is not kept" in told
    assert "h200/saxpy.ncu-rep" not in entries(Path(f"{came}.home"))


def test_a_call_that_was_cut_off_loses_what_is_missing(came: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Wherever the archive ends, the cases before the end are whole; only an empty archive is an error."""
    whole = (came / "first_light.1.tar").read_bytes()
    kept = []
    for end in range(0, len(whole), len(whole) // 12):
        (came / "first_light.1.tar").write_bytes(whole[:end])
        status = home.main([str(came)])
        out, err = capsys.readouterr()
        if status:
            assert err.startswith("error: "), err
            kept.append(0)
        else:
            assert "`first_light.1.tar` is cut off or damaged: " in out or " 3 cases" in out
            kept.append(len(entries(Path(f"{came}.home"))) if "0 recordings" not in out else 0)
    assert kept == sorted(kept)
    assert kept[0] == 0
    assert kept[-1] >= 3


def test_what_ncu_did_not_end_is_read_as_far_as_it_is_whole(came: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A report that was cut gives its whole cases, and the last says that it may lack launches."""
    files = brought()
    files["roofs/roofs.ncu-rep.incomplete"] = files.pop("roofs/roofs.ncu-rep")[:-100]
    del files["exact/exact.ncu-rep"]
    (came / "first_light.1.tar").write_bytes(packed(files))
    assert home.main([str(came)]) == 0
    out = capsys.readouterr().out
    assert "missing: `roofs/roofs.ncu-rep.incomplete` is not whole: truncated: " in out
    assert "missing: asked for, but not in `roofs/roofs.ncu-rep.incomplete`: saxpy.n16" in out
    assert str(entries(Path(f"{came}.home"))["h200/saxpy.ncu-rep"]["incomplete"]).startswith("truncated: ")


def test_several_calls_and_unpacked_files_are_one_home(came: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Archives of two calls, pieces of a file and manually unpacked files are combined; none is overwritten."""
    files = brought()
    seeds = gzip.compress(files.pop("seeds/seeds.ncu-rep"))
    second, first = came / "second", packed({name: files.pop(name) for name in ("done.json", "roofs/roofs.ncu-rep")})
    second.mkdir()
    (came / "first_light.1.tar").write_bytes(first)
    (second / "first_light.1.tar").write_bytes(packed({**files, "done.json": b"[]", "roofs/roofs.ncu-rep": b"other"}))
    (came / "seeds").mkdir()
    for number, start in enumerate(range(0, len(seeds), 1000), 1):
        (came / f"seeds/seeds.ncu-rep.gz.part{number}").write_bytes(seeds[start : start + 1000])
    assert home.main([str(came)]) == 0
    assert "`roofs.2/roofs.ncu-rep` cannot be read: " in capsys.readouterr().out
    assert {"h200/gemm.ncu-rep", "h200/saxpy.ncu-rep"} <= set(entries(Path(f"{came}.home")))


HOSTILE = {
    "../outside.out": "is no file of ours",
    "/absolute.out": "is no file of ours",
    ".hidden/x.out": "is no file of ours",
    "a/b/c/d/e/f/g.out": "is no file of ours",
    "link.out": "is no file of ours",
    "device.out": "is no file of ours",
    "env/gpu.out/deeper.out": "would stand in a file",
}


def test_an_archive_from_elsewhere_writes_nothing_outside(came: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Paths out of the folder, links and devices are named and left out; the rest is laid out."""
    with tarfile.open(came / "first_light.1.tar", "a") as tar:
        for name in HOSTILE:
            about = tarfile.TarInfo(name)
            about.type = {"link.out": tarfile.SYMTYPE, "device.out": tarfile.CHRTYPE}.get(name, tarfile.REGTYPE)
            about.linkname = "/etc/passwd"
            tar.addfile(about, io.BytesIO())
    before = {path for path in came.parent.rglob("*") if path != came}
    assert home.main([str(came)]) == 0
    out = capsys.readouterr().out
    for name, reason in HOSTILE.items():
        assert any(name in line and reason in line for line in out.splitlines()), name
    made = set(came.parent.rglob("*")) - before - {came}
    assert all(Path(f"{came}.home") in (path, *path.parents) for path in made)
    assert not [path for path in made if path.is_symlink()]


@for_all(
    "content, error",
    [
        (b"", "cannot be read: `first_light.1.tar` is cut off or damaged"),
        (b"no archive at all", "cannot be read: `first_light.1.tar` is cut off or damaged"),
        (packed({"env/bomb.out": bytes(4 << 20)}), "unpacks to more than 1 MiB"),
        (packed({f"env/{number}.out": b"" for number in range(40)}), "holds more than 20 files"),
        (None, "nothing that came home is in"),
    ],
)
def test_what_is_no_archive_of_ours_is_one_error(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, content: bytes | None, error: str
) -> None:
    """Arbitrary bytes, a bomb, a million files or nothing: each is one sentence and a hint."""
    monkeypatch.setattr(arriving, "MOST_BYTES", 1 << 20)
    monkeypatch.setattr(arriving, "MOST_MEMBERS", 20)
    folder = tmp_path_factory.mktemp("came")
    if content is not None:
        (folder / "first_light.1.tar").write_bytes(content)
    with pytest.raises(InputError, match=error) as raised:
        arriving.lay_out(folder, folder.with_name(f"{folder.name}.home"))
    assert raised.value.hint


def test_nothing_synthetic_is_ever_adopted_as_recorded(came: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Synthetic reports are refused, whatever a manifest says; a rehearsal marks them, and writes them elsewhere."""
    folder = came.parent / "fixtures"
    assert home.main([str(came), "--adopt", "--folder", str(folder)]) == 1
    out = capsys.readouterr().out
    assert out.count("it is synthetic, as it says itself") == 4
    assert "adopted 0, failed 4, left out 0" in out
    assert read_entries(folder) == {}
    assert not list(folder.rglob("*.ncu-rep"))
    recordings = Path(f"{came}.home/recordings")
    write_entries(recordings, [dataclasses.replace(one, synthetic=False) for one in read_entries(recordings).values()])
    assert not adopting.adopt(recordings, folder, ALL_FIXTURES_BYTES).entries
    assert home.main([str(came), "--adopt", "--rehearsal", "--folder", str(folder)]) == 0
    adopted = read_entries(folder)
    assert list(adopted) == [f"h200/{name}.synthetic.ncu-rep" for name in ("gemm", "saxpy.n16", "saxpy")]
    assert all(entry.synthetic and inspect(folder / path).synthetic for path, entry in adopted.items())
    assert home.main([str(came), "--adopt", "--rehearsal"]) == 2
    assert "a rehearsal adopts nothing into the fixtures themselves" in capsys.readouterr().err


def test_recordings_become_fixtures(came: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One report per case is kept, slimmed, saxpy with its code; each that is left out is named with the reason."""
    (came / "first_light.1.tar").write_bytes(packed(brought(published="a test")))
    folder = came.parent / "fixtures"
    assert home.main([str(came), "--adopt", "--folder", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "left out: h200/saxpy.deep.ncu-rep: its case is adopted from another report" in out
    assert out.splitlines()[-1] == "adopted 3, failed 0, left out 1"
    kept = read_entries(folder)
    assert list(kept) == [f"h200/{name}.ncu-rep" for name in ("gemm", "saxpy.n16", "saxpy")]
    for path, entry in kept.items():
        content = (folder / path).read_bytes()
        assert slim(content, with_code=entry.code) == content
        assert (b"some code" in content) == entry.code == (path == "h200/saxpy.ncu-rep")
        assert b"someone" not in content
        assert (folder / path.replace("ncu-rep", "unprofiled.json")).exists()
    sizes = [(folder / path).stat().st_size for path in kept]
    limited = came.parent / "limited"
    asked = [str(Path(f"{came}.home/recordings")), "--adopt", "--folder", str(limited)]
    assert home.main([*asked, "--limit-bytes", str(sum(sizes) - 100)]) == 0
    out = capsys.readouterr().out
    assert "MB of fixtures have room for" in out
    assert len(read_entries(limited)) == len(list(limited.rglob("*.ncu-rep"))) == 2


def test_a_manifest_from_elsewhere_names_recordings_only(came: Path) -> None:
    """A path out of the folder is refused; a missing or damaged report costs only itself."""
    (came / "first_light.1.tar").unlink()
    paths = ("../outside.ncu-rep", "h200/missing.ncu-rep", "h200/damaged.ncu-rep", ENTRY.path)
    write_entries(came, [dataclasses.replace(ENTRY, path=path, case=path) for path in paths])
    (came / "h200").mkdir()
    content = report(vectors(), IN_TURN, published="a test")
    for path, data in zip(paths[2:], (content[:-1], content), strict=True):
        (came / path).write_bytes(data)
    (came.parent / "outside.ncu-rep").write_bytes(content)
    adopted = adopting.adopt(came, came.parent / "fixtures", ALL_FIXTURES_BYTES)
    assert [entry.path for entry in adopted.entries] == [ENTRY.path]
    assert set(adopted.failed) == set(paths[:3])
