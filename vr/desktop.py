"""The seat at a window: the twin in a picture, the gizmo on the tool, the panel, mouse and keys.

    seat = DesktopSeat(model, cell, qpos_start, link, WallClock(), tasks=("pick_place",))
    seat.run()

One `step` is one frame. The link is served by a thread of its own (`vr/operator.py`), so that a
slow frame costs no sample; all else happens in the frame.
"""

from __future__ import annotations

from collections.abc import Callable

import glfw
import mujoco
import numpy as np
from imgui_bundle.imguizmo import im_guizmo

from brain.cell import CellArm, CellModel
from brain.errors import ConfigError, LinkError
from brain.geometry import Array, invert, quat_from_matrix
from brain.kinematics import tool_pose
from brain.types import NS_PER_MS, NS_PER_S, Goal, Manner, Mode
from hardware.api import Clock
from hardware.seat_link import Connection, SeatLink
from hardware.status import ArmStatus, Status
from vr import style
from vr.acts import KEYS, Act, CommitHold, Situation, why_not
from vr.camera_view import OrbitView, Rect
from vr.cell_view import GIZMO_MODES, CellView, default_view
from vr.gizmo import joints_for, was_dragged
from vr.hand import REST, Drag, lead
from vr.layout import Layout, layout
from vr.legend import draw_help, draw_legend, draw_veil
from vr.operator import Operator, Wish
from vr.panel import MANNER_WORDS, Moment, Pressed, draw_acts, draw_top
from vr.pictures import Pictures, PictureWall
from vr.readings import draw_readings
from vr.render import CellPicture
from vr.timeline import Timeline, draw_timeline
from vr.widgets import Ui
from vr.window import Window

SIZE_PX = (1440, 900)
FRAME_NS, SOFTWARE_FRAME_NS = NS_PER_S // 60, NS_PER_S // 30
"""A frame takes at least so long; where a processor draws, the cell needs it too."""
IDLE_AFTER_NS, IDLE_FRAME_NS = NS_PER_S, 100 * NS_PER_MS
PICTURE_NS = 100 * NS_PER_MS
"""Camera pictures are looked at ten times a second."""
TROUBLE_NS = 8 * NS_PER_S
PRESSED: dict[int, Act] = {
    glfw.KEY_ESCAPE if KEYS[act] == "ESC" else ord(KEYS[act]): act
    for act in Act
    if act not in (Act.CLUTCH, Act.STOP)  # one is held, the other does not wait for a frame
}
"""By GLFW's number of the key, which is a letter's own."""


class DesktopSeat:
    """A window to drive a cell from."""

    def __init__(
        self,
        model: mujoco.MjModel,
        cell: CellModel,
        qpos_start: Array,
        link: SeatLink,
        clock: Clock,
        *,
        tasks: tuple[str, ...] = (),
        view: OrbitView | None = None,
        pictures: Callable[[], Pictures] | None = None,
        watch: Callable[[], bool] | None = None,
        size: tuple[int, int] = SIZE_PX,
    ) -> None:
        """Open the window and sit down at the seat's end of a link, which it then owns.

        `model` is the cell compiled, `qpos_start` its first positions, fingers open. `pictures`
        gives the newest camera pictures by name. While `watch` says that somebody else drives (a
        script), the window sends no hand and offers nothing but stop.

        Raises:
            ConfigError: no display, none that can draw, or the model is not of this cell.
        """
        self.cell = cell
        self.arm = cell.arms[0].name
        self.tasks = tasks
        self.task = tasks[0] if tasks else None
        self.timeline = Timeline()
        self.operator = Operator(link, clock, cell, watch)
        self.frames = 0
        self.frames_hz: float | None = None
        self.samples_hz: float | None = None
        self._clock = clock
        self._pictures = pictures
        self._keys: list[int] = []
        self._window = Window(f"Forearm - {cell.name}", size, self._on_press)
        try:
            self._picture = CellPicture(model, cell, qpos_start, self._window.software)
        except ConfigError:
            self._window.close()
            raise
        self.looking = CellView(cell, self._picture, default_view(model) if view is None else view)
        self.gizmo = self.looking.gizmo
        self.ui = Ui(style.load_fonts(), self._window.scale)
        style.apply_theme(self.ui.scale)
        self._wall = PictureWall()
        self._commit = CommitHold()
        self._pressed = Pressed()
        self._grip: float | None = None
        self._manner: Manner = "normal"
        self._taken: Array | None = None
        self._help = False
        self._stop_down = False
        self._last: Status | None = None
        self._began_ns = clock.now_ns()
        self._counted = (clock.now_ns(), 0, 0)
        self._trouble = ("", 0)
        self._seen: tuple[int, Pictures] = (-NS_PER_S, {})
        self._open = True
        warm(cell)
        self.operator.start()

    # ------------------------------------------------------------- running

    def run(self, finished: Callable[[], bool] | None = None) -> None:
        """Draw frames until the window is closed, or `finished` says so; then close it.

        Raises:
            LinkError: the link's thread has ended.
        """
        try:
            while self.step():
                if finished is not None and finished():
                    break
        finally:
            self.close()

    def close(self) -> None:
        """Let go of the dead-man, leave the link, take the window down."""
        if not self._open:
            return
        self._open = False
        self.operator.close()
        self._wall.free()
        self._picture.free()
        self._window.close()

    def step(self) -> bool:
        """Do one frame; false when the window was closed.

        Raises:
            LinkError: the link's thread has ended.
        """
        if not self._open or self._window.closing:
            return False
        if not self.operator.alive():
            raise LinkError("the seat's link has ended; the cell holds by itself")
        dt_s = self._pace()
        self._listen()
        self._hear(dt_s)
        parts = self.parts()
        self._draw_cell(parts.view)
        self._listen()
        self.looking.show(parts.view, self._window)
        self._window.begin()
        im_guizmo.begin_frame()
        self.looking.handle_mouse(parts.view, self._draw_gizmo(parts.view))
        self._panels(parts)
        self._do()
        self._window.end()
        self._listen()
        self.frames += 1
        return True

    def parts(self) -> Layout:
        """Return where the parts of the window are."""
        return layout(*self._window.size, self._window.scale, self._pictures is not None)

    def _pace(self) -> float:
        """Wait for the frame's turn, hearing events; return the time since the last.

        Where a processor draws and nothing moves, frames come slowly until the person does
        something: the cell needs the processor more than numbers that stand still.
        """
        software = self._window.software
        least_ns = SOFTWARE_FRAME_NS if software else FRAME_NS
        while True:
            now_ns = self._clock.now_ns()
            idle = software and now_ns - self.looking.changed_ns > IDLE_AFTER_NS
            due_ns = self._began_ns + (IDLE_FRAME_NS if idle else least_ns)
            if now_ns >= due_ns:
                break
            self._window.listen_for((due_ns - now_ns) * 1e-9)
            self._tell()
            if self._keys or self._window.mouse_moved():
                self.looking.changed_ns = self._clock.now_ns()
        dt_s, self._began_ns = (now_ns - self._began_ns) * 1e-9, now_ns
        then_ns, frames, samples = self._counted
        if now_ns - then_ns > NS_PER_S:
            span_s = (now_ns - then_ns) * 1e-9
            self.frames_hz = (self.frames - frames) / span_s
            self.samples_hz = (self.operator.samples - samples) / span_s
            self._counted = (now_ns, self.frames, self.operator.samples)
        self._window.refresh()
        if self.ui.scale != self._window.scale:
            self.ui.scale = self._window.scale
            style.apply_theme(self.ui.scale)
        return dt_s

    # ------------------------------------------------------------- keys, mouse, dead-man

    def _on_press(self, key: int) -> None:
        """Take a key that went down; stop does not wait for the frame."""
        if key == glfw.KEY_X:
            self.operator.stop()
        else:
            self._keys.append(key)

    def _listen(self) -> None:
        self._window.listen()
        self._tell()

    def _tell(self) -> None:
        """Say what the person does now: dead-man, gripper, where the gizmo is."""
        held = self._window.holds(glfw.KEY_SPACE) or self._pressed.clutch_held
        drag = None
        if self._taken is not None:
            drag = Drag(T_world_from=self._taken, T_world_to=self.gizmo.at(self._taken))
        self.operator.wish(
            Wish(
                seen_ns=self._clock.now_ns(),
                pressed=held and self._window.attended,
                arm=self.arm,
                grip=self._grip,
                manner=self._manner,
                drag=drag,
            )
        )

    def _do(self) -> None:
        """Do what keys and buttons of this frame ask for, where it is possible."""
        pressed, now = self._pressed, self._situation()
        if pressed.stop and not self._stop_down:
            self.operator.stop()
        self._stop_down = pressed.stop
        acts = list(pressed.acts)
        keys, self._keys = self._keys, []
        for key in keys:
            if key == glfw.KEY_ESCAPE and self._help:
                self._help = False
            elif key in PRESSED:
                acts.append(PRESSED[key])
            else:
                self._other_key(key, now)
        for act in acts:
            if not why_not(act, now):
                self._act(act)
        if pressed.axes:
            self.gizmo.local = not self.gizmo.local
        if pressed.manner:
            self._manner = next_manner(self._manner)
        if pressed.help:
            self._help = not self._help
        self.task = pressed.task or self.task
        self._choose(pressed.arm or self.arm)
        enter = self._window.holds(glfw.KEY_ENTER) or self._window.holds(glfw.KEY_KP_ENTER)
        possible = not why_not(Act.COMMIT, now)
        if self._commit.look(enter or pressed.commit_held, possible, self._clock.now_ns()):
            status = self.operator.status
            if status is not None and status.digest is not None:
                self.operator.act("commit", digest=status.digest)

    def _other_key(self, key: int, now: Situation) -> None:
        if key == glfw.KEY_F1:
            self._help = not self._help
        elif key == glfw.KEY_L:
            self.gizmo.local = not self.gizmo.local
        elif key == glfw.KEY_M:
            self._manner = next_manner(self._manner)
        elif key == glfw.KEY_TAB and now.mode is not Mode.TELEOP:
            names = [a.name for a in self.cell.arms]
            self._choose(names[(names.index(self.arm) + 1) % len(names)])
        elif glfw.KEY_1 <= key <= glfw.KEY_4:
            arm = self.arm_status()
            T = None if arm is None else arm.T_world_tool
            tool = np.array(self.looking.home.look_at_m) if T is None else T[:3, 3]
            self.looking.preset(1 + key - glfw.KEY_1, tool)

    def _choose(self, arm: str) -> None:
        if arm != self.arm:
            self.arm = arm
            self.gizmo.reset()

    def _act(self, act: Act) -> None:
        operator, arm = self.operator, self._cell_arm()
        operator.trouble = ""
        if act is Act.REHEARSE_TASK:
            operator.act("rehearse", Goal(kind="task", task=self.task))
        elif act is Act.REHEARSE_HERE and self.gizmo.T_world_target is not None:
            T_base_tool = invert(np.array(arm.T_world_base)) @ self.gizmo.T_world_target
            operator.act("rehearse", Goal(kind="pose", arm=arm.name, T_base_tool=T_base_tool))
        elif act is Act.REHEARSE_HOME:
            operator.act("rehearse", Goal(kind="home", arm=arm.name))
        elif act is Act.COMMIT:
            self._commit.prime(self._clock.now_ns())
        elif act is Act.CANCEL:
            self._commit.drop()
            if operator.mode is Mode.HOLD:
                self.gizmo.reset()
            else:
                operator.act("cancel")
        elif act is Act.ACKNOWLEDGE:
            operator.act("acknowledge")
        elif act is Act.DISARM:
            operator.act("disarm")
        elif act is Act.GRIPPER:
            self._grip = toggled(self._grip, arm, self.arm_status())

    # ------------------------------------------------------------- what the cell says

    def arm_status(self) -> ArmStatus | None:
        """Return what is newest of the chosen arm."""
        status = self.operator.status
        if status is None:
            return None
        return next((a for a in status.arms if a.name == self.arm), None)

    def _hear(self, dt_s: float) -> None:
        """Take over the newest status and rehearsal."""
        status = self.operator.status
        if status is not None and status is not self._last:
            before = None if self._last is None else self._last.mode
            self._last = status
            self._picture.measured(status)
            self._heed_mode(before, status)
        self.timeline.update(self.operator.preview, status, dt_s)
        self.looking.rehearsed(self.timeline.preview)

    def _heed_mode(self, before: Mode | None, status: Status) -> None:
        """Put gizmo and gripper right when the mode has changed."""
        if status.mode is Mode.TELEOP:
            arm = self.arm_status()
            if self._taken is None and arm is not None and arm.T_world_target is not None:
                self._taken = np.array(arm.T_world_target)
                self.gizmo.T_world_target = self._taken
            return
        self._taken, self._grip = None, None
        goal_stays = (Mode.HOLD, Mode.REHEARSING, Mode.PREVIEW)
        if before is not status.mode and not (before in goal_stays and status.mode in goal_stays):
            self.gizmo.reset()

    def _cell_arm(self) -> CellArm:
        return self.cell.arms[self.cell.arm_index(self.arm)]

    def _situation(self) -> Situation:
        operator, arm = self.operator, self.arm_status()
        shown = self.timeline.preview
        T_world_tool = None if arm is None else arm.T_world_tool
        return Situation(
            connection=operator.connection,
            mode=operator.mode,
            onlooking=operator.onlooking,
            heard=operator.holds_cell,
            pressed=operator.engaged,
            has_gripper=self._cell_arm().model.gripper is not None,
            dragged=was_dragged(self.gizmo.T_world_target, T_world_tool),
            in_reach=self.looking.reaching(self.arm) is not None,
            task=self.task,
            verdict=None if shown is None else str(shown.verdict.get("kind", "")),
        )

    # ------------------------------------------------------------- what is drawn

    def _draw_cell(self, rect: Rect) -> None:
        mode, arm = self.operator.mode, self.arm_status()
        ratio = self._window.pixels_per_unit
        pixels = max(round(rect.width * ratio), 1), max(round(rect.height * ratio), 1)
        lost = mode in GIZMO_MODES and self.looking.reaching(self.arm) is None
        # No long frame while the dead-man is held: the window has to go on looking.
        may_take_long = not self.operator.engaged
        ghosts = self.looking.ghosts(mode, self.timeline, arm)
        self.looking.draw(pixels, ghosts, lost, may_take_long, self._clock.now_ns())

    def _draw_gizmo(self, rect: Rect) -> bool:
        """Draw the gizmo where the arm can be told to go; true while the mouse is over it."""
        arm = self.arm_status()
        connected = self.operator.connection is Connection.CONNECTED
        if self.operator.mode not in GIZMO_MODES or not connected or self._help:
            self.gizmo.dragging = False
            return False
        if arm is None or arm.T_world_tool is None:
            return False
        im_guizmo.enable(not self.operator.onlooking)
        return self.gizmo.draw(
            self.looking.view, self._picture.fovy_deg, rect, np.array(arm.T_world_tool)
        )

    def _panels(self, parts: Layout) -> None:
        ui, pressed = self.ui, Pressed()
        now = self._moment()
        draw_top(ui, parts.top, now, pressed)
        with ui.area("side", parts.side, scroll=True):
            draw_acts(ui, now, pressed)
            draw_readings(ui, self.cell, now)
        draw_timeline(ui, parts.timeline, self.timeline, now, self._cell_arm())
        if self._pictures is not None:
            now_ns = self._clock.now_ns()
            if now_ns - self._seen[0] > PICTURE_NS:
                self._seen = (now_ns, self._pictures())
            self._wall.draw(ui, parts.cameras, self._seen[1])
        if self.operator.connection is not Connection.CONNECTED:
            draw_veil(ui, parts.view)
        if self._help:
            self._help = draw_help(ui, parts.view, now.situation)
        else:
            draw_legend(ui, parts.view, self.looking.has_ways, now.situation)
        self._pressed = pressed

    def _moment(self) -> Moment:
        now_ns, operator = self._clock.now_ns(), self.operator
        if operator.trouble != self._trouble[0]:
            self._trouble = (operator.trouble, now_ns)
        round_trip_ns = operator.round_trip_ns
        return Moment(
            status=operator.status,
            situation=self._situation(),
            arm=self.arm,
            arms=tuple(a.name for a in self.cell.arms),
            tasks=self.tasks,
            round_trip_ms=None if round_trip_ns is None else round_trip_ns / NS_PER_MS,
            samples_hz=self.samples_hz,
            frames_hz=self.frames_hz,
            trouble=operator.trouble if now_ns - self._trouble[1] < TROUBLE_NS else "",
            primed=self._commit.primed,
            share=self._commit.share(now_ns),
            local_axes=self.gizmo.local,
            manner=self._manner,
        )


def warm(cell: CellModel) -> None:
    """Compile, or load, what frames and samples will call: later it would freeze the window."""
    for arm in cell.arms:
        T_world_tool = arm.T_world_base @ tool_pose(arm.model, arm.home_q_rad)
        joints_for(arm, T_world_tool, np.array(arm.home_q_rad))
        was_dragged(T_world_tool, T_world_tool)
        quat_from_matrix(T_world_tool[:3, :3].copy())
        lead(REST, T_world_tool, 0.0)


def toggled(grip: float | None, arm: CellArm, now: ArmStatus | None) -> float | None:
    """Return the other of open (0) and closed (1), at first the other of what was measured."""
    if grip is not None:
        return 1.0 - grip
    gripper = arm.model.gripper
    if gripper is None or now is None or now.opening_m is None:
        return None
    return 1.0 if now.opening_m > 0.5 * (gripper.opening_min_m + gripper.opening_max_m) else 0.0


def next_manner(now: Manner) -> Manner:
    """Return the manner of following the hand that comes after this one, round and round."""
    manners = tuple(MANNER_WORDS)
    return manners[(manners.index(now) + 1) % len(manners)]
