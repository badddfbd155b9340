"""Decide what limits a kernel, why, and say it in words."""
