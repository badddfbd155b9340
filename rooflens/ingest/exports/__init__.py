"""CSV exports of Nsight Compute (`ncu --csv`): what is in them, as values in base units by metric name."""
