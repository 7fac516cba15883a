"""What MuJoCo and Mesa are told."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hardware.drawing import choose_drawing

ROOT = Path(__file__).parents[2]


def test_by_default_nothing_needs_a_screen_and_mesa_has_no_threads():
    environment: dict[str, str] = {}
    choose_drawing(environment)
    assert environment == {"MUJOCO_GL": "egl", "LP_NUM_THREADS": "0"}


def test_what_the_user_said_stays():
    environment = {"MUJOCO_GL": "osmesa", "LP_NUM_THREADS": "2"}
    choose_drawing(environment)
    assert environment == {"MUJOCO_GL": "osmesa", "LP_NUM_THREADS": "2"}


def test_an_unknown_backend_ends_the_program():
    with pytest.raises(SystemExit):
        choose_drawing({"MUJOCO_GL": "wrong"})


def test_the_door_says_so_in_one_line_with_exit_status_2():
    done = subprocess.run(
        [sys.executable, "run_sim.py", "--seat", "none"],
        cwd=ROOT,
        env=os.environ | {"MUJOCO_GL": "wrong"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr == "error: MUJOCO_GL: 'wrong', allowed are egl, glfw, osmesa\n"
