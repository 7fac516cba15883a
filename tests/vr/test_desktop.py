import numpy as np
import pytest

from brain.errors import ConfigError
from brain.geometry import rpy_to_matrix
from tests.vr.cells import arm_status, cell, model
from vr.cell_view import default_view
from vr.desktop import toggled
from vr.readings import against_words, amount, pose_words, rpy_of
from vr.style import MODE_COLOUR, u32
from vr.window import Window

ARM = cell().arms[0]


def test_without_a_display_one_sentence_says_what_to_do(monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    with pytest.raises(ConfigError, match="--seat none") as caught:
        Window("nothing", (900, 620), lambda key: None)
    print(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("opening_m", "grip"), [(0.05, 1.0), (0.0, 0.0)])
def test_the_gripper_first_goes_to_the_other_of_what_was_measured(opening_m, grip):
    assert toggled(None, ARM, arm_status(ARM.name, ARM.home_q_rad, opening_m)) == grip


@pytest.mark.parametrize("grip", [0.0, 1.0])
def test_a_gripper_that_was_told_goes_the_other_way(grip):
    assert toggled(grip, ARM, None) == 1.0 - grip


def test_a_gripper_that_says_nothing_is_not_moved():
    assert toggled(None, ARM, arm_status(ARM.name, ARM.home_q_rad, None)) is None


def test_the_first_view_is_the_scenes():
    view, wanted = default_view(model().model), model().resolved.scene.view
    assert view.look_at_m == pytest.approx(wanted.look_at_m)
    assert view.azimuth_deg == pytest.approx(wanted.azimuth_deg)


@pytest.mark.parametrize("rpy", [(0.1, -0.5, 2.0), (3.0, 1.2, -3.0), (0.4, -np.pi / 2, 0.0)])
def test_roll_pitch_and_yaw_are_those_of_the_rotation(rpy):
    assert np.allclose(rpy_to_matrix(rpy_of(rpy_to_matrix(rpy))), rpy_to_matrix(rpy), atol=1e-9)


def test_the_tools_place_is_said_in_the_arms_base():
    T = ARM.T_world_base @ np.array(
        [[1.0, 0, 0, 0.4], [0, 1, 0, -0.1], [0, 0, 1, 0.2], [0, 0, 0, 1]]
    )
    assert pose_words(ARM, T)[0].split() == ["400.0", "-100.0", "200.0"]


@pytest.mark.parametrize("value", [None, float("nan")])
def test_what_is_unknown_is_said_to_be(value):
    assert amount(value, 1.0, "N", 1) == "unknown"


@pytest.mark.parametrize(("named", "said"), [("self:wrist_1", "own wrist_1"), ("bench", "bench")])
def test_an_arm_that_is_near_itself_is_said_to_be(named, said):
    assert against_words(named) == said


def test_every_mode_has_a_colour():
    from brain.types import Mode

    assert set(MODE_COLOUR) == set(Mode)


def test_colours_are_packed_as_the_draw_lists_take_them():
    assert u32((1.0, 0.5, 0.0), 1.0) == 0xFF0080FF
