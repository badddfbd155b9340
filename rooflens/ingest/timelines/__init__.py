"""Timelines of whole programs: exports of Nsight Systems and traces of the PyTorch profiler."""
