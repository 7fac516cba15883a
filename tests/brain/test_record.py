"""Records: frozen, by keyword, copied with changes, and the same after a trip between processes."""

import pickle

import pytest

import hardware.receive
import hardware.spine
import sim.devices
import sim.faulty  # noqa: F401 - so that every record of the project is known
from brain.record import Record, replace
from brain.types import Action, Answer, ArmCommand

COMMAND = ArmCommand(t_ns=1, seq=2, expires_ns=3, q_rad=None, stop=True)


def every(kind: type) -> list[type]:
    return [kind, *(k for inner in kind.__subclasses__() for k in every(inner))]


def test_every_record_is_frozen_and_made_by_keyword():
    kinds = every(Record)[1:]
    assert {ArmCommand, Answer, hardware.spine.TickRecord, hardware.receive.Heard} <= set(kinds)
    for kind in kinds:
        assert kind.__struct_config__.frozen, kind
        if kind.__struct_fields__:
            with pytest.raises(TypeError, match="positional"):
                kind(*(None,) * len(kind.__struct_fields__))


def test_a_field_cannot_be_set_added_or_left_out():
    with pytest.raises(AttributeError):
        COMMAND.stop = False
    with pytest.raises(AttributeError):
        COMMAND.note = ""
    with pytest.raises(TypeError, match="expires_ns"):
        ArmCommand(t_ns=1, seq=2, q_rad=None)


def test_a_copy_has_other_fields_and_no_unknown_ones():
    copy = replace(COMMAND, seq=5)
    assert (copy.t_ns, copy.seq, copy.expires_ns, copy.q_rad, copy.stop) == (1, 5, 3, None, True)
    assert COMMAND.seq == 2
    with pytest.raises(TypeError, match="speed"):
        replace(COMMAND, speed=1)


def test_records_with_arrays_are_compared_by_identity_and_answers_by_value():
    assert replace(COMMAND) != COMMAND
    answer = Answer(action=Action.HOLD, rule="force N", value=31.0, limit=30.0, arm="ur5e")
    assert replace(answer) == answer
    assert replace(answer, value=32.0) != answer


def test_a_record_comes_back_from_another_process_as_it_was():
    back = pickle.loads(pickle.dumps(COMMAND))
    assert type(back) is ArmCommand
    assert [getattr(back, n) for n in COMMAND.__struct_fields__] == [1, 2, 3, None, True]
