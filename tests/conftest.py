"""Set before anything is imported that reads it."""

import os

import hypothesis

import hardware  # noqa: F401  says where kernels are kept

os.environ.setdefault("MUJOCO_GL", "egl")
os.environ.setdefault("LP_NUM_THREADS", "0")

# `make test` draws the same examples each time, so that a change is judged by what it changed;
# `make check-long` draws new ones.
hypothesis.settings.register_profile("repeatable", derandomize=True, database=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))
