"""Nsight Compute reports -> tables: containers, counters, the Parquet store's writer."""
