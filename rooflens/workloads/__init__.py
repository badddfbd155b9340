"""What is measured: one folder a workload."""
