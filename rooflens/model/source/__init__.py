"""The source text of kernels: what a line says, the statement it is part of, and what a move makes of it."""
