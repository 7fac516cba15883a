"""Noise depends on seed, device and time alone, and has the shape that it claims."""

from __future__ import annotations

import math

import numpy as np

from sim.noise import chance, noise, normal, quick_normal, stream

MASK = (1 << 64) - 1
N = 200_000


def mixed(x: int) -> int:
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def word(key: int, counter: int, place: int) -> int:
    """The splitmix64 word at a place of a stream, in Python's own integers."""
    golden = 0x9E3779B97F4A7C15
    return mixed((mixed((key + golden * counter) & MASK) + golden * place) & MASK)


def drawn(function, key=7, counter=11, n=N):
    out = np.empty(n)
    function(np.uint64(key), np.int64(counter), out)
    return out


def test_equal_seed_device_and_time_give_equal_noise():
    assert np.array_equal(noise(stream(3, "arm/ft"), 10, 6), noise(stream(3, "arm/ft"), 10, 6))


def test_another_seed_device_or_time_gives_other_noise():
    base = noise(stream(3, "arm/ft"), 10, 6)
    others = [
        noise(stream(4, "arm/ft"), 10, 6),
        noise(stream(3, "z1/ft"), 10, 6),
        noise(stream(3, "arm/ft"), 12, 6),
    ]
    assert not any(np.any(base == other) for other in others)


def test_normal_numbers_have_mean_0_deviation_1_and_fourth_moment_3():
    x = drawn(normal)
    print(f"mean {x.mean():.4f}, deviation {x.std():.4f}, fourth moment {(x**4).mean():.3f}")
    assert abs(x.mean()) < 0.01
    assert abs(x.std() - 1.0) < 0.01
    assert abs((x**4).mean() - 3.0) < 0.1


def test_quick_normal_numbers_have_mean_0_deviation_1_and_end_at_3_47():
    x = drawn(quick_normal)
    print(f"mean {x.mean():.4f}, deviation {x.std():.4f}, largest {np.abs(x).max():.3f}")
    assert abs(x.mean()) < 0.01
    assert abs(x.std() - 1.0) < 0.01
    assert np.abs(x).max() < 3.47


def test_neighbouring_places_and_times_are_not_correlated():
    rows = np.array([drawn(quick_normal, counter=t, n=2000) for t in range(100)])
    along = np.corrcoef(rows[:, :-1].ravel(), rows[:, 1:].ravel())[0, 1]
    across = np.corrcoef(rows[:-1].ravel(), rows[1:].ravel())[0, 1]
    print(f"correlation {along:.4f} along, {across:.4f} from one time to the next, limit 0.01")
    assert abs(along) < 0.01
    assert abs(across) < 0.01


def test_quick_normal_is_the_plain_sum_of_four_even_numbers():
    x = drawn(quick_normal, key=123456789, counter=42, n=50)
    for i, value in enumerate(x):
        w = word(123456789, 42, i + 1)
        parts = [(w >> shift) & 0xFFFF for shift in (0, 16, 32, 48)]
        assert abs(value - (sum(parts) - 131070) * math.sqrt(3.0) / 65536.0) < 1e-12


def test_chances_are_evenly_spread_from_0_to_1():
    key = stream(1, "arm/fault")
    x = np.sort([chance(key, 2_000_000 * k) for k in range(4000)])
    worst = np.abs(x - (np.arange(4000) + 0.5) / 4000).max()
    print(f"largest departure from the even spread {worst:.4f}, limit 0.03")
    assert x[0] >= 0.0
    assert x[-1] < 1.0
    assert worst < 0.03  # Kolmogorov-Smirnov, 1.9 / sqrt(n): fails by chance once in 700
