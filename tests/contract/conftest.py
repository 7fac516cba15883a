"""`pytest tests/contract --hardware` also asks the real devices that are connected."""

import pytest


def pytest_addoption(parser):
    parser.addoption("--hardware", action="store_true", help="also test connected real devices")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--hardware", default=False):
        return
    skip = pytest.mark.skip(reason="a real device: needs --hardware")
    for item in items:
        if item.get_closest_marker("hardware"):
            item.add_marker(skip)
