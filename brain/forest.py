"""The forest of a search: trees from the start and from the goals, and pieces cut off from both.

A piece that an obstacle has cut off keeps its certified edges. When a tree comes near, one new edge
takes in all of it.

Source: T.-Y. Li, Y.-C. Shie, "An incremental learning approach to motion planning with roadmap
management", ICRA 2002 (pieces that are cut off and joined again).
"""

from __future__ import annotations

import math

from brain.geometry import Array
from brain.jit import lean_kernel
from brain.robot import IntArray
from brain.search import AT, GOAL, HIDDEN, LOOSE, NODES, START, VERTICES, Search, Task, separation


@lean_kernel
def plant(task: Task, search: Search) -> None:
    """Start the trees afresh: the start, then the goals."""
    counter = search.counter
    for k in range(task.start_rad.shape[0]):
        search.q_rad[0, k] = task.start_rad[k]
        for g in range(task.goal_rad.shape[0]):
            search.q_rad[1 + g, k] = task.goal_rad[g, k]
    counter[AT.size] = 1 + task.goal_rad.shape[0]
    for i in range(counter[AT.size]):
        search.parent[i] = -1
    counter[AT.until], counter[AT.patience] = NODES, 0
    group(task, search)


@lean_kernel
def group(task: Task, search: Search) -> None:
    """Write which tree each node belongs to, by its root, and count them."""
    counter, parent, tree = search.counter, search.parent, search.tree
    roots, unknown = 1 + task.goal_rad.shape[0], -1
    for label in range(4):
        counter[AT.trees + label] = 0
    for i in range(counter[AT.size]):
        tree[i] = HIDDEN if i >= counter[AT.until] else unknown
    for i in range(counter[AT.size]):
        top = i
        while tree[top] == unknown and parent[top] >= 0:
            top = parent[top]
        if tree[top] == unknown:
            tree[top] = START if top == 0 else GOAL if top < roots else LOOSE
        label, j = tree[top], i
        while tree[j] == unknown:
            tree[j] = label
            j = parent[j]
        counter[AT.trees + tree[i]] += 1


@lean_kernel
def nearest_node(search: Search, tree: int, q_rad: Array, weight: Array) -> int:
    """The node of a tree nearest to q (n,); the tree must have one."""
    best, at = math.inf, 0
    for i in range(search.counter[AT.size]):
        if search.tree[i] != tree:
            continue
        d = 0.0
        for k in range(weight.shape[0]):
            u = weight[k] * (search.q_rad[i, k] - q_rad[k])
            d += u * u
        if d < best:
            best, at = d, i
    return at


@lean_kernel
def add_node(search: Search, parent: int) -> int:
    """Hang the far end of the edge in hand onto a node."""
    i = int(search.counter[AT.size])
    for k in range(search.edge_rad.shape[1]):
        search.q_rad[i, k] = search.edge_rad[1, k]
    search.parent[i], search.tree[i] = parent, search.tree[parent]
    search.counter[AT.size] = i + 1
    search.counter[AT.trees + search.tree[i]] += 1
    return i


@lean_kernel
def adopt(search: Search, node: int, piece: int) -> None:
    """Hang a piece that was cut off onto a node, by its node `piece`, which becomes its root."""
    counter, parent, tree = search.counter, search.parent, search.tree
    below, i = node, piece
    while i >= 0:
        above = parent[i]
        parent[i] = below
        below, i = i, above
    label = tree[node]
    for j in range(counter[AT.size]):
        top = j
        while tree[top] == LOOSE and parent[top] >= 0:
            top = parent[top]
        if tree[j] == LOOSE and tree[top] == label:
            # Below it the walk now ends sooner; those above were or will be reached from elsewhere.
            tree[j] = label
            counter[AT.trees + LOOSE] -= 1
            counter[AT.trees + label] += 1


@lean_kernel
def trace(search: Search, first: int, second: int) -> None:
    """Write the path from the start through an edge to a goal; no vertices if there are too many.

    `first` is the edge's node in the tree of the start, `second` that in the tree of the goals.
    """
    length, i = 0, first
    while i >= 0:
        length += 1
        i = search.parent[i]
    vertices, i = length, second
    while i >= 0:
        vertices += 1
        i = search.parent[i]
    search.counter[AT.vertices] = vertices if vertices <= VERTICES else 0
    if vertices > VERTICES:
        return
    at, i = length - 1, first
    while i >= 0:
        _copy(search.q_rad[i], search.path_rad[at])
        at -= 1
        i = search.parent[i]
    at, i = length, second
    while i >= 0:
        _copy(search.q_rad[i], search.path_rad[at])
        at += 1
        i = search.parent[i]


@lean_kernel
def to_go(task: Task, search: Search) -> None:
    """Write into `value` how far it is by way of each node of the goals' tree; inf for others.

    Straight from the start to the node, then along the tree.
    """
    for i in range(search.counter[AT.size]):
        if search.tree[i] != GOAL:
            search.value[i] = math.inf
            continue
        far, j = separation(task.start_rad, search.q_rad[i], task.weight), i
        while search.parent[j] >= 0:
            above = search.parent[j]
            far += separation(search.q_rad[j], search.q_rad[above], task.weight)
            j = above
        search.value[i] = far


@lean_kernel
def transplant(task: Task, old: Search, new: Search, place: IntArray, most: int) -> None:
    """Write a forest for a task, out of what an old search had found: its path, trees and pieces.

    The best path comes first, as a chain that leads to its end; then trees, then pieces, up to
    `most` nodes in all. Roots are those of the new task; what hung on an old one is cut off unless
    that is a root again. Edges are not looked at, and nodes not grouped; hidden are all but the
    chain. `place` (NODES,) is scratch.
    """
    n = 1 + task.goal_rad.shape[0]
    _copy(task.start_rad, new.q_rad[0])
    for g in range(n - 1):
        _copy(task.goal_rad[g], new.q_rad[1 + g])
    for i in range(n):
        new.parent[i] = -1
    roots, next_one = n, -1
    for v in range(old.counter[AT.best] - 1, -1, -1):
        root = _equal(new.q_rad, roots, old.best_rad[v])
        if root >= 0:
            next_one = root
        elif n < most:
            _copy(old.best_rad[v], new.q_rad[n])
            new.parent[n] = next_one
            next_one = n
            n += 1
    until, size = n, old.counter[AT.size]
    for i in range(size):
        place[i] = -1
    for i in range(size):  # a piece of one node is worth nothing: what is no end of an edge
        if old.parent[i] >= 0:
            place[i] = place[old.parent[i]] = -2
    for pieces in range(2):
        for i in range(size):
            if place[i] != -2 or (old.tree[i] >= LOOSE) != (pieces == 1):
                continue
            root = _equal(new.q_rad, roots, old.q_rad[i]) if old.parent[i] < 0 else -1
            if root >= 0:
                place[i] = root
            elif n < most:
                _copy(old.q_rad[i], new.q_rad[n])
                place[i] = n
                n += 1
            else:
                place[i] = -1
    for i in range(size):
        if place[i] >= roots:
            above = old.parent[i]
            new.parent[place[i]] = place[above] if above >= 0 else -1
    new.counter[AT.size], new.counter[AT.until] = n, until


@lean_kernel
def prune(task: Task, search: Search, place: IntArray) -> None:
    """Drop pieces, and nodes by which no path can be shorter than the best one (none: pieces only).

    What hangs on a node keeps it. Order stays. `place` (NODES,) is scratch.
    """
    counter, parent, roots = search.counter, search.parent, 1 + task.goal_rad.shape[0]
    size = counter[AT.size]
    for i in range(size):
        place[i] = 0
    for i in range(size):
        if i >= roots and (search.tree[i] >= LOOSE or _detour(task, search, i) > search.cost[0]):
            continue
        j = i
        while j >= 0 and place[j] == 0:
            place[j] = 1
            j = parent[j]
    n = 0
    for i in range(size):
        if place[i] == 0:
            place[i] = -1
            continue
        place[i] = n
        _copy(search.q_rad[i], search.q_rad[n])
        parent[n], search.tree[n] = parent[i], search.tree[i]
        n += 1
    for i in range(n):
        if parent[i] >= 0:
            parent[i] = place[parent[i]]
    counter[AT.size], counter[AT.until] = n, NODES
    group(task, search)


@lean_kernel
def _detour(task: Task, search: Search, i: int) -> float:
    """The least that a path by way of a node can cost."""
    best = math.inf
    for g in range(task.goal_rad.shape[0]):
        best = min(best, separation(search.q_rad[i], task.goal_rad[g], task.weight))
    return best + separation(task.start_rad, search.q_rad[i], task.weight)


@lean_kernel
def _copy(a: Array, b: Array) -> None:
    for k in range(a.shape[0]):
        b[k] = a[k]


@lean_kernel
def _equal(q_rad: Array, rows: int, q: Array) -> int:
    """The first row that equals q, -1 for none."""
    for i in range(rows):
        same = True
        for k in range(q.shape[0]):
            same = same and q_rad[i, k] == q[k]
        if same:
            return i
    return -1
