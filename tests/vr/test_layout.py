import pytest
from hypothesis import given
from hypothesis import strategies as st

from vr.layout import SIDE_PX, TOP_PX, VIEW_MIN_PX, layout


@given(st.floats(900, 5000), st.floats(620, 3000), st.booleans())
def test_the_parts_cover_the_window_and_do_not_overlap(width, height, cameras):
    parts = layout(width, height, 1.0, cameras)
    areas = (parts.top, parts.view, parts.timeline, parts.cameras, parts.side)
    covered = sum(part.width * part.height for part in areas)
    assert covered == pytest.approx(width * height, rel=1e-6)


@given(st.floats(100, 5000), st.floats(100, 3000), st.floats(0.5, 4.0))
def test_a_picture_always_remains(width, height, scale):
    view = layout(width, height, scale, True).view
    assert view.width >= VIEW_MIN_PX * scale
    assert view.height >= VIEW_MIN_PX * scale


def test_on_a_display_twice_as_dense_everything_is_twice_as_large():
    once, twice = layout(1440, 900, 1.0, True), layout(2880, 1800, 2.0, True)
    assert twice.side.width == 2.0 * once.side.width == 2.0 * SIDE_PX
    assert twice.top.height == 2.0 * once.top.height == 2.0 * TOP_PX


def test_without_cameras_the_timeline_has_their_room():
    parts = layout(1440, 900, 1.0, False)
    assert parts.cameras.width == 0.0
    assert parts.timeline.width == parts.view.width
