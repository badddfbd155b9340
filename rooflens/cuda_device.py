"""Print, as JSON, what CUDA's driver says of the first GPU that programs see. Run as a script, with Python alone.

Its arguments are the values of CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER, `=VALUE` each, or `-` for an unset one. In a
process of its own, because CUDA reads both only once, and because a broken driver may crash. Not yet run on a GPU: its
calls ran against a stand-in.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import uuid

VARIABLES = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")
_ATTRIBUTES = {
    "sm_count": (16, 1),
    "sm_clock_hz": (13, 1000),
    "memory_clock_hz": (36, 1000),
    "memory_bus_bits": (37, 1),
    "l2_bytes": (38, 1),
    "ecc": (32, 1),
    "major": (75, 1),
    "minor": (76, 1),
}
"""What is asked -> its number in `CUdevice_attribute` of cuda.h, and the unit in which the driver answers."""
_NAME_BYTES = 256


def main(arguments: list[str]) -> int:
    """Print the description; return 0, or 1 if the driver has no GPU."""
    for name, value in zip(VARIABLES, arguments):  # noqa: B905 - the length is of no consequence
        os.environ.pop(name, None)
        if value != "-":
            os.environ[name] = value[1:]
    described = describe()
    if described is None:
        return 1
    sys.stdout.write(json.dumps(described) + "\n")
    return 0


def describe() -> dict[str, object] | None:
    """Ask the driver; None if it has no GPU.

    Raises:
        OSError: There is no driver.
    """
    cuda = ctypes.CDLL("libcuda.so.1")
    device, version = ctypes.c_int(), ctypes.c_int()
    name, identifier = ctypes.create_string_buffer(_NAME_BYTES), (ctypes.c_ubyte * 16)()
    if cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), 0) or cuda.cuDeviceGetUuid(identifier, device):
        return None
    if cuda.cuDeviceGetName(name, _NAME_BYTES, device) or cuda.cuDriverGetVersion(ctypes.byref(version)):
        return None
    asked = {key: _attribute(cuda, device, number) for key, (number, _) in _ATTRIBUTES.items()}
    found = {key: None if value is None else value * _ATTRIBUTES[key][1] for key, value in asked.items()}
    return {
        "name": name.value.decode(errors="replace"),
        "uuid": f"GPU-{uuid.UUID(bytes=bytes(identifier))}",
        "compute_capability": f"{found.pop('major')}.{found.pop('minor')}",
        "cuda": f"{version.value // 1000}.{version.value % 1000 // 10}",
        **found,
    }


def _attribute(cuda: ctypes.CDLL, device: ctypes.c_int, number: int) -> int | None:
    value = ctypes.c_int()
    return None if cuda.cuDeviceGetAttribute(ctypes.byref(value), number, device) else value.value


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
