"""Pictures for a report: a short film of a run and its key moments, drawn from logged states."""

from __future__ import annotations

import base64
import io
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import mujoco
import numpy as np
from PIL import Image
from rich.console import Console
from rich.progress import track

from brain.errors import ConfigError
from brain.geometry import Array
from brain.playback import DONE
from brain.types import Mode
from hardware.scene_file import View
from sim.clearance import ClearanceMeter
from sim.picture import Colours, Pictures
from sim.report_data import Grip, Run, Truth
from sim.scene import SceneModel
from sim.worker import declared_contacts

FILM_PX = (640, 400)
STILL_PX = (960, 600)
FILM_S, FRAMES = 7.0, (30, 160)
"""A film is drawn for about so long, by the time that the first pictures took; it has at least and
at most so many. Two cores without a GPU draw 80 to 100."""
SAME = 2e-4
"""Where no coordinate (m, rad) changed by more than this the last picture is shown on."""
GRIPS, HELD = 3, 2
"""Key moments: of at most so many grips, and of so many commits that did not get to their end."""
RETREAT_S = 0.8
"""So long after it is let go of, a placed part can be seen."""
CLOSE_M = 0.85
"""How far away the camera looks at a part that is taken or put down."""
QUALITY = 72


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A time worth a picture; `near` is the grip to look at, None for the whole cell."""

    t_s: float
    title: str
    text: str
    near: Grip | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Still:
    """A moment with its picture as a data URI."""

    moment: Moment
    uri: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Film:
    """Pictures as data URIs; at `t_s[i]` the one of number `shown[i]` comes up."""

    t_s: tuple[float, ...]
    shown: tuple[int, ...]
    uris: tuple[str, ...]


def moments(run: Run) -> list[Moment]:
    """Choose the key moments by what happened: start, grasps, carries, places, commits held."""
    found = [Moment(t_s=0.0, title="Start", text="before anything moves")]
    last = None
    for grip in run.grips[:GRIPS]:
        until_s = run.end_s if grip.end_s is None else grip.end_s
        half_s = 0.5 * (grip.start_s + until_s)
        what = f"{grip.part} by {grip.arm}"
        found.append(Moment(t_s=grip.start_s, title="Grasp", text=what, near=grip))
        found.append(Moment(t_s=half_s, title="Carry", text=what))
        if grip.end_s is not None:
            last = Moment(
                t_s=min(grip.end_s + RETREAT_S, run.end_s),
                title="Placed",
                text=what,
                near=grip,
            )
            found.append(last)
    broken = [c for c in run.commits if c.ended and not c.ended.endswith(DONE)]
    for commit in broken[:HELD]:
        mode, _, reason = commit.ended.partition(": ")
        title = "Held" if mode == Mode.HOLD else mode.capitalize()
        found.append(Moment(t_s=commit.end_s, title=title, text=reason))
    found.sort(key=lambda moment: moment.t_s)
    if last is None or found[-1] is not last or not (run.result or {}).get("ok"):
        found.append(Moment(t_s=run.end_s, title="End", text="as the run left the cell"))
    return found


def shoot(studio: Studio, chosen: list[Moment]) -> tuple[Film, tuple[Still, ...]]:
    """Draw key moments and the film, which is finer the faster pictures are drawn here.

    Raises:
        ConfigError: there is no OpenGL that draws without a screen.
    """
    start_s = time.perf_counter()
    stills = studio.stills(chosen)
    still_s = (time.perf_counter() - start_s) / len(chosen)
    return studio.film(int(np.clip(FILM_S / still_s, *FRAMES))), stills


class Studio:
    """A scene that is put to logged states, to draw and to measure it."""

    def __init__(self, scene: SceneModel, truth: Truth) -> None:
        """Prepare for a scene.

        Raises:
            ConfigError: the log is of another model, or has no states.
        """
        model, count = scene.model, len(truth.t_s)
        if not count:
            raise ConfigError("the log holds no state of a simulator")
        states = [a.reshape(count, -1) for a in (truth.qpos, truth.mocap_pos, truth.mocap_quat)]
        widths = [model.nq, 3 * model.nmocap, 4 * model.nmocap]
        if [a.shape[1] for a in states] != widths:
            raise ConfigError("the states in the log are of another model")
        self._scene = scene
        self._truth = truth
        self._states = np.concatenate(states, axis=1)
        self._data = mujoco.MjData(model)

    def film(self, most: int) -> Film:
        """Draw a film of at most so many pictures. Raises as `shoot`."""
        count = len(self._states)
        chosen = np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))
        camera = _camera(self._scene.resolved.scene.view)
        console = Console(file=sys.stderr)
        quiet = not console.is_terminal
        uris: list[str] = []
        shown: list[int] = []
        drawn: Array | None = None
        pictures = Pictures(self._scene.model, *FILM_PX)
        try:
            for k in track(chosen, "film", console=console, transient=True, disable=quiet):
                state = self._states[k]
                if drawn is None or np.max(np.abs(state - drawn)) > SAME:
                    self._put(int(k))
                    uris.append(_uri(pictures.colour(self._data, camera)))
                    drawn = state
                shown.append(len(uris) - 1)
        finally:
            pictures.close()
        times = tuple(self._truth.t_s[chosen].tolist())
        return Film(t_s=times, shown=tuple(shown), uris=tuple(uris))

    def stills(self, chosen: list[Moment]) -> tuple[Still, ...]:
        """Draw key moments. Raises as `shoot`."""
        view, found = self._scene.resolved.scene.view, []
        pictures = Pictures(self._scene.model, *STILL_PX)
        try:
            for moment in chosen:
                after = int(np.searchsorted(self._truth.t_s, moment.t_s - 1e-9))
                self._put(min(after, len(self._states) - 1))
                camera = _camera(view, self._place(moment.near))
                found.append(Still(moment=moment, uri=_uri(pictures.colour(self._data, camera))))
        finally:
            pictures.close()
        return tuple(found)

    def clearance(self, grips: Sequence[Grip]) -> Truth:
        """Measure the true clearance at every logged state, as in a run whose outcome is known."""
        meter = ClearanceMeter(self._scene, declared_contacts(self._scene.resolved))
        distances, names = [], []
        for k, t_s in enumerate(self._truth.t_s):
            self._put(k)
            held = {
                grip.arm: grip.part
                for grip in grips
                if grip.start_s <= t_s and (grip.end_s is None or t_s < grip.end_s)
            }
            near = meter.measure(self._data, held)
            distances.append(np.nan if near is None else near.distance_m)
            names.append("" if near is None else f"{near.link} of {near.arm} and {near.against}")
        return replace(self._truth, clearance_m=np.array(distances), nearest=tuple(names))

    def _put(self, k: int) -> None:
        """Put everything where it was at record k."""
        data, truth = self._data, self._truth
        data.qpos[:] = truth.qpos[k]
        if self._scene.model.nmocap:
            data.mocap_pos[:], data.mocap_quat[:] = truth.mocap_pos[k], truth.mocap_quat[k]
        mujoco.mj_kinematics(self._scene.model, data)
        mujoco.mj_camlight(self._scene.model, data)

    def _place(self, grip: Grip | None) -> Array | None:
        """Where (3,) the part of a grip is, or the tool when the part is somewhere else."""
        arm = next((a for a in self._scene.arms if grip is not None and a.name == grip.arm), None)
        if arm is None or grip is None:
            return None
        tool_m = np.array(self._data.site_xpos[arm.tool_site])
        body = self._scene.part_body.get(grip.part)
        part_m = tool_m if body is None else np.array(self._data.xpos[body])
        return part_m if np.linalg.norm(part_m - tool_m) < CLOSE_M else tool_m


def _camera(view: View, near_m: Array | None = None) -> mujoco.MjvCamera:
    """Look at the cell as its scene says, or from the same side at a place (3,) in the world."""
    camera = mujoco.MjvCamera()
    camera.type = mujoco.mjtCamera.mjCAMERA_FREE
    camera.azimuth, camera.elevation = view.azimuth_deg, view.elevation_deg
    camera.lookat = view.look_at_m if near_m is None else near_m
    camera.distance = view.distance_m if near_m is None else CLOSE_M
    return camera


def _uri(picture: Colours) -> str:
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "WEBP", quality=QUALITY, method=4)
    return "data:image/webp;base64," + base64.b64encode(file.getvalue()).decode()
