"""`rooflens calibrate`: what this GPU can reach."""

from __future__ import annotations

import click

from rooflens.cli.console import say


@click.command()
def calibrate() -> None:
    """Measure what this GPU can reach; charts then draw it as dashed roofs. Needs nvcc."""
    import time

    from rooflens.model.roofline.calibrations import calibrations_folder, parse_attainable, save_attainable
    from rooflens.workloads.calibrating import calibrate as run_calibration

    measured = parse_attainable(run_calibration(), "the calibration's output", int(time.time()))
    say(f"wrote {save_attainable(measured, calibrations_folder())}")
