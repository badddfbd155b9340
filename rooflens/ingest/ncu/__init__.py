"""Run Nsight Compute: its command line, its log, its failures, and the chips it knows."""
