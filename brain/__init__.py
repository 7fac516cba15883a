"""Pure functions and small state machines: no clock, thread, process, file, socket or simulator."""
