"""The MotionBenchMaker UR5 problems and their robot, out of the source archive of `vamp-planner`.

The archive is found by pip, as it is configured, and only read: nothing in it is run. Its bytes
must have the digest below; a changed archive is refused.

Source: C. Chamzas et al., "MotionBenchMaker: a tool to generate and benchmark motion planning
datasets", RA-L 2022; vamp-planner 0.6.4 (resources/ur5), Apache-2.0.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import re
import tarfile
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from scipy.spatial.transform import Rotation

from brain.geometry import Array, frozen, transform
from brain.robot import GROUP_ARM, ArmModel, Chain, JointLimits, Spheres, arm_arrays
from brain.world import BOX, CYLINDER, SPHERE, SceneObject, World, make_world

PROJECT, VERSION = "vamp-planner", "0.6.4"
SHA256 = "d3150c6b67ff941af9ad56480b31d3fb73b12211ea21dc684f7737b059f6daba"
ARCHIVE_MOST = 100_000_000
MEMBER_MOST = 4_000_000
"""Bytes: of the archive, and of any file that is read out of it."""
MEMBERS_MOST = 4_000

KINDS = {"box": BOX, "cylinder": CYLINDER, "sphere": SPHERE}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Problem:
    """One problem: its family, its world, start and goal (6,)."""

    family: str
    world: World
    start_rad: Array
    goal_rad: Array


def archive(kept: Path) -> bytes | None:
    """Return the source archive, kept in a folder from then on; None if there is no way to it.

    Raises:
        ValueError: what came is not the archive that is known.
    """
    path = kept / f"{PROJECT}-{VERSION}.tar.gz"
    data = path.read_bytes() if path.exists() else _download()
    if data is None:
        return None
    found = hashlib.sha256(data).hexdigest()
    if found != SHA256:
        raise ValueError(f"archive of {PROJECT} {VERSION}: digest {found}, must be {SHA256}")
    if not path.exists():
        kept.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return data


def _download() -> bytes | None:
    """Ask pip where the archive is and fetch it, without building anything of it."""
    from pip._internal.commands import create_command
    from pip._internal.req.constructors import install_req_from_line

    command = create_command("download")
    wanted = f"{PROJECT}=={VERSION}"
    options, _ = command.parse_args(["--quiet", "--no-binary", ":all:", "--no-deps", wanted])
    try:
        with command.main_context():
            session = command.get_default_session(options)  # type: ignore[attr-defined]
            finder = command._build_package_finder(options, session)  # type: ignore[attr-defined]
            requirement = install_req_from_line(wanted).req
            best = finder.find_best_candidate(PROJECT, specifier=requirement.specifier)  # type: ignore[union-attr]
            if best.best_candidate is None:
                return None
            url = best.best_candidate.link.url_without_fragment
            answer = session.get(url, headers={"Accept-Encoding": "identity"}, stream=True)
            answer.raise_for_status()
            data = bytearray()
            for piece in answer.iter_content(1 << 20):
                data += piece
                if len(data) > ARCHIVE_MOST:
                    raise ValueError(f"archive of {wanted}: over {ARCHIVE_MOST} bytes")
            return bytes(data)
    except (OSError, ImportError) as error:  # pip's session raises kinds of OSError
        print(f"no problems from {wanted}: {error}")
        return None


def _files(data: bytes, mode: str, wanted: re.Pattern[str]) -> dict[str, bytes]:
    """Read the files of a tar whose names match, in memory, each one bounded."""
    found: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(data), mode=mode) as tar:  # type: ignore[call-overload]
        for count, member in enumerate(tar):
            if count >= MEMBERS_MOST:
                raise ValueError(f"archive: over {MEMBERS_MOST} members")
            if not wanted.fullmatch(member.name) or not member.isfile():
                continue
            if member.size > MEMBER_MOST:
                raise ValueError(f"{member.name}: {member.size} bytes, allowed {MEMBER_MOST}")
            file = tar.extractfile(member)
            assert file is not None
            found[member.name] = file.read(MEMBER_MOST)
    return found


def load(data: bytes) -> tuple[ArmModel, list[Problem]]:
    """Parse robot and problems, ordered by family and number."""
    folder = rf"vamp_planner-{re.escape(VERSION)}/resources/ur5/"
    outer = _files(
        data, "r:gz", re.compile(folder + r"(problems\.tar\.bz2|ur5_spherized\.urdf|ur5\.srdf)")
    )
    by_name = {Path(name).name: body for name, body in outer.items()}
    robot = ur5(by_name["ur5_spherized.urdf"], by_name["ur5.srdf"])
    inner = _files(
        by_name["problems.tar.bz2"],
        "r:bz2",
        re.compile(r"problems/[a-z_0-9]+/(scene|request)\d{4}\.yaml"),
    )
    problems = []
    for name in sorted(inner):
        if "/scene" in name:
            scene = _yaml(inner[name])
            request = _yaml(inner[name.replace("/scene", "/request")])
            problems.append(_problem(name.split("/")[1], scene, request, robot))
    return robot, problems


def _yaml(text: bytes) -> Any:
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def _placed(pose: dict[str, Any] | None) -> Array:
    """Pose of the file: position and a quaternion x y z w."""
    if pose is None:
        return np.eye(4)
    return transform(pose["position"], Rotation.from_quat(pose["orientation"]).as_matrix())


def _problem(
    family: str, scene: dict[str, Any], request: dict[str, Any], robot: ArmModel
) -> Problem:
    objects = []
    for item in scene["world"]["collision_objects"]:
        shape = item["primitives"][0]
        size = [float(v) for v in shape["dimensions"]]
        if shape["type"] == "box":
            size = [v / 2 for v in size]
        elif shape["type"] == "cylinder":
            size = [size[1], size[0] / 2, 0.0]
        objects.append(
            SceneObject(
                name=str(item["id"]),
                role="fixed",
                kinds=(KINDS[shape["type"]],),
                size_m=frozen([(*size, 0.0, 0.0)[:3]]),
                T_object_shape=frozen(_placed(item["primitive_poses"][0])[None]),
                T_world_object=frozen(_placed(item.get("pose"))),
            )
        )
    joints = robot.chain.joint_names
    state = request["start_state"]["joint_state"]
    start = dict(zip(state["name"], state["position"], strict=True))
    goal = {
        c["joint_name"]: c["position"] for c in request["goal_constraints"][0]["joint_constraints"]
    }
    return Problem(
        family=family.removesuffix("_ur5"),
        world=make_world(tuple(objects)),
        start_rad=np.array([start[j] for j in joints], dtype=np.float64),
        goal_rad=np.array([goal[j] for j in joints], dtype=np.float64),
    )


def _numbers(text: str | None) -> list[float]:
    return [float(v) for v in (text or "0 0 0").split()]


def _origin(item: ElementTree.Element | None) -> Array:
    if item is None:
        return np.eye(4)
    rotation = Rotation.from_euler("xyz", _numbers(item.get("rpy"))).as_matrix()
    return transform(_numbers(item.get("xyz")), rotation)


def _tree(text: bytes) -> ElementTree.Element:
    if b"<!DOCTYPE" in text or b"<!ENTITY" in text:
        raise ValueError("robot description: entities are not allowed")
    return ElementTree.fromstring(text)


def ur5(urdf: bytes, srdf: bytes) -> ArmModel:
    """Make the arm model of the 40-sphere UR5 with a gripper; what is fixed joins its link."""
    robot = _tree(urdf)
    joints = robot.findall("joint")
    links = {item.get("name"): item for item in robot.findall("link")}
    ends = [
        (j.find("parent").get("link"), j.find("child").get("link"), j)  # type: ignore[union-attr]
        for j in joints
    ]
    root = (set(links) - {child for _, child, _ in ends}).pop()
    at, todo, moving = {root: (0, np.eye(4))}, [root], []
    while todo:
        parent = todo.pop(0)
        for _, child, joint in (e for e in ends if e[0] == parent):
            link, T = at[parent]
            T = T @ _origin(joint.find("origin"))
            if joint.get("type") == "fixed":
                at[child] = (link, T)
            else:
                moving.append((joint, T))
                at[child] = (len(moving), np.eye(4))
            todo.append(child)
    rows = [
        (at[name][0], (at[name][1] @ _origin(c.find("origin")))[:3, 3], radius, name)
        for name, item in links.items()
        for c in item.findall("collision")
        for radius in [float(c.find("geometry/sphere").get("radius"))]  # type: ignore[union-attr,arg-type]
    ]
    rows.sort(key=lambda row: row[0])
    # The SRDF forgets the sensor, which is bolted to the wrist.
    allowed: set[frozenset[str | None]] = {frozenset(("wrist_2_link", "fts_robotside"))}
    allowed |= {frozenset(e[:2]) for e in ends}
    allowed |= {
        frozenset((d.get("link1"), d.get("link2")))
        for d in _tree(srdf).findall("disable_collisions")
    }
    pairs = np.array(
        [
            (i, k)
            for i, k in itertools.combinations(range(len(rows)), 2)
            if rows[i][0] != rows[k][0] and frozenset((rows[i][3], rows[k][3])) not in allowed
        ],
        dtype=np.int64,
    )
    spheres = Spheres(
        link=np.array([row[0] for row in rows], dtype=np.int64),
        centre_m=frozen([row[1] for row in rows]),
        radius_m=frozen([row[2] for row in rows]),
        group=np.full(len(rows), GROUP_ARM, dtype=np.int64),
        name=tuple(f"{row[3]}.{i}" for i, row in enumerate(rows)),
    )
    chain = Chain(
        joint_names=tuple(str(j.get("name")) for j, _ in moving),
        T_link_joint=frozen([T for _, T in moving]),
        axis=frozen([_numbers(j.find("axis").get("xyz")) for j, _ in moving]),  # type: ignore[union-attr]
        T_link_flange=frozen(np.eye(4)),
    )
    limits = [j.find("limit") for j, _ in moving]
    low, high, speed, torque = (
        frozen([float(v.get(key)) for v in limits])  # type: ignore[union-attr,arg-type]
        for key in ("lower", "upper", "velocity", "effort")
    )
    return ArmModel(
        name="ur5",
        chain=chain,
        nominal=chain,
        ik="ur",
        limits=JointLimits(q_min_rad=low, q_max_rad=high, dq_max_rad_s=speed, tau_max_nm=torque),
        spheres=spheres,
        self_pairs=pairs,
        T_flange_tool=frozen(np.eye(4)),
        tool_mass_kg=0.0,
        sensed_mass_kg=0.0,
        tool_com_m=frozen(np.zeros(3)),
        gripper=None,
        arrays=arm_arrays(chain, np.eye(4), spheres, pairs),
    )
