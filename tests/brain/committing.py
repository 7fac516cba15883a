"""A commit under way over ideal arms, and the ways in which tests disturb it."""

import numpy as np

from brain.geometry import frozen, transform
from brain.kinematics import tool_pose
from tests.brain.cells import HOME, cell, sphered
from tests.brain.plain_distance import sphere_centres
from tests.brain.streams import rehearsal, stream, timed
from tests.ideal import Bench
from tests.values import replace

ONE = cell(model=sphered())
TWO = cell(arms=2, model=sphered())
ROWS = timed(ONE.arms[0].model, HOME)
MADE = rehearsal(ONE, stream(ROWS))


def committed(made=MADE, ticks: int = 0, bench: Bench | None = None) -> Bench:
    b = Bench(ONE) if bench is None else bench
    b.commit(made)
    b.run(ticks)
    return b


def release(b: Bench) -> None:
    b.engaged = False
    b.run(6)


def depart(b: Bench) -> None:
    at = b.arms[0].motion
    b.arms[0].motion = replace(at, q_rad=frozen(at.q_rad + 0.03))
    b.tick()
    b.arms[0].motion = replace(b.arms[0].motion, q_rad=b.commands()[-1])


def with_fingers() -> Bench:
    return Bench(cell(model=sphered(gripper=True), has_wrench=True), grippers=True, wrenches=True)


def closing(b: Bench) -> object:
    """A motion during which the fingers are told to open by 30 mm."""
    openings = np.minimum(np.arange(len(ROWS))[:, None] * 1e-4, 0.03)
    return rehearsal(b.cell, stream(ROWS, opening_m=openings))


def tool_at(row: int) -> np.ndarray:
    return transform(tool_pose(ONE.arms[0].model, ROWS[row])[:3, 3])


def beside_the_way(gap_m: float) -> np.ndarray:
    """Where the cart keeps that distance, as the way is swept, above the highest place."""
    spheres = [body_centres(q) for q in ROWS[::10]]
    top = max(float(np.max(c[:, 2] + r)) for c, r in spheres)
    c, r = max(spheres, key=lambda s: float(np.max(s[0][:, 2] + s[1])))
    k = int(np.argmax(c[:, 2] + r))
    return transform((c[k, 0], c[k, 1], top + gap_m + 0.02))


def body_centres(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    model = ONE.arms[0].model
    moving = model.spheres.link > 0
    centre = sphere_centres(model, model.spheres, np.eye(4), q)
    return centre[moving], np.array(model.spheres.radius_m)[moving]
