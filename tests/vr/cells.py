"""The cell of a scene as a seat is given it, and what a cell may say."""

from functools import cache

from brain.types import Mode
from hardware.resolve import resolve
from hardware.scene import ResolvedScene, cell_model, load_scene
from hardware.status import ArmStatus, Status
from sim.scene import SceneModel, build_model

SEED = 3


@cache
def resolved(name: str = "bench_pick") -> ResolvedScene:
    return resolve(load_scene(name), SEED)


@cache
def model(name: str = "bench_pick") -> SceneModel:
    return build_model(resolved(name))


@cache
def cell(name: str = "bench_pick"):
    return cell_model(resolved(name))


def arm_status(name: str, q_rad, opening_m) -> ArmStatus:
    return ArmStatus(
        name=name,
        q_rad=q_rad,
        dq_rad_s=None,
        T_world_tool=None,
        T_world_target=None,
        clearance_m=None,
        clearance_against=None,
        force_n=None,
        opening_m=opening_m,
        holding=None,
        stopped=False,
    )


def status(arms=(), objects=()) -> Status:
    return Status(
        t_ns=0,
        seq=0,
        scene_digest="0" * 64,
        mode=Mode.HOLD,
        reason="",
        arms=arms,
        answers=(),
        objects=objects,
        ticks=0,
        late=0,
        skipped=0,
        lateness_ms=0.0,
    )
