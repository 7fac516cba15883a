"""What robots, tools and cameras are made of: materials, looks, and rigid bodies, as data."""

from __future__ import annotations

from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from brain.geometry import Array
from hardware.shapes import Bounded
from hardware.strict import Colour, Name, NotNegative, Positive, Strict, Vec3


class Material(Strict):
    """How a surface looks."""

    colour: Colour
    specular: NotNegative = 0.4
    shininess: NotNegative = 0.4
    reflectance: NotNegative = 0.0


class Barrel(Strict):
    """A turned cylinder with rounded edges, domed by `dome_m` at its far end."""

    look: Literal["barrel"]
    from_m: Vec3
    to_m: Vec3
    radius_m: Positive
    edge_m: NotNegative = 0.003
    dome_m: NotNegative = 0.0
    material: Name


class Taper(Strict):
    """A turned tube whose radius passes smoothly from one to the other."""

    look: Literal["taper"]
    from_m: Vec3
    to_m: Vec3
    radius_from_m: Positive
    radius_to_m: Positive
    material: Name


class Block(Strict):
    """A box with its four edges along z rounded by `corner_m`, the others by `edge_m`."""

    look: Literal["block"]
    centre_m: Vec3
    size_m: tuple[Positive, Positive, Positive]
    rpy_deg: Vec3 = (0.0, 0.0, 0.0)
    corner_m: NotNegative = 0.002
    edge_m: NotNegative = 0.001
    material: Name


Look = Annotated[Barrel | Taper | Block, Field(discriminator="look")]


class Tensor(Strict):
    """Rotational inertia about the centre of mass, kg m^2."""

    xx: Positive
    yy: Positive
    zz: Positive
    xy: float = 0.0
    xz: float = 0.0
    yz: float = 0.0

    def matrix(self) -> Array:
        """Return it (3, 3)."""
        return np.array(
            [
                [self.xx, self.xy, self.xz],
                [self.xy, self.yy, self.yz],
                [self.xz, self.yz, self.zz],
            ]
        )

    @model_validator(mode="after")
    def _can_be(self) -> Self:
        a, b, c = sorted(float(v) for v in np.linalg.eigvalsh(self.matrix()))
        if a <= 0.0 or a + b < c * (1.0 - 1e-6):
            raise ValueError(f"no body has principal moments {a:.3g}, {b:.3g}, {c:.3g} kg m^2")
        return self


class Body(Strict):
    """A rigid body: mass, collision shapes and looks, all in its own frame.

    `pads` collide too, but are meant to touch parts: they have the gripper's friction, and the
    brain counts them as fingers. With `frame: dh` centre of mass and inertia are given in the
    link's DH frame, as UR does.
    """

    name: Name
    mass_kg: Positive
    com_m: Vec3
    inertia_kg_m2: Tensor
    frame: Literal["link", "dh"] = "link"
    collision: tuple[Bounded, ...] = ()
    pads: tuple[Bounded, ...] = ()
    look: tuple[Look, ...] = ()
