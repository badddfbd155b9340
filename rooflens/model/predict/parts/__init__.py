"""What is predicted besides an operation itself: each kernel of a workload, and whether all fits into memory."""
