"""Bring stores of older schema versions up to date."""
