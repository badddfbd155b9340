"""Read the compiled code in reports: source lines of instructions, and which instructions only load a constant."""
