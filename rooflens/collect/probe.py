"""Launch a one-thread kernel through CUDA's driver, with Python alone: ncu is first tried on it.

Run as a script. Not yet run on a GPU: its calls ran against a stand-in, and its kernel was assembled.
"""

from __future__ import annotations

import ctypes
import sys

KERNEL = "rooflens_probe"
PTX = f"""
.version 6.0
.target sm_70
.address_size 64
.visible .entry {KERNEL}() {{ ret; }}
"""


def main() -> int:
    """Launch the kernel and wait for it; return 0, or 1 with the call that failed."""
    cuda = ctypes.CDLL("libcuda.so.1")
    device, context, module, function = (ctypes.c_int(), *(ctypes.c_void_p() for _ in range(3)))
    one, zero, none = ctypes.c_uint(1), ctypes.c_uint(0), ctypes.c_void_p()
    calls = (
        ("cuInit", zero),
        ("cuDeviceGet", ctypes.byref(device), ctypes.c_int(0)),
        ("cuDevicePrimaryCtxRetain", ctypes.byref(context), device),
        ("cuCtxSetCurrent", context),
        ("cuModuleLoadData", ctypes.byref(module), PTX.encode()),
        ("cuModuleGetFunction", ctypes.byref(function), module, KERNEL.encode()),
        ("cuLaunchKernel", function, *(one,) * 6, zero, none, none, none),
        ("cuCtxSynchronize",),
    )
    for name, *given in calls:
        if status := getattr(cuda, name)(*given):
            sys.stderr.write(f"{name} failed with status {status}\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
