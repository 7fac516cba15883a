"""The window in a process of its own: says each frame on standard output what is where.

Run as `python -m tests.vr.window_child ENDPOINT FOLDER`, where the stage has put the cell's time,
the resolved scene and camera pictures; closed by the end of standard input.
"""

import json
import sys
import threading
from pathlib import Path

import numpy as np

from hardware.scene import cell_model, parse_resolved, tasks_of
from hardware.zenoh_link import open_seat
from sim.scene import build_model
from tests.vr.stage import PICTURES, SCENE, TIME, HeardClock
from vr.camera_view import OrbitView, pixel
from vr.desktop import DesktopSeat


def facts(seat: DesktopSeat) -> dict:
    status = seat.operator.status
    out = {
        "frame": seat.frames,
        "mode": None if status is None else str(status.mode),
        "engaged": seat.operator.engaged,
        "samples": seat.operator.samples,
        "t_s": seat.timeline.t_s,
        "playing": seat.timeline.playing,
        "preview": seat.timeline.preview is not None,
        "verdict": None if status is None else status.verdict,
        "view": [
            seat.looking.view.azimuth_deg,
            seat.looking.view.elevation_deg,
            seat.looking.view.distance_m,
        ],
        "look_at": list(seat.looking.view.look_at_m),
        "places": {
            name: [r.x + 0.5 * r.width, r.y + 0.5 * r.height, r.width]
            for name, r in seat.ui.places.items()
        },
    }
    arm = seat.arm_status()
    if arm is not None and arm.T_world_tool is not None:
        T = seat.gizmo.at(arm.T_world_tool)
        rect = seat.parts().view
        fovy = seat._picture.fovy_deg
        out["gizmo"] = [list(T[:3, 3])]
        for axis in range(3):
            ends = [
                pixel(seat.looking.view, fovy, rect, T[:3, 3] + k * T[:3, axis])
                for k in (0.0, 0.05)
            ]
            out["gizmo"].append([list(e) for e in ends])
        out["tool"] = list(arm.T_world_tool[:3, 3])
    return out


def main() -> None:
    endpoint, folder = sys.argv[1], Path(sys.argv[2])
    resolved = parse_resolved((folder / SCENE).read_text())
    scene = build_model(resolved)
    view = resolved.scene.view
    with np.load(folder / PICTURES) as kept:
        shown = {name: kept[name] if kept[name].size else None for name in kept.files}
    clock = HeardClock(folder / TIME)
    seat = DesktopSeat(
        scene.model,
        cell_model(resolved),
        scene.qpos_start,
        open_seat(resolved.scene.cell, endpoint),
        clock,
        tasks=tuple(tasks_of(resolved)),
        view=OrbitView(
            look_at_m=view.look_at_m,
            distance_m=view.distance_m,
            azimuth_deg=view.azimuth_deg,
            elevation_deg=view.elevation_deg,
        ),
        pictures=lambda: shown,
    )
    gone = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), gone.set()), daemon=True).start()

    def finished() -> bool:
        sys.stdout.write(json.dumps(facts(seat)) + "\n")
        sys.stdout.flush()
        clock.framed()
        return gone.is_set()

    seat.run(finished)


if __name__ == "__main__":
    main()
