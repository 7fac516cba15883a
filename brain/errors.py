"""One tree of errors. Expected outcomes (no solution, no plan, stale) are values, not errors."""

from __future__ import annotations


class ForearmError(Exception):
    """Anything that Forearm itself reports; its text is meant for the operator."""


class ConfigError(ForearmError):
    """Bad input from a person: a scene, a setting, a trace, an argument. Exit status 2."""


class DeviceError(ForearmError):
    """A device is not there or does not do as told. Exit status 3."""


class DeviceUnavailable(DeviceError):
    """The device could not be opened or found."""


class DeviceLost(DeviceError):
    """The device answered once and is silent now."""


class DeviceFault(DeviceError):
    """The device reports a fault of its own or was used against its contract."""


class XrError(ForearmError):
    """The headset or its runtime refuses."""


class LinkError(ForearmError):
    """Bytes between operator and cell are foreign, damaged or refused. Exit status 3."""


class LogError(ForearmError):
    """A log is missing, foreign, truncated or was written for something else. Exit status 2."""
