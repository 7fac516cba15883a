"""The operator's seat, whatever it looks like: a window, a script or a headset."""

import hardware  # first of all: it says where kernels are kept

__all__ = ["hardware"]
