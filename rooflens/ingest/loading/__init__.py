"""Many reports, into memory or into a store: here, or as tasks of an executor."""
