"""Golden bytes of each kind of message, and that nothing damaged or wrong is ever taken."""

from __future__ import annotations

import json
import struct
import zlib

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brain.errors import LinkError
from brain.types import NS_PER_S, Action, Answer, Goal, Intent
from hardware import messages, wire
from hardware.status import SceneText, Status
from hardware.wire import Kind, Message, Pong
from tests.hardware import samples
from tests.values import replace

UNPACK = {
    Kind.POSE: wire.unpack_pose,
    Kind.INTENT: messages.unpack_intent,
    Kind.STATUS: messages.unpack_status,
    Kind.PONG: wire.unpack_pong,
    Kind.PREVIEW: messages.unpack_preview,
    Kind.SCENE: messages.unpack_scene,
}
SENT = {"session": 7, "seq": 3, "t_ns": 1000}
ALL = {
    Kind.POSE: wire.pack_pose(samples.hand(3, 1000), 7),
    Kind.STOP: wire.pack(Kind.STOP, expires_ns=1000, **SENT),
    Kind.INTENT: messages.pack_intent(samples.commit(3, 1000), session=7, expires_ns=NS_PER_S),
    Kind.STATUS: messages.pack_status(samples.status(3, 1000), 7),
    Kind.PING: wire.pack(Kind.PING, expires_ns=1000, **SENT),
    Kind.PONG: wire.pack_pong(Pong(9, -5, 77), **SENT),
    Kind.WANT: wire.pack(Kind.WANT, samples.DIGEST.encode(), expires_ns=1000, **SENT),
    Kind.PREVIEW: messages.pack_preview(samples.preview(), **SENT),
    Kind.SCENE: messages.pack_scene(SceneText(digest=samples.DIGEST, text="table: 1"), **SENT),
}
GOLDEN = {
    Kind.POSE: (
        "4641524d0100010070000000070000000300000000000000e80300000000000068d5f00800000000"
        "3bc0792b00070400333333333333e33f9a9999999999e9bf0000000000000000000000000000c03f"
        "9a9999999999e93f333333333333e33f0000000000000000000000000000d0bf0000000000000000"
        "0000000000000000000000000000f03f000000000000e03f000000000000d03f6c656674"
    ),
    Kind.STOP: (
        "4641524d0100020000000000070000000300000000000000e803000000000000e8030000000000005024db10"
    ),
    Kind.INTENT: (
        "4641524d010003007c000000070000000300000000000000e80300000000000000ca9a3b00000000"
        "21e6800c7b226b696e64223a22636f6d6d6974222c22736f75726365223a22736372697074222c22"
        "646967657374223a2261626162616261626162616261626162616261626162616261626162616261"
        "626162616261626162616261626162616261626162616261626162616261626162222c226e6f6e63"
        "65223a226e31227d"
    ),
    Kind.STATUS: (
        # the header, then the JSON of STATUS_JSON
        "4641524d0100040038040000070000000300000000000000e803000000000000e8030000000000004cc729c4"
    ),
    Kind.PING: (
        "4641524d0100050000000000070000000300000000000000e803000000000000e803000000000000d29354ef"
    ),
    Kind.PONG: (
        "4641524d0100060014000000070000000300000000000000e803000000000000e803000000000000"
        "efbf119c09000000fbffffffffffffff4d00000000000000"
    ),
    Kind.WANT: (
        "4641524d0100070040000000070000000300000000000000e803000000000000e803000000000000"
        "46dd8276616261626162616261626162616261626162616261626162616261626162616261626162"
        "61626162616261626162616261626162616261626162616261626162"
    ),
    Kind.PREVIEW: (
        "4641524d010008004b010000070000000300000000000000e803000000000000e803000000000000"
        "44b306aae70000007b22646967657374223a22616261626162616261626162616261626162616261"
        "62616261626162616261626162616261626162616261626162616261626162616261626162616261"
        "626162222c22726f7773223a322c2261726d73223a5b7b226e616d65223a226c656674222c22646f"
        "66223a332c226f70656e696e675f6d223a747275652c22636c656172616e63655f6d223a74727565"
        "2c22666f7263655f6e223a66616c73657d5d2c2276657264696374223a7b226b696e64223a227361"
        "6665222c22636c656172616e63655f6d223a302e30332c22616c6f6e675f6d223a6e756c6c7d7d00"
        "00000000000000002d3101000000000000000000000000000000000000c03f000000000000d03f00"
        "0000000000d83f000000000000e03f000000000000e43f0000000000000000000000000000903f00"
        "00000000000000000000000000a03f"
    ),
    Kind.SCENE: (
        "4641524d010009005f000000070000000300000000000000e803000000000000e803000000000000"
        "7ae632807b22646967657374223a2261626162616261626162616261626162616261626162616261"
        "62616261626162616261626162616261626162616261626162616261626162616261626162616222"
        "2c2274657874223a227461626c653a2031227d"
    ),
}
STATUS_JSON = (
    '{"t_ns":1000,"seq":3,"scene_digest":"abababababababababababababababababababababa'
    'babababababababababab","mode":"teleop","reason":"engaged","arms":[{"name":"left"'
    ',"q_rad":[0.1,-1.5,2.0,0.0,1.0,-0.1],"dq_rad_s":[0.0,0.0,0.0,0.0,0.0,0.0],"T_wor'
    'ld_tool":[[0.6,-0.8,0.0,0.125],[0.8,0.6,0.0,-0.25],[0.0,0.0,1.0,0.5],[0.0,0.0,0.'
    '0,1.0]],"T_world_target":null,"clearance_m":0.123,"clearance_against":"shelf","f'
    'orce_n":null,"opening_m":0.05,"holding":null,"stopped":false}],"answers":[{"acti'
    'on":"limit","rule":"speed","value":0.3,"limit":0.25,"arm":"left"}],"objects":[{"'
    'name":"part","T_world_object":[[0.6,-0.8,0.0,0.125],[0.8,0.6,0.0,-0.25],[0.0,0.0'
    ',1.0,0.5],[0.0,0.0,0.0,1.0]]}],"ticks":100,"late":1,"skipped":0,"lateness_ms":0.'
    '02,"digest":"abababababababababababababababababababababababababababababababab","'
    'verdict":"safe","progress":0.5,"note":"","link":{"received":0,"lost":0,"reordered":0,"dupl'
    'icate":0,"expired":0,"refused":0,"foreign":0,"unsynced":0,"latency_ms":null,"clo'
    'ck_error_ms":null},"echo":{"session":null,"pose_seq":null,"pose_t_ns":null,"inte'
    'nt_seq":null,"stop_seq":null}}'
)


def read(data: bytes) -> object:
    """Read a message down to its payload, as the ends do."""
    message = wire.unpack(data)
    if isinstance(message, LinkError) or message.kind not in UNPACK:
        return message
    return UNPACK[message.kind](message)


def with_payload(kind: Kind, payload: bytes, t_ns: int = 1000, expires_ns: int = NS_PER_S) -> bytes:
    return wire.pack(kind, payload, session=7, seq=3, t_ns=t_ns, expires_ns=expires_ns)


# ---------------------------------------------------------------- golden bytes


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_of_message_has_the_bytes_it_always_had(kind: Kind):
    golden = bytes.fromhex(GOLDEN[kind]) + (STATUS_JSON.encode() if kind is Kind.STATUS else b"")
    assert ALL[kind] == golden


# ---------------------------------------------------------------- what is sent arrives


def test_a_hand_sample_arrives_bit_for_bit():
    sample = samples.hand(3, 1000)
    assert samples.same(read(wire.pack_pose(sample, 7)), sample)


@pytest.mark.parametrize("manner", ["normal", "gently", "quickly"])
def test_the_manner_of_following_the_hand_arrives(manner: str):
    sample = samples.hand(3, 1000, manner=manner)
    assert read(wire.pack_pose(sample, 7)).manner == manner


def test_a_manner_that_nobody_knows_is_not_sent():
    with pytest.raises(LinkError, match="manner: 'softly' is unknown"):
        wire.pack_pose(samples.hand(3, 1000, manner="softly"), 7)


def test_an_untracked_hand_arrives_without_a_pose_and_an_unknown_grip_as_none():
    sample = samples.hand(3, 1000, tracked=False, T_seat_hand=None, grip=None, engaged=False)
    assert samples.same(read(wire.pack_pose(sample, 7)), sample)


GOALS = [
    Goal(kind="task", task="pick_place", arm="left"),
    Goal(kind="pose", arm="left", T_base_tool=samples.POSE),
    Goal(kind="joints", arm="left", q_rad=np.array([0.1, -1 / 3, 2.0])),
    Goal(kind="home", arm="left"),
]


@pytest.mark.parametrize("goal", GOALS, ids=lambda g: g.kind)
def test_an_intent_arrives_with_its_goal_bit_for_bit(goal: Goal):
    intent = Intent(t_ns=1000, seq=3, kind="rehearse", source="window", goal=goal)
    data = messages.pack_intent(intent, session=7, expires_ns=NS_PER_S)
    assert samples.same(read(data), intent)


def test_a_status_arrives_bit_for_bit():
    status = samples.status(3, 1000)
    assert samples.same(read(messages.pack_status(status, 7)), status)


def test_numbers_that_are_not_finite_arrive_in_a_status_as_unknown():
    arm = samples.status(0, 0).arms[0]
    arm = replace(arm, q_rad=np.full(6, np.nan), force_n=np.inf)
    found = read(messages.pack_status(samples.status(3, 1000, arms=(arm,)), 7)).arms[0]
    assert (found.q_rad, found.force_n) == (None, None)


def test_a_gate_answer_about_nan_arrives_as_nan():
    answer = Answer(action=Action.HOLD, rule="finite", value=np.nan, limit=0.0, arm="left")
    found = read(messages.pack_status(samples.status(3, 1000, answers=(answer,)), 7)).answers[0]
    assert np.isnan(found.value)


def test_an_overlong_reason_is_cut_and_still_arrives():
    found = read(messages.pack_status(samples.status(3, 1000, reason="x" * 10_000), 7))
    assert found.reason == "x" * 2000


def test_arrays_that_are_not_contiguous_arrive_whole():
    arm = replace(samples.status(0, 0).arms[0], T_world_tool=samples.POSE.T.copy().T)
    found = read(messages.pack_status(samples.status(3, 1000, arms=(arm,)), 7)).arms[0]
    assert np.array_equal(found.T_world_tool, samples.POSE)


@pytest.mark.parametrize("rows", [1, 2, 500])
def test_a_preview_arrives_bit_for_bit(rows: int):
    preview = samples.preview(rows)
    assert samples.same(read(messages.pack_preview(preview, **SENT)), preview)


def test_what_arrives_cannot_be_written_to():
    sample = read(wire.pack_pose(samples.hand(3, 1000), 7))
    preview = read(ALL[Kind.PREVIEW])
    arrays = (sample.T_seat_hand, preview.t_ns, preview.arms[0].q_rad)
    assert not any(array.flags.writeable for array in arrays)


# ---------------------------------------------------------------- what is damaged is refused


@given(st.data())
def test_one_flipped_bit_anywhere_in_a_message_is_refused(data: st.DataObject):
    kind = data.draw(st.sampled_from(list(Kind)))
    bit = data.draw(st.integers(0, 8 * len(ALL[kind]) - 1))
    bad = bytearray(ALL[kind])
    bad[bit // 8] ^= 1 << bit % 8
    assert isinstance(wire.unpack(bytes(bad)), LinkError)


@given(st.binary(max_size=300))
def test_random_bytes_are_refused(data: bytes):
    assert isinstance(wire.unpack(data), LinkError)


@given(st.sampled_from(list(Kind)), st.integers(0, 2000))
def test_a_message_cut_short_or_too_long_is_refused(kind: Kind, size: int):
    data = ALL[kind]
    if size != len(data):
        assert isinstance(wire.unpack((data + b"\0" * 2000)[:size]), LinkError)


@given(st.sampled_from(sorted(UNPACK)), st.binary(max_size=400))
def test_a_random_payload_behind_a_right_header_is_refused(kind: Kind, payload: bytes):
    found = UNPACK[kind](Message(kind, 7, 3, 1000, NS_PER_S, payload))
    if kind is not Kind.PONG or len(payload) != 20:
        assert isinstance(found, LinkError)


@given(st.sampled_from([Kind.POSE, Kind.INTENT, Kind.STATUS, Kind.PREVIEW]), st.data())
def test_a_changed_payload_behind_a_right_header_gives_a_message_or_a_refusal(
    kind: Kind, data: st.DataObject
):
    payload = bytearray(ALL[kind][wire.HEADER_SIZE :])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(payload) - 1))
        payload[at] = data.draw(st.integers(0, 255))
    found = UNPACK[kind](Message(kind, 7, 3, 1000, NS_PER_S, bytes(payload)))
    for array in [getattr(found, "T_seat_hand", None), getattr(found, "q_rad", None)]:
        assert array is None or np.isfinite(array).all()


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers(-(2**70), 2**70) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(st.data())
def test_any_json_in_any_field_of_a_status_gives_a_status_or_a_refusal(data: st.DataObject):
    fields = orjson.loads(STATUS_JSON)
    place = data.draw(st.sampled_from([fields, fields["arms"][0], fields["answers"][0]]))
    value = data.draw(JSON | st.just(10**400) | st.lists(st.just(10**400), max_size=6))
    place[data.draw(st.sampled_from(sorted(place)))] = value
    text = json.dumps(fields).encode()  # writes NaN and huge integers, which orjson does not
    assert isinstance(
        messages.unpack_status(Message(Kind.STATUS, 7, 3, 1000, 1000, text)), (Status, LinkError)
    )


# ---------------------------------------------------------------- what is wrong is named


def refusal(data: bytes) -> str:
    found = read(data)
    assert isinstance(found, LinkError), f"taken: {found}"
    return str(found)


def patched(at: int, new: bytes, kind: Kind = Kind.PING) -> bytes:
    """Return a message with header bytes changed and the CRC made right again."""
    head, payload = bytearray(ALL[kind][:40]), ALL[kind][wire.HEADER_SIZE :]
    head[at : at + len(new)] = new
    return bytes(head) + struct.pack("<I", zlib.crc32(payload, zlib.crc32(head))) + payload


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (patched(0, b"FARN"), "magic"),
        (patched(4, b"\x02\x00"), "version"),
        (patched(6, b"\x63\x00"), "kind"),
        (patched(8, struct.pack("<I", 2**31)), "length"),
        (patched(8, struct.pack("<I", 4), Kind.PONG), "length"),
        (ALL[Kind.PING][:-1] + b"\0", "CRC"),
        (b"", "header"),
    ],
)
def test_a_wrong_header_is_refused_by_the_name_of_its_field(data: bytes, field: str):
    assert refusal(data).startswith(field)


def pose_payload(**changes: object) -> bytes:
    fields = {"source": 0, "flags": 7, "n": 4, "T": samples.POSE[:3].ravel(), "grip": 0.5}
    fields |= changes
    head = struct.pack("<BBH", fields["source"], fields["flags"], fields["n"])
    return head + struct.pack("<13d", *fields["T"], fields["grip"]) + fields.get("arm", b"left")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"source": 4}, "source"),
        ({"flags": 7 + 24}, "flags"),
        ({"flags": 7 + 64}, "flags"),
        ({"n": 5}, "arm"),
        ({"arm": b"a\xff/x"}, "arm"),
        ({"arm": b"a/b."}, "arm"),
        ({"T": np.full(12, np.nan)}, "T_seat_hand"),
        ({"T": np.eye(4)[:3].ravel() * 1.01}, "T_seat_hand"),
        ({"T": np.diag([1.0, 1, -1, 0])[:3].ravel()}, "T_seat_hand"),
        ({"T": np.eye(4)[:3].ravel() + 1e3 * (np.arange(12) == 3)}, "T_seat_hand"),
        ({"flags": 6}, "T_seat_hand"),
        ({"grip": np.nan}, "grip"),
        ({"grip": 1.5}, "grip"),
        ({"flags": 3}, "grip"),
    ],
)
def test_a_wrong_hand_sample_is_refused_by_the_name_of_its_field(changes: dict, field: str):
    data = with_payload(Kind.POSE, pose_payload(**changes), expires_ns=2000)
    assert refusal(data).startswith(field)


def test_the_hand_sample_that_the_wrong_ones_were_made_from_is_taken():
    assert not isinstance(read(with_payload(Kind.POSE, pose_payload(), expires_ns=2000)), LinkError)


@pytest.mark.parametrize("life_ns", [0, -1, wire.POSE_LIFE_MAX_NS + 1])
def test_a_hand_sample_that_never_lives_or_lives_too_long_is_refused(life_ns: int):
    data = with_payload(Kind.POSE, pose_payload(), expires_ns=1000 + life_ns)
    assert refusal(data).startswith("expires_ns")


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("{", "JSON"),
        ('{"kind":"cancel","source":"script","extra":1}', "extra"),
        ('{"kind":"explode","source":"script"}', "kind"),
        ('{"kind":"cancel","source":"script","nonce":"n"}', "nonce"),
        ('{"kind":"commit","source":"script","digest":"ab","nonce":"n"}', "digest"),
        ('{"kind":"commit","source":"script","nonce":"n"}', "digest"),
        ('{"kind":"rehearse","source":"script"}', "goal"),
        ('{"kind":"rehearse","source":"script","goal":{"kind":"home"}}', "goal.arm"),
        (
            '{"kind":"rehearse","source":"script","goal":{"kind":"home","arm":"a","task":"b"}}',
            "goal.task",
        ),
        (
            '{"kind":"rehearse","source":"script",'
            '"goal":{"kind":"joints","arm":"a","q_rad":[1e999]}}',
            "goal.q_rad",
        ),
        (
            '{"kind":"rehearse","source":"script",'
            '"goal":{"kind":"joints","arm":"a","q_rad":[NaN]}}',
            "goal.q_rad",
        ),
        (
            '{"kind":"rehearse","source":"script",'
            '"goal":{"kind":"joints","arm":"a","q_rad":["1"]}}',
            "goal.q_rad",
        ),
    ],
)
def test_a_wrong_intent_is_refused_by_the_name_of_its_field(text: str, field: str):
    found = refusal(with_payload(Kind.INTENT, text.encode()))
    assert found.startswith(field), found


def test_an_intent_over_64_kib_cannot_be_made():
    with pytest.raises(LinkError, match="INTENT payload"):
        wire.pack(Kind.INTENT, b" " * (64 * 1024 + 1), expires_ns=1000, **SENT)


@pytest.mark.parametrize("bad", [{"grip": np.nan}, {"tracked": False}, {"arm": ""}])
def test_a_hand_sample_that_would_be_refused_cannot_be_sent(bad: dict):
    with pytest.raises(LinkError):
        wire.pack_pose(samples.hand(3, 1000, **bad), 7)


@pytest.mark.parametrize("column", ["q_rad", "clearance_m"])
def test_a_preview_with_nan_cannot_be_sent(column: str):
    preview = samples.preview()
    array = getattr(preview.arms[0], column).copy()
    array[0] = np.nan
    arm = replace(preview.arms[0], **{column: array})
    with pytest.raises(LinkError, match=f"left.{column}"):
        messages.pack_preview(replace(preview, arms=(arm,)), **SENT)


def test_a_preview_whose_times_do_not_rise_is_refused():
    preview = replace(samples.preview(), t_ns=np.array([5, 5]))
    assert refusal(messages.pack_preview(preview, **SENT)).startswith("t_ns")


def test_a_preview_that_says_a_million_rows_and_has_two_is_refused():
    payload = ALL[Kind.PREVIEW][wire.HEADER_SIZE :].replace(b'"rows":2', b'"rows":999999')
    payload = struct.pack("<I", struct.unpack("<I", payload[:4])[0] + 5) + payload[4:]
    assert "999999 rows" in refusal(with_payload(Kind.PREVIEW, payload))
