"""MuJoCo as a device and as a picture: the simulated cell and the rehearsing twin."""
