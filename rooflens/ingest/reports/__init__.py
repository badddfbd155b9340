"""Read reports: the container, NVIDIA's reader in a process of its own, and the quantities it resolves."""
