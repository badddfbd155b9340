"""`rooflens calibrate`: what this GPU can reach."""

from __future__ import annotations

import click


@click.command()
def calibrate() -> None:
    """Measure what this GPU can reach; charts then draw it as dashed roofs. Needs nvcc."""
    from rooflens.cli.calibrating import calibrate as calibrate_here

    calibrate_here()
