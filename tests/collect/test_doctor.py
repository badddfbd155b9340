from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest
from support import fake_ncu, fake_nvcc
from support.loops import for_all

from rooflens.collect import doctor
from rooflens.collect.doctor import Check
from rooflens.collect.surroundings import SURROUNDINGS, surroundings
from rooflens.local_gpu import LocalGpu, may_administer

ask, find_spec = doctor.query, importlib.util.find_spec
ALL_CAPABILITIES, NO_SYS_ADMIN = "000001ffffffffff", "00000000a80425fb"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Simulate a machine with an H200, ncu, nvcc, counters open to all, and no PyTorch; return its root folder."""
    fake_ncu.install(tmp_path / "bin")
    fake_nvcc.install(tmp_path / "bin", {})
    write(tmp_path, "bin/nsys", "#!/bin/sh\necho NVIDIA Nsight Systems version 2025.3.1.90-253135822126v0\n")
    (tmp_path / "bin" / "nsys").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    torch_is(monkeypatch, there=False)
    told = {name for place in SURROUNDINGS for name in place.variables}
    for name in ("CUDA_HOME", "CUDA_PATH", fake_ncu.VERSION, *told):
        monkeypatch.delenv(name, raising=False)
    write(tmp_path, "proc/driver/nvidia/params", "EnableMSI: 1\nRmProfilingAdminOnly: 0\n")
    write(tmp_path, "proc/self/status", f"Name:\tx\nCapEff:\t{NO_SYS_ADMIN}\n")
    return tmp_path


def write(root: Path, name: str, text: str) -> None:
    """Write a file below the root folder."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def checks(root: Path) -> dict[str, Check]:
    """Run all checks, by name."""
    return {check.name: check for check in doctor.run_checks(root)}


def torch_says(monkeypatch: pytest.MonkeyPatch, *argv: str) -> None:
    """Replace the program that asks PyTorch."""
    torch_is(monkeypatch, there=True)
    monkeypatch.setattr(doctor, "query", lambda given: ask(argv if given[0] == sys.executable else given))


def torch_is(monkeypatch: pytest.MonkeyPatch, *, there: bool) -> None:
    """Simulate that PyTorch is installed, or is not."""
    found = object() if there else None
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: found if name == "torch" else find_spec(name))


def test_a_gpu_box_is_ok_in_every_line(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a complete machine each line is ok and says what was found."""
    torch_says(monkeypatch, "/bin/echo", "2.9.1|13.0|NVIDIA H200")
    found = checks(root)
    assert {name: check.state for name, check in found.items() if check.state != "ok"} == {}
    assert list(found) == [
        "Python", "report reader", "tables", "page", "store", "NVIDIA's reader", "pictures",
        "place", "NVIDIA driver", "GPU", "ncu", "counter permission", "nsys", "nvcc", "torch", "disk",
    ]  # fmt: skip
    assert found["NVIDIA driver"].finding == "580.65.06"
    assert found["GPU"].finding == "NVIDIA H200, compute capability 9.0, in the table"
    assert found["ncu"].finding == f"2025.3.1.0 at {root / 'bin' / 'ncu'}"
    assert found["nsys"].finding == f"2025.3.1.90 at {root / 'bin' / 'nsys'}"
    assert found["nvcc"].finding.startswith(f"13.0 at {root / 'bin' / 'nvcc'}, ")
    assert "cuBLAS" in found["nvcc"].finding
    assert found["torch"].finding == "2.9.1, CUDA 13.0, on NVIDIA H200"


def test_without_anything_only_what_reads_reports_may_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without GPU and tools these checks are optional, with a fix and a note that reading does not need them."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("rooflens.workloads.build.find_program", lambda *_: None)
    torch_is(monkeypatch, there=False)
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    found = checks(tmp_path)
    missing = ["NVIDIA driver", "GPU", "ncu", "counter permission", "nsys", "nvcc", "torch"]
    assert [name for name, check in found.items() if check.state == "optional"] == missing
    assert {check.state for name, check in found.items() if name not in missing} <= {"ok"}
    assert [name for name in missing if "reading reports does not need it" not in found[name].finding] == []
    assert [name for name in missing if not found[name].fix] == []


def test_an_older_python_only_collects(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In Python 3.10 the first line fails, as reading reports does, and names the version to install."""
    monkeypatch.setattr(sys, "version_info", (3, 10, 12))
    check = checks(root)["Python"]
    assert (check.state, check.finding) == ("fail", "3.10.12 collects reports; reading them needs 3.11")
    assert check.fix == "install Python 3.11"


def test_a_missing_reader_fails(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without protobuf no report can be read, and the fix names the package."""
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    check = checks(root)["report reader"]
    assert check.state == "fail"
    assert check.fix == "pip install 'protobuf>=5.29.5'"


@pytest.mark.parametrize(
    ("module", "name", "fix"),
    [
        ("vl_convert", "pictures", "pip install 'vl-convert-python>=1.8'"),
        ("ncu_report", "NVIDIA's reader", "pip install ncu-report"),
        ("wcwidth", "tables", "pip install wcwidth"),
    ],
)
def test_what_only_some_need_is_optional(
    root: Path, monkeypatch: pytest.MonkeyPatch, module: str, name: str, fix: str
) -> None:
    """A package that reading does not need is optional, and the fix names it."""
    monkeypatch.setitem(sys.modules, module, None)
    found = checks(root)
    assert (found["report reader"].state, found["page"].state, found[name].state) == ("ok", "ok", "optional")
    assert found[name].fix == fix


@pytest.mark.parametrize(
    ("parameters", "capabilities", "state", "says"),
    [
        ("RmProfilingAdminOnly: 0\n", NO_SYS_ADMIN, "ok", "open to all users"),
        ("RmProfilingAdminOnly: 1\n", ALL_CAPABILITIES, "ok", "and this user is one"),
        ("RmProfilingAdminOnly: 1\n", NO_SYS_ADMIN, "warn", "restricted to administrators, and "),
        ("EnableMSI: 1\n", NO_SYS_ADMIN, "warn", "probably restricted"),
    ],
)
def test_who_may_read_the_counters(root: Path, parameters: str, capabilities: str, state: str, says: str) -> None:
    """The driver's setting and CAP_SYS_ADMIN, which root in a container may lack, decide; the fix says how."""
    write(root, "proc/driver/nvidia/params", parameters)
    write(root, "proc/self/status", f"CapEff:\t{capabilities}\n")
    check = checks(root)["counter permission"]
    assert check.state == state
    assert says in check.finding
    assert ("NVreg_RestrictProfilingToAdminUsers=0" in check.fix) == (state == "warn")


def test_capabilities_that_are_not_told_are_the_users(root: Path) -> None:
    """On systems that do not list capabilities, root is assumed to have them."""
    (root / "proc/self/status").unlink()
    assert may_administer(root) == (os.geteuid() == 0)


def test_an_old_ncu_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An ncu that cannot profile each distinct launch once gives a warning."""
    monkeypatch.setenv(fake_ncu.VERSION, "2022.3.0.0")
    check = checks(root)["ncu"]
    assert check.state == "warn"
    assert check.fix == "install 2024.1 or newer"


def test_without_nsys_gaps_stay_unknown(root: Path) -> None:
    """A missing Nsight Systems is explained with its purpose and source; an nsys that does not answer is named."""
    write(root, "bin/nsys", "#!/bin/sh\nexit 1\n")
    assert checks(root)["nsys"].finding == f"{root / 'bin' / 'nsys'} does not say its version"
    (root / "bin" / "nsys").unlink()
    check = checks(root)["nsys"]
    assert check.state == "optional"
    assert "gaps between kernels, and how often each is launched, stay unknown" in check.finding
    assert "CUDA toolkit" in check.fix


def test_an_old_pytorch_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A PyTorch older than 2.5 gives a warning that says what the workloads lack."""
    torch_says(monkeypatch, "/bin/echo", "2.4.1+cu121|12.1|NVIDIA H200")
    check = checks(root)["torch"]
    assert check.state == "warn"
    assert "PyTorch 2.4.1+cu121 is too old for the bundled workloads: they need 2.5 (" in check.finding
    assert "torch>=2.5" in check.fix


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("0, GPU-0, NVIDIA H200, 9.0, 580.1, Enabled", "split by MIG"),
        ("0, GPU-0, NVIDIA Voodoo 2, 9.0, 580.1, Disabled", "not in the table"),
        ("0, GPU-0, NVIDIA H200, 9.0, 580.1, Disabled\n1, GPU-1, Tesla T4, 7.5, 580.1, [N/A]", "the GPUs here differ"),
    ],
)
def test_a_gpu_with_a_snag_warns(root: Path, row: str, says: str) -> None:
    """Obstacles to counters, and a GPU without a datasheet, are reported with a fix."""
    write(root, "bin/nvidia-smi", f"#!/bin/sh\necho '{row}'\n")
    check = checks(root)["GPU"]
    assert check.state == "warn"
    assert says in check.finding
    assert check.fix


def test_clocks_that_a_killed_ncu_left_are_named(root: Path) -> None:
    """Limited clocks are reported with their limit and the command that unlocks them."""
    says = 'case "$1" in *clocks*) echo "NVIDIA H200, 1095 MHz, 1980 MHz, Active";; *) '
    write(root, "bin/nvidia-smi", f'#!/bin/sh\n{says}echo "0, GPU-0, NVIDIA H200, 9.0, 580.1, Disabled";; esac\n')
    check = checks(root)["GPU"]
    assert check.state == "warn"
    assert "the clocks of NVIDIA H200 are limited by a setting, at 1095 MHz of 1980 MHz" in check.finding
    assert check.fix.startswith("`ncu --clock-control reset`")


def test_a_driver_that_was_updated_is_not_a_missing_gpu(root: Path) -> None:
    """If the loaded kernel module is older than the library, both lines suggest a reboot."""
    write(
        root,
        "bin/nvidia-smi",
        "#!/bin/sh\necho 'Failed to initialize NVML: Driver/library version mismatch'\nexit 18\n",
    )
    write(root, "proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX 580.65.06\nGCC version: 12\n")
    found = checks(root)
    for name in ("NVIDIA driver", "GPU"):
        assert "updated while the old one is still loaded" in found[name].finding
        assert "reboot" in found[name].fix


def test_another_program_called_ncu_is_named(root: Path) -> None:
    """npm-check-updates is not asked for a version: the next ncu on PATH is used, with a note."""
    write(root, "node/ncu", "#!/bin/sh\necho 17.1.3\n")
    (root / "node" / "ncu").chmod(0o755)
    os.environ["PATH"] = f"{root / 'node'}:{os.environ['PATH']}"
    check = checks(root)["ncu"]
    assert check.state == "ok"
    assert check.finding.endswith(f"(skipped `{root / 'node' / 'ncu'}`, which is not Nsight Compute)")


def test_a_driver_that_does_not_answer_is_told_from_none(root: Path) -> None:
    """If the kernel module is loaded but `nvidia-smi` fails, the line says so."""
    write(root, "bin/nvidia-smi", "#!/bin/sh\nexit 9\n")
    write(root, "proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX 580.65.06\nGCC version: 12\n")
    check = checks(root)["NVIDIA driver"]
    assert check.state == "warn"
    assert check.finding.startswith("NVIDIA UNIX 580.65.06, but no NVIDIA GPU or driver")


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (("/bin/false",), "cannot be imported"),
        (("/bin/echo", "2.9.1|None|"), "2.9.1 without CUDA"),
        (("/bin/echo", "2.9.1|13.0|"), "2.9.1, CUDA 13.0, sees no GPU"),
    ],
)
def test_pytorch_without_a_gpu_warns(
    root: Path, monkeypatch: pytest.MonkeyPatch, argv: tuple[str, ...], says: str
) -> None:
    """A PyTorch that is broken, lacks CUDA, or sees no GPU gives a distinct line for each."""
    torch_says(monkeypatch, *argv)
    check = checks(root)["torch"]
    assert check.state == "warn"
    assert says in check.finding
    assert check.fix


def test_little_disk_warns(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Less than a gigabyte of free space is reported."""
    monkeypatch.setattr(doctor, "_MIN_FREE_BYTES", 1e30)
    assert checks(root)["disk"].state == "warn"


_PLACES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "a Docker container": ({".dockerenv": ""}, {}),
    "a Podman container": ({"run/.containerenv": "engine=podman"}, {}),
    "an Apptainer container": ({}, {"APPTAINER_CONTAINER": "/images/torch.sif"}),
    "a Kubernetes pod": ({}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}),
    "a step of a Slurm job": ({}, {"SLURM_JOB_ID": "17", "SLURM_STEP_ID": "0"}),
    "a Slurm job": ({}, {"SLURM_JOB_ID": "17"}),
    "Google Colab": ({}, {"COLAB_RELEASE_TAG": "release-colab_20261101"}),
    "Kaggle": ({}, {"KAGGLE_KERNEL_RUN_TYPE": "Interactive"}),
    "Modal": ({}, {"MODAL_TASK_ID": "ta-1"}),
    "WSL": ({"proc/sys/kernel/osrelease": "5.15.167.4-microsoft-standard-WSL2"}, {}),
    "a MIG instance of a GPU": ({}, {"CUDA_VISIBLE_DEVICES": "MIG-1a2b3c4d"}),
}


def test_every_place_is_named_with_its_way_to_the_counters(tmp_path: Path) -> None:
    """Each kind of place is told by its files or variables alone, and has a fix of its own."""
    told = {}
    for number, (files, variables) in enumerate(_PLACES.values()):
        for name, text in files.items():
            write(tmp_path / str(number), name, text)
        told[number] = [one.name for one in surroundings(tmp_path / str(number), variables)]
    assert [*told.values()] == [[name] for name in _PLACES]
    assert {*_PLACES} == {one.name for one in SURROUNDINGS}
    assert all(one.fix for one in SURROUNDINGS)


@for_all(
    "file, line, name",
    [
        ("proc/1/cgroup", "12:memory:/docker/0123456789abcdef", "a Docker container"),
        ("proc/self/mountinfo", "1 2 0:1 /var/lib/docker/containers/0f/hosts /etc/hosts", "a Docker container"),
        ("proc/self/cgroup", "0::/machine.slice/libpod-0123.scope", "a Podman container"),
        ("proc/1/cgroup", "0::/kubepods.slice/kubepods-pod1.slice", "a Kubernetes pod"),
    ],
)
def test_a_container_is_told_by_its_cgroup(
    file: str, line: str, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Without the marks of its runtime, a container is told by the names of its groups and mounts."""
    root = tmp_path_factory.mktemp("root")
    write(root, file, line)
    assert [one.name for one in surroundings(root, {})] == [name]


def test_places_within_each_other_are_all_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A container of a job's step is both; with closed counters each says its way, with open ones none is needed."""
    assert checks(root)["place"] == Check("place", "ok", "no container, job or virtual machine is to be seen")
    write(root, ".dockerenv", "")
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.setenv("SLURM_STEP_ID", "0")
    assert checks(root)["place"] == Check("place", "ok", "a Docker container, a step of a Slurm job")
    write(root, "proc/driver/nvidia/params", "RmProfilingAdminOnly: 1\n")
    closed = checks(root)["place"]
    assert closed.state == "warn"
    assert "--cap-add SYS_ADMIN" in closed.fix
    assert "dcgmi profile --pause" in closed.fix


def test_a_split_gpu_is_named_as_a_place(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that `nvidia-smi` reports as split by MIG is named even if no variable names an instance."""
    gpu = LocalGpu("NVIDIA H200", "9.0", "580.1", mig=True)
    monkeypatch.setattr(doctor, "local_gpu", lambda: gpu)
    assert checks(root)["place"].finding == "a MIG instance of a GPU"
