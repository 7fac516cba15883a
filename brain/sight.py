"""Whether what moves by itself is in sight: what nobody sees may be anywhere."""

from __future__ import annotations

from brain.state import BrainState

UNSEEN_MS = 100
"""A moving object that was not seen for longer may be anywhere: at 1 m/s it is 100 mm on."""
UNSEEN_NS = UNSEEN_MS * 1_000_000


def lost_sight(state: BrainState, t_ns: int) -> str | None:
    """Say so if something that moves by itself was not seen for so long that it may be anywhere."""
    for item in state.world.objects:
        if item.role != "moving":
            continue
        last_ns = state.sighted_ns.get(item.name)
        if last_ns is None:
            return f"nobody has seen {item.name}, which moves"
        if not 0 <= t_ns - last_ns <= UNSEEN_NS:
            age_ms = (t_ns - last_ns) // 1_000_000
            return f"{item.name}, which moves, was last seen {age_ms} ms ago, {UNSEEN_MS} allowed"
    return None
