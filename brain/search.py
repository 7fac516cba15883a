"""The state of a search through joint space, and what forest, trees and short cuts need of it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from brain.geometry import Array
from brain.jit import lean_kernel
from brain.robot import IntArray

NODES, VERTICES = 16384, 256
"""Size of a forest and of a path; a forest that is full is started again."""

DIRECT, GROW, CONNECT, SHORTEN, DONE, REPAIR, BRIDGE, ADOPT = 0, 1, 2, 3, 4, 5, 6, 7
"""Phases of a search."""

START, GOAL, LOOSE, HIDDEN = 0, 1, 2, 3
"""The tree that a node belongs to: rooted in the start, in a goal, cut off from both, or in none
since its edge was not looked at again yet."""


class Task(NamedTuple):
    """What is asked: from `start_rad` (n,) to any of `goal_rad` (g, n), sorted, nearest first.

    Samples are drawn between `lower_rad` and `upper_rad`; distances are weighted per joint.
    """

    start_rad: Array
    goal_rad: Array
    lower_rad: Array
    upper_rad: Array
    weight: Array


class Places(NamedTuple):
    """Places in `Search.counter`.

    `side` and `node`: the tree that grew and its node; `other`: the node of another tree that is
    being led there. `first` and `last`: the vertices of the path that a short cut would join.
    `size`: nodes in all; from `trees` on, those of each tree. `checked`: where a repair has got
    to; nodes from `until` on are hidden. `patience`: samples until what was kept is given up.
    """

    phase: int = 0
    tries: int = 1
    misses: int = 2
    rounds: int = 3
    side: int = 4
    node: int = 5
    other: int = 6
    first: int = 7
    last: int = 8
    vertices: int = 9
    best: int = 10
    size: int = 11
    trees: int = 12
    checked: int = 16
    until: int = 17
    patience: int = 18


AT = Places()
COUNTERS = 19


class Search(NamedTuple):
    """The state of a search: a forest of NODES, the path in hand, the best one, an edge.

    Of each node `q_rad` (NODES, n), `parent` (-1: a root) and `tree`; the start and the goals are
    the first ones. Every edge of a tree or piece is certified, but while in `REPAIR`. `value`
    (NODES,) is scratch. `counter` holds `Places`. `cost` (1,) belongs to the best path. `random`
    (1,) is the generator's whole state. `edge_rad` (2, n) is the motion that is proposed next.
    """

    q_rad: Array
    parent: IntArray
    tree: IntArray
    value: Array
    path_rad: Array
    best_rad: Array
    counter: IntArray
    cost: Array
    random: npt.NDArray[np.uint64]
    edge_rad: Array
    sample_rad: Array


def new_search(n: int, seed: int) -> Search:
    """Make the state of a search in n joints that has not begun."""
    return Search(
        q_rad=np.zeros((NODES, n)),
        parent=np.zeros(NODES, dtype=np.int64),
        tree=np.zeros(NODES, dtype=np.int64),
        value=np.zeros(NODES),
        path_rad=np.zeros((VERTICES, n)),
        best_rad=np.zeros((VERTICES, n)),
        counter=np.zeros(COUNTERS, dtype=np.int64),
        cost=np.full(1, math.inf),
        random=np.array([seed], dtype=np.uint64),
        edge_rad=np.zeros((2, n)),
        sample_rad=np.zeros(n),
    )


@lean_kernel
def draw(state: npt.NDArray[np.uint64]) -> float:
    """Draw uniformly from [0, 1).

    Source: G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", OOPSLA
    2014 (SplitMix64).
    """
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return float(z >> np.uint64(11)) * 2.0**-53


@lean_kernel
def separation(a: Array, b: Array, weight: Array) -> float:
    """Weighted distance between two configurations."""
    total = 0.0
    for k in range(weight.shape[0]):
        d = weight[k] * (a[k] - b[k])
        total += d * d
    return math.sqrt(total)


@lean_kernel
def path_length(path_rad: Array, vertices: int, weight: Array) -> float:
    """Weighted length of the first vertices of a path."""
    total = 0.0
    for i in range(vertices - 1):
        total += separation(path_rad[i], path_rad[i + 1], weight)
    return total


@lean_kernel
def propose_edge(search: Search, a: Array, b: Array, share: float) -> None:
    """Propose the motion from a, a share of the way to b, at most all of it."""
    edge = search.edge_rad
    for k in range(a.shape[0]):
        edge[0, k] = a[k]
        edge[1, k] = b[k] if share >= 1.0 else a[k] + share * (b[k] - a[k])


@lean_kernel
def keep(task: Task, search: Search) -> None:
    """Keep the path in hand if it is the best so far."""
    vertices = search.counter[AT.vertices]
    cost = path_length(search.path_rad, vertices, task.weight)
    if search.counter[AT.best] > 0 and not cost < search.cost[0]:
        return
    for i in range(vertices):
        for k in range(search.path_rad.shape[1]):
            search.best_rad[i, k] = search.path_rad[i, k]
    search.counter[AT.best] = vertices
    search.cost[0] = cost
