"""Keep runs, kernels, metrics and rooflines in Parquet."""
