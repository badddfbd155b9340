"""Work out FLOPs, bytes, peaks and roofs of a kernel."""
