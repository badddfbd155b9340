"""What a workload predicts of each of its kernels, beside what each did."""
