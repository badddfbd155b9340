"""Register the marker of the workloads' slow tests that need no nvcc."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Add the marker `emulated`."""
    config.addinivalue_line("markers", "emulated: compiles the CUDA workloads with g++ and runs them on the CPU")
