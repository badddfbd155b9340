"""Collect reports: plan, try, run the program with and without ncu, and say what went wrong or is missing."""
