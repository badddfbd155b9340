"""Mark for ncu the start and end of the launches to profile, like CUDA's `cuProfilerStart` and `cuProfilerStop`.

ncu started with `--profile-from-start off` ignores everything else. No Python library is needed: whichever library
launches kernels goes through the CUDA driver, which is or will be loaded in the process.
"""

from __future__ import annotations

import ctypes

_DRIVER = "libcuda.so.1"


def start() -> None:
    """Start profiling; without a driver there is nothing to profile, and this does nothing."""
    driver = _driver()
    if driver is not None:
        _enter_context(driver)
        driver.cuProfilerStart()


def stop() -> None:
    """Stop profiling."""
    driver = _driver()
    if driver is not None:
        driver.cuCtxSynchronize()
        driver.cuProfilerStop()


def _driver() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(_DRIVER)
    except OSError:
        return None


def _enter_context(driver: ctypes.CDLL) -> None:
    """Make the first GPU's primary context, which libraries share, current if this thread has no context."""
    current = ctypes.c_void_p()
    driver.cuInit(0)
    driver.cuCtxGetCurrent(ctypes.byref(current))
    if not current.value and driver.cuDevicePrimaryCtxRetain(ctypes.byref(current), 0) == 0:
        driver.cuCtxSetCurrent(current)
