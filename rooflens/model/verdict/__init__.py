"""Decide which wall a kernel hits, why, and say it in words."""
