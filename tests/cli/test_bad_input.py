"""Bad input ends with status 2 and one line that names what is wrong and what is allowed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from mcap.writer import Writer

from tests.cli.door import EXAMPLES, SCENE, brief_hand, door, log_of, run, stored

Change = Callable[[dict[str, Any]], Any]


@pytest.fixture(autouse=True)
def no_display(monkeypatch):
    """Nothing here opens a window."""
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)


def refusal(out: Path, *args: str | Path) -> str:
    said = run(out, *args)
    assert said.status == 2, said
    print(said.err)
    return said.error()


def item(scene: dict[str, Any], name: str) -> dict[str, Any]:
    return next(o for o in scene["objects"] if o["name"] == name)


def step(scene: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = scene["tasks"]["pick_place"]["steps"][0]
    return found


# ---------------------------------------------------------------- scenes

SCENES: dict[str, tuple[Change, tuple[str, ...]]] = {
    "an unknown key": (
        lambda s: s["arms"][0].update(home_degs=s["arms"][0].pop("home_deg")),
        ("arms.0.home_degs", "home_deg"),
    ),
    "a wrong unit": (
        lambda s: item(s, "tray").update(position_mm=[320, 260, 750]),
        ("position_mm", "position_m"),
    ),
    "a text for a number": (lambda s: s.update(tick_ms="4 ms"), ("tick_ms", "4 ms")),
    "a number out of range": (lambda s: s.update(tick_ms=0), ("tick_ms", "0", "1")),
    "NaN": (
        lambda s: item(s, "teal_bar").update(mass_kg=float("nan")),
        ("mass_kg", "nan"),
    ),
    "infinity": (
        lambda s: s["arms"][0]["position_m"].__setitem__(2, float("inf")),
        ("position_m", "inf"),
    ),
    "millimetres": (
        lambda s: item(s, "tray").update(position_m=[320, 260, 750]),
        ("objects", "position_m.0: at most 50 (in m)", "320"),
    ),
    "a size that overflows": (
        lambda s: item(s, "teal_bar")["shapes"][0].update(size_m=[1e300, 0.02, 0.02]),
        ("size_m.0: at most 50 (in m)", "1e+300"),
    ),
    "a time beyond all": (
        lambda s: s["objects"].append(
            {
                "name": "trolley",
                "role": "moving",
                "shapes": [{"shape": "sphere", "radius_m": 0.1}],
                "schedule": [
                    {"t_s": 0.0, "position_m": [3.0, 3.0, 0.0]},
                    {"t_s": 1e300, "position_m": [3.0, 2.0, 0.0]},
                ],
            }
        ),
        ("schedule.1.t_s: at most 1e+06", "1e+300"),
    ),
    "a missing key": (lambda s: s["arms"][0].pop("position_m"), ("arms.0.position_m",)),
    "an unknown robot": (lambda s: s["arms"][0].update(robot="z2"), ("assets/z2", "ur5e")),
    "unknown limits": (lambda s: s.update(limits="slow"), ("slow", "default")),
    "joints beyond their limits": (
        lambda s: s["arms"][0]["home_deg"].__setitem__(1, 400),
        ("home_deg", "400"),
    ),
    "an arm that starts in collision": (
        lambda s: item(s, "riser")["shapes"][0].update(size_m=[0.16, 0.16, 0.9]),
        ("arms.z1: starts in collision", "riser", "mm are needed"),
    ),
    "a grip that no gripper has": (
        lambda s: step(s).update(force_n=1e5),
        ("tasks.pick_place.steps.0.force_n: 100000 N", "z1", "allows"),
    ),
    "a target out of reach": (
        lambda s: step(s).update(place_m=[2.0, 0.26, 0.7705]),
        ("place_m", "z1 cannot put", "down there"),
    ),
    "a part out of reach": (
        lambda s: item(s, "orange_cube").update(position_m=[0.66, -0.48, 0.773]),
        ("orange_cube", "out of reach"),
    ),
    "a part in the air": (
        lambda s: item(s, "orange_cube")["position_m"].__setitem__(2, 0.9),
        ("orange_cube", "does not stand on bench"),
    ),
}


@pytest.mark.parametrize("name", SCENES)
def test_a_scene_with(name, tmp_path):
    scene = yaml.safe_load((EXAMPLES / f"{SCENE}.yaml").read_text())
    change, needles = SCENES[name]
    change(scene)
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(scene))
    found = refusal(tmp_path / "runs", "--scene", path)
    assert not [n for n in needles if n not in found], found


@pytest.mark.parametrize(
    ("scene", "needles"),
    [
        ("nope", ("'nope'", "bench_pick", "z1_bench")),
        ("/nowhere/nope.yaml", ("/nowhere/nope.yaml", "no such file")),
    ],
)
def test_a_scene_that_is_missing(scene, needles, tmp_path):
    found = refusal(tmp_path, "--scene", scene)
    assert not [n for n in needles if n not in found], found


def test_a_scene_that_is_not_yaml(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("cell: [z1_bench\n")
    assert "mine.yaml: not YAML" in refusal(tmp_path, "--scene", path)


def test_a_folder_for_a_scene(tmp_path):
    folder = tmp_path / "mine.yaml"
    folder.mkdir()
    assert "cannot be read" in refusal(tmp_path, "--scene", folder)


# ---------------------------------------------------------------- the command line


@pytest.mark.parametrize(
    ("args", "needles"),
    [
        (("--task", "dance"), ("task", "'dance'", "pick_place")),
        (("--seed", "-1"), ("seed: -1", "0 to")),
        (("--seed", "99999999999999999999"), ("seed", "0 to")),
        (("--seeds", "3-1"), ("seeds", "3-1", "must rise")),
        (("--seeds", "1-99999999"), ("seeds", "at most 10000")),
        (("--seeds", "one"), ("seeds", "'one'", "1-20")),
        (("--fault", "arm.explode"), ("arm.explode", "'explode'", "drop", "freeze")),
        (("--fault", "leg.drop=5%"), ("'leg'", "arm", "gripper")),
        (("--fault", "arm.delay=8"), ("arm.delay=8", "5ms")),
        (("--fault", "arm.noise=nanrad"), ("arm.noise=nanrad", "5rad")),
        (("--fault", "arm"), ("'arm'", "arm.delay=8ms")),
        (("--fault", "ft.noise=2N"), ("ft.noise", "arm:z1", "gripper:z1")),
        (("--change.payload-kg", "nan"), ("change.payload_kg: nan", "0.0 to")),
        (("--change.payload-kg", "-1"), ("change.payload_kg: -1.0", "0.0 to")),
        (("--change.friction-scale", "inf"), ("change.friction_scale: inf", "0.0 to")),
        (("--change.delay-ms", "-8"), ("change.delay_ms: -8", "0 to")),
        (("--change.missing", "nobody"), ("'nobody'", "orange_cube")),
        (("--seeds", "1-2", "--record-trace", "a.jsonl"), ("record_trace", "one run")),
        (("--change.missing-at-s", "3"), ("change.missing_at_s: 3.0", "change.missing")),
        (("--models", "menagerie"), ("models: menagerie", "window")),
        (("--seeds", "1-2", "--seat", "window"), ("seeds", "window", "--seat none")),
        (("--seat", "window"), ("seat: window", "DISPLAY", "--seat none")),
    ],
    ids=" ".join,
)
def test_a_setting_that_is_not_allowed(args, needles, tmp_path):
    found = refusal(tmp_path, *args)
    assert not [n for n in needles if n not in found], found


@pytest.mark.parametrize(
    ("args", "needles"),
    [
        (("--sed", "3"), ("--sed", "--seed")),
        (("--seed", "three"), ("--seed", "three")),
        (("--seat", "chair"), ("--seat", "chair", "window")),
        (("--change.payload-kg", "heavy"), ("--change.payload-kg", "heavy")),
    ],
    ids=" ".join,
)
def test_an_option_that_cannot_be_read(args, needles, tmp_path):
    said = run(tmp_path, *args)
    assert said.status == 2, said
    assert not [n for n in needles if n not in said.err], said
    assert "Traceback" not in said.err
    assert said.out == "", said


@pytest.mark.parametrize("out", ["/proc/nobody", "/etc/hostname"])
def test_a_place_where_no_folder_can_be_made(out, tmp_path):
    assert f"out: {out}" in refusal(tmp_path, "--out", out)


# ---------------------------------------------------------------- logs


@pytest.fixture(scope="module")
def log(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("runs")
    trace = stored(out / "brief.jsonl", brief_hand())
    assert run(out, "--trace", trace).status == 1
    return log_of(out)


def test_a_log_that_is_missing():
    found = door("--replay", "/nowhere/run.mcap").error()
    assert "/nowhere/run.mcap: No such file" in found, found


def test_a_folder_for_a_log(tmp_path):
    assert "Is a directory" in door("--replay", tmp_path).error()


@pytest.mark.parametrize(
    ("content", "needle"),
    [(b"", "empty"), (b"GIF89a" * 100, "not an MCAP file"), (b"\x89MCAP0\r\n" * 2, "head")],
    ids=["empty", "foreign", "only a frame"],
)
def test_a_file_that_is_no_log(content, needle, tmp_path):
    path = tmp_path / "run.mcap"
    path.write_bytes(content)
    said = door("--replay", path)
    assert said.status == 2, said
    assert needle in said.error()


def test_a_log_of_another_program(tmp_path):
    path = tmp_path / "run.mcap"
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start()
        writer.finish()
    said = door("--replay", path)
    assert said.status == 2, said
    assert "has no head of this program" in said.error()


@pytest.mark.parametrize("share", [0.01, 0.5, 0.99])
def test_a_log_that_was_cut_off(share, log, tmp_path):
    path = tmp_path / "run.mcap"
    whole = log.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    said = door("--replay", path)
    assert said.status == 2, said
    assert "cut off" in said.error() or "head" in said.error()


def test_a_log_with_a_flipped_bit(log, tmp_path):
    path = tmp_path / "run.mcap"
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    said = door("--replay", path)
    assert said.status == 2, said
    assert "damaged" in said.error()


# ---------------------------------------------------------------- traces

NAN = float("nan")
TRACES: dict[str, tuple[Change, tuple[str, ...]]] = {
    "another robot": (
        lambda t: t[0].update(robots={"z1": "ur5e"}),
        ("line 1: robots", "ur5e", "z1"),
    ),
    "another scene": (lambda t: t[0].update(cell="bench_pick"), ("line 1: cell", "bench_pick")),
    "another arm": (lambda t: t[3]["hand"].update(arm="left"), ("line 4: hand.arm: 'left'", "z1")),
    "NaN": (lambda t: t[3]["hand"].update(grip=NAN), ("line 4: hand.grip", "finite")),
    "NaN in a pose": (
        lambda t: t[3]["hand"]["T_seat_hand"][0].__setitem__(3, NAN),
        ("line 4: hand.T_seat_hand",),
    ),
    "infinity": (
        lambda t: t[3]["hand"]["T_seat_hand"][1].__setitem__(3, float("inf")),
        ("line 4: hand.T_seat_hand",),
    ),
    "time that goes back": (
        lambda t: t[9]["hand"].update(t_ns=1),
        ("line 10: t_ns: 1, goes back",),
    ),
    "a cut": (lambda t: t.pop(), ("cut off",)),
    "a later format": (lambda t: t[0].update(forearm_trace=2), ("version 2, can read 1",)),
    "nothing in it": (lambda t: t.__delitem__(slice(1, -1)), ("nothing happens in it",)),
}


@pytest.mark.parametrize("name", TRACES)
def test_a_trace_with(name, tmp_path):
    lines: Any = copy.deepcopy(brief_hand())
    change, needles = TRACES[name]
    change(lines)
    path = stored(tmp_path / "hand.jsonl", lines)
    found = refusal(tmp_path, "--trace", path)
    assert not [n for n in (str(path), *needles) if n not in found], found


def test_a_trace_that_is_missing(tmp_path):
    assert "No such file" in refusal(tmp_path, "--trace", tmp_path / "none.jsonl")


def test_an_empty_trace(tmp_path):
    assert "empty" in refusal(tmp_path, "--trace", stored(tmp_path / "a.jsonl", []))


def test_a_log_for_a_trace(log, tmp_path):
    assert "line 1: JSON" in refusal(tmp_path, "--trace", log)


def test_a_trace_for_a_log(tmp_path):
    path = stored(tmp_path / "hand.jsonl", brief_hand())
    assert "not an MCAP file" in door("--replay", path).error()


def test_a_recording_over_a_file(tmp_path):
    path = stored(tmp_path / "hand.jsonl", brief_hand())
    before = path.read_bytes()
    assert "File exists" in refusal(tmp_path, "--record-trace", path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("args", "needle"),
    [
        (("--scene", "two_arms"), "scene"),
        (("--seed", "4"), "seed"),
        (("--demo", "--fault", "arm.die"), "demo, fault"),
    ],
)
def test_a_setting_beside_a_log_that_has_its_own(args, needle, log):
    found = door("--replay", log, *args).error()
    assert found == f"error: replay: a log is run as it was; {needle} cannot go with it"


def test_a_refusal_leaves_no_folder_and_is_a_json_object_where_one_was_asked_for(tmp_path):
    said = run(tmp_path, "--json", "--task", "dance")
    assert said.status == 2, said
    assert said.json() == {"ok": False, "error": said.err.removeprefix("error: ").strip()}
    assert run(tmp_path, "--fault", "leg.drop=5%").status == 2
    assert list(tmp_path.iterdir()) == []
