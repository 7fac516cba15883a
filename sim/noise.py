"""Sensor noise that depends only on (seed, device, time).

No generator state to save, copy or race for.

Source: G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014
(the mixing function); G. Box, M. Muller, Ann. Math. Stat. 29(2), 1958 (normal numbers from uniform
ones); P. Hall, Biometrika 19, 1927 (the distribution of a sum of uniform ones).
"""

from __future__ import annotations

import hashlib
import math

import numpy as np

from brain.geometry import Array
from brain.jit import kernel

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_A = np.uint64(0xBF58476D1CE4E5B9)
_MIX_B = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_S16, _S32, _S48, _LOW16 = np.uint64(16), np.uint64(32), np.uint64(48), np.uint64(0xFFFF)


def stream(seed: int, device: str) -> int:
    """Name the noise of one device under one seed, as 64 bits."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{device}".encode()).digest()[:8], "little")


@kernel
def _mix(x: np.uint64) -> np.uint64:
    x = (x ^ (x >> _S30)) * _MIX_A
    x = (x ^ (x >> _S27)) * _MIX_B
    return x ^ (x >> _S31)


@kernel
def normal(key: np.uint64, counter: np.int64, out: Array) -> None:
    """Fill `out` (n,) with standard normal numbers that depend only on key, counter and place."""
    base = _mix(key + _GOLDEN * np.uint64(counter))
    for i in range(out.shape[0]):
        a = _mix(base + _GOLDEN * np.uint64(2 * i + 1))
        b = _mix(base + _GOLDEN * np.uint64(2 * i + 2))
        u = (float(a >> _S11) + 1.0) / 9007199254740993.0
        v = float(b >> _S11) / 9007199254740992.0
        out[i] = math.sqrt(-2.0 * math.log(u)) * math.cos(2.0 * math.pi * v)


def noise(key: int, t_ns: int, n: int) -> Array:
    """Return n standard normal numbers for a device's stream at a time."""
    out = np.empty(n)
    normal(np.uint64(key), np.int64(t_ns), out)
    return out


@kernel
def _uniform(key: np.uint64, counter: np.int64) -> float:
    return float(_mix(_mix(key + _GOLDEN * np.uint64(counter)) + _GOLDEN) >> _S11) * 2.0**-53


def chance(key: int, t_ns: int) -> float:
    """Return a number from 0 up to 1, evenly spread, for a device's stream at a time."""
    return _uniform(np.uint64(key), np.int64(t_ns))


@kernel
def quick_normal(key: np.uint64, counter: np.int64, out: Array) -> None:
    """Fill `out` (n,) as `normal` does, 100 times as fast, for whole pictures.

    The sum of four even numbers of 16 bits: mean 0, deviation 1, but never beyond 3.47, and its
    fourth moment is 2.7 instead of 3.
    """
    base = _mix(key + _GOLDEN * np.uint64(counter))
    scale = math.sqrt(3.0) / 65536.0
    for i in range(out.shape[0]):
        word = _mix(base + _GOLDEN * np.uint64(i + 1))
        low = (word & _LOW16) + ((word >> _S16) & _LOW16)
        high = ((word >> _S32) & _LOW16) + (word >> _S48)
        out[i] = (float(low + high) - 131070.0) * scale
