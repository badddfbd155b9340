"""Mark for ncu where the launches to profile begin and end: what CUDA's `cuProfilerStart` and `cuProfilerStop` do.

ncu started with `--profile-from-start off` looks at nothing else. No Python library is involved: whichever one
launches the kernels, they go through the CUDA driver, which is or will be loaded in the process.
"""

from __future__ import annotations

import ctypes

_DRIVER = "libcuda.so.1"


def start() -> None:
    """Begin; without a driver there is nothing to profile, and this does nothing."""
    driver = _driver()
    if driver is not None:
        _enter_context(driver)
        driver.cuProfilerStart()


def stop() -> None:
    """End."""
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
    """Make the primary context of the first GPU, which libraries share, current where this thread has none."""
    current = ctypes.c_void_p()
    driver.cuInit(0)
    driver.cuCtxGetCurrent(ctypes.byref(current))
    if not current.value and driver.cuDevicePrimaryCtxRetain(ctypes.byref(current), 0) == 0:
        driver.cuCtxSetCurrent(current)
