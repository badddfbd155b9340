"""A few flips of the campaign `flips` of `benchmarks/faults.py`, on a stored report."""

from __future__ import annotations

from pathlib import Path

from support.bit_flips import bit_flips


def test_a_flipped_bit_costs_its_kernel_at_most(fixtures: Path) -> None:
    """If a bit flips in any value, every command ends properly, and no guard has to catch a bug."""
    tally = bit_flips([fixtures / "synthetic" / "attention.synthetic.ncu-rep"], count=12, seed=7, pages=0.05)
    assert dict(tally.bugs) == {}
    assert tally.flips == 12
    assert tally.failed > 0
