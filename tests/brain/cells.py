"""Small cells for tests of the brain."""

import numpy as np

from brain.cell import CellArm, CellModel
from brain.geometry import frozen, transform
from brain.robot import ArmModel, GripperModel, arm_arrays
from tests.brain.arms import ur5e
from tests.brain.plain_distance import ur5e_with_spheres
from tests.values import replace

HOME = np.array([0.0, -1.57, 1.57, -1.57, -1.57, 0.0])


GRIPPER = GripperModel(
    name="test",
    opening_min_m=0.0,
    opening_max_m=0.05,
    force_min_n=20.0,
    force_max_n=130.0,
    speed_max_m_s=0.15,
)


def sphered(gripper: bool = False) -> ArmModel:
    """A UR5e with spheres against the world and other arms, none against itself."""
    model, no_pairs = ur5e_with_spheres(), np.zeros((0, 2), dtype=np.int64)
    return replace(
        model,
        self_pairs=no_pairs,
        arrays=arm_arrays(model.chain, model.T_flange_tool, model.spheres, no_pairs),
        gripper=GRIPPER if gripper else None,
    )


def cell(
    arms: int = 1,
    tick_ns: int = 2_000_000,
    model: ArmModel | None = None,
    apart_m: float = 2.0,
    has_wrench: bool = False,
) -> CellModel:
    """Arms (UR5e without spheres unless told) some way apart, in a workspace of 4 m."""
    return CellModel(
        name="test",
        scene_digest="0" * 64,
        tick_ns=tick_ns,
        arms=tuple(
            CellArm(
                name=f"ur{i}",
                model=ur5e() if model is None else model,
                T_world_base=frozen(transform((0.0, apart_m * i, 0.0))),
                home_q_rad=frozen(HOME),
                period_ns=tick_ns,
                has_wrench=has_wrench,
                T_base_seat=frozen(np.eye(4)),
            )
            for i in range(arms)
        ),
        workspace_m=frozen([[-2.0, -2.0, 0.0], [2.0, 4.0, 2.0]]),
    )
