import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brain.errors import LogError
from brain.geometry import frozen
from brain.playback import DEPART_RAD
from brain.types import Goal
from hardware.log import LogReader, LogWriter
from hardware.resolve import resolve
from hardware.scene import load_scene, start_q_rad
from sim.report import _main, write_report
from sim.report_film import Studio
from sim.report_plots import departures
from sim.report_read import read_run
from sim.report_svg import FLAT, thinned
from sim.report_tables import headline
from sim.runlog import LOG_NAME
from sim.scene import build_model
from sim.session import run_lockstep
from tests.values import replace
from vr.scripted import ScriptedSeat, arm_up, do_goal

MOST_BYTES = 6_000_000
VOID = {"meta", "img", "br", "input", "link", "hr"}
EVIL = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>{{data}}&amp;</pre>"


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """The log of a real run: a commit that is refused, then a small motion that is done."""
    folder = tmp_path_factory.mktemp("run")
    resolved = resolve(load_scene("z1_bench"), 1)
    target = start_q_rad(resolved.scene)[0] + np.array([0.2, 0.0, 0.0, 0.0, 0.0, 0.3])

    def script(seat):
        yield from arm_up(seat)
        seat.act("commit", digest="0" * 64)
        yield from seat.wait(0.1)
        return (yield from do_goal(seat, Goal(kind="joints", arm="z1", q_rad=frozen(target))))

    def seat(link, clock, cell):
        made = ScriptedSeat(link, clock, "z1")
        made.play(script)
        return made

    run_lockstep(resolved, "pick_place", seat, folder)
    return folder / LOG_NAME


@pytest.fixture(scope="module")
def page(log):
    """The report of that run, with pictures."""
    report = log.with_name("report.html")
    write_report(log, report)
    return report.read_text(encoding="utf-8")


@pytest.fixture
def no_opengl(monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "none")


def rewritten(log, path, head=lambda head: head, record=lambda channel, data: data, extra=()):
    """Copy a log with other contents."""
    reader = LogReader(log)
    writer = LogWriter(path, head(dict(reader.head)))
    last_ns = 0
    for item in reader.records():
        last_ns = item.t_ns
        data = record(item.channel, item.data)
        if data is not None:
            writer.event(item.channel, item.t_ns, data)
    for channel, data in extra:
        writer.event(channel, last_ns, data)
    writer.close()
    return path


def report_of(log):
    report = log.with_suffix(".html")
    write_report(log, report)
    return report.read_text(encoding="utf-8")


class Reader(HTMLParser):
    """Collects elements and texts, and says whether all elements are closed in order."""

    def __init__(self, page):
        super().__init__()
        self.open, self.wrong, self.elements, self.texts = [], [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append((tag, self.getpos()))

    def handle_data(self, data):
        self.texts.append(data)

    def count(self, tag):
        return sum(name == tag for name, _ in self.elements)


# ------------------------------------------------------------------------------------- the page


def test_a_report_has_every_section(page):
    texts = " ".join(Reader(page).texts)
    wanted = (
        ["Placed error", "Least clearance", "Peak force", "Duration", "Missed", "Late"]
        + ["Start", "End", "Rehearsals and their verdicts", "Refused", "Clearance"]
        + ["Departure from the rehearsal", "Latency", "Lateness", "Joints", "Joint speeds"]
        + ["Tracking error", "Tool speed", "Wrist force", "Opening of the gripper"]
        + ["Modes", "What the gate did not simply allow", "Conditions", "Versions"]
    )
    missing = [title for title in wanted if title not in texts]
    print(f"missing: {missing}, allowed: none")
    assert not missing


def test_every_element_of_a_report_is_closed_in_order(page):
    found = Reader(page)
    print(f"wrong: {found.wrong}, left open: {found.open}, allowed: none")
    assert (found.wrong, found.open) == ([], [])


def test_a_report_needs_no_other_file_and_no_network(page):
    outside = [
        (tag, key, value[:80])
        for tag, attrs in Reader(page).elements
        for key, value in attrs.items()
        if key in ("src", "href", "srcset", "action", "data")
        and not value.startswith(("data:", "#"))
    ]
    outside += re.findall(r"https?:|@import|url\(", page)
    print(f"found {outside}, allowed: none")
    assert not outside


def test_a_report_is_small(page):
    print(f"{len(page.encode())} bytes, limit {MOST_BYTES}")
    assert len(page.encode()) < MOST_BYTES


def test_every_picture_says_in_words_what_it_shows(page):
    silent = [
        tag
        for tag, attrs in Reader(page).elements
        if (tag == "img" and not attrs.get("alt"))
        or (tag == "svg" and not attrs.get("aria-label") and attrs.get("aria-hidden") != "true")
    ]
    print(f"{len(silent)} pictures without words, allowed 0")
    assert not silent


def test_the_verdict_table_says_who_committed_what(page, log):
    run = read_run(log)
    digest = run.rehearsed[0].rehearsal.digest
    assert digest[:12] in page
    assert "by script" in page


def test_a_refused_commit_is_listed_with_its_reason(page):
    assert "no rehearsal with digest" in page


def test_conditions_that_are_not_the_usual_ones_are_listed(log, tmp_path, no_opengl):
    conditions = {"change": {"payload_kg": 0.3, "delay_ms": 0}, "faults": ["arm.delay=8ms"]}
    page = report_of(
        rewritten(log, tmp_path / "bad.mcap", lambda head: head | {"conditions": conditions})
    )
    assert "<dt>payload_kg</dt><dd>0.3</dd>" in page
    assert "<dd>arm.delay=8ms</dd>" in page
    assert "delay_ms" not in page


def test_the_film_shows_pictures_that_the_page_holds(page):
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])
    print(f"{len(data['frames'])} pictures at {len(data['shown'])} times")
    assert set(data["shown"]) == set(range(len(data["frames"])))
    assert all(uri.startswith("data:image/webp;base64,") for uri in data["frames"])


# ------------------------------------------------------------------------------------ bad input


def test_hostile_texts_in_a_log_stay_texts(log, tmp_path, no_opengl):
    def head(head):
        return head | {"task": EVIL, "settings": {EVIL: EVIL}, "versions": {"x": EVIL}}

    def record(channel, data):
        if channel == "/tick":
            arms = [arm | {"answer": arm["answer"] | {"arm": EVIL}} for arm in data["arms"]]
            return data | {"reason": EVIL, "mode": data["mode"], "arms": arms}
        return data | {"reason": EVIL, "ok": False, "hash": EVIL} if channel == "/result" else data

    extra = [("/refused", {"reason": EVIL}), ("/fault", {"error": EVIL, "trace": EVIL})]
    page = report_of(rewritten(log, tmp_path / "evil.mcap", head, record, extra))
    found = Reader(page)
    handlers = [key for _, attrs in found.elements for key in attrs if key.startswith("on")]
    print(f"{found.count('script')} scripts of 2, handlers {handlers}, wrong {found.wrong}")
    assert found.count("script") == 2
    assert not handlers
    assert (found.wrong, found.open) == ([], [])
    assert any(EVIL in text for text in found.texts)


def test_a_log_that_was_cut_off_gives_a_report_that_says_so(log, tmp_path, no_opengl):
    cut = tmp_path / "cut.mcap"
    cut.write_bytes(log.read_bytes()[: log.stat().st_size // 2])
    page = report_of(cut)
    assert "The log was cut off" in page
    assert "Incomplete" in page


def test_a_damaged_log_gives_a_report_of_what_can_be_read(log, tmp_path, no_opengl):
    data = bytearray(log.read_bytes())
    data[2 * len(data) // 3] ^= 0xFF
    path = tmp_path / "damaged.mcap"
    path.write_bytes(data)
    page = report_of(path)
    assert "The log is damaged" in page


def test_without_opengl_a_report_says_why_it_has_no_pictures(log, tmp_path, no_opengl):
    page = report_of(rewritten(log, tmp_path / "blind.mcap"))
    assert "No pictures: pictures: no OpenGL" in page
    assert "Joint speeds" in page


def test_a_log_of_other_robot_descriptions_gives_a_report_without_limits(log, tmp_path):
    def head(head):
        return head | {"scene": head["scene"].replace('"assets":{"', '"assets":{"no_', 1)}

    page = report_of(rewritten(log, tmp_path / "other.mcap", head))
    assert "limits are missing" in page
    assert "Joint speeds" in page


def test_a_log_without_a_tick_gives_a_report(log, tmp_path):
    def record(channel, data):
        return data if channel == "/result" else None

    page = report_of(rewritten(log, tmp_path / "empty.mcap", record=record))
    assert "The log holds no tick." in page


def test_a_missing_log_is_an_error_and_not_a_traceback(tmp_path, capsys):
    status = _main(tmp_path / "none.mcap")
    said = capsys.readouterr().err
    print(f"status {status}, said {said!r}")
    assert status == 2
    assert said.startswith("error: log ")


def test_a_log_of_another_kind_is_an_error(tmp_path):
    writer = LogWriter(tmp_path / "other.mcap", {})
    writer.event("/tick", 0, {"t_ns": 0})
    writer.close()
    with pytest.raises(LogError, match="not the log of a run"):
        write_report(tmp_path / "other.mcap", tmp_path / "report.html")


# ------------------------------------------------------------------------------------- contents


def test_a_run_that_was_not_done_says_what_is_wrong(log):
    word, sentence = headline(read_run(log))
    print(word, sentence)
    assert word == "failed"
    assert "mm from its place, 10 allowed" in sentence


def test_a_run_that_was_done_says_its_figures(log, tmp_path):
    figures = {"ok": True, "placed_error_mm": 0.52, "min_clearance_mm": 17.0, "peak_force_n": None}

    def record(channel, data):
        return data | figures if channel == "/result" else data

    word, sentence = headline(read_run(rewritten(log, tmp_path / "done.mcap", record=record)))
    print(word, sentence)
    assert word == "done"
    assert "within 0.5 mm" in sentence
    assert "no force measured" in sentence


def test_departures_peak_at_what_the_brain_wrote_down(log):
    run = read_run(log)
    joint, _, opening = departures(run)
    off = max(
        abs(np.nanmax(joint) - run.commits[0].joint_rad),
        abs(np.nanmax(opening) - run.commits[0].opening_m),
    )
    print(f"peaks differ by {off} rad or m, limit 0; {DEPART_RAD} rad would have been held")
    assert off == 0.0


def test_clearance_from_logged_states_is_that_of_the_run(log):
    run = read_run(log)
    again = Studio(build_model(resolve(load_scene("z1_bench"), 1)), run.truth).clearance(run.grips)
    off_mm = 1e3 * float(np.nanmax(np.abs(again.clearance_m - run.truth.clearance_m)))
    print(f"{off_mm:.3f} mm apart, limit 0.5 mm: one step of 2 ms at 0.25 m/s")
    assert off_mm < 0.5


def test_live_logs_show_late_ticks_and_faults(log, tmp_path, no_opengl):
    extra = [
        ("/pace", {"ticks": 500, "late": 3, "skipped": 1}),
        ("/pace", {"ticks": 1000, "late": 10, "skipped": 1}),
        ("/fault", {"error": "ValueError('x')", "trace": "the place"}),
    ]
    page = report_of(
        rewritten(log, tmp_path / "live.mcap", lambda head: head | {"driver": "live"}, extra=extra)
    )
    assert "<b>10</b> of 1000 ticks" in page
    assert "late from 7 to 7, skipped from 0 to 0" in page
    assert "ValueError(&#x27;x&#x27;)" in page


def test_where_nothing_moves_a_film_has_one_picture(log):
    truth = read_run(log).truth
    still = replace(truth, qpos=np.broadcast_to(truth.qpos[0], truth.qpos.shape))
    film = Studio(build_model(resolve(load_scene("z1_bench"), 1)), still).film(5)
    print(f"{len(film.uris)} pictures at {len(film.t_s)} times, wanted 1 at 5")
    assert (len(film.uris), len(film.t_s)) == (1, 5)


# --------------------------------------------------------------------------------------- curves


@given(st.integers(0, 10_000), st.integers(2, 400), st.floats(0.0, 200.0))
@settings(max_examples=60, deadline=None)
def test_a_thinned_curve_keeps_its_peaks(seed, points, height):
    rng = np.random.default_rng(seed)
    x, y = np.linspace(0.0, 100.0, points), height * rng.standard_normal(points)
    kept = y[thinned(x, y)]
    off = max(y.max() - kept.max(), kept.min() - y.min())
    print(f"peaks off by {off:.3f}, limit {FLAT}")
    assert off <= FLAT


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_a_thinned_smooth_curve_is_where_it_was(seed):
    rng = np.random.default_rng(seed)
    x = np.linspace(50.0, 950.0, 5000)
    y = 60.0 + 50.0 * np.sin(x * rng.uniform(0.005, 0.05) + rng.uniform(0.0, 6.0))
    kept = thinned(x, y)
    off = float(np.max(np.abs(np.interp(x, x[kept], y[kept]) - y)))
    slope = 50.0 * 0.05  # within one column the curve may go that far between kept points
    print(f"{len(kept)} of 5000 points, off by {off:.3f}, limit {FLAT + slope:.2f}")
    assert off <= FLAT + slope
    assert len(kept) < 1000
