"""The key table of the window: what the help page shows, the code hears and the docs say."""

import inspect
import re
from pathlib import Path

import glfw

from vr import desktop
from vr.acts import KEYS, Act
from vr.desktop import PRESSED
from vr.legend import KEY_TABLE, MOUSE_TABLE, USE

DOC = Path(__file__).resolve().parents[2] / "docs" / "window.md"
NAMES = {"ESCAPE": "ESC", "KP_ENTER": "ENTER"}
"""GLFW's names of keys that the window calls otherwise."""


def table(heading: str) -> list[tuple[str, str]]:
    """Read the rows of the table below a heading of the docs, without code marks."""
    _, found, below = DOC.read_text().partition(f"## {heading}\n")
    assert found, heading
    lines = [line for line in below.split("\n## ")[0].splitlines() if line.startswith("|")]
    cells = [
        tuple(c.strip().replace("`", "") for c in line.strip("|").split("|")) for line in lines
    ]
    return cells[2:]  # below the head and its rule


def test_the_docs_have_the_keys_of_the_help_page():
    assert set(table("Keys")) == set(KEY_TABLE)


def test_the_docs_have_the_mouse_of_the_help_page():
    assert set(table("Mouse")) == set(MOUSE_TABLE)


def test_no_key_means_two_things():
    keys = [key for names, _ in KEY_TABLE for key in names.split()]
    assert sorted(keys) == sorted(set(keys))


def test_the_window_hears_exactly_the_keys_of_the_table():
    named = re.findall(r"glfw\.KEY_(\w+)", inspect.getsource(desktop))
    heard = {NAMES.get(name, name) for name in named} | {KEYS[act] for act in PRESSED.values()}
    first, last = (int(name) for name in sorted(heard) if name.isdigit())  # a range of keys
    heard |= {str(number) for number in range(first, last + 1)}
    listed = {key for names, _ in KEY_TABLE for key in names.split()}
    print(sorted(heard ^ listed))
    assert heard == listed


def test_every_act_but_the_held_and_the_urgent_has_the_key_on_its_button():
    assert {PRESSED[glfw.KEY_ESCAPE], *PRESSED.values()} == set(Act) - {Act.CLUTCH, Act.STOP}
    assert PRESSED[glfw.KEY_G] is Act.GRIPPER
    assert PRESSED[glfw.KEY_ESCAPE] is Act.CANCEL


def test_every_act_says_what_it_is_for():
    assert set(USE) == set(Act)
