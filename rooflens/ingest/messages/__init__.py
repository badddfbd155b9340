"""The messages that a report is made of, and what they say of processes and NVTX ranges."""
