"""What came into the way: the obstacles of one world that another did not have.

A motion that keeps clear of the old ones and of what came keeps clear of the new ones, whatever
went away meanwhile. Of motions from several worlds the old ones are what all of those had: what
went away and comes back has come.
"""

from __future__ import annotations

import numpy as np

from brain.distance import ObstacleArrays, SphereSet
from brain.occupied import came
from brain.world import ShapeArrays

NOBODY = SphereSet(
    centre_m=np.zeros((0, 3)),
    radius_m=np.zeros(0),
    first=np.zeros(1, dtype=np.int64),
    bound=np.zeros((0, 4)),
)


def added(before: ObstacleArrays, now: ObstacleArrays) -> ObstacleArrays:
    """The obstacles of `now` that `before` did not have, or that could be touched then.

    Shapes and voxels one by one; other arms all together if one of them moved.
    """
    known = set(_rows(before.shapes))
    new = np.array([row not in known for row in _rows(now.shapes)], dtype=np.bool_)
    shapes = ShapeArrays(
        kind=now.shapes.kind[new],
        size_m=now.shapes.size_m[new],
        T_world_shape=now.shapes.T_world_shape[new],
        may_touch=now.shapes.may_touch[:, new],
    )
    same = all(np.array_equal(a, b) for a, b in zip(before.others, now.others, strict=True))
    return ObstacleArrays(
        shapes=shapes,
        shape_radius_m=now.shape_radius_m[new],
        others=NOBODY if same else now.others,
        seen=came(before.seen, now.seen),
    )


def common(one: ObstacleArrays, other: ObstacleArrays) -> ObstacleArrays:
    """The obstacles of `one` that `other` had too."""
    return added(added(other, one), one)


def _rows(shapes: ShapeArrays) -> list[bytes]:
    """Everything about each shape, bit for bit."""
    n = len(shapes.kind)
    T = shapes.T_world_shape.reshape(n, 16)
    together = np.column_stack([shapes.kind, shapes.size_m, T, shapes.may_touch.T])
    return [row.tobytes() for row in together.astype(np.float64)]
