"""The schema of `scenes/*.yaml`: a cell with its arms, cameras, objects and tasks.

Positions are in the world (x forward, z up) unless a key says otherwise, lengths are full lengths,
roll, pitch, yaw turn about fixed x, y, z. What needs more than the file itself (robots, reach,
collisions) is checked in `hardware/scene.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from brain.errors import ConfigError
from brain.limits import profile
from hardware.shapes import Bounded, Shape
from hardware.strict import Colour, Name, NotNegative, Positive, Strict, Vec3, data_folder, load

Yaw = Annotated[float, Field(ge=-360.0, le=360.0)]
Share = Annotated[float, Field(ge=0.0, le=0.9)]


class Region(Strict):
    """A box of the world from its lowest to its highest corner."""

    min_m: Vec3
    max_m: Vec3

    @model_validator(mode="after")
    def _has_volume(self) -> Self:
        if any(a >= b for a, b in zip(self.min_m, self.max_m, strict=True)):
            raise ValueError(f"min_m {list(self.min_m)} must be below max_m {list(self.max_m)}")
        return self


class SceneArm(Strict):
    """An arm: which robot, what is on its flange, where its base stands.

    `tools` from the flange outwards. `calibration` names a file of `assets/calibration/`.
    `seat_rpy_deg`: the seat's axes (x away from the operator, z up) in the arm's base. `start_deg`
    is filled in by `resolve`; without it an arm starts at home. `period_ms` overrides the robot's.
    """

    name: Name
    robot: Name
    tools: tuple[Name, ...] = ()
    calibration: Name | None = None
    position_m: Vec3
    rpy_deg: Vec3 = (0.0, 0.0, 0.0)
    home_deg: tuple[float, ...]
    start_deg: tuple[float, ...] | None = None
    seat_rpy_deg: Vec3 = (0.0, 0.0, 0.0)
    period_ms: Annotated[int, Field(ge=1, le=100)] | None = None


class SceneCamera(Strict):
    """A camera and the pose of its optical frame in the world or, on an arm, in its flange."""

    name: Name
    model: Name
    mount: Name
    position_m: Vec3
    rpy_deg: Vec3


class Grasp(Strict):
    """How fingers may take a part from above.

    `point_m`: where the tool's origin goes, in the part. `closing_deg`: directions in the part's
    x-y plane along which the fingers may close (each also stands for its opposite). `width_m`: how
    wide the part is there.
    """

    point_m: Vec3 = (0.0, 0.0, 0.0)
    closing_deg: Annotated[tuple[Yaw, ...], Field(min_length=1)]
    width_m: Positive


class Waypoint(Strict):
    """Where a moving object is at a time; between two of them it moves evenly."""

    t_s: NotNegative
    position_m: Vec3
    yaw_deg: Yaw = 0.0


PartMass = Annotated[float, Field(ge=0.0001, le=1000.0)]
"""In kg: from what a gripper can feel at all to more than any arm here lifts."""


class Object(Strict):
    """A solid object. `decor` is seen, but touches nothing and is no obstacle.

    fixed: in the way. support: parts may stand on it. part: can be picked up, stands on
    `rests_on`. moving: is driven along its `schedule`.
    """

    name: Name
    role: Literal["fixed", "support", "part", "moving"]
    position_m: Vec3 = (0.0, 0.0, 0.0)
    rpy_deg: Vec3 = (0.0, 0.0, 0.0)
    shapes: Annotated[tuple[Shape, ...], Field(min_length=1)]
    decor: tuple[Bounded, ...] = ()
    colour: Colour = (0.7, 0.7, 0.7, 1.0)
    decor_colour: Colour = (0.3, 0.3, 0.32, 1.0)
    friction: Positive = 0.8
    mass_kg: PartMass | None = None
    rests_on: Name | None = None
    grasp: Grasp | None = None
    schedule: tuple[Waypoint, ...] = ()

    @model_validator(mode="after")
    def _fits_its_role(self) -> Self:
        is_part = self.role == "part"
        for key in ("mass_kg", "rests_on", "grasp"):
            if (getattr(self, key) is not None) != is_part:
                raise ValueError(f"{key}: a part needs it, a {self.role} object cannot have it")
        if bool(self.schedule) != (self.role == "moving"):
            raise ValueError("schedule: a moving object needs it, others cannot have it")
        if self.schedule and (any(self.position_m) or any(self.rpy_deg)):
            raise ValueError("position_m, rpy_deg: a moving object's places are in its schedule")
        times = [point.t_s for point in self.schedule]
        if any(a >= b for a, b in zip(times[:-1], times[1:], strict=True)):
            raise ValueError(f"schedule: times must rise, got {times}")
        if self.role in ("part", "moving") and any(s.shape == "plane" for s in self.shapes):
            raise ValueError(f"shapes: a {self.role} object cannot have a plane")
        return self


class Step(Strict):
    """Pick one of some parts and put it down.

    `place_m`: where the middle of its underside goes. `place_yaw_deg`: the part's yaws to choose
    from, none for any. `clear_m`: straight way up from both places. `squeeze_m`: how much narrower
    than the part the fingers are told to close.
    """

    arm: Name
    parts: Annotated[tuple[Name, ...], Field(min_length=1)]
    support: Name
    place_m: Vec3
    place_yaw_deg: tuple[Yaw, ...] = ()
    clear_m: Positive = 0.1
    force_n: Positive
    squeeze_m: Positive = 0.006


class Task(Strict):
    """Pick-and-place steps, one after the other."""

    kind: Literal["pick_place"]
    steps: Annotated[tuple[Step, ...], Field(min_length=1)]


class Variation(Strict):
    """What a seed varies, each by up to that much to either side."""

    part_position_m: NotNegative = 0.0
    part_yaw_deg: Annotated[float, Field(ge=0.0, le=180.0)] = 0.0
    part_gap_m: NotNegative = 0.0
    boxes: tuple[Name, ...] = ()
    box_position_m: NotNegative = 0.0
    mass_share: Share = 0.0
    friction_share: Share = 0.0
    start_deg: NotNegative = 0.0


class View(Strict):
    """Where a person looks at the cell from."""

    look_at_m: Vec3
    distance_m: Positive
    azimuth_deg: float
    elevation_deg: float


class Scene(Strict):
    """A whole scene."""

    cell: Name
    tick_ms: Annotated[int, Field(ge=1, le=100)]
    limits: str = "default"
    workspace: Region
    view: View
    arms: Annotated[tuple[SceneArm, ...], Field(min_length=1)]
    cameras: tuple[SceneCamera, ...] = ()
    objects: tuple[Object, ...]
    tasks: dict[Name, Task] = {}
    free_space: tuple[Region, ...] = ()
    variation: Variation = Variation()

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        try:
            profile(self.limits)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        arms = {arm.name for arm in self.arms}
        names = [arm.name for arm in self.arms] + [camera.name for camera in self.cameras]
        names += [item.name for item in self.objects]
        for name in names:
            if names.count(name) > 1 or name == "world":
                raise ValueError(f"two things cannot both be called {name!r}")
        roles = {item.name: item.role for item in self.objects}
        for camera in self.cameras:
            _known(f"cameras.{camera.name}.mount", camera.mount, {"world", *arms})
        supports = {name for name, role in roles.items() if role == "support"}
        parts = {name for name, role in roles.items() if role == "part"}
        for item in self.objects:
            if item.rests_on is not None:
                _known(f"objects.{item.name}.rests_on", item.rests_on, supports)
        for name, task in self.tasks.items():
            for i, step in enumerate(task.steps):
                where = f"tasks.{name}.steps.{i}"
                _known(f"{where}.arm", step.arm, arms)
                _known(f"{where}.support", step.support, supports)
                for part in step.parts:
                    _known(f"{where}.parts", part, parts)
        fixed = {name for name, role in roles.items() if role in ("fixed", "support")}
        for name in self.variation.boxes:
            _known("variation.boxes", name, fixed)
        return self

    def object(self, name: str) -> Object:
        """Return the object of that name (KeyError otherwise)."""
        for item in self.objects:
            if item.name == name:
                return item
        raise KeyError(name)


def _known(key: str, name: str, allowed: set[str]) -> None:
    if name not in allowed:
        raise ValueError(
            f"{key}: unknown {name!r}; allowed: {', '.join(sorted(allowed)) or 'none'}"
        )


def load_scene(name: str | Path) -> Scene:
    """Read a scene by name from `scenes/`, or from a path that ends in .yaml.

    Raises:
        ConfigError: there is none, or it is not as the schema says.
    """
    path = Path(name)
    if path.suffix not in (".yaml", ".yml"):
        folder = data_folder("scenes")
        path = folder / f"{name}.yaml"
        if not path.is_file():
            known = ", ".join(sorted(p.stem for p in folder.glob("*.yaml")))
            raise ConfigError(f"no scene {str(name)!r} in scenes/; it has {known}")
    return load(path, Scene)
