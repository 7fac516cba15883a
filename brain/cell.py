"""The static model of a cell as the brain sees it: arms with their places, limits, the tick."""

from __future__ import annotations

from dataclasses import dataclass

from brain.geometry import Array
from brain.robot import ArmModel


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellArm:
    """One arm in the cell; `T_base_seat` (4, 4) is a rotation: the seat's axes in the base."""

    name: str
    model: ArmModel
    T_world_base: Array
    home_q_rad: Array
    period_ns: int
    has_wrench: bool
    T_base_seat: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellModel:
    """A cell: its arms, the tick, and the box (2, 3) in the world that tools must stay in."""

    name: str
    scene_digest: str
    tick_ns: int
    arms: tuple[CellArm, ...]
    workspace_m: Array

    def arm_index(self, name: str) -> int:
        """Return the place of an arm (KeyError with the known names otherwise)."""
        for i, arm in enumerate(self.arms):
            if arm.name == name:
                return i
        raise KeyError(
            f"no arm {name!r} in cell {self.name!r}; it has {', '.join(a.name for a in self.arms)}"
        )
