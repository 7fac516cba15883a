"""The window under Xvfb, driven with real mouse and key events, at a real lockstep cell."""

import os
import signal
from dataclasses import dataclass

import numpy as np
import pytest

from brain.playback import DONE
from brain.types import Mode
from tests.vr.stage import PATIENCE_S, SCREEN, CellThread, Child, Screen, until
from vr.layout import SIDE_PX, TOP_PX, layout
from vr.style import MODE_COLOUR, STOPPED

pytestmark = [pytest.mark.window, pytest.mark.realtime]


COMPILES_S = 180.0
"""What a fresh machine may take to compile the kernels of planning and rehearsing."""
CAMERA = (200, 30, 180)
"""The colour of all that the stage's camera sees."""


@dataclass
class Stage:
    screen: Screen
    cell: CellThread
    window: Child

    def mode(self, mode: Mode, seconds: float = PATIENCE_S) -> None:
        """Wait until cell and window agree that it is this mode."""
        until(lambda: self.cell.mode is mode, lambda: f"{mode}; cell {self.cell.words()}", seconds)
        until(lambda: self.window.facts.get("mode") == mode, f"window shows {mode}")

    def hold(self) -> None:
        """Bring the cell to HOLD with the dead-man up, from wherever the last test left it."""
        self.screen.do("mousemove", 20, 700, "mouseup", 1, "keyup", "space", "keyup", "Return")
        self.screen.do("windowfocus", self.screen.window())
        self.window.frames(2)
        if self.cell.mode in (Mode.PREVIEW, Mode.REHEARSING):
            self.screen.press("Escape")
            self.mode(Mode.HOLD)
        if self.cell.mode in (Mode.STOPPED, Mode.FAULT):
            self.screen.press("k")
            self.mode(Mode.DISARMED)
        if self.cell.mode is Mode.DISARMED:
            self.squeeze()
        until(lambda: self.cell.mode is Mode.HOLD, lambda: f"hold; cell {self.cell.words()}")
        self.relax()
        self.mode(Mode.HOLD)
        self.screen.press("Escape")
        until(lambda: not self.dragged(), "the gizmo goes back to the tool")

    def dragged(self) -> bool:
        return bool(np.linalg.norm(self.goal_m() - self.tool_m()) > 1e-3)

    def squeeze(self) -> None:
        self.screen.do("keydown", "space")
        until(lambda: self.window.facts["engaged"], "the dead-man counts")
        until(lambda: self.cell.last.state.operator.engaged, "the cell hears it")

    def relax(self) -> None:
        self.screen.do("keyup", "space")
        until(lambda: not self.window.facts["engaged"], "the dead-man is up")
        until(lambda: not self.cell.last.state.operator.engaged, "the cell knows")

    def drag_gizmo(self) -> None:
        """Pull at the arrow along the tool's y axis, towards or away from the arm's base."""
        facts = self.window.frames(2)
        origin, tip = (np.array(p) for p in facts["gizmo"][2])
        along = (tip - origin) / np.linalg.norm(tip - origin)
        way_px = 60.0 if facts["tool"][0] > 0.36 else -60.0  # to and fro, so that it stays in reach
        self.drag(origin + 50.0 * along, origin + (50.0 + way_px) * along)

    def drag(self, start, end, button: int = 1) -> None:
        (x0, y0), (x1, y1) = np.round(start).astype(int), np.round(end).astype(int)
        self.screen.do("mousemove", x0, y0)
        self.window.frames(2)
        self.screen.do("mousedown", button)
        self.window.frames(2)
        for share in (0.3, 0.7, 1.0):
            x, y = round(x0 + share * (x1 - x0)), round(y0 + share * (y1 - y0))
            self.screen.do("mousemove", x, y)
            self.window.frames(1)
        self.window.frames(1)
        self.screen.do("mouseup", button)
        self.window.frames(2)

    def click(self, name: str) -> None:
        self.screen.do("mousemove", *self.window.place(name))
        self.window.frames(1)
        self.screen.do("mousedown", 1)
        self.window.frames(2)
        self.screen.do("mouseup", 1)
        self.window.frames(2)

    def preview(self) -> None:
        """Drag the gizmo to the side and preview that pose, unless that is done."""
        if self.cell.mode is Mode.PREVIEW and self.window.facts["preview"]:
            self.screen.do("keyup", "space", "keyup", "Return", "mouseup", 1)
            self.relax()
            return
        self.hold()
        self.drag_gizmo()
        self.screen.press("v")
        self.mode(Mode.PREVIEW, COMPILES_S)
        until(lambda: self.window.facts["preview"], "the rehearsal arrives")

    def commit(self) -> None:
        self.squeeze()
        self.screen.press("c")
        self.window.frames(2)
        self.screen.do("keydown", "Return")
        until(lambda: self.cell.mode is Mode.COMMIT, "committed")
        self.screen.do("keyup", "Return")

    def tool_m(self) -> np.ndarray:
        return np.array(self.window.facts["tool"])

    def goal_m(self) -> np.ndarray:
        return np.array(self.window.facts["gizmo"][0])


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    screen = Screen(tmp_path_factory.mktemp("screen"))
    cell = CellThread(screen.folder)
    colour = np.full((90, 120, 3), CAMERA, dtype=np.uint8)
    window = Child(screen, cell.endpoint, {"colour": colour, "depth": np.zeros(0)})
    try:
        until(lambda: window.facts.get("mode") or window.ended, "the window's cell", COMPILES_S)
        assert not window.ended
        yield Stage(screen=screen, cell=cell, window=window)
    finally:
        cell.clock.leashed = False
        window.close()
        cell.close()
        screen.close()


def share_of(pixels: np.ndarray, colour, tolerance: int = 6) -> float:
    wanted = np.round(255 * np.array(colour))
    return float((np.abs(pixels.astype(int) - wanted).max(axis=2) <= tolerance).mean())


def test_the_screen_shows_a_lit_cell_beside_a_panel(stage):
    stage.hold()
    until(lambda: stage.screen.pixels().any(), "something is drawn")
    picture = stage.screen.pixels()
    stage.screen.save("hold.png")
    view = picture[int(TOP_PX) : 640, : SCREEN[0] - int(SIDE_PX)]
    panel = picture[int(TOP_PX) :, SCREEN[0] - int(SIDE_PX) :]
    print(f"view: mean {view.mean():.0f}, {len(np.unique(view.reshape(-1, 3), axis=0))} colours")
    assert 90 < view.mean() < 230
    assert len(np.unique(view.reshape(-1, 3)[::7], axis=0)) > 500
    assert panel.mean() < 90
    assert panel.max() > 200


def test_the_mode_is_shown_in_its_colour_and_stop_in_red(stage):
    stage.hold()
    stage.window.frames(3)
    top = stage.screen.pixels()[: int(TOP_PX)]
    chip = share_of(top[:, :400], MODE_COLOUR[Mode.HOLD])
    stop = share_of(top[:, -220:], STOPPED)
    print(f"chip {100 * chip:.1f} % of its place, stop {100 * stop:.1f} %")
    assert chip > 0.05
    assert stop > 0.4


def test_a_cameras_picture_is_shown_and_one_that_is_missing_is_not_made_up(stage):
    stage.hold()
    stage.window.frames(2)
    wall = layout(*SCREEN, 1.0, True).cameras
    pixels = stage.screen.pixels()[int(wall.y) :, int(wall.x) : int(wall.x + wall.width)]
    half = pixels.shape[1] // 2
    seen = share_of(pixels[:, :half], np.array(CAMERA) / 255.0)
    made_up = share_of(pixels[:, half:], np.array(CAMERA) / 255.0)
    print(f"{100 * seen:.0f} % of the left half, {100 * made_up:.0f} % of the right half")
    assert seen > 0.4
    assert made_up == 0.0


def test_samples_keep_their_rate_while_frames_are_drawn_slowly(stage):
    stage.hold()
    first = stage.window.frames(1)
    last = stage.window.frames(10)
    counts = stage.cell.last.seen.operator
    samples, frames = last["samples"] - first["samples"], last["frame"] - first["frame"]
    print(f"{samples} samples in {frames} frames; the newest has seq {counts}")
    assert samples > frames


def test_a_drag_in_hold_moves_the_goal_and_no_joint(stage):
    stage.hold()
    before = stage.cell.q_rad()
    stage.drag_gizmo()
    moved_m = np.linalg.norm(stage.goal_m() - stage.tool_m())
    print(f"goal {1000 * moved_m:.0f} mm from the tool, joints {before - stage.cell.q_rad()}")
    assert moved_m > 0.05
    assert np.abs(stage.cell.q_rad() - before).max() < 1e-3


def test_a_rehearsal_is_shown_as_ghost_way_and_verdict(stage):
    stage.hold()
    stage.screen.do("mousemove", 20, 700)
    stage.window.frames(6)
    before = stage.screen.pixels()[int(TOP_PX) : 540, : SCREEN[0] - int(SIDE_PX)].astype(int)
    stage.preview()
    stage.screen.do("mousemove", 20, 700)
    until(lambda: stage.window.facts["t_s"] > 0.8, "the ghost plays")
    stage.window.frames(2)
    after = stage.screen.pixels()[int(TOP_PX) : 540, : SCREEN[0] - int(SIDE_PX)].astype(int)
    stage.screen.save("preview.png")
    bluer = (after[..., 2] - after[..., 0]) - (before[..., 2] - before[..., 0])
    print(f"{(bluer > 40).sum()} pixels turned to the ghost's cyan, at least 1500")
    assert (bluer > 40).sum() > 1500
    assert "ur5e" in stage.window.facts["verdict"]


def test_the_slider_scrubs_the_rehearsal(stage):
    stage.preview()
    x, y, width = stage.window.facts["places"]["time"]
    stage.drag((x - 0.3 * width, y), (x + 0.25 * width, y))
    facts = stage.window.frames(2)
    stream = stage.cell.last.state.store[-1].rehearsal.stream
    share = facts["t_s"] / (stream.rows * 0.002)
    print(f"scrubbed to {facts['t_s']:.2f} s, {100 * share:.0f} % of the way, 75 % wanted")
    assert share == pytest.approx(0.75, abs=0.05)
    assert not facts["playing"]


def test_a_short_press_of_enter_commits_nothing(stage):
    stage.preview()
    stage.squeeze()
    stage.screen.press("c")
    stage.window.frames(2)
    stage.screen.press("Return")
    stage.window.frames(5)
    assert stage.cell.mode is Mode.PREVIEW


def test_without_the_dead_man_no_commit_begins(stage):
    stage.preview()
    stage.screen.press("c")
    stage.screen.do("keydown", "Return")
    frames = stage.window.facts["frame"]
    until(lambda: stage.window.facts["frame"] > frames + 15, "frames")
    stage.screen.do("keyup", "Return")
    assert stage.cell.mode is Mode.PREVIEW


def test_a_held_commit_takes_the_tool_to_where_the_gizmo_was_dragged(stage):
    stage.preview()
    goal = stage.goal_m()
    stage.commit()
    until(lambda: stage.cell.mode is Mode.HOLD, "the commit ends", 40.0)
    reason = stage.cell.last.state.mode.reason
    stage.relax()
    off_m = np.linalg.norm(stage.tool_m() - goal)
    print(f"{reason}; tool {1000 * off_m:.2f} mm from the goal, at most 2 mm")
    assert reason == DONE
    assert off_m < 0.002


def test_letting_go_of_the_dead_man_holds_a_commit(stage):
    stage.preview()
    stage.commit()
    stage.relax()
    stage.mode(Mode.HOLD)
    assert "released" in stage.cell.last.state.mode.reason


def test_the_arm_follows_the_gizmo_while_the_dead_man_is_held(stage):
    stage.hold()
    stage.squeeze()
    stage.mode(Mode.TELEOP)
    before = stage.tool_m()
    stage.drag_gizmo()
    goal = stage.goal_m()
    until(
        lambda: np.linalg.norm(stage.tool_m() - goal) < 0.005,
        lambda: f"tool {stage.tool_m()} at the gizmo {goal}; cell {stage.cell.words()}",
    )
    moved_m = np.linalg.norm(stage.tool_m() - before)
    stage.relax()
    stage.mode(Mode.HOLD)
    print(f"moved {1000 * moved_m:.0f} mm, at least 50 mm")
    assert moved_m > 0.05


def test_g_closes_the_gripper_while_the_arm_is_driven(stage):
    stage.hold()
    stage.squeeze()
    stage.mode(Mode.TELEOP)
    before = stage.cell.last.seen.grippers[0].opening_m
    stage.screen.press("g")
    until(
        lambda: abs(stage.cell.last.seen.grippers[0].opening_m - before) > 0.03,
        "the fingers move by more than 30 mm",
    )
    stage.relax()


def test_m_changes_how_the_arm_follows_the_hand(stage):
    stage.hold()
    stage.squeeze()
    stage.mode(Mode.TELEOP)
    for manner in ("gently", "quickly", "normal"):
        stage.screen.press("m")
        until(
            lambda manner=manner: stage.cell.last.state.operator.manner == manner,
            f"the cell hears {manner}",
        )
    stage.relax()


@pytest.mark.parametrize("how", ["x", "button"])
def test_stop_stops_an_arm_that_is_being_driven(stage, how):
    stage.hold()
    stage.squeeze()
    stage.mode(Mode.TELEOP)
    if how == "x":
        stage.screen.press("x")
    else:
        stage.click("STOP")
    stage.mode(Mode.STOPPED)
    until(lambda: stage.cell.last.commands.arms[0].stop, "the arm is told to stop")
    stage.screen.save("stopped.png")


def test_a_lost_focus_lets_go_of_the_dead_man_until_it_is_pressed_anew(stage):
    stage.hold()
    stage.squeeze()
    stage.mode(Mode.TELEOP)
    stage.screen.do("windowfocus", stage.screen.root())
    stage.mode(Mode.HOLD)
    stage.screen.do("windowfocus", stage.screen.window())
    stage.window.frames(8)
    engaged = stage.window.facts["engaged"]
    print(f"engaged after the focus came back, key still down: {engaged}")
    assert not engaged
    stage.screen.do("keyup", "space")
    start = stage.cell.last.seen.t_ns
    until(lambda: stage.cell.last.seen.t_ns > start + 1_500_000_000, "a second and a half go by")
    stage.squeeze()
    stage.mode(Mode.TELEOP)


def test_the_mouse_turns_shifts_and_zooms_the_view(stage):
    stage.hold()
    stage.screen.press("1")
    before = stage.window.frames(3)
    stage.drag((800, 200), (880, 200))
    turned = stage.window.frames(2)
    stage.drag((800, 200), (880, 200), button=3)
    shifted = stage.window.frames(2)
    stage.screen.do("click", 4)
    zoomed = stage.window.frames(3)
    assert turned["view"][0] != pytest.approx(before["view"][0], abs=1.0)
    assert shifted["look_at"] != pytest.approx(turned["look_at"], abs=0.01)
    assert zoomed["view"][2] < shifted["view"][2]
    stage.screen.press("1")


def test_a_double_click_looks_at_what_is_there(stage):
    stage.hold()
    stage.screen.press("1")
    before = stage.window.frames(3)["look_at"]
    stage.screen.do("mousemove", 350, 560)
    stage.window.frames(2)
    stage.screen.do("click", "--repeat", 2, "--delay", 60, 1)
    after = stage.window.frames(5)["look_at"]
    print(f"looked at {before}, now at {after}; the bench's top is at z = 0.75 m")
    assert after[2] == pytest.approx(0.75, abs=0.01)
    stage.screen.press("1")


def test_a_frozen_window_holds_the_arm(stage):
    stage.hold()
    stage.squeeze()
    stage.mode(Mode.TELEOP)
    stage.cell.clock.leashed = False
    os.kill(stage.window.process.pid, signal.SIGSTOP)
    try:
        until(lambda: stage.cell.mode is Mode.HOLD, "the cell holds")
        reason = stage.cell.last.state.mode.reason
    finally:
        os.kill(stage.window.process.pid, signal.SIGCONT)
        stage.cell.clock.leashed = True
        stage.screen.do("keyup", "space")
    assert "silent" in reason or "age" in reason


def test_a_smaller_window_still_shows_everything(stage):
    stage.hold()
    stage.screen.do("windowsize", stage.screen.window(), 1100, 720)
    facts = until(
        lambda: stage.window.facts["places"]["STOP"][0] < 1100 and stage.window.facts, "resized"
    )
    stage.window.frames(3)
    stage.screen.save("small.png")
    inside = {name: 0 < x < 1100 and 0 < y < 720 for name, (x, y, _) in facts["places"].items()}
    stage.screen.do("windowsize", stage.screen.window(), *SCREEN)
    stage.window.frames(3)
    print(inside)
    assert inside["STOP"]
    assert inside["Commit"]


def test_a_closed_window_lets_go_of_the_dead_man_and_ends_well(stage):
    """Last: it takes the window down."""
    stage.hold()
    stage.squeeze()
    stage.mode(Mode.TELEOP)
    stage.cell.clock.leashed = False
    code = stage.window.close()
    until(lambda: stage.cell.mode is Mode.HOLD, "the cell holds")
    print(f"exit status {code}; {stage.cell.last.state.mode.reason}")
    assert code == 0
    assert "released" in stage.cell.last.state.mode.reason
