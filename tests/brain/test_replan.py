"""A forest that outlives its world: what is kept holds, what does not hold is dropped."""

import numpy as np

from brain.body import place, pose, work
from brain.certify import path_at
from brain.changes import added, common
from brain.distance import free, obstacles
from brain.forest import adopt, group
from brain.geometry import transform
from brain.occupied import came
from brain.planner import KEPT, Plan, Planner
from brain.search import AT, GOAL, HIDDEN, LOOSE, NODES, REPAIR, START, Task, new_search
from brain.world import make_world
from tests.brain.plain_distance import SCENES, box, q_range, random_world, scene, ur5e_with_spheres
from tests.brain.test_occupied import mapped

ARM = ur5e_with_spheres()
BODY = place(ARM, np.eye(4))
RANGE = q_range(ARM)
MARGIN_M, SELF_MARGIN_M, TOLERANCE_M = 0.01, 0.002, 0.001


def planner(name, seed, iterations=800):
    world, start, goals = scene(name)
    found = Planner(BODY, obstacles(world), start, goals, RANGE, seed=seed, margin_m=MARGIN_M)
    found.advance(iterations)
    return found, world


def dropped(world, path, rng):
    """The same world with a box around the hand at some place of a path, both ends left free."""
    at = work(BODY)
    while True:
        q = path_at(path, rng.uniform(0.2, 0.8) * (len(path) - 1))
        pose(BODY.arrays, q, at)
        centre = at.centre_m[rng.choice(np.flatnonzero(BODY.spheres.link >= 5))]
        item = box("dropped", tuple(centre), tuple(rng.uniform(0.02, 0.04, 3)))
        found = make_world((*world.objects, item))
        ends = (path[0], path[-1])
        near = obstacles(found).arrays
        if all(free(BODY.arrays, near, end, at, 0.015, SELF_MARGIN_M) for end in ends):
            return found


def edges(search):
    """All edges, each the two configurations (2, n), whichever end hangs on which."""
    size, parent = search.counter[AT.size], search.parent
    return [search.q_rad[[i, parent[i]]].copy() for i in range(size) if parent[i] >= 0]


def names(found):
    return {frozenset((a.tobytes(), b.tobytes())) for a, b in found}


def is_clear(near, edge, more_m=0.0):
    """Whether an edge keeps its margins, and some more, by dense sampling."""
    rows = edge[0] + (edge[1] - edge[0]) * np.linspace(0.0, 1.0, 300)[:, None]
    margins_m = MARGIN_M + more_m, SELF_MARGIN_M + more_m
    at = work(BODY)
    return all(free(BODY.arrays, near.arrays, q, at, *margins_m) for q in rows)


def way_is_clear(near, path):
    return all(is_clear(near, path[i : i + 2]) for i in range(len(path) - 1))


def repair(the):
    """Have all edges looked at again, not only those that are needed for a path."""
    the._search.counter[AT.until] = NODES
    while the._search.counter[AT.phase] == REPAIR:
        the.advance(1)


def test_a_repaired_forest_has_no_edge_that_comes_too_near_and_dropped_only_those():
    rng, kept, lost = np.random.default_rng(1), 0, 0
    for name in SCENES:
        for seed in range(6):
            the, world = planner(name, seed, iterations=40 + 40 * seed)
            if the.path() is None:
                continue
            near = obstacles(dropped(world, the.path(), rng))
            the.change(near)
            before = edges(the._search)
            repair(the)
            after = names(edges(the._search))
            for edge in before:
                kept, lost = kept + (names([edge]) <= after), lost + (not names([edge]) <= after)
                if names([edge]) <= after:
                    assert is_clear(near, edge)
                else:  # sampled: somewhere between it is a bit less
                    assert not is_clear(near, edge, TOLERANCE_M + 0.0005)
    print(f"{kept} edges kept, {lost} lost")
    assert kept >= 50
    assert lost >= 20


def test_every_node_belongs_to_the_tree_of_its_root():
    the, world = planner("shelf", 3)
    the.change(obstacles(dropped(world, the.path(), np.random.default_rng(2))))
    repair(the)
    the.advance(40)
    search, goals = the._search, len(the._task.goal_rad)
    count = [0, 0, 0]
    for i in range(search.counter[AT.size]):
        root, steps = i, 0
        while search.parent[root] >= 0:
            root, steps = search.parent[root], steps + 1
            assert steps <= search.counter[AT.size]
        label = START if root == 0 else GOAL if root <= goals else LOOSE
        assert search.tree[i] == label
        count[label] += 1
    assert list(search.counter[AT.trees : AT.trees + 3]) == count


def test_a_piece_is_taken_in_whole_by_one_edge():
    rng = np.random.default_rng(4)
    for _ in range(50):
        search, n = new_search(2, 0), 40
        search.q_rad[:n] = rng.uniform(-1.0, 1.0, (n, 2))
        search.parent[:n] = [-1, -1, *(rng.integers(-1, i) for i in range(2, n))]
        search.counter[AT.size], search.counter[AT.until] = n, NODES
        task = Task(search.q_rad[0], search.q_rad[1:2], np.zeros(2), np.zeros(2), np.ones(2))
        group(task, search)
        loose = np.flatnonzero(search.tree[:n] == LOOSE)
        if len(loose) == 0:
            continue
        piece, node = rng.choice(loose), rng.choice(np.flatnonzero(search.tree[:n] != LOOSE))
        before, label = names(edges(search)), search.tree[node]
        tree_before = search.tree[:n].copy()
        adopt(search, node, piece)
        assert names(edges(search)) == before | names([search.q_rad[[piece, node]]])
        said = search.tree[:n].copy()
        counts = search.counter[AT.trees : AT.trees + 3].copy()
        group(task, search)
        np.testing.assert_array_equal(said, search.tree[:n])
        np.testing.assert_array_equal(counts, search.counter[AT.trees : AT.trees + 3])
        assert (said[tree_before != LOOSE] == tree_before[tree_before != LOOSE]).all()
        assert said[piece] == label


def test_a_change_keeps_edges_of_the_path_and_of_the_forest_and_invents_none():
    the, world = planner("shelf", 3)
    path = the.path()
    known = names(edges(the._search)) | names(path[i : i + 2] for i in range(len(path) - 1))
    the.change(obstacles(world), start_rad=path_at(path, 0.5))
    kept = names(edges(the._search))
    assert kept <= known
    # All of the path but its first edge, which the arm has left behind, leads to the goal.
    assert names(path[i : i + 2] for i in range(len(path) - 1)) <= kept
    assert the._search.counter[AT.size] <= KEPT


def test_after_a_change_there_is_no_path_until_one_holds_among_the_new_obstacles():
    found = 0
    for seed in range(8):
        the, world = planner("table", seed)
        rng = np.random.default_rng(seed)
        near = obstacles(dropped(world, the.path(), rng))
        the.change(near, start_rad=path_at(the.path(), 0.1))
        assert the.path() is None
        the.advance(4000, first=True)
        plan = the.result()
        if isinstance(plan, Plan):
            found += 1
            np.testing.assert_array_equal(plan.path_rad[0], the._start)
            for i in range(len(plan.path_rad) - 1):
                assert is_clear(near, plan.path_rad[i : i + 2])
    print(f"{found} of 8 found")
    assert found >= 4


def test_where_nothing_came_the_rest_of_the_path_is_there_again_soon():
    the, world = planner("shelf", 1)
    path = the.path()
    rest = np.concatenate([path_at(path, 0.5)[None], path[1:]])
    the.change(obstacles(world), start_rad=rest[0])
    the.advance(4000, first=True)
    again = the.result()
    assert isinstance(again, Plan)
    weight = the._task.weight
    length = np.linalg.norm(np.diff(rest, axis=0) * weight, axis=1).sum()
    print(f"length {again.cost:.3f}, of what was left {length:.3f}")
    assert again.cost <= length + 1e-9


def test_a_change_during_a_repair_forgets_no_obstacle():
    rng = np.random.default_rng(5)
    the, world = planner("shelf", 2)
    path = the.path()
    first, second = (dropped(world, path, rng) for _ in range(2))
    both = obstacles(make_world((*first.objects, second.objects[-1])))
    the.change(obstacles(first))
    the.advance(3)
    the.change(both)
    repair(the)
    assert len(edges(the._search)) >= 5
    for edge in edges(the._search):
        assert is_clear(both, edge)


def test_what_was_not_looked_at_again_yet_is_looked_at_after_the_next_change():
    rng, hidden = np.random.default_rng(11), 0
    for seed in range(16):
        the, world = planner(list(SCENES)[seed % 4], seed, 200)
        if the.path() is None:
            continue
        start, *_, goal = the.path()
        aside = rng.choice(the._search.q_rad[: the._search.counter[AT.size]])
        one = dropped(world, np.array([start, aside, goal]), rng)
        the.change(obstacles(one))
        the.advance(400, first=True)
        if the.path() is None or the._search.counter[AT.trees + HIDDEN] == 0:
            continue
        hidden += the._search.counter[AT.trees + HIDDEN]
        the.change(obstacles(one))  # nothing new, and yet not all holds
        repair(the)
        for edge in edges(the._search):
            assert is_clear(obstacles(one), edge)
    print(f"{hidden} nodes had been left")
    assert hidden >= 20


def test_what_goes_away_for_a_frame_and_comes_back_is_in_the_way_again():
    """Ways that were found meanwhile lead through it, beside edges that were not looked at."""
    through = 0
    for seed in range(40):
        name = list(SCENES)[seed % 4]
        the, world = planner(name, seed, 60 + 5 * seed)
        gone = 1 + seed // 4 % (len(world.objects) - 1)
        less = [item for i, item in enumerate(world.objects) if i != gone]
        near, bare = obstacles(world), obstacles(make_world(tuple(less)))
        the.change(bare)
        the.advance(400, first=True)
        path, search = the.path(), the._search
        if path is None or search.counter[AT.trees + HIDDEN] == 0:
            continue
        through += not way_is_clear(near, path)
        the.change(near, start_rad=path[0] + 1e-3)  # so that the whole path is kept as a chain
        repair(the)
        assert all(is_clear(near, edge) for edge in edges(the._search))
    print(f"{through} ways went through it")
    assert through >= 2


def test_a_planner_that_was_refused_goes_on_with_what_it_had():
    the, world = planner("shelf", 2)
    path = the.path()
    on_arm = make_world((*world.objects, box("post", (0.0, 0.0, 0.5), (0.3, 0.3, 0.02))))
    the.change(obstacles(on_arm))
    assert (the.result().reason, the.path(), the.advance(10)) == ("start", None, True)
    after = obstacles(dropped(world, path, np.random.default_rng(6)))
    the.change(after)
    repair(the)
    assert len(edges(the._search)) >= 5
    for edge in edges(the._search):
        assert is_clear(after, edge)


def test_equal_changes_give_equal_plans_however_they_are_sliced():
    paths = []
    for piece in (1, 13, 400):
        the, world = planner("shelf", 4, 300)
        near = obstacles(dropped(world, the.path(), np.random.default_rng(7)))
        the.change(near, start_rad=path_at(the.path(), 0.2))
        for done in range(0, 400, piece):
            the.advance(min(piece, 400 - done))
        paths.append(the.result())
    assert all(isinstance(p, Plan) for p in paths)
    assert len({(p.path_rad.tobytes(), p.iterations, p.looks, p.cost) for p in paths}) == 1


# ---------------------------------------------------------------- what came


def test_shapes_that_came_are_those_that_were_not_there_bit_for_bit():
    rng = np.random.default_rng(8)
    before, after = random_world(rng, 5), random_world(rng, 3)
    moved = make_world((*before.objects[:3], *after.objects), frozenset({("fingers", "object 1")}))
    loose = make_world(moved.objects)
    found = added(obstacles(before).arrays, obstacles(moved).arrays)
    np.testing.assert_array_equal(
        found.shapes.T_world_shape, moved.shapes.T_world_shape[[1, 3, 4, 5]]
    )
    back = added(obstacles(moved).arrays, obstacles(loose).arrays)
    assert (back.shapes.T_world_shape == moved.shapes.T_world_shape[1]).all(axis=(1, 2)).any()
    assert len(added(obstacles(moved).arrays, obstacles(moved).arrays).shapes.kind) == 0


def test_what_two_worlds_have_in_common_is_of_both():
    rng = np.random.default_rng(12)
    one, other = random_world(rng, 5), random_world(rng, 5)
    mixed = make_world((*one.objects[2:4], *other.objects))
    a, b = np.unique(rng.integers(-40, 40, (2, 200, 3)), axis=1)
    b = np.unique(np.concatenate([b, a[::3]]), axis=0)
    arm = [(place(ARM, transform((-1.0, 0.0, 0.0)), name="other"), np.zeros(6))]
    near = [
        obstacles(world, others, mapped(voxels).arrays).arrays
        for world, others, voxels in ((one, arm, a), (mixed, arm, b))
    ]
    found = common(*near)
    np.testing.assert_array_equal(found.shapes.T_world_shape, one.shapes.T_world_shape[2:4])
    assert len(found.others.radius_m) == len(arm[0][0].spheres.radius_m)
    both = {tuple(v) for v in a.tolist()} & {tuple(v) for v in b.tolist()}
    assert int(np.unpackbits(found.seen.row).sum()) == len(both) > 0
    moved = obstacles(one, [(arm[0][0], np.ones(6))]).arrays
    assert len(common(near[0], moved).others.radius_m) == 0
    assert len(common(near[0], moved).seen.row) == 0


def test_another_arm_that_moved_came():
    other, world = place(ARM, transform((-1.0, 0.0, 0.0)), name="other"), make_world(())
    near = [obstacles(world, [(other, np.full(6, turn))]).arrays for turn in (0.1, 0.1, 0.2)]
    assert len(added(near[0], near[1]).others.radius_m) == 0
    assert len(added(near[1], near[2]).others.radius_m) == len(other.spheres.radius_m)


def test_voxels_that_came_are_those_that_were_not_there():
    rng = np.random.default_rng(9)
    for _ in range(10):
        old = np.unique(rng.integers(-50, 50, (300, 3)), axis=0)
        new = np.unique(
            np.concatenate([old[rng.random(len(old)) < 0.7], rng.integers(-50, 50, (80, 3))]),
            axis=0,
        )
        known = {tuple(v) for v in old.tolist()}
        expected = [v for v in new.tolist() if tuple(v) not in known]
        found, same = came(mapped(old).arrays, mapped(new).arrays), mapped(expected).arrays
        assert int(np.unpackbits(found.row).sum()) == len(expected)
        for b in zip(*np.nonzero(same.brick >= 0), strict=True):
            np.testing.assert_array_equal(found.row[found.brick[b]], same.row[same.brick[b]])
        np.testing.assert_array_equal(found.apart, same.apart)
    assert len(came(mapped(old).arrays, mapped(old).arrays).row) == 0
    assert (
        came(mapped(old, 0.02).arrays, mapped(new).arrays).row.shape == mapped(new).arrays.row.shape
    )


# ---------------------------------------------------------------- hand at rest, hand in motion


def test_what_is_pruned_could_not_have_made_the_path_shorter():
    rng, gone = np.random.default_rng(10), 0
    for seed in range(6):
        the, world = planner("shelf", seed, 250)
        the.change(obstacles(dropped(world, the.path(), rng)))
        repair(the)
        the.advance(400, first=True)
        task, search = the._task, the._search
        before = {q.tobytes() for q in search.q_rad[: search.counter[AT.size]]}
        known, cost = names(edges(search)), search.cost[0]
        the.prune()
        size = search.counter[AT.size]
        after = {q.tobytes() for q in search.q_rad[:size]}
        assert names(edges(search)) <= known
        assert not (search.tree[:size] == LOOSE).any()
        for lost in before - after:
            gone += 1
            q = np.frombuffer(lost)
            ends = [np.linalg.norm((q - e) * task.weight) for e in (task.start_rad, *task.goal_rad)]
            inside = ends[0] + min(ends[1:]) <= cost
            assert not inside or lost in _loose(known, before, task)
        the.advance(500)
        assert isinstance(the.result(), Plan) or the.path() is None
    print(f"{gone} nodes pruned")
    assert gone >= 10


def _loose(known, nodes, task):
    """Nodes in no way joined to the start or a goal by the edges known."""
    joined = {task.start_rad.tobytes(), *(g.tobytes() for g in task.goal_rad)}
    while True:
        more = {end for edge in known if edge & joined for end in edge} - joined
        if not more:
            return nodes - joined
        joined |= more


def test_an_edge_towards_a_place_holds_and_hangs_on_the_nearest_goal():
    world, start, goals = scene("bin")
    near = obstacles(world)
    the = Planner(BODY, near, start, goals, RANGE, seed=1, margin_m=MARGIN_M)
    up = goals[0] + [0.0, -0.2, 0.0, 0.0, 0.0, 0.0]
    assert the.grow_towards(up)
    (edge,) = edges(the._search)
    np.testing.assert_allclose(edge, [up, goals[0]])
    assert is_clear(near, edge)
    assert not the.grow_towards(goals[0] + [0.0, 0.6, 0.0, 0.0, 0.0, 0.0])  # into the table
    assert len(edges(the._search)) == 1
    the.advance(4000)
    assert isinstance(the.result(), Plan)
