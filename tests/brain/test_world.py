import numpy as np
import pytest

from brain.geometry import transform
from brain.robot import GROUP_ARM, GROUP_FINGER, GROUP_HELD
from brain.world import (
    BOX,
    Held,
    SceneObject,
    allowing,
    grasp,
    make_world,
    move_object,
    release,
)
from tests.brain.plain_distance import box

TABLE = box("table", (0.0, 0.0, -0.1), (1.0, 1.0, 0.1), "support")
PART = box("part", (0.3, 0.0, 0.02), (0.02, 0.02, 0.02), "part")
CART = box("cart", (1.0, 0.0, 0.3), (0.1, 0.1, 0.3), "moving")
HELD = Held(arm="ur", name="part", T_tool_object=transform((0.0, 0.0, 0.01)))


def may_touch(world, group):
    return dict(
        zip(
            [world.objects[i].name for i in world.owner],
            world.shapes.may_touch[group].tolist(),
            strict=True,
        )
    )


def test_fingers_may_touch_parts_and_a_held_part_supports_and_parts():
    world = make_world((TABLE, PART, CART))
    assert may_touch(world, GROUP_ARM) == {"table": False, "part": False, "cart": False}
    assert may_touch(world, GROUP_FINGER) == {"table": False, "part": True, "cart": False}
    assert may_touch(world, GROUP_HELD) == {"table": True, "part": True, "cart": False}


def test_allowing_leaves_only_the_given_contacts_and_keeps_the_version():
    world = allowing(make_world((TABLE, PART), version=4), ("arm", "part"))
    assert may_touch(world, GROUP_ARM) == {"table": False, "part": True}
    assert may_touch(world, GROUP_FINGER) == {"table": False, "part": False}
    assert world.version == 4


def test_a_held_object_is_no_obstacle():
    world = grasp(make_world((TABLE, PART, CART)), HELD)
    assert list(may_touch(world, GROUP_ARM)) == ["table", "cart"]
    assert world.held_by("ur") is HELD
    assert world.held_by("z1") is None


def test_a_released_object_is_an_obstacle_where_it_was_put_down():
    T = transform((0.5, 0.2, 0.02))
    world = release(grasp(make_world((TABLE, PART)), HELD), "ur", T)
    assert world.held == ()
    np.testing.assert_array_equal(world.shapes.T_world_shape[1], T)


def test_releasing_an_empty_hand_changes_nothing():
    world = make_world((TABLE, PART))
    assert release(world, "ur", np.eye(4)) is world


def test_every_change_gives_the_next_version():
    world = make_world((TABLE, PART), version=7)
    held = grasp(world, HELD)
    freed = release(held, "ur", np.eye(4))
    moved = move_object(freed, "table", np.eye(4))
    assert [w.version for w in (world, held, freed, moved)] == [7, 8, 9, 10]


def test_moving_an_object_leaves_the_old_world_as_it_was():
    world = make_world((TABLE, PART))
    before = world.shapes.T_world_shape.copy()
    move_object(world, "part", transform((1.0, 1.0, 1.0)))
    np.testing.assert_array_equal(world.shapes.T_world_shape, before)


def test_an_arm_holds_one_object_at_a_time():
    other = box("other", (0.0, 0.3, 0.02), (0.02, 0.02, 0.02), "part")
    world = grasp(make_world((PART, other)), HELD)
    world = grasp(world, Held(arm="ur", name="other", T_tool_object=np.eye(4)))
    assert [h.name for h in world.held] == ["other"]


def test_shapes_of_one_object_move_together():
    parts = np.stack([transform((0.0, 0.0, 0.1)), transform((0.0, 0.1, 0.0))])
    item = SceneObject(
        name="rack",
        role="fixed",
        kinds=(BOX, BOX),
        size_m=np.full((2, 3), 0.05),
        T_object_shape=parts,
        T_world_object=transform((1.0, 0.0, 0.0)),
    )
    world = move_object(make_world((item,)), "rack", transform((0.0, 2.0, 0.0)))
    np.testing.assert_allclose(
        world.shapes.T_world_shape[:, :3, 3], [[0.0, 2.0, 0.1], [0.0, 2.1, 0.0]]
    )


def test_an_unknown_object_is_a_key_error():
    with pytest.raises(KeyError, match="nothing"):
        make_world((PART,)).object("nothing")


def test_an_empty_world_has_arrays_of_the_right_shape():
    shapes = make_world(()).shapes
    assert shapes.size_m.shape == (0, 3)
    assert shapes.T_world_shape.shape == (0, 4, 4)
    assert shapes.may_touch.shape == (3, 0)
