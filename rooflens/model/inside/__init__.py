"""The inside of a kernel: its loops by machine code, and what each wait waits for."""
