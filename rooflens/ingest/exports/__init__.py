"""CSV exports of Nsight Compute (`ncu --csv`), read as values in base units by metric name."""
