"""Two trees in joint space, from the start and from the goals, that grow towards each other.

Each iteration proposes one motion; the planner has it certified and the answer is settled here.
What is left of an earlier search is repaired first: its edges are looked at again one by one, those
of its path first. Then the start tries to reach what leads to a goal by one edge, the shortest way
first. Only if that fails the rest is repaired, and trees grow.

Source: J. Kuffner, S. LaValle, "RRT-Connect: an efficient approach to single-query path planning",
ICRA 2000.
"""

from __future__ import annotations

import math

from brain.forest import add_node, adopt, group, nearest_node, plant, to_go, trace
from brain.geometry import Array
from brain.jit import lean_kernel
from brain.search import (
    ADOPT,
    AT,
    BRIDGE,
    CONNECT,
    DIRECT,
    DONE,
    GOAL,
    GROW,
    LOOSE,
    NODES,
    REPAIR,
    SHORTEN,
    START,
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
PATIENCE = 100
"""Samples drawn before a repaired forest in which there is still no path is given up: time until a
path has a long tail, which a new beginning cuts (N. Wedge, M. Branicky, "On heavy-tails and restart
strategies in RRTs", 2008)."""
BRIDGES = 12
"""Nodes of the goals' tree that the start tries to reach by one edge."""


@lean_kernel
def propose(task: Task, search: Search) -> bool:
    """Propose the next motion; false when this iteration needs none."""
    phase = search.counter[AT.phase]
    if phase == REPAIR:
        return _propose_repair(task, search)
    if phase == DIRECT:
        g = search.counter[AT.tries]
        if g < task.goal_rad.shape[0]:
            propose_edge(search, task.start_rad, task.goal_rad[g], 1.0)
            return True
        _begin(task, search)
    elif phase == BRIDGE:
        return _propose_bridge(task, search)
    elif phase == GROW:
        return _propose_growth(task, search)
    elif phase == ADOPT:
        counter = search.counter
        propose_edge(search, search.q_rad[counter[AT.node]], search.q_rad[counter[AT.other]], 1.0)
        return True
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
    phase, counter = search.counter[AT.phase], search.counter
    if phase == REPAIR:
        if not free:
            search.parent[counter[AT.checked]] = -1
        counter[AT.checked] += 1
    elif phase == DIRECT:
        _settle_direct(task, search, free)
    elif phase == BRIDGE and free:
        _take_path(task, search, 0, counter[AT.node])
    elif phase == GROW and free:
        counter[AT.node] = add_node(search, counter[AT.node])
        _lead(task, search)
    elif phase == ADOPT:
        if free:
            adopt(search, counter[AT.node], counter[AT.other])
        _lead_other(task, search)
    elif phase == CONNECT:
        _settle_connection(task, search, free)
    elif phase == SHORTEN and free:
        take_shortcut(search)


# ---------------------------------------------------------------- what an earlier search left


@lean_kernel
def _propose_repair(task: Task, search: Search) -> bool:
    """Propose the next edge that has to be looked at again; go on after the last."""
    counter = search.counter
    while counter[AT.checked] < min(counter[AT.until], counter[AT.size]):
        i = counter[AT.checked]
        above = search.parent[i]
        if above >= 0:
            propose_edge(search, search.q_rad[i], search.q_rad[above], 1.0)
            return True
        counter[AT.checked] += 1
    group(task, search)
    if counter[AT.until] < NODES:
        counter[AT.tries], counter[AT.phase] = 0, DIRECT
    else:
        for i in range(counter[AT.size]):
            search.value[i] = 0.0
        counter[AT.side], counter[AT.node], counter[AT.patience] = START, 0, PATIENCE
        _lead(task, search)
    return False


@lean_kernel
def _begin(task: Task, search: Search) -> None:
    """Begin with what an earlier search left, or with nothing but the roots."""
    if search.counter[AT.size] <= 1 + task.goal_rad.shape[0]:
        _plant(task, search)
        return
    to_go(task, search)
    search.counter[AT.tries], search.counter[AT.phase] = 0, BRIDGE


@lean_kernel
def _propose_bridge(task: Task, search: Search) -> bool:
    """Propose to go from the start straight to the node by which the way would be shortest."""
    counter, value = search.counter, search.value
    best, at = math.inf, -1
    for i in range(1 + task.goal_rad.shape[0], counter[AT.size]):
        if value[i] < best:
            best, at = value[i], i
    if at < 0 or counter[AT.tries] >= BRIDGES:
        counter[AT.until], counter[AT.phase] = NODES, REPAIR
        return False
    value[at] = math.inf
    counter[AT.tries] += 1
    counter[AT.node] = at
    propose_edge(search, search.q_rad[0], search.q_rad[at], 1.0)
    return True


# ---------------------------------------------------------------- the search


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
    counter[AT.patience] -= 1
    if counter[AT.size] >= NODES - 1 or counter[AT.patience] == 0:
        _plant(task, search)
    if not _sample(task, search):
        counter[AT.phase] = DONE
        return False
    side = START if counter[AT.trees + START] <= counter[AT.trees + GOAL] else GOAL
    i = nearest_node(search, side, search.sample_rad, task.weight)
    far = separation(search.q_rad[i], search.sample_rad, task.weight)
    if far == 0.0:
        return False
    counter[AT.side], counter[AT.node] = side, i
    propose_edge(search, search.q_rad[i], search.sample_rad, RANGE_RAD / far)
    return True


@lean_kernel
def _lead(task: Task, search: Search) -> None:
    """Lead a piece that was cut off and is near to the new node, then the other tree.

    Each node of a piece is led to a tree once only: `value` is 0 where it was not yet.
    """
    counter = search.counter
    if counter[AT.trees + LOOSE] > 0:
        q, best, at = search.q_rad[counter[AT.node]], RANGE_RAD, -1
        for i in range(counter[AT.size]):
            if search.tree[i] == LOOSE and search.value[i] == 0.0:
                far = separation(search.q_rad[i], q, task.weight)
                if far < best:
                    best, at = far, i
        if at >= 0:
            search.value[at] = 1.0
            counter[AT.other], counter[AT.phase] = at, ADOPT
            return
    _lead_other(task, search)


@lean_kernel
def _lead_other(task: Task, search: Search) -> None:
    """The other tree shall reach the new node."""
    counter = search.counter
    q = search.q_rad[counter[AT.node]]
    counter[AT.other] = nearest_node(search, 1 - counter[AT.side], q, task.weight)
    counter[AT.phase] = CONNECT


@lean_kernel
def _connection(task: Task, search: Search) -> float:
    """How far the other tree still is from the new node."""
    target = search.q_rad[search.counter[AT.node]]
    return separation(search.q_rad[search.counter[AT.other]], target, task.weight)


@lean_kernel
def _propose_connection(task: Task, search: Search) -> None:
    """Lead the other tree one edge towards the new node."""
    counter, far = search.counter, _connection(task, search)
    share = 1.0 if far <= RANGE_RAD else RANGE_RAD / far
    propose_edge(search, search.q_rad[counter[AT.other]], search.q_rad[counter[AT.node]], share)


@lean_kernel
def _settle_connection(task: Task, search: Search, free: bool) -> None:
    """Go on with the next edge, with the path that the trees now make, or with a new sample."""
    counter = search.counter
    if not free:
        counter[AT.phase] = GROW
    elif _connection(task, search) > RANGE_RAD:
        if counter[AT.size] >= NODES - 1:
            _plant(task, search)
        else:
            counter[AT.other] = add_node(search, counter[AT.other])
    elif counter[AT.side] == START:
        _take_path(task, search, counter[AT.node], counter[AT.other])
    else:
        _take_path(task, search, counter[AT.other], counter[AT.node])


@lean_kernel
def _take_path(task: Task, search: Search, first: int, second: int) -> None:
    """Keep and shorten the path through an edge between the trees."""
    counter = search.counter
    trace(search, first, second)
    if counter[AT.vertices] == 0:  # too many to be a good path
        _plant(task, search)
        return
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
    """Start both trees afresh and let them grow."""
    plant(task, search)
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
