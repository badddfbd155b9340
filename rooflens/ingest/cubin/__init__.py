"""The compiled code in reports: source lines of instructions, and which of them only load a constant."""
