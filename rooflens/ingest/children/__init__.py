"""Child processes that may die: a call that crashes, hangs or takes all memory costs itself and nothing else."""
