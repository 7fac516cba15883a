from __future__ import annotations

import copy
import hashlib
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from brain.digest import Digest

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def digest_of(**values: object) -> str:
    digest = Digest()
    for name, value in values.items():
        digest.add(name, value)
    return digest.hexdigest()


def test_the_layout_is_length_and_name_and_tag_and_shape_and_little_endian_float64():
    expected = struct.pack("<I", 1) + b"q" + b"a" + struct.pack("<II", 1, 2)
    expected += struct.pack("<2d", 1.5, -2.0)
    assert digest_of(q=np.array([1.5, -2.0])) == hashlib.sha256(expected).hexdigest()


def test_minus_zero_counts_as_zero_in_arrays_and_numbers():
    assert digest_of(q=np.array([-0.0]), f=-0.0) == digest_of(q=np.array([0.0]), f=0.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_is_refused_by_the_name_of_its_field(bad: float):
    for value in (bad, np.array([0.0, bad]), [0.0, np.float64(bad)]):
        with pytest.raises(ValueError, match="force_n"):
            Digest().add("force_n", value)


def test_a_refused_call_leaves_the_digest_as_it_was():
    digest = Digest()
    digest.add("a", 1)
    before = digest.hexdigest()
    with pytest.raises(ValueError, match="b"):
        digest.add("b", [2.0, np.nan])
    assert digest.hexdigest() == before


def test_an_integer_beyond_64_bits_is_refused_by_the_name_of_its_field():
    with pytest.raises(ValueError, match="seq"):
        Digest().add("seq", 2**63)


def test_a_type_without_a_digest_is_refused_by_the_name_of_its_field():
    with pytest.raises(TypeError, match="thing"):
        Digest().add("thing", object())


@given(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | FINITE
    | st.text(max_size=8)
    | st.binary(max_size=8)
    | st.lists(FINITE | st.text(max_size=3), max_size=3)
    | hnp.arrays(np.float64, hnp.array_shapes(min_side=0, max_side=3), elements=FINITE)
)
def test_equal_values_have_equal_digests(value: object):
    assert digest_of(a=value) == digest_of(a=copy.deepcopy(value))


@given(
    hnp.arrays(np.float64, 6, elements=FINITE),
    st.integers(0, 5),
    st.integers(0, 63),
)
def test_one_flipped_bit_of_an_array_changes_the_digest(a: np.ndarray, i: int, bit: int):
    a = a + 0.0
    b = a.copy()
    b.view(np.uint64)[i] ^= np.uint64(1 << bit)
    b = b + 0.0
    if np.isfinite(b).all() and not np.array_equal(a, b):
        assert digest_of(q=a) != digest_of(q=b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({"q": np.zeros(4)}, {"q": np.zeros((2, 2))}),
        ({"ab": "c"}, {"a": "bc"}),
        ({"a": 1}, {"a": 1.0}),
        ({"a": 1}, {"a": True}),
        ({"a": None}, {"a": ""}),
        ({"a": "x"}, {"a": b"x"}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": ["x", "y"]}, {"a": ["x"], "a.1": "y"}),
        ({"a": np.array([1])}, {"a": np.array([1.0])}),
    ],
)
def test_what_differs_in_name_type_shape_or_order_differs_in_digest(a: dict, b: dict):
    assert digest_of(**a) != digest_of(**b)


def test_memory_layout_and_byte_order_of_an_array_do_not_matter():
    a = np.arange(6.0).reshape(2, 3)
    assert digest_of(a=a) == digest_of(a=np.asfortranarray(a)) == digest_of(a=a.astype(">f8"))
