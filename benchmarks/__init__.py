"""Measurements beside peers; each module runs as `python -m benchmarks.<name> [--json]`."""

import hardware  # first of all: it says where kernels are kept

__all__ = ["hardware"]
