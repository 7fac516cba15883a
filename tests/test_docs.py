"""What README and docs tell a person to type works as it is written there."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import pytest
import tyro

from hardware.scene import load_scene
from sim.settings import Settings
from tests.cli.door import door

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PYTHON = ".venv/bin/python"
TARGETS = re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language, of all pages."""
    pattern = rf"^```{language}\n(.*?)^```$"
    return [
        block
        for page in PAGES
        for block in re.findall(pattern, page.read_text(), re.MULTILINE | re.DOTALL)
    ]


def commands() -> list[str]:
    """All that is to be typed into a shell, without comments."""
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    for page in PAGES:
        lines += re.findall(rf"`((?:{PYTHON}|make) [^`\n]+)`", page.read_text())
    words = [shlex.split(line, comments=True) for line in lines]
    return list(dict.fromkeys(shlex.join(line) for line in words if line))


def door_args(command: str) -> list[str] | None:
    """What `run_sim.py` gets; None where a command is another one."""
    words = shlex.split(command)
    return words[2:] if words[:2] == [PYTHON, "run_sim.py"] else None


def headless() -> list[list[str]]:
    """The calls of the door that open no window and hold no placeholder."""
    found = [args for command in commands() if (args := door_args(command)) is not None]
    return [args for args in found if "none" in args and not any("<" in arg for arg in args)]


def is_cheap(args: list[str]) -> bool:
    return "z1_bench" in args and "--no-report" in args


def test_there_is_something_to_type_and_some_of_it_is_run_here():
    print(f"{len(commands())} commands, {len(headless())} headless")
    assert any(is_cheap(args) for args in headless())
    assert any(not is_cheap(args) for args in headless())


@pytest.mark.parametrize("command", commands())
def test_a_command_is_one_that_there_is(command):
    words = shlex.split(command)
    if words[0] == "make":
        goals = [word for word in words[1:] if "=" not in word]
        assert set(goals) <= set(TARGETS), f"the Makefile has {TARGETS}"
        return
    assert words[0] == PYTHON, f"neither make nor {PYTHON}"
    args = door_args(command)
    if args is not None:
        settings = tyro.cli(Settings, args=args)
        assert settings.task in load_scene(settings.scene).tasks
    elif words[1] == "-m":
        assert importlib.util.find_spec(words[2]) is not None, f"no module {words[2]}"
    else:
        assert (ROOT / words[1]).is_file(), f"no file {words[1]}"


def test_the_cheap_commands_run_as_they_are_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for args in filter(is_cheap, headless()):
        said = door(*args)
        assert said.status == 0, f"{shlex.join(args)}: {said}"


@pytest.mark.long
@pytest.mark.parametrize("args", [a for a in headless() if not is_cheap(a)], ids=shlex.join)
def test_a_command_runs_as_it_is_written(args, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = door(*args)
    print(said)
    assert said.status == int("--change.missing" in args), "without its part a task must fail"


@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_a_script_runs_as_it_is_written(number, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = blocks("python")[number]
    exec(compile(code, f"script {number}", "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr().out
    print(printed)
    assert printed
