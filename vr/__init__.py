"""The operator's seat, whatever it looks like: a window, a script or a headset."""
