"""Making a path shorter: one short cut at a time, proposed here, certified by the planner."""

from __future__ import annotations

from brain.geometry import Array
from brain.jit import lean_kernel
from brain.search import AT, VERTICES, Search, Task, draw, path_length, propose_edge, separation

TRIES, MISSES = 120, 24
"""A path is shortened until so many tries, or so many in a row in vain."""


@lean_kernel
def propose_shortcut(task: Task, search: Search) -> bool:
    """Propose to join two vertices or any two places of the path; false when it is short enough."""
    counter, path = search.counter, search.path_rad
    vertices = counter[AT.vertices]
    while vertices > 2 and counter[AT.tries] < TRIES and counter[AT.misses] < MISSES:
        counter[AT.tries] += 1
        counter[AT.misses] += 1
        if counter[AT.tries] % 2 == 0:
            i = int(draw(search.random) * (vertices - 2))
            j = i + 2 + int(draw(search.random) * (vertices - 2 - i))
            propose_edge(search, path[i], path[j], 1.0)
        else:
            length, edge = path_length(path, vertices, task.weight), search.edge_rad
            a, b = draw(search.random) * length, draw(search.random) * length
            i = _place_on_path(search, vertices, task.weight, min(a, b), edge[0])
            j = _place_on_path(search, vertices, task.weight, max(a, b), edge[1]) + 1
            if j - i < 2:
                continue
            propose_edge(search, edge[0], edge[1], 1.0)
        counter[AT.first], counter[AT.last] = i, j
        return True
    return False


@lean_kernel
def take_shortcut(search: Search) -> None:
    """Put the short cut into the path: its ends replace the vertices between those it joins."""
    counter, path, edge = search.counter, search.path_rad, search.edge_rad
    i, j, vertices = counter[AT.first], counter[AT.last], counter[AT.vertices]
    ends = 0 if counter[AT.tries] % 2 == 0 else 2  # joined vertices are in the path already
    shift = ends - (j - i - 1)
    if vertices + shift > VERTICES:
        return
    for step in range(j, vertices):
        m = step if shift <= 0 else vertices - 1 - (step - j)
        for k in range(path.shape[1]):
            path[m + shift, k] = path[m, k]
    for m in range(ends):
        for k in range(path.shape[1]):
            path[i + 1 + m, k] = edge[m, k]
    counter[AT.vertices] = vertices + shift
    counter[AT.misses] = 0


@lean_kernel
def _place_on_path(search: Search, vertices: int, weight: Array, along: float, out: Array) -> int:
    """Write the configuration at a length along the path; returns the vertex before it."""
    path = search.path_rad
    for i in range(vertices - 1):
        d = separation(path[i], path[i + 1], weight)
        if along < d or i == vertices - 2:
            share = min(along / d, 1.0) if d > 0.0 else 0.0
            for k in range(out.shape[0]):
                out[k] = path[i, k] + share * (path[i + 1, k] - path[i, k])
            return i
        along -= d
    return 0
