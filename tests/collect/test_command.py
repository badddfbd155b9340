from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import fake_ncu
from support.loops import for_all

from rooflens.collect import plan as planning
from rooflens.collect.command import (
    NEWEST,
    Collection,
    Ncu,
    build_argv,
    can_profile_one_of_each,
    check_modes,
    clock_choices,
    find_ncu,
    known_metrics,
)
from rooflens.collect.run import collect
from rooflens.collect.tiers import metrics_for, sections_for
from rooflens.errors import EnvironmentMissingError, InputError, RooflensError, UsageError
from rooflens.model.counters.metric import DETAILS, Detail

OLD = Ncu("/opt/ncu", (2022, 3), "2022.3.0.0")
NEW = Ncu("/opt/ncu", (2024, 1), "2024.1.1.0")
COLLECTION = Collection(("python", "train.py", "--epochs", "1"), Path("out/train.ncu-rep"), ("a.sum", "b.avg"))
HEAD = ("/opt/ncu", "--config-file", "off", "--export", "out/train.ncu-rep", "--force-overwrite", "--nvtx")
HOW = ("--target-processes", "all", "--replay-mode", "kernel", "--cache-control", "all")
FIRST = ("--launch-count", "200")
METRICS = ("--metrics", "a.sum,b.avg")
PROGRAM = ("python", "train.py", "--epochs", "1")


def test_the_whole_command_line() -> None:
    """By default ncu profiles the first launches, with NVTX ranges, cold caches and its own clocks."""
    assert build_argv(NEW, COLLECTION) == (*HEAD, *HOW, *FIRST, *METRICS, *PROGRAM)


@pytest.mark.parametrize("detail", DETAILS)
@pytest.mark.parametrize("chip", ["tu102", "gh100", "gb100"])
def test_the_command_line_of_each_tier(detail: Detail, chip: str) -> None:
    """A tier adds its metrics and its NVIDIA sections, and changes nothing else."""
    names = tuple(metric.name for metric in metrics_for(chip, detail))
    asked = sections_for(chip, detail, pm_sampling=True)
    sections = tuple(part for name in asked for part in ("--section", name))
    argv = build_argv(NEW, replace(COLLECTION, metrics=names, sections=asked))
    assert argv == (*HEAD, *HOW, *FIRST, *sections, "--metrics", ",".join(names), *PROGRAM)


def test_source_text_is_embedded_only_where_asked() -> None:
    """Reports are shared with others: they contain the program's source text only if requested."""
    assert "--import-source" not in build_argv(NEW, COLLECTION)
    argv = build_argv(NEW, replace(COLLECTION, import_source=True))
    assert argv == (*HEAD, *HOW, "--import-source", "yes", *FIRST, *METRICS, *PROGRAM)


OPTIONS = {
    "kernel": (
        {"kernel": "regex:gemm|softmax"},
        (*HOW, "--kernel-name", "regex:gemm|softmax", *FIRST, *METRICS),
    ),
    "one_of_each": (
        {"one_of_each": True},
        (*HOW, "--filter-mode", "per-launch-config", "--kernel-id", ":::1", *METRICS),
    ),
    "one_of_each_of_some": (
        {"one_of_each": True, "kernel": "regex:^(a|b)$"},
        (*HOW, "--filter-mode", "per-launch-config", "--kernel-id", "::regex:^(a|b)$:1", *METRICS),
    ),
    "launch_skip": ({"launch_skip": 5}, (*HOW, "--launch-skip", "5", "--launch-count", "200", *METRICS)),
    "launch_count": ({"launch_count": 3}, (*HOW, "--launch-count", "3", *METRICS)),
    "both": (
        {"launch_skip": 0, "launch_count": 3},
        (*HOW, "--launch-skip", "0", "--launch-count", "3", *METRICS),
    ),
    "max_launches": (
        {"launch_skip": 1, "max_launches": 9},
        (*HOW, "--launch-skip", "1", "--launch-count", "9", *METRICS),
    ),
    "nvtx_include": (
        {"nvtx_include": ("rooflens", "step/")},
        (*HOW, "--nvtx-include", "rooflens", "--nvtx-include", "step/", *FIRST, *METRICS),
    ),
    "replay_mode": (
        {"replay_mode": "application"},
        (*HOW[:3], "application", *HOW[4:], *FIRST, *METRICS),
    ),
    "range": ({"replay_mode": "range"}, (*HOW[:3], "range", *HOW[4:], "--launch-count", "200", *METRICS)),
    "cache_control": ({"cache_control": "none"}, (*HOW[:5], "none", *HOW[6:], *FIRST, *METRICS)),
    "clock_control": ({"clock_control": "none"}, (*HOW, "--clock-control", "none", *FIRST, *METRICS)),
    "target_processes": (
        {"target_processes": "application-only"},
        (HOW[0], "application-only", *HOW[2:], *FIRST, *METRICS),
    ),
    "graph_profiling": (
        {"graph_profiling": "graph"},
        (*HOW, "--graph-profiling", "graph", *FIRST, *METRICS),
    ),
    "extra_metrics": (
        {"extra_metrics": ("c.max", "a.sum")},
        (*HOW, *FIRST, "--metrics", "a.sum,b.avg,c.max"),
    ),
}
"""Option -> fields of the collection, and the command line between the head and the program."""


@for_all("option", OPTIONS)
def test_the_command_line_of_each_option(option: str) -> None:
    """Each option changes only its own part of the command line."""
    fields, expected = OPTIONS[option]
    assert build_argv(NEW, replace(COLLECTION, **fields)) == (*HEAD, *expected, *PROGRAM)  # type: ignore[arg-type]


def test_an_older_ncu_gets_only_what_it_knows() -> None:
    """Before 2024.1 launches per shape are not counted separately, and the configuration file cannot be disabled."""
    head = ("/opt/ncu", "--export", "out/train.ncu-rep", "--force-overwrite", "--nvtx")
    expected = (*head, *HOW, *FIRST, *METRICS, *PROGRAM)
    assert build_argv(OLD, COLLECTION) == expected
    assert build_argv(Ncu("/opt/ncu"), COLLECTION) == expected
    once = (*head, *HOW, *FIRST, "--kernel-id", ":::1", *METRICS, *PROGRAM)
    assert build_argv(OLD, replace(COLLECTION, one_of_each=True)) == once


@pytest.mark.parametrize(
    ("changes", "can"),
    [
        ({}, True),
        ({"kernel": "gemm"}, True),
        ({"kernel": "regex:^(?!nccl)"}, True),
        ({"kernel": "regex:^(?:a|b)"}, False),
        ({"launch_count": 3}, False),
        ({"launch_skip": 3}, False),
        ({"kill": True}, False),
        ({"nvtx_include": ("step",)}, False),
        ({"from_start": False}, False),
        ({"replay_mode": "app-range"}, False),
        ({"graph_profiling": "graph"}, False),
        ({"graph_profiling": "node"}, True),
        ({"options": ("--kernel-id", "::a:2")}, False),
    ],
)
def test_kernels_are_chosen_by_number_only_where_that_cannot_lose_any(changes: dict[str, Any], can: bool) -> None:  # noqa: FBT001 - a table
    """Within a range, or beside the user's choice, ncu does not choose by kernel: the first launch may be another."""
    assert can_profile_one_of_each(replace(COLLECTION, **changes)) == can


MODES: dict[str, tuple[dict[str, Any], str, str]] = {
    "kernel": ({"replay_mode": "range", "kernel": "gemm"}, "--kernel cannot choose kernels where ranges", "--nvtx-inc"),
    "app": (
        {"replay_mode": "app-range", "kernel": "gemm"},
        "--kernel cannot choose kernels where ranges",
        "--nvtx-inc",
    ),
    "graph": (
        {"graph_profiling": "graph", "kernel": "gemm"},
        "--kernel cannot choose kernels where CUDA graphs",
        "node",
    ),
    "id": ({"replay_mode": "range", "options": ("--kernel-id", "::a:1")}, "--kernel-id cannot choose", "leave it out"),
    "source": ({"replay_mode": "range", "import_source": True}, "ncu embeds no source code", "--import-source"),
    "replay": (
        {"replay_mode": "application", "graph_profiling": "graph"},
        "`--graph-profiling graph` does not go with `--replay-mode application`",
        "drop one",
    ),
}
"""Options that ncu cannot combine with ranges or graphs, with the start or a part of error and hint."""


@for_all("mode", MODES)
def test_what_does_not_go_with_ranges_and_graphs_is_refused(mode: str) -> None:
    """Impossible combinations with ranges or graphs are wrong usage with a hint; the modes alone are not."""
    fields, message, hint = MODES[mode]
    with pytest.raises(UsageError, match=f"^{re.escape(message)}") as caught:
        check_modes(replace(COLLECTION, **fields))
    assert hint in caught.value.hint
    for fine in ({"replay_mode": "range"}, {"graph_profiling": "graph"}, {"kernel": "gemm", "import_source": True}):
        check_modes(replace(COLLECTION, **fine))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("listed", "choices"),
    [
        ("base none reset", ("base", "none", "reset")),
        ("boost base force-boost none reset", ("base", "boost", "force-boost", "none", "reset")),
        ("force-boost none", ("force-boost", "none")),
    ],
)
def test_clock_controls_are_those_of_this_ncus_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed: str, choices: tuple[str, ...]
) -> None:
    """The clock modes of a version are read from its help; another program lists none."""
    monkeypatch.setenv(fake_ncu.CLOCKS, listed)
    assert clock_choices(Ncu(str(fake_ncu.install(tmp_path)))) == choices
    assert clock_choices(Ncu("/bin/true")) == ()
    assert clock_choices(NEWEST) == ("base", "boost", "force-boost", "none", "reset")


def test_another_program_of_that_name_is_passed_over(tmp_path: Path) -> None:
    """npm-check-updates, also called `ncu`, is skipped for the next; without another it is named in the error."""
    other, own = tmp_path / "node" / "ncu", tmp_path / "cuda"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\necho 17.1.3\n")
    other.chmod(0o755)
    fake_ncu.install(own)
    found = find_ncu(environment={"PATH": f"{other.parent}:{own}"}, root=tmp_path)
    assert (found.path, found.skipped) == (str(own / "ncu"), (str(other),))
    with pytest.raises(EnvironmentMissingError, match=f"^`{other}` is not Nsight Compute, and no other") as caught:
        find_ncu(environment={"PATH": str(other.parent)}, root=tmp_path)
    assert caught.value.exit_code == 3
    assert "npm-check-updates has a command of that name" in caught.value.hint


def test_the_log_file_and_a_name_that_ncu_would_expand() -> None:
    """A percent sign in the report's name is doubled, as ncu expands %p, %i and others."""
    argv = build_argv(NEW, replace(COLLECTION, output=Path("50%p.ncu-rep")), Path("ncu.log"))
    assert argv[3:8] == ("--export", "50%%p.ncu-rep", "--force-overwrite", "--log-file", "ncu.log")


def test_nothing_to_run_or_to_count_is_wrong_usage() -> None:
    """A collection needs a program and a counter."""
    with pytest.raises(UsageError, match="no program"):
        build_argv(NEW, replace(COLLECTION, program=()))
    with pytest.raises(UsageError, match="no counters"):
        build_argv(NEW, replace(COLLECTION, metrics=()))


def test_ncu_is_looked_for_in_its_order(tmp_path: Path) -> None:
    """The given ncu comes first, then PATH, CUDA_HOME, CUDA_PATH and the usual places, newest first."""
    places = {
        "old": tmp_path / "opt/nvidia/nsight-compute/2023.3.1",
        "new": tmp_path / "opt/nvidia/nsight-compute/2025.10.0",
        "path": tmp_path / "cuda_path/bin",
        "home": tmp_path / "cuda_home/bin",
        "on_path": tmp_path / "somewhere",
        "given": tmp_path / "given",
    }
    variables = {"path": "CUDA_PATH", "home": "CUDA_HOME", "on_path": "PATH"}
    environment = {"PATH": str(tmp_path / "nothing")}
    for name, folder in places.items():
        fake_ncu.install(folder)
        if name in variables:
            environment[variables[name]] = str(folder.parent if name in {"path", "home"} else folder)
        given = str(folder) if name == "given" else None
        found = find_ncu(given, environment, tmp_path)
        assert found == Ncu(str(folder / "ncu"), (2025, 3), "2025.3.1.0"), name


def test_a_missing_ncu_is_an_error_with_its_cure(tmp_path: Path) -> None:
    """Without ncu an environment error is raised; a wrong --ncu is named."""
    with pytest.raises(EnvironmentMissingError, match="was not found") as caught:
        find_ncu(environment={"PATH": ""}, root=tmp_path)
    assert "--ncu" in caught.value.hint
    with pytest.raises(EnvironmentMissingError, match="no executable `ncu` at"):
        find_ncu(str(tmp_path / "ncu"), {"PATH": ""}, tmp_path)
    with pytest.raises(EnvironmentMissingError, match="does not answer"):
        find_ncu("/bin/true")


@pytest.mark.parametrize("text", ["", "Version unknown"])
def test_an_unknown_version_is_kept_as_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """An ncu on PATH with an unreadable version is used, with options of old versions only."""
    monkeypatch.setenv(fake_ncu.VERSION, text)
    fake_ncu.install(tmp_path)
    found = find_ncu(environment={"PATH": str(tmp_path)})
    assert found.version is None
    assert not found.knows((2024, 1))
    assert NEWEST.knows((2024, 1))


def test_what_ncu_knows_is_read_from_its_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Known metrics are read from ncu's list; an ncu without a list for the chip gives None."""
    ncu = Ncu(str(fake_ncu.install(tmp_path)))
    assert known_metrics(ncu, "ga100") is None
    monkeypatch.setenv(fake_ncu.KNOWN, "dram__bytes lts__t_sectors")
    assert known_metrics(ncu, "gh100") == {"dram__bytes", "lts__t_sectors"}


def test_ncu_is_asked_for_its_list_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each process asks ncu once per chip."""
    ncu = Ncu(str(fake_ncu.install(tmp_path)))
    monkeypatch.setenv(fake_ncu.KNOWN, "dram__bytes")
    first = known_metrics(ncu, "gh100")
    monkeypatch.setenv(fake_ncu.KNOWN, "lts__t_sectors")
    assert known_metrics(ncu, "gh100") == first == {"dram__bytes"}
    assert known_metrics(ncu, "ga100") == {"lts__t_sectors"}


def _real_ncu() -> Ncu:
    try:
        return find_ncu(os.environ.get("ROOFLENS_NCU"))
    except EnvironmentMissingError:
        pytest.skip("no ncu on this machine: install Nsight Compute, or set ROOFLENS_NCU to one")


@pytest.mark.ncu
def test_the_real_ncu_says_that_there_is_no_gpu(tmp_path: Path) -> None:
    """On a machine without a GPU, the real ncu's messages are understood, and nothing is left behind."""
    if shutil.which("nvidia-smi"):
        pytest.skip("this machine may have a GPU")
    collection = Collection(("/bin/true",), tmp_path / "100%.ncu-rep", ("gpu__time_duration.sum",))
    with pytest.raises(EnvironmentMissingError, match=r"^ncu finds no NVIDIA driver\n"):
        collect(_real_ncu(), collection)
    assert [path.name for path in tmp_path.iterdir()] == ["100%.ncu.log"]
    kept = (tmp_path / "100%.ncu.log").read_text()
    assert "failed to connect to the CUDA driver" in kept
    assert "The application returned an error code (1)." in kept


@pytest.mark.ncu
@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"program": ("./nowhere",)}, EnvironmentMissingError, "ncu cannot start `./nowhere`"),
        (
            {"kernel": "regex:("},
            UsageError,
            "--kernel is not a valid regular expression: Unmatched marking parenthesis",
        ),
        ({"kill": True, "launch_count": 3}, EnvironmentMissingError, "ncu finds no NVIDIA driver"),
        ({"replay_mode": "application"}, EnvironmentMissingError, "ncu finds no NVIDIA driver"),
        ({"options": ("--kernel-name-base", "demangled")}, EnvironmentMissingError, "ncu finds no NVIDIA driver"),
        ({"options": ("--no-such-option",)}, EnvironmentMissingError, "this ncu is too old for `--no-such-option`"),
    ],
)
def test_the_real_ncus_words_are_understood(
    tmp_path: Path, changes: dict[str, Any], error: type[RooflensError], words: str
) -> None:
    """Without a GPU the real ncu's message about its command line has exactly the expected cause."""
    if shutil.which("nvidia-smi") and error is EnvironmentMissingError and "driver" in words:
        pytest.skip("this machine may have a GPU")
    given = {"program": ("/bin/true",), "output": tmp_path / "x.ncu-rep", "metrics": ("gpu__time_duration.sum",)}
    with pytest.raises(error, match=f"^{re.escape(words)}") as caught:
        collect(_real_ncu(), Collection(**{**given, **changes}))
    assert "; also: " not in str(caught.value)
    assert (tmp_path / "x.ncu.log").exists()


@pytest.mark.ncu
def test_the_real_ncu_knows_our_options(tmp_path: Path) -> None:
    """The real ncu accepts every option of the command line: it complains of something else."""
    ncu = _real_ncu()
    collection = Collection(
        ("/bin/true",),
        tmp_path / "x.ncu-rep",
        sections=("NoSuchSection",),
        kernel="regex:x",
        launch_skip=1,
        nvtx_include=("rooflens",),
        graph_profiling="node" if ncu.knows((2024, 1)) else None,
    )
    with pytest.raises(InputError, match="no section `NoSuchSection`"):
        collect(ncu, collection)


SINCE_2024 = ({"replay_mode": "app-range"}, {"graph_profiling": "node"}, {"graph_profiling": "graph"})
WAYS: tuple[dict[str, Any], ...] = ({}, {"replay_mode": "application"}, {"replay_mode": "range"}, *SINCE_2024)
PARTS: tuple[dict[str, Any], ...] = ({}, {"nvtx_include": ("step", "forward/"), "launch_skip": 2, "launch_count": 3})


@pytest.mark.ncu
@pytest.mark.parametrize("detail", DETAILS)
def test_the_real_ncu_reads_every_command_line(tmp_path: Path, detail: Detail) -> None:
    """The real ncu accepts all replay modes and graph modes, with and without ranges: it lacks only a driver.

    Older versions refuse later options, by name.
    """
    if shutil.which("nvidia-smi"):
        pytest.skip("this machine may have a GPU")
    ncu = _real_ncu()
    said = {}
    for way, part in itertools.product(WAYS, PARTS):
        asked = Collection((), tmp_path / "x.ncu-rep", **way, **part)
        request = planning.Request(planning.command_target(("/bin/true",)), asked, detail, "gh100", ncu.path)
        collection = planning.make_plan(request, dry_run=True).collection
        with pytest.raises(RooflensError) as caught:
            collect(ncu, collection)
        said[f"{way} {part}"] = str(caught.value)
    old = {f"{way} {part}" for way, part in itertools.product(SINCE_2024, PARTS) if not ncu.knows((2024, 1))}
    assert {line for line, words in said.items() if words.startswith("this ncu is too old for `")} == old
    assert {words for line, words in said.items() if line not in old} == {"ncu finds no NVIDIA driver"}


@pytest.mark.ncu
def test_the_real_ncu_refuses_what_we_leave_out_for_ranges(tmp_path: Path) -> None:
    """When ncu refuses counts by instruction or filters for ranges, its message is understood."""
    asked = {"program": ("/bin/true",), "output": tmp_path / "x.ncu-rep", "replay_mode": "range"}
    hardware = ("gpu__time_duration.sum",)
    left_out = [metric.name for metric in metrics_for("gh100", "deep") if metric.kind == "sass"]
    left_out = [name for name in left_out if not name.startswith("sass__")]
    for name in (*left_out, "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"):
        with pytest.raises(InputError, match=f"^ncu cannot count `{name}` for ranges"):
            collect(_real_ncu(), Collection(**asked, metrics=(*hardware, name)))
    with pytest.raises(UsageError, match=r"^ncu has no `--kernel-name` where it replays ranges"):
        collect(_real_ncu(), Collection(**asked, metrics=hardware, kernel="gemm"))


@pytest.mark.ncu
def test_the_real_ncu_knows_the_tiers_counters() -> None:
    """Since 2024.1 ncu's list for GH100 contains every hardware counter of the tiers; an unknown chip has no list."""
    ncu = _real_ncu()
    known = known_metrics(ncu, "gh100") or frozenset()
    assert "dram__bytes" in known
    assert known_metrics(ncu, "gx000") is None
    bases = {metric.name.partition(".")[0] for metric in metrics_for("gh100", "deep") if metric.kind == "hardware"}
    assert not ncu.knows((2024, 1)) or bases <= known


@pytest.mark.ncu
def test_the_real_ncu_refuses_a_missing_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing TMPDIR is explained."""
    ncu = _real_ncu()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "nowhere"))
    with pytest.raises(EnvironmentMissingError, match="temporary folder"):
        collect(ncu, Collection(("/bin/true",), tmp_path / "x.ncu-rep", ("gpu__time_duration.sum",)))


@pytest.mark.ncu
def test_the_real_ncu_lists_a_filter_mode_from_2024(tmp_path: Path) -> None:
    """Exactly the versions that we give `per-launch-config` list it in their help."""
    ncu = _real_ncu()
    done = subprocess.run([ncu.path, "--help"], capture_output=True, text=True, check=False, cwd=tmp_path)  # noqa: S603 - ncu
    assert ("per-launch-config" in done.stdout) == ncu.knows((2024, 1))
