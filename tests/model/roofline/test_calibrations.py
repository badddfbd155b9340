from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.loops import for_all

from rooflens.errors import InputError
from rooflens.model.roofline.attainable import at_clock
from rooflens.model.roofline.calibrations import (
    MeasuredRates,
    Rate,
    attainable_to_json,
    calibrations_folder,
    load_calibrations,
    parse_attainable,
    save_attainable,
)

MEASURED = MeasuredRates(
    gpu="NVIDIA H200",
    compute_capability="9.0",
    driver="580.65.06",
    sm_clock_hz=1.98e9,
    measured_unix_s=1_800_000_000,
    rates={
        "dram_read": Rate(4.4e12, 4.3e12, 4.5e12, "byte/s", 20, 1.97e9),
        "tensor_int8": Rate(9e14, 8e14, 9.5e14, "op/s", 20),
    },
)


def program_output(**changes: Any) -> str:
    """Return the measuring program's output with changed top-level keys; None removes a key."""
    document = json.loads(attainable_to_json(MEASURED)) | changes
    kept = {key: value for key, value in document.items() if value is not None}
    return json.dumps({key: value for key, value in kept.items() if key not in {"schema_version", "measured_unix_s"}})


def rate_output(**changes: Any) -> str:
    """Return the same with one changed rate."""
    rate = {"unit": "byte/s", "median": 2.0, "min": 1.0, "max": 3.0, "repetitions": 5} | changes
    return program_output(rates={"l2": {key: value for key, value in rate.items() if value is not None}})


def test_a_calibration_survives_its_file(tmp_path: Path) -> None:
    """A written file is read back with spread and clocks, and no other file is left in the folder."""
    file = save_attainable(MEASURED, tmp_path / "new")
    assert load_calibrations(tmp_path / "new") == (MEASURED,)
    assert [path.name for path in file.parent.iterdir()] == ["nvidia-h200_2000mhz_580.65.06.json"]


def test_the_programs_output_is_dated_by_who_ran_it() -> None:
    """The program does not know the date, so the caller adds it."""
    assert parse_attainable(program_output(), "output", measured_unix_s=1_800_000_000) == MEASURED


def test_another_clock_or_driver_is_another_file(tmp_path: Path) -> None:
    """A second equal run replaces the first; another clock or driver gives a second file; the newest comes first."""
    later = {"measured_unix_s": 1_900_000_000}
    save_attainable(MEASURED, tmp_path)
    save_attainable(replace(MEASURED, sm_clock_hz=1.985e9, **later), tmp_path)
    save_attainable(replace(MEASURED, sm_clock_hz=1.2e9), tmp_path)
    save_attainable(replace(MEASURED, driver="590.1"), tmp_path)
    loaded = load_calibrations(tmp_path)
    assert len(loaded) == 3
    assert loaded[0].measured_unix_s == 1_900_000_000


def test_a_gpu_cannot_name_a_file_elsewhere(tmp_path: Path) -> None:
    """Files whose GPU name has slashes and dots stay in the folder."""
    file = save_attainable(replace(MEASURED, gpu="../../etc/GPU (x)"), tmp_path)
    assert file.parent == tmp_path
    assert file.name == "etc-gpu-x_2000mhz_580.65.06.json"


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is replaced as a whole or not at all, and no partial file is left."""
    save_attainable(MEASURED, tmp_path)

    def full_disk(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(InputError, match="No space"):
        save_attainable(replace(MEASURED, measured_unix_s=1), tmp_path)
    monkeypatch.undo()
    assert load_calibrations(tmp_path) == (MEASURED,)
    assert len(list(tmp_path.iterdir())) == 1


def test_scaled_rates_are_not_kept(tmp_path: Path) -> None:
    """Only what was measured goes into a file."""
    with pytest.raises(ValueError, match="scaled"):
        save_attainable(at_clock(MEASURED, 1.0e9), tmp_path)


def test_no_folder_is_no_calibration(tmp_path: Path) -> None:
    """Without the folder there are no calibrations, and no error."""
    assert load_calibrations(tmp_path / "none") == ()


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    """The error names the file to remove."""
    save_attainable(MEASURED, tmp_path)
    (tmp_path / "cut.json").write_text('{"gpu": "NV', encoding="utf-8")
    with pytest.raises(InputError, match=r"cut\.json` is not a calibration: not JSON"):
        load_calibrations(tmp_path)


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"ROOFLENS_HOME": "/r", "XDG_DATA_HOME": "/x"}, Path("/r/calibrations")),
        ({"ROOFLENS_HOME": "", "XDG_DATA_HOME": "/x"}, Path("/x/rooflens/calibrations")),
        ({}, Path.home() / ".local/share/rooflens/calibrations"),
        ({"XDG_DATA_HOME": "relative"}, Path.home() / ".local/share/rooflens/calibrations"),
    ],
)
def test_the_folder_is_the_users(environ: dict[str, str], folder: Path) -> None:
    """Our own variable takes precedence, then an absolute path by the XDG variable, then its default."""
    assert calibrations_folder(environ) == folder


@for_all(
    "text, message",
    [
        ("", "not JSON"),
        ("[1]", "the document` must be an object"),
        (program_output(gpu=None), "missing key `gpu`"),
        (program_output(gpu=" "), "`gpu` cannot be ' '"),
        (program_output(compute_capability=9.0), "`compute_capability` cannot be 9.0"),
        (program_output(compute_capability="9"), "`compute_capability` cannot be '9'"),
        (program_output(sm_clock_hz=0), "`sm_clock_hz` must be a positive number, not 0"),
        (program_output(sm_clock_hz=True), "`sm_clock_hz` must be a positive number, not true"),
        (program_output(rates={}), "`rates` holds nothing"),
        (program_output(rates=[]), "`rates` must be an object"),
        (program_output(rates={"l3": {}}), "unknown key `rates.l3`"),
        (program_output(extra=1), "unknown key `extra`"),
        (rate_output(median=None), r"missing key `rates.l2.median`"),
        (rate_output(unit="GB/s"), r"`rates.l2.unit` must be `byte/s`, not 'GB/s'"),
        (rate_output(median=float("nan")), r"`rates.l2.median` must be a positive number"),
        (rate_output(median="2"), r"`rates.l2.median` must be a positive number"),
        (rate_output(max=float("inf")), r"`rates.l2.max` must be a positive number"),
        (rate_output(median=4.0), r"`rates.l2` must have min <= median <= max"),
        (rate_output(repetitions=0), r"`rates.l2.repetitions` must be a positive whole number, not 0"),
        (rate_output(sm_clock_hz=-1), r"`rates.l2.sm_clock_hz` must be a positive number"),
    ],
)
def test_bad_documents_are_refused(text: str, message: str) -> None:
    """Every fault is named with its key, and the hint says to measure again."""
    with pytest.raises(InputError, match=message) as caught:
        parse_attainable(text, "output", measured_unix_s=1)
    assert caught.value.hint == "measure again: `rooflens calibrate`"


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"schema_version": 2}, "schema version 2, this is 1"), ({"measured_unix_s": "now"}, "positive whole number")],
)
def test_bad_files_are_refused(changes: dict[str, Any], message: str) -> None:
    """A file must state its version and date."""
    with pytest.raises(InputError, match=message):
        parse_attainable(json.dumps(json.loads(attainable_to_json(MEASURED)) | changes), "file")
