"""Reads the compiled code that reports hold: source lines of instructions, and which of them only load a constant."""
