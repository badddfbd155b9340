"""Work out FLOPs, bytes, peaks and roofs of one kernel."""
