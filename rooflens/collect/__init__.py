"""Collect reports: plan, try one kernel, run the program with and without ncu, and say what failed or is missing."""
