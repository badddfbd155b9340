"""The bundled programs that rooflens measures: a folder per workload."""
