"""A program by its timeline alone: its kernels by time, how far they are from their floors, and what to profile."""
