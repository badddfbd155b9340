"""Read many reports into memory or into a store, in this process or as tasks of an executor."""
