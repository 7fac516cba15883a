"""Two trees in joint space, from the start and from the goals, that grow towards each other.

Each iteration proposes one motion; the planner has it certified and the answer is settled here.

Source: J. Kuffner, S. LaValle, "RRT-Connect: an efficient approach to single-query path planning",
ICRA 2000.
"""

from __future__ import annotations

import math

from brain.geometry import Array
from brain.jit import lean_kernel
from brain.search import (
    AT,
    CONNECT,
    DIRECT,
    DONE,
    GROW,
    NODES,
    SHORTEN,
    VERTICES,
    Search,
    Task,
    draw,
    keep,
    propose_edge,
    separation,
)
from brain.shortcut import propose_shortcut, take_shortcut

RANGE_RAD = 0.8
"""Longest edge of a tree, in the weighted metric."""
SAMPLE_TRIES = 256
ROUNDS = 20
"""Trees are grown anew this often after the first path, each looking only for a shorter one."""


@lean_kernel
def propose(task: Task, search: Search) -> bool:
    """Propose the next motion; false when this iteration needs none."""
    phase = search.counter[AT.phase]
    if phase == DIRECT:
        g = search.counter[AT.tries]
        if g < task.goal_rad.shape[0]:
            propose_edge(search, task.start_rad, task.goal_rad[g], 1.0)
            return True
        _plant(task, search)
    elif phase == GROW:
        return _propose_growth(task, search)
    elif phase == CONNECT:
        _propose_connection(task, search)
        return True
    elif phase == SHORTEN:
        if propose_shortcut(task, search):
            return True
        _finish_round(task, search)
    return False


@lean_kernel
def settle(task: Task, search: Search, free: bool) -> None:
    """Go on from whether the proposed motion is free."""
    phase = search.counter[AT.phase]
    if phase == DIRECT:
        _settle_direct(task, search, free)
    elif phase == GROW and free:
        _settle_growth(task, search)
    elif phase == CONNECT:
        _settle_connection(task, search, free)
    elif phase == SHORTEN and free:
        take_shortcut(search)


@lean_kernel
def _settle_direct(task: Task, search: Search, free: bool) -> None:
    """Try the straight way to the next goal; one that is free is a path to begin with."""
    search.counter[AT.tries] += 1
    if not free:
        return
    for k in range(task.weight.shape[0]):
        search.path_rad[0, k] = search.edge_rad[0, k]
        search.path_rad[1, k] = search.edge_rad[1, k]
    search.counter[AT.vertices] = 2
    keep(task, search)
    if search.counter[AT.tries] == 1:  # nothing is shorter than the straight way to the nearest
        search.counter[AT.phase] = DONE


@lean_kernel
def _propose_growth(task: Task, search: Search) -> bool:
    """Extend the smaller tree towards a sample."""
    counter = search.counter
    if counter[AT.size] >= NODES - 1 or counter[AT.size + 1] >= NODES - 1:
        _plant(task, search)
    if not _sample(task, search):
        counter[AT.phase] = DONE
        return False
    side = 0 if counter[AT.size] <= counter[AT.size + 1] else 1
    i = _nearest_node(search, side, search.sample_rad, task.weight)
    far = separation(search.q_rad[side, i], search.sample_rad, task.weight)
    if far == 0.0:
        return False
    counter[AT.side], counter[AT.node] = side, i
    propose_edge(search, search.q_rad[side, i], search.sample_rad, RANGE_RAD / far)
    return True


@lean_kernel
def _settle_growth(task: Task, search: Search) -> None:
    """Add the new node; the other tree shall reach it."""
    counter = search.counter
    side = counter[AT.side]
    counter[AT.node] = _add_node(search, side, counter[AT.node])
    counter[AT.other] = _nearest_node(search, 1 - side, search.edge_rad[1], task.weight)
    counter[AT.phase] = CONNECT


@lean_kernel
def _connection(task: Task, search: Search) -> float:
    """How far the other tree still is from the new node."""
    side = search.counter[AT.side]
    target = search.q_rad[side, search.counter[AT.node]]
    return separation(search.q_rad[1 - side, search.counter[AT.other]], target, task.weight)


@lean_kernel
def _propose_connection(task: Task, search: Search) -> None:
    """Lead the other tree one edge towards the new node."""
    counter, far = search.counter, _connection(task, search)
    side = counter[AT.side]
    current = search.q_rad[1 - side, counter[AT.other]]
    share = 1.0 if far <= RANGE_RAD else RANGE_RAD / far
    propose_edge(search, current, search.q_rad[side, counter[AT.node]], share)


@lean_kernel
def _settle_connection(task: Task, search: Search, free: bool) -> None:
    """Go on with the next edge, with the path that the trees now make, or with a new sample."""
    counter = search.counter
    other = 1 - counter[AT.side]
    if not free:
        counter[AT.phase] = GROW
    elif _connection(task, search) > RANGE_RAD:
        if counter[AT.size + other] >= NODES - 1:
            _plant(task, search)
        else:
            counter[AT.other] = _add_node(search, other, counter[AT.other])
    else:
        _trace(search)
        if counter[AT.vertices] == 0:  # too many to be a good path
            _plant(task, search)
        else:
            keep(task, search)
            counter[AT.tries] = counter[AT.misses] = 0
            counter[AT.phase] = SHORTEN


@lean_kernel
def _finish_round(task: Task, search: Search) -> None:
    """Keep the path if it is the best; grow new trees for a better one."""
    keep(task, search)
    search.counter[AT.rounds] += 1
    if search.counter[AT.rounds] >= ROUNDS:
        search.counter[AT.phase] = DONE
    else:
        _plant(task, search)


@lean_kernel
def _plant(task: Task, search: Search) -> None:
    """Start both trees afresh."""
    for k in range(task.start_rad.shape[0]):
        search.q_rad[0, 0, k] = task.start_rad[k]
        for g in range(task.goal_rad.shape[0]):
            search.q_rad[1, g, k] = task.goal_rad[g, k]
    search.parent[0, 0] = -1
    for g in range(task.goal_rad.shape[0]):
        search.parent[1, g] = -1
    search.counter[AT.size] = 1
    search.counter[AT.size + 1] = task.goal_rad.shape[0]
    search.counter[AT.phase] = GROW


@lean_kernel
def _sample(task: Task, search: Search) -> bool:
    """Draw a configuration through which a path could be cheaper than the best one so far.

    False if no such configuration comes up.
    """
    for _ in range(SAMPLE_TRIES):
        if search.counter[AT.best] == 0:
            for k in range(task.weight.shape[0]):
                low, high = task.lower_rad[k], task.upper_rad[k]
                search.sample_rad[k] = low + (high - low) * draw(search.random)
            return True
        g = int(draw(search.random) * task.goal_rad.shape[0])
        if _sample_between(task, search, task.goal_rad[g]):
            return True
    return False


@lean_kernel
def _sample_between(task: Task, search: Search, goal_rad: Array) -> bool:
    """Draw from where a detour between start and goal costs less than the best path.

    Uniform in a prolate spheroid of the weighted space; false if there is none, or outside the
    joint range.

    Source: J. Gammell, S. Srinivasa, T. Barfoot, "Informed RRT*", IROS 2014; the long axis is put
    in place by a Householder reflection.
    """
    x, n = search.sample_rad, task.weight.shape[0]
    cost, straight = search.cost[0], separation(task.start_rad, goal_rad, task.weight)
    if not straight < cost:
        return False
    norm2 = 0.0
    for k in range(n):  # a point in the unit ball: a normal deviate, its length made u^(1/n)
        radius = math.sqrt(-2.0 * math.log(1.0 - draw(search.random)))
        x[k] = radius * math.cos(2.0 * math.pi * draw(search.random))
        norm2 += x[k] * x[k]
    scale = draw(search.random) ** (1.0 / n) / math.sqrt(norm2)
    for k in range(n):
        width = cost if k == 0 else math.sqrt(cost * cost - straight * straight)
        x[k] *= 0.5 * width * scale
    # Reflect the first axis onto the way to the goal: x - 2 v (v . x) / (v . v), v = e1 - way.
    along, size = 0.0, 0.0
    for k in range(n):
        v = (1.0 if k == 0 else 0.0) - _way(task, goal_rad, straight, k)
        along += v * x[k]
        size += v * v
    inside = True
    for k in range(n):
        v = (1.0 if k == 0 else 0.0) - _way(task, goal_rad, straight, k)
        if size > 0.0:
            x[k] -= 2.0 * v * along / size
        x[k] = 0.5 * (task.start_rad[k] + goal_rad[k]) + x[k] / task.weight[k]
        inside = inside and task.lower_rad[k] <= x[k] <= task.upper_rad[k]
    return inside


@lean_kernel
def _way(task: Task, goal_rad: Array, straight: float, k: int) -> float:
    """Component k of the unit vector from start to goal in the weighted space."""
    if straight == 0.0:
        return 1.0 if k == 0 else 0.0
    return float(task.weight[k] * (goal_rad[k] - task.start_rad[k]) / straight)


@lean_kernel
def _nearest_node(search: Search, tree: int, q_rad: Array, weight: Array) -> int:
    q, best, at = search.q_rad[tree], math.inf, 0
    for i in range(search.counter[AT.size + tree]):
        d = 0.0
        for k in range(weight.shape[0]):
            u = weight[k] * (q[i, k] - q_rad[k])
            d += u * u
        if d < best:
            best, at = d, i
    return at


@lean_kernel
def _add_node(search: Search, tree: int, parent: int) -> int:
    """Hang the far end of the edge in hand onto a tree."""
    i = int(search.counter[AT.size + tree])
    for k in range(search.edge_rad.shape[1]):
        search.q_rad[tree, i, k] = search.edge_rad[1, k]
    search.parent[tree, i] = parent
    search.counter[AT.size + tree] = i + 1
    return i


@lean_kernel
def _trace(search: Search) -> None:
    """Write the path through the two nodes that met; no vertices if there are too many."""
    counter, n = search.counter, search.path_rad.shape[1]
    side = counter[AT.side]
    first = counter[AT.node] if side == 0 else counter[AT.other]
    second = counter[AT.other] if side == 0 else counter[AT.node]
    length, i = 0, first
    while i >= 0:
        length += 1
        i = search.parent[0, i]
    vertices, i = length, search.parent[1, second]
    while i >= 0:
        vertices += 1
        i = search.parent[1, i]
    # Both trees hold the meeting point, the second one perhaps not as a node of its own.
    vertices += 1
    counter[AT.vertices] = vertices if vertices <= VERTICES else 0
    if vertices > VERTICES:
        return
    at, i = length - 1, first
    while i >= 0:
        for k in range(n):
            search.path_rad[at, k] = search.q_rad[0, i, k]
        at -= 1
        i = search.parent[0, i]
    at, i = length, second
    while i >= 0:
        for k in range(n):
            search.path_rad[at, k] = search.q_rad[1, i, k]
        at += 1
        i = search.parent[1, i]
