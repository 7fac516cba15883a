"""MuJoCo as a device and as a picture: the simulated cell and the rehearsing twin."""

import hardware  # first of all: it says where kernels are kept

__all__ = ["hardware"]
