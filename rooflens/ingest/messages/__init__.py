"""The protocol-buffer messages of a report, and what they say of processes and NVTX ranges."""
