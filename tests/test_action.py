"""The GitHub action without GitHub: its steps' scripts run in bash, with the variables that a runner sets."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import threading
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from ruamel.yaml import YAML
from support.chips import H200
from support.fixture_kernels import triad
from support.ncu_rep_writer import ReportSpec, write_report
from support.synthetic_kernels import kernel_spec

from rooflens.cli.group import main

ROOT = Path(__file__).parent.parent
ACTION = YAML(typ="safe").load(ROOT / "action.yml")
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
BOT = "github-actions[bot]"
_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")


class Runner:
    """The parts of a runner that the action needs: inputs, outputs of steps, files and variables."""

    def __init__(self, folder: Path, inputs: Mapping[str, str], **variables: str) -> None:
        self.folder = folder
        self.inputs = {name: str(one.get("default", "")) for name, one in ACTION["inputs"].items()} | dict(inputs)
        self.outputs: dict[str, str] = {}
        self.ran: list[str] = []
        self.log = ""
        self.fork = ""
        event = folder / "event.json"
        event.write_text(json.dumps({"pull_request": {"number": 7}}))
        for name in ("summary.md", "output"):
            (folder / name).touch()
        bin_folder = Path(sys.executable).parent
        self._variables = {
            "PATH": f"{bin_folder}:/usr/bin:/bin",
            "PYTHONPATH": str(ROOT),
            "HOME": str(folder),
            "ROOFLENS_HOME": str(folder / "home"),
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_OUTPUT": str(folder / "output"),
            "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
            "GITHUB_REPOSITORY": "me/app",
            "GITHUB_WORKSPACE": str(folder),
            "RUNNER_TEMP": str(folder),
            **variables,
        }

    def run(self) -> int:
        """Run the steps like a composite action, up to the first failure; return its exit status."""
        for name, step in STEPS.items():
            if "uses" in step or ("if" in step and not self._holds(step["if"])):
                continue
            self.ran.append(name)
            environment = self._variables | {key: self._filled(value) for key, value in step["env"].items()}
            done = subprocess.run(  # noqa: S603 - the action's own scripts
                ["/bin/bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                env=environment,
                cwd=self.folder,
                capture_output=True,
                text=True,
                check=False,
            )
            self.log += done.stdout + done.stderr
            if "id" in step:
                lines = (self.folder / "output").read_text().splitlines()
                self.outputs |= dict(line.split("=", 1) for line in lines)
            if done.returncode:
                return done.returncode
        return 0

    @property
    def summary(self) -> str:
        """The job summary."""
        return (self.folder / "summary.md").read_text()

    def _filled(self, text: str) -> str:
        return _EXPRESSION.sub(lambda match: self._value(match[1]), text)

    def _value(self, expression: str) -> str:
        kind, _, name = expression.partition(".")
        if kind == "inputs":
            return "secret" if name == "token" else self.inputs[name]
        if kind == "github":
            return self.fork
        assert expression.startswith(("steps.compare.outputs.", "steps.install.outputs.")), expression
        return self.outputs.get(expression.rpartition(".")[2], "")

    def _holds(self, condition: str) -> bool:
        terms = _EXPRESSION.sub(r"\1", condition).split(" && ")
        pairs = (re.fullmatch(r"(\S+) (==|!=) '(.*)'", term) for term in terms)
        return all((self._value(m[1]) == m[3]) is (m[2] == "==") for m in pairs if m)


@pytest.fixture
def github() -> Iterator[HTTPServer]:
    """A stand-in for GitHub's comments on a pull request, stored in the server's `comments`."""
    server = HTTPServer(("127.0.0.1", 0), _Comments)
    server.comments = []  # type: ignore[attr-defined]
    server.refuses = False  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


class _Comments(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        page = int(self.path.rpartition("page=")[2])
        self._answer(200, self.server.comments[(page - 1) * 100 : page * 100])  # type: ignore[attr-defined]

    def do_POST(self) -> None:
        assert self.path == "/repos/me/app/issues/7/comments"
        comment = {"id": 1000 + len(self._known), "user": {"login": BOT}, **self._content()}
        self._known.append(comment)
        self._answer(403 if self.server.refuses else 201, comment)  # type: ignore[attr-defined]

    def do_PATCH(self) -> None:
        number = int(self.path.removeprefix("/repos/me/app/issues/comments/"))
        comment = next(one for one in self._known if one["id"] == number)
        comment |= self._content()
        self._answer(200, comment)

    @property
    def _known(self) -> list[dict[str, Any]]:
        assert self.headers["Authorization"] == "Bearer secret"
        return self.server.comments  # type: ignore[attr-defined,no-any-return]

    def _content(self) -> dict[str, str]:
        content: dict[str, str] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        return content

    def _answer(self, status: int, document: object) -> None:
        text = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Do not log."""


def record(folder: Path, times_ns: list[int]) -> str:
    """Write a report of a triad for each time."""
    folder.mkdir(parents=True)
    for i, time_ns in enumerate(times_ns):
        spec = kernel_spec(replace(triad(H200), duration_ns=time_ns))
        write_report(folder / f"triad_{i}.ncu-rep", ReportSpec(kernels=(spec,)))
    return str(folder)


@pytest.fixture
def base(tmp_path: Path) -> str:
    """Three recordings of about 1 ms."""
    return record(tmp_path / "base side", [1_000_000, 1_005_000, 1_010_000])


def url(server: HTTPServer) -> str:
    """Return the stand-in's address."""
    return f"http://127.0.0.1:{server.server_port}"


def test_a_regression_fails_with_one_comment_that_stays_one(base: str, tmp_path: Path, github: HTTPServer) -> None:
    """A slowdown exits with 5 and is in summary and comment; the next push updates the comment and exits with 0."""
    comments = github.comments  # type: ignore[attr-defined]
    comments += [{"id": i, "user": {"login": "a"}, "body": "hello"} for i in range(100)]
    comments += [
        {"id": 150, "user": None, "body": "<!-- rooflens: rooflens -->\ngone"},
        {"id": 151, "user": {}, "body": None},
    ]
    comments.append({"id": 200, "user": {"login": "mallory"}, "body": "<!-- rooflens: rooflens -->\nmine"})
    slow = record(tmp_path / "slow", [1_100_000, 1_110_000, 1_120_000])
    (tmp_path / "first").mkdir()
    runner = Runner(tmp_path / "first", {"base": base, "head": slow, "package": "none"}, GITHUB_API_URL=url(github))
    assert runner.run() == 5, runner.log
    assert runner.ran == ["Warn of forks", "Install rooflens", "Compare", "Comment", "Judge"]
    assert (runner.outputs["exit-code"], runner.outputs["failed"]) == ("5", "true")
    assert "**The gate failed**" in runner.summary
    assert "takes 10.4 % more" in runner.summary
    assert comments[-1]["body"] == f"<!-- rooflens: rooflens -->\n{runner.summary}"
    amount = len(comments)

    (tmp_path / "second").mkdir()
    again = Runner(tmp_path / "second", {"base": base, "head": base, "package": "none"}, GITHUB_API_URL=url(github))
    assert again.run() == 0, again.log
    assert again.outputs["failed"] == "false"
    assert len(comments) == amount
    assert "**The gate holds**" in comments[-1]["body"]
    assert comments[-2]["body"].endswith("mine")


def test_what_cannot_be_compared_fails_without_a_comment(base: str, tmp_path: Path, github: HTTPServer) -> None:
    """A missing side gives the command's own exit code and error, and no comment."""
    runner = Runner(tmp_path, {"base": base, "head": "gone", "package": "none"}, GITHUB_API_URL=url(github))
    assert runner.run() == 1
    assert runner.ran == ["Warn of forks", "Install rooflens", "Compare", "Judge"]
    assert "error: " in runner.log
    assert runner.outputs["summary"] == ""


def test_a_comment_that_may_not_be_written_fails_nothing(base: str, tmp_path: Path, github: HTTPServer) -> None:
    """On a pull request from a fork a warning replaces the comment, and the gate decides."""
    github.refuses = True  # type: ignore[attr-defined]
    runner = Runner(tmp_path, {"base": base, "head": base, "package": "none"}, GITHUB_API_URL=url(github))
    assert runner.run() == 0
    assert "::warning::the comment was not written (HTTP Error 403" in runner.log


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"fail-on": "$(touch pwned)"}, "--fail-on takes a percentage, not `$(touch pwned)`"),
        ({"floor": "`touch pwned`"}, "a floor is a time with its unit"),
        ({"threshold": "3%; touch pwned"}, "--threshold takes a percentage"),
        ({"head": "--help"}, "--help"),
        ({"head": '"; touch pwned; "'}, "error: "),
    ],
)
def test_inputs_are_words_and_never_commands(base: str, tmp_path: Path, inputs: dict[str, str], words: str) -> None:
    """Shell syntax in any input reaches rooflens literally, and runs nothing."""
    runner = Runner(tmp_path, {"base": base, "head": base, "package": "none", "comment": "false"} | inputs)
    assert runner.run() in {1, 2}
    assert words in runner.log
    assert not (tmp_path / "pwned").exists()


SHADOWED = (
    "json",
    "os",
    "pickle",
    "pip",
    "re",
    "rooflens",
    "secrets",
    "sitecustomize",
    "tempfile",
    "usercustomize",
    "venv",
)
"""Modules that a step imports, or that Python does by itself."""


def hostile(checkout: Path) -> Path:
    """Put into a checkout what a step may read or run by mistake; return the file that shows that it did."""
    pwned = checkout / "pwned"
    (checkout / "rooflens.toml").write_text('[compare]\nkernel = "nothing*"\nthreshold = "900%"\nanyway = true\n')
    (checkout / "pyproject.toml").write_text('[tool.rooflens.compare]\nfail-on = "900%"\nfloor = "1000s"\n')
    (checkout / "pip.conf").write_text("[global]\nrequire-hashes = false\n")
    for name in SHADOWED:
        (checkout / f"{name}.py").write_text(f"open({str(pwned)!r}, 'a').write('{name} ')\n")
    hooks = checkout / ".git" / "hooks"
    hooks.mkdir(parents=True)
    (checkout / ".git" / "config").write_text(f"[core]\n\tfsmonitor = touch {pwned}\n\tpager = touch {pwned}\n")
    for name in ("post-checkout", "pre-commit", "fsmonitor-watchman"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {pwned}\n")
        (hooks / name).chmod(0o755)
    return pwned


def test_no_pull_request_turns_its_own_gate_green(base: str, tmp_path: Path, github: HTTPServer) -> None:
    """Whatever settings, modules and hooks the checkout and the job have, the gate fails, and says what it saw."""
    slow = record(tmp_path / "slow", [1_100_000, 1_110_000, 1_120_000])
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    pwned = hostile(checkout)
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "rooflens"
    command.write_text(f'#!/bin/sh\nenv > {tmp_path}/variables\nexec {Path(sys.executable).parent}/rooflens "$@"\n')
    command.chmod(0o755)
    runner = Runner(
        checkout,
        {"base": base, "head": slow, "package": "none"},
        PATH=f"{command.parent}:{Path(sys.executable).parent}:/usr/bin:/bin",
        GITHUB_API_URL=url(github),
        PYTHONPATH=str(checkout),
        PYTHONHOME=str(checkout),
        ROOFLENS_COMPARE_KERNEL="nothing*",
        ROOFLENS_COMPARE_NVTX="nothing",
        ROOFLENS_COMPARE_FLOOR="1000s",
        ROOFLENS_COMPARE_ANYWAY="1",
        ROOFLENS_NO_SETTINGS="0",
        ROOFLENS_MAX_UNPACKED="1",
    )
    assert runner.run() == 5, runner.log
    (comment,) = github.comments  # type: ignore[attr-defined]
    assert (
        "The gate looked at 1 kernel of 1 program, 3 recordings before, 3 after, with `--fail-on 5% --floor 2us "
        "--threshold 3%`; no option comes from a file or the environment."
    ) in comment["body"]
    assert "**The gate failed**" in comment["body"]
    variables = (tmp_path / "variables").read_text().splitlines()
    kept = {line for line in variables if line.startswith(("ROOFLENS_", "PYTHON"))}
    assert kept == {"ROOFLENS_NO_SETTINGS=1", "PYTHONSAFEPATH=1"}
    assert not pwned.exists(), pwned.read_text()


def wheel(folder: Path) -> str:
    """Write a wheel of one module into a folder; return its digest."""
    file = folder / "tiny-1-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr("tiny.py", "")
        packed.writestr("tiny-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1\n")
        packed.writestr("tiny-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        packed.writestr("tiny-1.dist-info/RECORD", "")
    return hashlib.sha256(file.read_bytes()).hexdigest()


def quick_python(folder: Path) -> Path:
    """Write a `python3` whose new environments have this one's pip: to unpack one takes longer than all else here."""
    pip = Path(pytest.importorskip("pip").__file__).parent
    program = folder / "python3"
    program.write_text(
        f"""#!/bin/sh
case "$*" in
  "-I -m venv "*) {sys.executable} -I -m venv --without-pip "$4" && ln -s {pip} "$4"/lib/python3*/site-packages/;;
  *) exec {sys.executable} "$@";;
esac
"""
    )
    program.chmod(0o755)
    return folder


@pytest.mark.parametrize("pinned", ["with its hash", "with another hash", "without a hash"])
def test_only_what_has_its_hash_is_installed(base: str, tmp_path: Path, pinned: str) -> None:
    """A package with another hash or none ends the step; with its own it is installed, whatever the checkout holds."""
    action, checkout, index = (tmp_path / name for name in ("action itself", "checkout", "index"))
    for folder in (action / "action", checkout, index):
        folder.mkdir(parents=True)
    digest = wheel(index)
    pins = {"with its hash": f" --hash=sha256:{digest}", "with another hash": f" --hash=sha256:{digest[::-1]}"}
    (action / "action" / "requirements.txt").write_text(f"tiny==1{pins.get(pinned, '')}\n")
    pwned = hostile(checkout)
    runner = Runner(
        checkout,
        {"base": base, "head": base, "package": "--index-url=http://127.0.0.1:1/ x; touch pwned"},
        GITHUB_ACTION_PATH=str(action),
        PATH=f"{quick_python(index)}:/usr/bin:/bin",
        PIP_NO_INDEX="1",
        PIP_FIND_LINKS=str(index),
        PYTHONPATH=str(checkout),
    )
    assert runner.run() in {1, 2}, runner.log
    assert runner.ran == ["Warn of forks", "Install rooflens"]
    said = {
        "with its hash": "touch pwned",  # what the second package is called
        "with another hash": "DO NOT MATCH THE HASHES",
        "without a hash": "Hashes are required in --require-hashes mode",
    }
    assert [words for words in said.values() if words in runner.log] == [said[pinned]], runner.log
    is_installed = any(checkout.glob("rooflens-venv.*/lib/*/site-packages/tiny.py"))
    assert is_installed is (pinned == "with its hash")
    assert not pwned.exists(), pwned.read_text()


def test_no_script_holds_an_expression() -> None:
    """No script contains a GitHub expression, which could inject shell syntax: variables carry all values."""
    assert [name for name, step in STEPS.items() if "${{" in step.get("run", "")] == []
    assert set(STEPS) == {"Warn of forks", "Keep downloads", "Install rooflens", "Compare", "Comment", "Judge"}


@pytest.mark.parametrize(
    ("file", "schema"),
    [
        ("action.yml", "github-actions"),
        ("examples/ci/github-workflow.yml", "github-workflows"),
        ("examples/ci/gitlab-ci.yml", "gitlab-ci"),
    ],
)
def test_the_files_are_what_github_and_gitlab_take(file: str, schema: str) -> None:
    """The files are valid against the published schemas of actions, workflows and pipelines."""
    known = json.loads((files("check_jsonschema.builtin_schemas.vendor") / f"{schema}.json").read_text("utf-8"))
    jsonschema.validators.validator_for(known)(known).validate(YAML(typ="safe").load(ROOT / file))


@pytest.mark.parametrize("file", ["github-workflow.yml", "gitlab-ci.yml"])
def test_the_examples_call_what_there_is(file: str) -> None:
    """The example uses existing inputs of the action, and existing options of commands."""
    text = (ROOT / "examples" / "ci" / file).read_text(encoding="utf-8")
    for command, options in re.findall(r"rooflens (?:--isolated )?(\w+)([^\n]*)", text):
        if command in {"compare", "collect"}:
            shown = CliRunner().invoke(main, [command, "--help"]).stdout
            assert set(re.findall(r"--[a-z-]+", options.partition(" -- ")[0])) <= set(re.findall(r"--[a-z-]+", shown))
    if file == "github-workflow.yml":
        steps = YAML(typ="safe").load(text)["jobs"]["regression"]["steps"]
        (used,) = (step["with"] for step in steps if "rooflens@" in step.get("uses", ""))
        assert set(used) <= set(ACTION["inputs"])


def annotate(compared: Mapping[str, Any], checkout: Path) -> str:
    """Run the action's script on a comparison's JSON; return what the runner would read."""
    return subprocess.run(  # noqa: S603 - the action's own script
        [sys.executable, str(ROOT / "action" / "annotate.py")],
        input=json.dumps(compared),
        env={"GITHUB_WORKSPACE": str(checkout)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def slower(*files: str, runs: int = 3, lost_ns: float = 500e3, name: str = "k", **line: Any) -> dict[str, Any]:
    """Make a comparison's JSON in which a 1 ms kernel lost time at line 10 of each file."""
    time = {
        "base_ns": {"median": 1e6},
        "head_ns": {"median": 1e6 + lost_ns},
        "change": lost_ns / 1e6,
        "outcome": "slower" if runs > 1 else "single",
        "threshold": 0.03,
    }
    given = {"line": 10, "before_ns": 200e3, "after_ns": 750e3, "share": 0.5, "matched_by_text": True} | line
    kernel = {
        "launches": {"base": 1, "head": 1},
        "mean_launch": time,
        "head": {"name": name},
        "slower_lines": [{"file": file, **given} for file in files],
        "sentence": "1.50x slower",
    }
    return {"gate": None, "programs": [{"kernels": [kernel]}]}


def test_a_line_that_got_slower_is_annotated(tmp_path: Path) -> None:
    """Slowdowns beyond noise are warnings, of single runs notices; smaller ones are not annotated."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "k.cu").touch()
    words = "::this line: 200.0 us -> 750.0 us, 50%25 of the time lost; the kernel: 1.50x slower\n"
    for file in (str(tmp_path / "src" / "k.cu"), "/build/src/k.cu", "C:\\build\\src\\k.cu"):
        assert annotate(slower(file), tmp_path) == f"::warning file=src/k.cu,line=10,title=slower%3A k{words}", file
    assert annotate(slower("src/k.cu", runs=1), tmp_path).startswith("::notice file=src/k.cu,line=10,")
    assert annotate(slower("src/k.cu", lost_ns=20e3), tmp_path) == ""
    assert annotate(slower("src/k.cu") | {"gate": {"floor_ns": 600e3}}, tmp_path) == ""
    unknown = annotate(slower("src/k.cu", before_ns=None, matched_by_text=False), tmp_path)
    assert "not among the hottest -> 750.0 us, 50%25 of the time lost; lines are matched by number; " in unknown


def test_annotations_are_few_and_of_the_checkout(tmp_path: Path) -> None:
    """Up to ten lines are annotated, each once; a CUDA header or a file outside the checkout is counted and named."""
    files = [f"{i}.cu" for i in range(12)]
    for file in files:
        (tmp_path / file).touch()
    assert annotate(slower(*files, *files), tmp_path).count("::warning ") == 10
    outside = annotate(slower("/usr/local/cuda/include/cuda_fp16.hpp", "../0.cu", "x\0y"), tmp_path)
    assert (
        outside
        == "lines outside this checkout that got slower: 3, the first in /usr/local/cuda/include/cuda_fp16.hpp\n"
    )


@pytest.mark.parametrize(
    ("file", "name"),
    [("a,b:c%2C.cu", "k<ns::a, b>"), ("::error file=x::y", "%0A::error::y"), ("x\n::error::y", "k\r\n::error::\x85z")],
)
def test_hostile_names_stay_in_their_annotation(tmp_path: Path, file: str, name: str) -> None:
    """As GitHub's runner parses it, an annotation has three properties, the file's name, and nothing else."""
    (tmp_path / file).touch()
    (line,) = annotate(slower(file, name=name), tmp_path).splitlines()
    command, _, _ = line[2:].partition("::")
    level, _, properties = command.partition(" ")
    given = dict(one.split("=", 1) for one in properties.split(","))
    assert (level, list(given)) == ("warning", ["file", "line", "title"])
    read = given["file"]
    for mark in (":", ",", "\r", "\n", "%"):
        read = read.replace(f"%{ord(mark):02X}", mark)
    assert read == file


def test_a_name_in_the_log_is_no_command(tmp_path: Path) -> None:
    """GitHub's commands are disabled while the comparison prints, and enabled again afterwards."""
    base, head = record(tmp_path / "a", [1_000_000]), record(tmp_path / "b", [2_000_000])
    runner = Runner(tmp_path, {"base": base, "head": head, "package": "none", "comment": "false"})
    assert runner.run() == 5
    stopped, _, rest = runner.log.partition("::stop-commands::")[2].partition("\n")
    assert len(stopped) == 32
    assert f"::{stopped}::" in rest


@pytest.mark.corpus
def test_the_published_pair_goes_through_the_action(corpus: Path, tmp_path: Path, github: HTTPServer) -> None:
    """MW_Baseline against MW_DivToMult is faster and passes; reversed it fails, with the line."""
    base, head = (str(corpus / f"GPU_workshop__MW_{name}.ncu-rep") for name in ("Baseline", "DivToMult"))
    runner = Runner(tmp_path, {"base": base, "head": head, "package": "none"}, GITHUB_API_URL=url(github))
    assert runner.run() == 0, runner.log
    assert "**The gate holds**: nothing is slower by more than 5 %" in runner.summary
    assert "fp64 divisions" in runner.summary
    (comment,) = github.comments  # type: ignore[attr-defined]
    assert comment["body"].endswith(runner.summary)
    assert len(comment["body"]) < 65_536
    (tmp_path / "back").mkdir()
    (tmp_path / "back" / "miniWeather_mpi_openacc.F90").touch()
    back = Runner(tmp_path / "back", {"base": head, "head": base, "package": "none", "comment": "false"})
    assert back.run() == 5, back.log
    assert "and beyond the 10 % that a single run may differ by" in back.log
    assert (
        "::notice file=miniWeather_mpi_openacc.F90,line=288,title=slower%3A compute_tendencies_x_279_gpu::" in back.log
    )
    assert Path(back.outputs["summary"]).exists()


def test_a_fork_on_a_runner_of_your_own_is_warned_of(base: str, tmp_path: Path) -> None:
    """The log, and nothing else, warns that a stranger's code has run on the machine."""
    for environment, fork, warned in (("self-hosted", "true", True), ("github-hosted", "true", False)):
        (tmp_path / environment).mkdir()
        inputs = {"base": base, "head": base, "package": "none", "comment": "false"}
        runner = Runner(tmp_path / environment, inputs, RUNNER_ENVIRONMENT=environment)
        runner.fork = fork
        assert runner.run() == 0, runner.log
        assert ("comes from a fork" in runner.log) is warned


def test_actions_of_others_are_pinned_by_commit() -> None:
    """Every `uses:` names a commit, with its version in a comment, since a tag can be moved."""
    files_ = (ROOT / "action.yml", *(ROOT / "examples" / "ci").glob("*.yml"), *(ROOT / ".github").rglob("*.yml"))
    used = [line.strip() for file in files_ for line in file.read_text().splitlines() if "uses: " in line]
    pinned = re.compile(r"(?:- )?uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert len(used) > 5
    assert [line for line in used if not pinned.fullmatch(line) and "/rooflens@v1" not in line] == []


def test_the_action_pins_what_rooflens_needs_with_hashes() -> None:
    """Each package needed to run or build rooflens is pinned to versions within its range, each with its hashes."""
    read = pytest.importorskip("packaging.requirements").Requirement
    text = (ROOT / "action" / "requirements.txt").read_text().replace("\\\n", "")
    pins = [line.split(" ", 1) for line in text.splitlines() if not line.startswith("#")]
    assert [pin for pin, rest in pins if not re.search(r"--hash=sha256:[0-9a-f]{64}\b", rest)] == []
    held: dict[str, list[str]] = {}
    for pin, _ in pins:
        name, version = pin.split("==")
        held.setdefault(name, []).append(version)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = [read(text) for text in (*project["project"]["dependencies"], *project["build-system"]["requires"])]
    unmet = [one for one in needed if not all(map(one.specifier.contains, held.get(one.name, ["0"])))]
    assert [str(one) for one in (*unmet, *(one for one in needed if one.name not in held))] == []
