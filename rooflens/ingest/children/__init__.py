"""Child processes that may die: whatever is called in one costs itself and nothing else."""
