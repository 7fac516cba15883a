"""Robots as MuJoCo bodies, from the same descriptions as the brain's model.

Names: `<arm>/<link>` for bodies, `<arm>/<joint>` for joints and their actuators, `<arm>/flange` and
`<arm>/tool` for sites, `<arm>/force` and `<arm>/torque` for the wrist sensor, `<arm>/grip` for the
gripper's tendon and actuator, a camera's own name for cameras.

Arm servos: torque = kp (ctrl - q) - kd dq, clipped with gravity compensation at the maker's joint
torque. With velocity feed-forward, ctrl = q_cmd + (kd / kp) dq_cmd, the damping brakes only what
departs from the command, so kd can be high without lag. mujoco_menagerie's gains (UR5e kp 2000,
kd 400; Z1 kp 1000, kd 100) are not used: without feed-forward they trail by kd / kp = 0.1 to 0.2 s
of motion, and 3 kg at 0.9 m that nobody declared bend kp 2000 N m/rad by 13 mrad; a UR arm of
0.03 mm repeatability does neither. With ours 1 to 3 mrad are left at 1 rad/s and 5 rad/s^2, and a
2 ms step is far from unstable, payload or not (kp dt^2 < inertia + armature; tests).

Wrist sensor: MuJoCo's force sensor gives the force that the arm exerts on what hangs on the site's
body, in the site's frame: at rest the weight, pointing up. A device reports the opposite. The site
sits on a body of its own beyond the puck, so that the puck and the last link do not weigh.

Gripper servo, on a straight tendon between the two grip points: force = kp (ctrl - opening) - kd
d(opening)/dt, where ctrl is an opening in m. A force limit F and a speed v are set through ctrl
alone, so that nothing in the model changes at run time: ramp the wanted opening at v and write
ctrl = clip(ramp, opening - F / kp, opening + F / kp). On a part that stops the fingers ctrl rests
at opening - F / kp and the fingers press with F, if the wanted opening is at least F / kp less.
"""

from __future__ import annotations

import math

import mujoco
import numpy as np

from brain.geometry import Array, invert, quat_from_matrix, transform
from brain.world import BOX, CAPSULE, CYLINDER, PLANE, SPHERE
from hardware.arm_model import Assembly, MountedCamera
from hardware.description import Camera, Finger, Gripper, Joint, Sensor
from hardware.fingers import grip_distance_m
from hardware.parts import Barrel, Body
from hardware.shapes import Bounded, Solid, solid
from sim.look import GROUP_COLLISION, add_look, add_materials

GEOM = {
    SPHERE: mujoco.mjtGeom.mjGEOM_SPHERE,
    CAPSULE: mujoco.mjtGeom.mjGEOM_CAPSULE,
    CYLINDER: mujoco.mjtGeom.mjGEOM_CYLINDER,
    BOX: mujoco.mjtGeom.mjGEOM_BOX,
    PLANE: mujoco.mjtGeom.mjGEOM_PLANE,
}
# Stiff contact, soft enough for a 2 ms step. Source: google-deepmind/mujoco_menagerie
# robotiq_2f85/2f85.xml, pads and joint equalities.
PAD_SOLREF, PAD_SOLIMP = (0.004, 1.0), (0.95, 0.99, 0.001, 0.5, 2.0)
COUPLING_SOLREF = (0.005, 1.0)
TORSION_M, ROLLING_M = 0.005, 0.0001
"""Torsional and rolling friction; the first is the size of a pad's contact patch."""
PAD = "/pad/"
"""In the names of geoms that are meant to touch parts."""
CONDIM = 4
"""Contacts resist sliding and twisting."""
OPTICAL_TO_MUJOCO = transform(rotation=np.diag((1.0, -1.0, -1.0)))
"""MuJoCo's cameras look along -z with y up."""


def add_arm(
    spec: mujoco.MjSpec, name: str, assembly: Assembly, T_world_base: Array, look: bool = True
) -> None:
    """Add an arm with its tools and cameras to a scene.

    Without `look` links get no visible geoms (see `sim/menagerie.py`); tools always do.
    """
    arm = assembly.arm
    add_materials(spec, arm.materials, f"{name}/{arm.name}")
    groups: dict[str, list[str]] = {}
    body = _add_body(spec, spec.worldbody, name, arm.base, T_world_base)
    groups[arm.base.name] = [body.name]
    if look:
        add_look(spec, body, arm.base.look, f"{name}/{arm.name}")
    for i, joint in enumerate(arm.joints):
        T_link_dh = None if joint.dh is None else joint.dh.after_joint()
        body = _add_body(spec, body, name, joint.link, assembly.chain.T_link_joint[i], T_link_dh)
        _add_joint(spec, body, name, joint, assembly.chain.axis[i])
        groups[joint.link.name] = [body.name]
        if look:
            add_look(spec, body, joint.link.look, f"{name}/{arm.name}")
    _add_site(body, f"{name}/flange", assembly.chain.T_link_flange)
    _add_site(body, f"{name}/tool", assembly.chain.T_link_flange @ assembly.T_flange_tool)
    groups["tool"] = _add_tools(spec, body, name, assembly)
    _exclude(spec, groups, arm.self_collision)


def _add_body(
    spec: mujoco.MjSpec,
    parent: mujoco.MjsBody,
    prefix: str,
    body: Body,
    T_parent_body: Array,
    T_body_inertia: Array | None = None,
    pad_friction: float | None = None,
) -> mujoco.MjsBody:
    """Add a body with its mass and collision shapes, its weight carried by the joints."""
    added = parent.add_body(
        name=f"{prefix}/{body.name}",
        pos=T_parent_body[:3, 3],
        quat=quat_from_matrix(T_parent_body[:3, :3]),
        gravcomp=1.0,
    )
    T = np.eye(4) if T_body_inertia is None or body.frame == "link" else T_body_inertia
    inertia = T[:3, :3] @ body.inertia_kg_m2.matrix() @ T[:3, :3].T
    added.explicitinertial = True
    added.mass = body.mass_kg
    added.ipos = T[:3, :3] @ np.array(body.com_m) + T[:3, 3]
    added.fullinertia = inertia[(0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)]
    for shape in body.collision:
        add_collision(added, shape)
    for i, shape in enumerate(body.pads):
        geom = add_collision(added, shape)
        geom.name = f"{added.name}{PAD}{i}"
        geom.friction = (pad_friction or 1.0, TORSION_M, ROLLING_M)
        geom.solref, geom.solimp[:] = PAD_SOLREF, PAD_SOLIMP
    return added


def add_collision(body: mujoco.MjsBody, shape: Bounded) -> mujoco.MjsGeom:
    """Add an invisible geom that collides."""
    return add_solid(body, solid(shape), group=GROUP_COLLISION, mass=0.0, rgba=(0.2, 0.7, 1.0, 0.4))


def add_solid(body: mujoco.MjsBody, item: Solid, **attributes: object) -> mujoco.MjsGeom:
    """Add a geom of a shape in MuJoCo's form."""
    return body.add_geom(
        type=GEOM[item.kind],
        size=item.size_m,
        pos=item.T_owner_shape[:3, 3],
        quat=quat_from_matrix(item.T_owner_shape[:3, :3]),
        condim=CONDIM,
        **attributes,
    )


def _add_joint(
    spec: mujoco.MjSpec, body: mujoco.MjsBody, prefix: str, joint: Joint, axis: Array
) -> None:
    """Add a joint with its servo."""
    servo, name = joint.servo, f"{prefix}/{joint.name}"
    body.add_joint(
        name=name,
        type=mujoco.mjtJoint.mjJNT_HINGE,
        axis=axis,
        range=np.radians((joint.q_min_deg, joint.q_max_deg)),
        limited=mujoco.mjtLimited.mjLIMITED_TRUE,
        armature=servo.armature_kg_m2,
        damping=(servo.damping_nm_s_rad, 0.0, 0.0),
        frictionloss=servo.friction_nm,
        actgravcomp=True,
        actfrcrange=(-joint.tau_max_nm, joint.tau_max_nm),
        actfrclimited=mujoco.mjtLimited.mjLIMITED_TRUE,
    )
    add_servo(
        spec,
        name,
        mujoco.mjtTrn.mjTRN_JOINT,
        kp=servo.kp_nm_rad,
        kd=servo.kd_nm_s_rad,
    )


def add_servo(
    spec: mujoco.MjSpec, name: str, transmission: mujoco.mjtTrn, kp: float, kd: float
) -> mujoco.MjsActuator:
    """Add force = kp (ctrl - length) - kd velocity on a joint or tendon of the same name."""
    actuator = spec.add_actuator(name=name, target=name, trntype=transmission)
    actuator.gaintype = mujoco.mjtGain.mjGAIN_FIXED
    actuator.biastype = mujoco.mjtBias.mjBIAS_AFFINE
    actuator.gainprm[0] = kp
    actuator.biasprm[:3] = (0.0, -kp, -kd)
    return actuator


def _add_site(body: mujoco.MjsBody, name: str, T_body_site: Array) -> None:
    body.add_site(
        name=name,
        pos=T_body_site[:3, 3],
        quat=quat_from_matrix(T_body_site[:3, :3]),
        size=(0.002, 0.002, 0.002),
        group=5,
    )


# ---------------------------------------------------------------- what is on the flange


def _add_tools(
    spec: mujoco.MjSpec, last: mujoco.MjsBody, name: str, assembly: Assembly
) -> list[str]:
    """Add tool stack and cameras; return the names of all bodies."""
    bodies: list[str] = []
    parent, T_parent_mount = last, assembly.chain.T_link_flange
    for item in assembly.tools:
        tool = item.tool
        prefix = f"{name}/{tool.name}"
        add_materials(spec, tool.materials, prefix)
        friction = tool.pad_friction if isinstance(tool, Gripper) else None
        body = _add_body(spec, parent, name, tool.body, T_parent_mount, pad_friction=friction)
        add_look(spec, body, tool.body.look, prefix)
        bodies.append(body.name)
        if isinstance(tool, Sensor):
            parent, T_parent_mount = _add_sensor(spec, body, name, tool), np.eye(4)
        else:
            bodies += _add_fingers(spec, body, name, tool)
    for mounted in assembly.cameras:
        T = mounted.T_flange_optical @ invert(mounted.camera.T_body_optical())
        T = assembly.chain.T_link_flange @ T
        body = add_camera(spec, last, mounted.name, mounted.camera, T)
        body.gravcomp = 1.0
        _add_bracket(spec, last, mounted, assembly.chain.T_link_flange)
        bodies.append(body.name)
    return bodies


def _add_bracket(
    spec: mujoco.MjSpec, last: mujoco.MjsBody, mounted: MountedCamera, T_link_flange: Array
) -> None:
    """Draw what holds a camera on the wrist: a clamp round the flange and an arm to the camera."""
    T_flange_body = mounted.T_flange_optical @ invert(mounted.camera.T_body_optical())
    behind = T_flange_body[:3, 3] - 0.014 * T_flange_body[:3, 2]
    aside = behind * (1.0, 1.0, 0.0)
    start = 0.030 * aside / max(float(np.linalg.norm(aside)), 1e-6) + (0.0, 0.0, -0.0055)
    frame = last.add_frame(pos=T_link_flange[:3, 3], quat=quat_from_matrix(T_link_flange[:3, :3]))
    clamp = Barrel(
        look="barrel",
        from_m=(0.0, 0.0, -0.0105),
        to_m=(0.0, 0.0, -0.0005),
        radius_m=0.042,
        edge_m=0.001,
        material="ring",
    )
    bar = Barrel(
        look="barrel",
        from_m=(float(start[0]), float(start[1]), float(start[2])),
        to_m=(float(behind[0]), float(behind[1]), float(behind[2])),
        radius_m=0.006,
        material="ring",
    )
    add_look(spec, last, (clamp, bar), f"{mounted.name}/{mounted.camera.name}", frame)


def _add_sensor(
    spec: mujoco.MjSpec, puck: mujoco.MjsBody, name: str, sensor: Sensor
) -> mujoco.MjsBody:
    """Add the tool side of a force and torque sensor, a body without mass; return it."""
    plate = puck.add_body(name=f"{puck.name}/plate", pos=(0.0, 0.0, sensor.height_m))
    _add_site(plate, f"{name}/ft", np.eye(4))
    for kind, what in (
        (mujoco.mjtSensor.mjSENS_FORCE, "force"),
        (mujoco.mjtSensor.mjSENS_TORQUE, "torque"),
    ):
        spec.add_sensor(
            name=f"{name}/{what}",
            type=kind,
            objtype=mujoco.mjtObj.mjOBJ_SITE,
            objname=f"{name}/ft",
        )
    return plate


def _add_fingers(
    spec: mujoco.MjSpec, base: mujoco.MjsBody, name: str, gripper: Gripper
) -> list[str]:
    """Add moving fingers, coupled, with the tendon and servo of the opening; return their names."""
    bodies = {gripper.body.name: base}
    for finger in gripper.fingers:
        T = transform(finger.position_m)
        body = _add_body(
            spec,
            bodies[finger.parent],
            name,
            finger.body,
            T,
            pad_friction=gripper.pad_friction,
        )
        add_look(spec, body, finger.body.look, f"{name}/{gripper.name}")
        _add_finger_joint(body, f"{name}/{finger.body.name}", finger)
        bodies[finger.body.name] = body
    first = gripper.fingers[0]
    for finger in gripper.fingers[1:]:
        _couple(spec, name, finger, first)
    tendon = spec.add_tendon(name=f"{name}/grip", group=5, rgba=(0.0, 0.0, 0.0, 0.0))
    for i, point in enumerate(gripper.grip_points):
        site = f"{name}/grip/{i}"
        _add_site(bodies[point.body], site, transform(point.point_m))
        tendon.wrap_site(site)
    kp = gripper.servo.kp_n_m
    actuator = add_servo(
        spec, f"{name}/grip", mujoco.mjtTrn.mjTRN_TENDON, kp, gripper.servo.kd_n_s_m
    )
    actuator.biasprm[0] = kp * grip_distance_m(gripper, 0.0)  # ctrl counts from closed
    actuator.forcerange = (-gripper.force_max_n, gripper.force_max_n)
    actuator.forcelimited = mujoco.mjtLimited.mjLIMITED_TRUE
    return [body.name for key, body in bodies.items() if key != gripper.body.name]


def finger_travel(finger: Finger) -> tuple[float, float]:
    """Joint position closed and open, in m or rad."""
    if finger.slide is not None:
        return finger.slide.closed_m, finger.slide.open_m
    assert finger.hinge is not None
    return math.radians(finger.hinge.closed_deg), math.radians(finger.hinge.open_deg)


def _add_finger_joint(body: mujoco.MjsBody, name: str, finger: Finger) -> None:
    closed, opened = finger_travel(finger)
    joint = body.add_joint(name=name, limited=mujoco.mjtLimited.mjLIMITED_TRUE)
    joint.range = (min(closed, opened), max(closed, opened))
    joint.solref_limit = COUPLING_SOLREF
    if finger.slide is not None:
        joint.type = mujoco.mjtJoint.mjJNT_SLIDE
        joint.axis, joint.armature = finger.slide.axis, finger.slide.armature_kg
        joint.damping[0] = finger.slide.damping_n_s_m
    elif finger.hinge is not None:
        joint.type = mujoco.mjtJoint.mjJNT_HINGE
        joint.axis, joint.armature = finger.hinge.axis, finger.hinge.armature_kg_m2
        joint.damping[0] = finger.hinge.damping_nm_s_rad


def _couple(spec: mujoco.MjSpec, name: str, finger: Finger, first: Finger) -> None:
    """Make a finger joint follow the first one: both go from closed to open together."""
    closed, opened = finger_travel(finger)
    closed_1, opened_1 = finger_travel(first)
    ratio = (opened - closed) / (opened_1 - closed_1)
    equality = spec.add_equality(
        type=mujoco.mjtEq.mjEQ_JOINT,
        objtype=mujoco.mjtObj.mjOBJ_JOINT,
        name1=f"{name}/{finger.body.name}",
        name2=f"{name}/{first.body.name}",
        solref=COUPLING_SOLREF,
    )
    equality.data[:5] = (closed - ratio * closed_1, ratio, 0.0, 0.0, 0.0)


def add_camera(
    spec: mujoco.MjSpec, parent: mujoco.MjsBody, name: str, camera: Camera, T_parent_body: Array
) -> mujoco.MjsBody:
    """Add a camera's body, its look and the camera itself."""
    prefix = f"{name}/{camera.name}"
    add_materials(spec, camera.materials, prefix)
    body = _add_body(spec, parent, name, camera.body, T_parent_body)
    body.gravcomp = 0.0
    add_look(spec, body, camera.body.look, prefix)
    T = camera.T_body_optical() @ OPTICAL_TO_MUJOCO
    body.add_camera(
        name=name,
        pos=T[:3, 3],
        quat=quat_from_matrix(T[:3, :3]),
        fovy=fovy_deg(camera),
        resolution=(camera.width_px, camera.height_px),
    )
    return body


def fovy_deg(camera: Camera) -> float:
    """Vertical field of view in degrees of a pinhole with that focal length."""
    return math.degrees(2.0 * math.atan(0.5 * camera.height_px / camera.focal_px))


def open_fingers(gripper: Gripper, share: float) -> dict[str, float]:
    """Joint positions in m or rad by finger body, from closed (share 0) to open (share 1)."""
    travel = {f.body.name: finger_travel(f) for f in gripper.fingers}
    return {name: a + share * (b - a) for name, (a, b) in travel.items()}


def _exclude(
    spec: mujoco.MjSpec, groups: dict[str, list[str]], pairs: tuple[tuple[str, str], ...]
) -> None:
    """Let only those bodies of an arm collide that the description lists."""
    allowed = {frozenset(pair) for pair in pairs}
    flat = [(group, body) for group, bodies in groups.items() for body in bodies]
    for i, (group, body) in enumerate(flat):
        for other_group, other in flat[i + 1 :]:
            if frozenset((group, other_group)) not in allowed:
                spec.add_exclude(bodyname1=body, bodyname2=other)
