import numpy as np
import pytest

from brain.types import Mode
from hardware.status import Preview, PreviewArm
from tests.values import replace
from tests.vr.cells import status
from vr.timeline import Timeline, clearance_words, verdict_words

ROWS = 51
DURATION_S = 1.0


def preview(digest: str = "a") -> Preview:
    q = np.linspace(0.0, 1.0, ROWS)[:, None] * np.ones(6)
    arm = PreviewArm(name="ur5e", q_rad=q, opening_m=None, clearance_m=None, force_n=None)
    t_ns = np.arange(ROWS) * 20_000_000
    return Preview(digest=digest * 64, t_ns=t_ns, arms=(arm,), verdict={"kind": "safe"})


def said(mode: Mode, digest: str | None = "a", progress: float | None = None):
    whole = None if digest is None else digest * 64
    return replace(status(), mode=mode, digest=whole, progress=progress)


@pytest.fixture
def line() -> Timeline:
    made = Timeline()
    made.update(preview(), said(Mode.PREVIEW), 0.0)
    return made


def test_a_new_rehearsal_plays_from_its_start(line):
    line.update(line.preview, said(Mode.PREVIEW), 0.25)
    assert line.playing
    assert line.t_s == pytest.approx(0.25)


def test_playing_ends_at_the_end(line):
    line.update(line.preview, said(Mode.PREVIEW), 5.0)
    assert not line.playing
    assert line.t_s == pytest.approx(DURATION_S)


def test_playing_again_at_the_end_starts_over(line):
    line.update(line.preview, said(Mode.PREVIEW), 5.0)
    line.toggle()
    assert line.playing
    assert line.t_s == 0.0


def test_the_ghosts_joints_are_those_of_the_time_that_is_shown(line):
    line.playing, line.t_s = False, 0.5
    q_rad, opening_m = line.poses()["ur5e"]
    assert np.allclose(q_rad, 0.5)
    assert opening_m is None


def test_a_rehearsal_that_the_cell_no_longer_names_is_not_shown(line):
    line.update(line.preview, said(Mode.HOLD, digest=None), 0.1)
    assert line.preview is None
    assert line.poses() == {}


def test_an_older_rehearsal_is_not_shown_for_a_newer_digest():
    line = Timeline()
    line.update(preview("b"), said(Mode.PREVIEW, digest="c"), 0.1)
    assert line.preview is None


def test_during_a_commit_the_line_follows_the_arm(line):
    line.update(line.preview, said(Mode.COMMIT, progress=0.4), 0.1)
    assert not line.playing
    assert line.t_s == pytest.approx(0.4 * DURATION_S)


# ---------------------------------------------------------------- what the figures are

NEAR = {
    "kind": "near",
    "sentence": "near: 18 mm between left_finger of ur5e and bench, 52 cm along",
    "clearance_m": 0.018,
}


def judged() -> Preview:
    return replace(preview(), verdict=NEAR)


def test_a_verdict_says_that_physics_measured_it():
    words = verdict_words(judged())
    print(words)
    assert words == "In physics: 18 mm between left_finger of ur5e and bench, 52 cm along"


def test_the_brains_clearance_is_a_least_one_and_stands_beside_the_verdicts():
    assert clearance_words(0.0089, judged()) == ("brain: at least 9", "verdict: 18")


@pytest.mark.parametrize("clearance_m", [None, float("nan")])
def test_a_clearance_that_the_brain_does_not_know_is_said_to_be_unknown(clearance_m):
    assert clearance_words(clearance_m, judged())[0] == "brain: unknown"


def test_a_verdict_without_a_figure_is_given_none():
    assert clearance_words(0.01, preview())[1] == ""
