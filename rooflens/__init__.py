"""Shows which wall every GPU kernel is hitting, from Nsight Compute reports."""

__version__ = "0.1.0"
