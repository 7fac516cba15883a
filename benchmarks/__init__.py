"""Measurements beside peers; each module runs as `python -m benchmarks.<name> [--json]`."""

from hardware.kernel_cache import use_kernel_cache

use_kernel_cache()
