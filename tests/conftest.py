"""Set before anything is imported that reads it."""

import os

import hypothesis

import hardware  # noqa: F401  says where kernels are kept

os.environ.setdefault("MUJOCO_GL", "egl")
os.environ.setdefault("LP_NUM_THREADS", "0")

# `make test` draws the same examples each time, so that a change is judged by what it changed;
# `make check-long` draws new ones. No deadline: the first example may have to compile a kernel.
hypothesis.settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
hypothesis.settings.register_profile("fresh", deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))
