"""Time, bytes, devices, links and processes: all that touches the world outside."""
