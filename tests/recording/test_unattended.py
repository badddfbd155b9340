from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import packing
import pytest
from packing import Packer
from support.arrived import contents
from unattended import DONE, Call, Profile, Program

from rooflens.errors import EnvironmentMissingError, InputError, StoppedError


def python(code: str) -> tuple[str, ...]:
    """Write the command of a short program."""
    return (sys.executable, "-ISc", code)


@pytest.fixture
def call(tmp_path: Path) -> Call:
    """Begin a call of ten seconds."""
    (tmp_path / "home").mkdir()
    return Call(tmp_path / "light", Packer(tmp_path / "light", tmp_path / "home", "x"), 10)


def test_each_step_ends_and_none_stops_the_next(call: Call) -> None:
    """Steps that fail, hang or cannot start each have their line, and their output is in their files."""
    stage = call.begin("some")
    call.do(stage, Program("fails", python("print('so far'); raise SystemExit(7)"), 5))
    call.do(stage, Program("hangs", python("import time; time.sleep(60)"), 2))
    call.do(stage, Program("missing", ("no such program",), 5))
    call.do(stage, Program("fine", python("pass"), 5))
    found = {line["name"]: line for line in call.done}
    assert found["fails"]["status"] == 7
    assert (found["hangs"]["status"], found["hangs"]["over"]) == (None, True)
    assert "cannot be started" in found["missing"]["error"]
    assert found["fine"]["status"] == 0
    assert (call.folder / stage / "fails.out").read_text() == "so far\n"
    assert json.loads((call.folder / DONE).read_text()) == call.done


def test_what_has_no_time_or_no_counters_is_left_out(call: Call) -> None:
    """Both are reported; a program that needs no counters still runs, and an awaited report has what is kept for it."""
    stage = call.begin("some")
    call.do(stage, Program("long", python("pass"), 60, least_s=30))
    call.kept_s = lambda: 4.0
    call.do(stage, Program("late", python("pass"), 5, least_s=2))
    call.do(stage, Profile("awaited", (), 5, least_s=2, is_awaited=True))
    call.kept_s = lambda: 0.0
    call.counters = False
    call.do(stage, Profile("report", python("pass"), 5))
    call.do(stage, Program("under ncu", python("pass"), 5, needs_counters=True))
    call.do(stage, Program("alone", python("pass"), 5))
    assert "error" in call.done[2]
    assert [line.get("skipped") for line in call.done] == [
        "no time was left: 5 s were left of the 30 s that it takes",
        "no time was left: 1 s were left of the 2 s that it takes",
        None,
        *["ncu may not read the counters here"] * 2,
        None,
    ]


def test_an_ncu_that_is_slow_at_first_is_tried_again(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only ncu's own statement about the counters, for one kernel, skips the other steps."""
    stage = call.begin("some")

    def cold(*_: object, **__: object) -> None:
        raise EnvironmentMissingError("no `ncu` answers")

    monkeypatch.setattr(Profile, "plan", cold)
    call.do(stage, Profile("probe", python("pass"), 5, is_probe=True))
    assert "no `ncu` answers" in call.done[0]["error"]
    assert call.counters


def test_a_full_disk_does_not_end_the_call(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Output that cannot be written is still printed, and the next step runs."""
    stage = call.begin("some")

    def full(*_: object, **__: object) -> None:
        raise InputError("no space left on device")

    monkeypatch.setattr("unattended.write_whole", full)
    for name in ("one", "two"):
        call.do(stage, Program(name, python("pass"), 5))
    assert [line["status"] for line in call.done] == [0, 0]


def test_what_finds_no_room_is_said_once(call: Call, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A message every 15 s would leave nothing else in the log."""
    stage = call.begin("some")
    call._packer.archive_bytes = 10
    (tmp_path / "light" / stage / "x.out").write_text("words")
    for _ in range(3):
        call.pack()
    assert capsys.readouterr().out.count("no room in the archives: some/x.out") == 1


def test_a_program_beside_others_is_waited_for(call: Call) -> None:
    """A step that is timed alone waits for the programs beside it."""
    stage = call.begin("some")
    call.do(stage, Program("beside", python("import time; time.sleep(0.3)"), 5, is_beside=True))
    assert not call.done
    call.wait()
    assert [line["status"] for line in call.done] == [0]


def test_ctrl_c_reaches_a_program_that_is_to_be_interrupted(call: Call) -> None:
    """The program ends by itself, as at a user's Ctrl-C."""
    stage = call.begin("some")
    code = "import time\ntry: time.sleep(60)\nexcept KeyboardInterrupt: print('interrupted')"
    call.do(stage, Program("it", python(code), 9, interrupted_s=0.5))
    assert (call.folder / stage / "it.out").read_text() == "interrupted\n"
    assert "over" not in call.done[0]


def test_who_is_stopped_brings_home_what_there_is(call: Call, tmp_path: Path) -> None:
    """SIGTERM ends the step and the call, and the archive is written."""
    stage = call.begin("some")
    code = f"import os, time; print('half', flush=True); os.kill({os.getpid()}, {signal.SIGTERM}); time.sleep(60)"
    with pytest.raises(StoppedError), call.brought_home():
        call.do(stage, Program("it", python(code), 9))
    assert contents(tmp_path / "home")["some/it.out"] == b"half\n"


def test_a_kill_loses_no_more_than_since_the_last_packing(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a step runs, the archive is renewed regularly with the files written so far."""
    monkeypatch.setattr("unattended.PACK_EVERY_S", 0.05)
    stage = call.begin("some")
    home = tmp_path / "home"
    seen = []
    code = "import time; print('half', flush=True); time.sleep(1)"
    with call.brought_home():
        call.do(stage, Program("beside", python(code), 9, is_beside=True))
        deadline_s = time.monotonic() + 5
        while not seen and time.monotonic() < deadline_s:
            seen = [one for one in contents(home).items() if one == ("some/beside.out", b"half\n")]
        assert seen
        assert not [line for line in call.done if line["name"] == "beside"]
        call.wait()


def test_a_report_goes_home_at_once(call: Call, tmp_path: Path) -> None:
    """The archive is written without waiting for the next quarter of a minute."""
    stage = call.begin("some")
    with call.brought_home():
        (call.folder / stage / "x.ncu-rep").write_text("report")
        call.note(stage, "x", time.monotonic(), bytes=6)
        deadline_s = time.monotonic() + 5
        while not list((tmp_path / "home").glob("*.tar")) and time.monotonic() < deadline_s:
            time.sleep(0.01)
        assert contents(tmp_path / "home")["some/x.ncu-rep"] == b"report"


def test_a_stage_that_was_run_is_not_written_over(call: Call) -> None:
    """A second call in the same folder uses a new name for the stage."""
    assert [call.begin("rest"), call.begin("rest"), call.begin("rest")] == ["rest", "rest.2", "rest.3"]


# ---- archives -------------------------------------------------------------------------------------------------------


def test_archives_stay_below_their_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that one archive cannot hold go into the next, in pieces if large; those that none can hold are named.

    The archive being written counts to the limit of 64 MiB.
    """
    assert (packing.MOST_ARCHIVES + 1) * packing.ARCHIVE_BYTES <= 64 << 20
    monkeypatch.setattr(packing, "PIECE_BYTES", 20_000)
    base, home = tmp_path / "light", tmp_path / "home"
    for folder in (base, home):
        folder.mkdir()
    sizes = {"first": 10, "large": 90_000, "middle": 30_000, "huge": 900_000, "last": 10}
    for name, size in sizes.items():
        (base / name).write_bytes(os.urandom(size))
    packer = Packer(base, home, "x", archive_bytes=50_000)
    files = [base / name for name in sizes]
    assert packer.renew([*files, base / "gone"]) == [base / "huge"]
    made = sorted(home.iterdir())
    assert 1 < len(made) <= packing.MOST_ARCHIVES
    assert max(file.stat().st_size for file in made) <= 50_000
    home_again = contents(home)
    assert all(home_again[name] == (base / name).read_bytes() for name in sizes if name != "huge")


def test_only_archives_that_change_are_written(tmp_path: Path) -> None:
    """Complete archives stay unchanged while logs grow; each archive is replaced as a whole."""
    base, home = tmp_path / "light", tmp_path / "home"
    for folder in (base, home):
        folder.mkdir()
    words, reports = base / "words", [base / f"{number}.ncu-rep" for number in range(3)]
    words.write_text("a")
    for report in reports:
        report.write_bytes(os.urandom(20_000))
    packer = Packer(base, home, "x", archive_bytes=50_000)
    packer.renew([words, *reports])
    before = {file.name: file.stat().st_ino for file in home.iterdir()}
    words.write_text("ab")
    packer.renew([words, *reports])
    after = {file.name: file.stat().st_ino for file in home.iterdir()}
    assert [name for name in after if after[name] != before[name]] == ["x.1.tar"]
    assert contents(home)["words"] == b"ab"
