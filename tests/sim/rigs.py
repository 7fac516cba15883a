"""Small physics set-ups for the tests of robots: an arm alone, or over a part on a table."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from brain.geometry import Array, invert, transform
from brain.ik import nearest, solve, within_limits
from hardware.arm_model import Assembly, arm_model, assemble
from hardware.description import Gripper
from hardware.shapes import pose_deg
from sim.robots import PAD_SOLIMP, PAD_SOLREF, ROLLING_M, TORSION_M, add_arm, open_fingers

WRIST_CAMERA = [("wrist", "d435i", pose_deg((-0.0325, -0.1, 0.012), (-10.0, 0.0, 0.0)))]


@dataclass
class Rig:
    """One arm called "arm" in its own little world."""

    assembly: Assembly
    model: mujoco.MjModel
    data: mujoco.MjData
    qpos: Array
    dof: Array
    ctrl: Array
    ahead_s: Array

    def put(self, q_rad) -> None:
        """Place the arm, at rest, servos on target, fingers open."""
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[self.qpos], self.data.ctrl[self.ctrl] = q_rad, q_rad
        if self.assembly.gripper is not None:
            for name, value in open_fingers(self.assembly.gripper.tool, 1.0).items():
                self.data.qpos[self.model.joint(f"arm/{name}").qposadr[0]] = value
        mujoco.mj_forward(self.model, self.data)

    def step(self, q_rad, dq_rad_s, seconds: float) -> None:
        """Hold a target with velocity feed-forward for some time."""
        self.data.ctrl[self.ctrl] = q_rad + self.ahead_s * dq_rad_s
        for _ in range(round(seconds / self.model.opt.timestep)):
            mujoco.mj_step(self.model, self.data)

    @property
    def q_rad(self) -> Array:
        return np.array(self.data.qpos[self.qpos])


def options(spec: mujoco.MjSpec, timestep_s: float) -> None:
    spec.compiler.degree = False
    spec.option.timestep = timestep_s
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    spec.option.impratio = 10.0


def rig(
    robot: str,
    tools: list[str],
    timestep_s: float = 0.002,
    payload_kg: float = 0.0,
    part: dict | None = None,
    cameras=(),
) -> Rig:
    """Build an arm; a payload hangs at the tool, a part stands at `at_m` on a table."""
    spec = mujoco.MjSpec()
    options(spec, timestep_s)
    assembly = assemble(robot, tools, cameras=cameras)
    add_arm(spec, "arm", assembly, np.eye(4))
    if payload_kg > 0.0:
        gripper = assembly.gripper.tool
        lump = spec.body(f"arm/{gripper.body.name}").add_body(name="payload", pos=gripper.tool_m)
        lump.add_geom(
            type=mujoco.mjtGeom.mjGEOM_SPHERE,
            size=(0.03, 0, 0),
            mass=payload_kg,
            contype=0,
            conaffinity=0,
        )
    if part is not None:
        x, y, z = part["at_m"]
        spec.worldbody.add_geom(
            type=mujoco.mjtGeom.mjGEOM_BOX,
            size=(0.2, 0.2, 0.02),
            pos=(x, y, z - part["size"][2] - 0.02),
            friction=(0.7, TORSION_M, ROLLING_M),
            condim=4,
        )
        body = spec.worldbody.add_body(name="part", pos=(x, y, z))
        body.add_freejoint()
        geom = body.add_geom(
            type=part.get("type", mujoco.mjtGeom.mjGEOM_BOX),
            size=part["size"],
            mass=part["mass_kg"],
            friction=(0.8, TORSION_M, ROLLING_M),
            condim=4,
        )
        geom.solref, geom.solimp[:] = PAD_SOLREF, PAD_SOLIMP
    model = spec.compile()
    joints = [model.joint(f"arm/{joint.name}") for joint in assembly.arm.joints]
    servos = [joint.servo for joint in assembly.arm.joints]
    return Rig(
        assembly=assembly,
        model=model,
        data=mujoco.MjData(model),
        qpos=np.array([j.qposadr[0] for j in joints]),
        dof=np.array([j.dofadr[0] for j in joints]),
        ctrl=np.array([model.actuator(j.name).id for j in joints]),
        ahead_s=np.array([s.kd_nm_s_rad / s.kp_nm_rad for s in servos]),
    )


def above(assembly: Assembly, at_m, near_deg) -> Array:
    """Joints that put the tool at a point, pointing down, near some joints."""
    model, reference = arm_model(assembly), np.radians(np.array(near_deg, dtype=float))
    T = transform(at_m, np.diag((1.0, -1.0, -1.0)))
    limits = model.limits
    found = within_limits(solve(model, T, reference), limits.q_min_rad, limits.q_max_rad)
    q = nearest(found, reference)
    assert q is not None, f"{at_m} is out of reach"
    return q


class Fingers:
    """Leads a rig's gripper as `sim/robots.py` says: a ramp, clipped by the force."""

    def __init__(self, rig: Rig) -> None:
        self.rig, tool = rig, rig.assembly.gripper.tool
        assert isinstance(tool, Gripper)
        self.kp = tool.servo.kp_n_m
        self.actuator = rig.model.actuator("arm/grip").id
        self.tendon = rig.model.tendon("arm/grip").id
        self.closed_m = rig.model.actuator_biasprm[self.actuator, 0] / self.kp
        self.led_m = tool.opening_max_m

    @property
    def opening_m(self) -> float:
        return float(self.rig.data.ten_length[self.tendon] - self.closed_m)

    @property
    def force_n(self) -> float:
        return float(self.rig.data.actuator_force[self.actuator])

    def run(self, target_m: float, force_n: float, speed_m_s: float, seconds: float, move) -> None:
        """Step for some time; `move(t)` gives the arm's joints and speeds."""
        dt = self.rig.model.opt.timestep
        for k in range(round(seconds / dt)):
            step = speed_m_s * dt
            self.led_m += float(np.clip(target_m - self.led_m, -step, step))
            give, opening = force_n / self.kp, self.opening_m
            ctrl = float(np.clip(self.led_m, opening - give, opening + give))
            self.rig.data.ctrl[self.actuator] = ctrl
            q, dq = move((k + 1) * dt)
            self.rig.step(q, dq, dt)


def in_tool(rig: Rig, body: str) -> Array:
    """Pose of a body in the tool frame, (4, 4)."""
    site, other = rig.data.site("arm/tool"), rig.data.body(body)
    T_world_tool = transform(site.xpos, site.xmat.reshape(3, 3))
    return invert(T_world_tool) @ transform(other.xpos, other.xmat.reshape(3, 3))
