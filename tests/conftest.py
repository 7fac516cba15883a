"""Set before anything is imported that reads it."""

import os

from hardware.kernel_cache import use_kernel_cache

use_kernel_cache()
os.environ.setdefault("MUJOCO_GL", "egl")
os.environ.setdefault("LP_NUM_THREADS", "0")
