"""Keep runs, kernels, metrics and rooflines in Parquet."""

MARKER = "rooflens-store.json"
"""The file that makes a folder a store; it stands here to be asked for without the cost of pyarrow."""
