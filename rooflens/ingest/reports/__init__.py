"""Read reports: the container, NVIDIA's reader in a child process, and the quantities resolved from metrics."""
