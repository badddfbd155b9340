"""Read Nsight Compute reports into records and tables, in memory or in a store."""
