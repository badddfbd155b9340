"""Bring stores of older schema versions to this one."""
