"""What `calibrate` does. Standard library only: it runs on bare GPU machines."""

from __future__ import annotations

import time

from rooflens.cli.console import say
from rooflens.model.roofline.calibrations import calibrations_folder, parse_attainable, save_attainable
from rooflens.workloads.calibrating import calibrate as run_calibration


def calibrate() -> None:
    """Measure what this GPU can reach, and keep it."""
    measured = parse_attainable(run_calibration(), "the calibration's output", int(time.time()))
    say(f"wrote {save_attainable(measured, calibrations_folder())}")
