"""The look of robots and tools: turned and rounded meshes made in memory, no files.

All pieces of one body and material become one mesh, so that a picture costs few draw calls. Lengths
in m, vertices in the body's frame.
"""

from __future__ import annotations

from collections.abc import Mapping

import mujoco
import numpy as np
import numpy.typing as npt

from brain.geometry import Array
from hardware.parts import Barrel, Block, Look, Material, Taper
from hardware.shapes import rotation_deg, z_along

FaceArray = npt.NDArray[np.int32]
Mesh = tuple[Array, FaceArray]

GROUP_LOOK = 2
"""Geoms to look at; those of `GROUP_COLLISION` collide and are not drawn."""
GROUP_COLLISION = 3
FILLET = np.radians((0.0, 30.0, 60.0, 90.0))
"""Where a rounded edge has its rings."""
DOME = np.radians((0.0, 20.0, 42.0, 66.0, 90.0))
EPSILON_M = 1e-5
"""Radius of what would be a point: faces keep an area."""


def add_look(
    spec: mujoco.MjSpec,
    body: mujoco.MjsBody,
    look: tuple[Look, ...],
    prefix: str,
    frame: mujoco.MjsFrame | None = None,
) -> None:
    """Add the visible geoms of a body; materials are those that `add_materials` made.

    Pieces are in the body's frame, or in a frame of it.
    """
    for material in dict.fromkeys(piece.material for piece in look):
        vertices, faces = merge([mesh_of(p) for p in look if p.material == material])
        name = f"{body.name}/{prefix}/{material}"
        mesh = spec.add_mesh(name=name)
        mesh.uservert = vertices.ravel()
        mesh.userface = faces.ravel()
        mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
        geom = body.add_geom(
            type=mujoco.mjtGeom.mjGEOM_MESH,
            meshname=name,
            material=f"{prefix}/{material}",
            contype=0,
            conaffinity=0,
            group=GROUP_LOOK,
            mass=0.0,
        )
        if frame is not None:
            geom.set_frame(frame)


def add_materials(spec: mujoco.MjSpec, materials: Mapping[str, Material], prefix: str) -> None:
    """Add an asset's materials under a prefix."""
    for name, material in materials.items():
        spec.add_material(
            name=f"{prefix}/{name}",
            rgba=material.colour,
            specular=material.specular,
            shininess=material.shininess,
            reflectance=material.reflectance,
        )


def mesh_of(piece: Look) -> Mesh:
    """Make the mesh of one piece, vertices (v, 3) and triangles (f, 3)."""
    if isinstance(piece, Block):
        vertices, faces = _block(np.array(piece.size_m), piece.corner_m, piece.edge_m)
        return vertices @ rotation_deg(piece.rpy_deg).T + np.array(piece.centre_m), faces
    start, end = np.array(piece.from_m), np.array(piece.to_m)
    length = float(np.linalg.norm(end - start))
    profile = _barrel(piece, length) if isinstance(piece, Barrel) else _taper(piece, length)
    vertices, faces = _turned(profile)
    return vertices @ z_along((end - start) / length).T + start, faces


def merge(meshes: list[Mesh]) -> Mesh:
    """Join meshes into one."""
    offsets = np.cumsum([0, *(len(vertices) for vertices, _ in meshes[:-1])])
    return (
        np.concatenate([vertices for vertices, _ in meshes]),
        np.concatenate([f + o for (_, f), o in zip(meshes, offsets, strict=True)]).astype(np.int32),
    )


def _barrel(piece: Barrel, length: float) -> Array:
    """Profile (k, 2) of radius and height: rounded at both edges, or domed at the far end."""
    r = piece.radius_m
    e = min(piece.edge_m, 0.45 * length, 0.45 * r)
    bottom = np.column_stack([r - e + e * np.sin(FILLET), e - e * np.cos(FILLET)])
    if piece.dome_m > 0.0:
        top = np.column_stack([r * np.cos(DOME), length + piece.dome_m * np.sin(DOME)])
    else:
        top = np.column_stack([r - e + e * np.cos(FILLET), length - e + e * np.sin(FILLET)])
    return np.concatenate([bottom, top])


def _taper(piece: Taper, length: float) -> Array:
    """Profile (k, 2) of radius and height that passes smoothly between two radii."""
    t = np.linspace(0.0, 1.0, 8)
    smooth = t * t * (3.0 - 2.0 * t)
    radius = piece.radius_from_m + (piece.radius_to_m - piece.radius_from_m) * smooth
    return np.column_stack([radius, length * t])


def _turned(profile: Array) -> Mesh:
    """Turn a profile of radius and height about z, closed at both ends."""
    widest = float(profile[:, 0].max())
    n = 36 if widest > 0.025 else 24 if widest > 0.01 else 16
    angle = 2.0 * np.pi * np.arange(n) / n
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    rings = [np.column_stack([max(r, EPSILON_M) * ring, np.full(n, z)]) for r, z in profile]
    return _lofted(rings)


def _block(size_m: Array, corner_m: float, edge_m: float) -> Mesh:
    """Box of that size about the origin, corners along z and edges at both ends rounded."""
    half = 0.5 * size_m
    e = min(edge_m, 0.45 * float(size_m.min()))
    inset = np.concatenate([e - e * np.sin(FILLET), (e - e * np.sin(FILLET))[::-1]])
    low = -half[2] + e - e * np.cos(FILLET)
    heights = np.concatenate([low, -low[::-1]])
    corner = min(max(corner_m, 1.01 * e, 10 * EPSILON_M), 0.999 * float(half[:2].min()))
    rings = []
    quarter = np.linspace(0.0, 0.5 * np.pi, 5)
    for i, z in zip(inset, heights, strict=True):
        points = []
        for k in range(4):
            turn = quarter + 0.5 * k * np.pi
            sign = np.array(((1, 1), (-1, 1), (-1, -1), (1, -1))[k])
            centre = sign * (half[:2] - corner)
            radius = max(corner - i, EPSILON_M)
            points.append(centre + radius * np.column_stack([np.cos(turn), np.sin(turn)]))
        outline = np.concatenate(points)
        rings.append(np.column_stack([outline, np.full(len(outline), z)]))
    return _lofted(rings)


def _lofted(rings: list[Array]) -> Mesh:
    """Skin over rings of equally many points, closed at both ends; normals point outwards."""
    n = len(rings[0])
    vertices = np.concatenate([*rings, [rings[0].mean(axis=0)], [rings[-1].mean(axis=0)]])
    i = np.arange(n)
    j = (i + 1) % n
    faces = []
    for k in range(len(rings) - 1):
        a, b = k * n, (k + 1) * n
        faces.append(np.column_stack([a + i, a + j, b + j]))
        faces.append(np.column_stack([a + i, b + j, b + i]))
    last = (len(rings) - 1) * n
    faces.append(np.column_stack([np.full(n, len(vertices) - 2), j, i]))
    faces.append(np.column_stack([np.full(n, len(vertices) - 1), last + i, last + j]))
    return vertices, np.concatenate(faces).astype(np.int32)
