"""The protocol-buffer messages of a report, and what they say about processes and NVTX ranges."""
