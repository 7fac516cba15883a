"""The bar on top with mode and stop, and the buttons of the panel at the side."""

from __future__ import annotations

from dataclasses import dataclass, field

from imgui_bundle import imgui

from brain.types import Manner, Mode
from hardware.seat_link import Connection
from hardware.status import Status
from vr import style
from vr.acts import ENTER, KEYS, NEEDS_DEAD_MAN, Act, Situation, meaning, why_not
from vr.camera_view import Rect
from vr.widgets import Ui

MANNER_WORDS: dict[Manner, str] = {
    "normal": "Follows the hand: normally",
    "gently": "Follows the hand: gently",
    "quickly": "Follows the hand: quickly",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moment:
    """All that the panels show of one frame; `share` is how far the commit's hold is."""

    status: Status | None
    situation: Situation
    arm: str
    arms: tuple[str, ...]
    tasks: tuple[str, ...]
    round_trip_ms: float | None
    samples_hz: float | None
    frames_hz: float | None
    trouble: str
    primed: bool
    share: float
    local_axes: bool
    manner: Manner


@dataclass(slots=True)
class Pressed:
    """What was done to the panels in one frame; keys are added to it."""

    acts: list[Act] = field(default_factory=list)
    stop: bool = False
    clutch_held: bool = False
    commit_held: bool = False
    task: str | None = None
    arm: str | None = None
    axes: bool = False
    manner: bool = False
    help: bool = False


def draw_top(ui: Ui, rect: Rect, now: Moment, pressed: Pressed) -> None:
    """Draw mode, reason, note and the stop button."""
    status, situation = now.status, now.situation
    with ui.area("top", rect):
        stop_width = ui.px(210.0)
        mode = situation.mode
        if situation.connection is Connection.CONNECTED and mode is not None and status is not None:
            words, colour = mode.upper(), style.MODE_COLOUR[mode]
            reason, note = _sentence(status.reason), now.trouble or status.note
        else:
            words, colour = situation.connection.upper(), style.LIMP
            reason = "waiting for the cell to answer"
            if situation.connection is Connection.LOST:
                words, colour = "LOST", style.STOPPED
                reason = "the cell has been silent for half a second; it holds by itself"
            note = now.trouble
        imgui.set_cursor_pos((ui.px(14.0), ui.px(13.0)))
        ui.chip(words, colour, style.MODE_PX)
        left = imgui.get_item_rect_max().x - rect.x + ui.px(16.0)
        imgui.set_cursor_pos((left, ui.px(10.0)))
        room = rect.width - left - stop_width - ui.px(110.0)
        with ui.face(True, style.HEAD_PX):
            reason = fitting(reason, room)
        ui.text(reason, bold=True, size_px=style.HEAD_PX)
        imgui.set_cursor_pos((left, ui.px(37.0)))
        if note:
            ui.text(fitting(f"{style.WARNING}  {_sentence(note)}", room), style.MOVES)
        elif mode is not None:
            ui.text(fitting(meaning(mode, situation.onlooking), room), style.DIM)
        imgui.set_cursor_pos((rect.width - stop_width - ui.px(104.0), ui.px(13.0)))
        if ui.button("Help", "F1", "", ui.px(90.0), height_px=46.0)[0]:
            pressed.help = True
        imgui.set_cursor_pos((rect.width - stop_width, ui.px(9.0)))
        clicked, held = ui.button(
            "STOP",
            KEYS[Act.STOP],
            "",
            stop_width - ui.px(12.0),
            style.STOPPED,
            on=True,
            height_px=54.0,
            size_px=style.MODE_PX,
        )
        pressed.stop = held or clicked  # on the press, not on letting go


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def fitting(words: str, room: float) -> str:
    """Return what fits into a width in pixels, with dots where it was cut."""
    if imgui.calc_text_size(words).x <= room:
        return words
    low, high = 0, len(words)
    while low < high:
        middle = (low + high + 1) // 2
        fits = imgui.calc_text_size(words[:middle] + "...").x <= room
        low, high = (middle, high) if fits else (low, middle - 1)
    return words[:low] + "..."


# ---------------------------------------------------------------- acts


def draw_acts(ui: Ui, now: Moment, pressed: Pressed) -> None:
    """Draw the buttons; what is impossible is grey and says why."""
    situation = now.situation
    with ui.card("acts", ""):
        full = imgui.get_content_region_avail().x
        gap = imgui.get_style().item_spacing.x
        half = 0.5 * (full - gap)
        if situation.onlooking:
            words = f"A script drives; you can stop it ({KEYS[Act.STOP]})."
            ui.text(f"{style.EYE}  {words}", style.ACCENT)
        if len(now.arms) > 1:
            _arm_choice(ui, now, half, pressed)
        _, pressed.clutch_held = _act(
            ui, Act.CLUTCH, now, full, on=situation.pressed, colour=style.MOVES
        )
        if ui.button(MANNER_WORDS[now.manner], "M", "", full, name="manner")[0]:
            pressed.manner = True
        if now.tasks:
            _task_choice(ui, now, full, pressed)
        _press(ui, Act.REHEARSE_TASK, now, half, pressed, colour=style.ACCENT)
        imgui.same_line()
        _press(ui, Act.REHEARSE_HERE, now, half, pressed, colour=style.ACCENT)
        _press(ui, Act.REHEARSE_HOME, now, half, pressed, colour=style.ACCENT)
        imgui.same_line()
        _press(ui, Act.CANCEL, now, half, pressed)
        _commit(ui, now, full, pressed)
        _press(ui, Act.GRIPPER, now, half, pressed)
        imgui.same_line()
        title = "Axes: tool" if now.local_axes else "Axes: world"
        if ui.button(title, "L", "", half, name="axes")[0]:
            pressed.axes = True
        _press(ui, Act.ACKNOWLEDGE, now, half, pressed)
        imgui.same_line()
        _press(ui, Act.DISARM, now, half, pressed)


def _act(
    ui: Ui,
    act: Act,
    now: Moment,
    width: float,
    on: bool = False,
    colour: style.Rgb | None = None,
) -> tuple[bool, bool]:
    return ui.button(str(act), KEYS[act], why_not(act, now.situation), width, colour, on)


def _press(
    ui: Ui,
    act: Act,
    now: Moment,
    width: float,
    pressed: Pressed,
    colour: style.Rgb | None = None,
) -> None:
    if _act(ui, act, now, width, colour=colour)[0]:
        pressed.acts.append(act)


def _commit(ui: Ui, now: Moment, width: float, pressed: Pressed) -> None:
    """Draw the commit's two steps on one button: press, then hold."""
    why = why_not(Act.COMMIT, now.situation)
    title, key = commit_words(why, now.primed)
    clicked, held = ui.button(
        title,
        key,
        why,
        width,
        style.MOVES,
        on=now.primed,
        share=max(now.share, 1e-3) if now.primed else 0.0,
        name=str(Act.COMMIT),
        height_px=40.0,
    )
    pressed.commit_held = held
    if clicked and not now.primed:
        pressed.acts.append(Act.COMMIT)


def commit_words(why: str, primed: bool) -> tuple[str, str]:
    """Return title and key of the commit's button, which stands for what is to be done next."""
    if primed:
        return "Hold to commit", ENTER
    title = str(Act.COMMIT)
    if why == NEEDS_DEAD_MAN:
        title = f"{title}: hold {KEYS[Act.CLUTCH]} as well"
    return title, KEYS[Act.COMMIT]


def _arm_choice(ui: Ui, now: Moment, half: float, pressed: Pressed) -> None:
    driving = now.situation.mode is Mode.TELEOP
    why = "not while an arm is driven" if driving else ""
    for i, arm in enumerate(now.arms):
        if i % 2:
            imgui.same_line()
        here = arm == now.arm
        key = "TAB" if not here else ""
        if ui.button(arm, key, why, half, style.ACCENT, on=here, name=f"arm {arm}")[0]:
            pressed.arm = arm


def _task_choice(ui: Ui, now: Moment, width: float, pressed: Pressed) -> None:
    task = now.situation.task or now.tasks[0]
    imgui.set_next_item_width(width)
    if imgui.begin_combo("##task", f"Task: {task}"):
        for name in now.tasks:
            if imgui.selectable(name, name == task)[0]:
                pressed.task = name
        imgui.end_combo()
