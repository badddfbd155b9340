"""Metrics and their instances (by instruction, sample or opcode), whichever reader took them from the file."""
