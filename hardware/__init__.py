"""Time, bytes, devices, links and processes: all that touches the world outside."""

from hardware.kernel_cache import use_kernel_cache

use_kernel_cache()
