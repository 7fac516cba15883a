"""Small wrong changes to a module, one at a time: what its tests have to notice.

Left alone is what has no behaviour: imports, annotations, decorators, docstrings, format widths.
Left out is what could only end in a missing name or argument: any test would notice.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

EDGE = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
OPPOSITE = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.MatMult: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
TWINS = ("min", "max"), ("any", "all"), ("minimum", "maximum"), ("argmin", "argmax")
TWIN = {a: b for pair in TWINS for a, b in (pair, pair[::-1])}
MEMBERS = {
    "Action": ("ALLOW", "LIMIT", "HOLD", "STOP"),
    "Mode": ("DISARMED", "HOLD", "TELEOP", "REHEARSING", "PREVIEW", "COMMIT", "STOPPED", "FAULT"),
    "Event": ("ENGAGE", "RELEASE", "DISARM", "CANCEL", "COMMIT", "DONE", "HOLD", "STOP"),
}
NO_BEHAVIOUR = {"annotation", "returns", "decorator_list", "format_spec", "type_params"}
DROPPED = (ast.Assign, ast.AugAssign, ast.Expr, ast.If, ast.Raise, ast.Return)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A module with one change: in which line of which function, before and after, all of it."""

    line: int
    where: str
    operator: str
    was: str
    becomes: str
    source: str


def mutants(source: str) -> list[Mutant]:
    """Return every mutant of a module, in the order of its lines; no two are the same module."""
    tree = ast.parse(source)
    parts = [ast.unparse(part) for part in tree.body]
    found: dict[str, Mutant] = {}
    for i, (part, plain) in enumerate(zip(tree.body, parts, strict=True)):
        for parent, field, index, node, function in _places(tree, None, part):
            for operator, new in _changes(node, function):
                _put(parent, field, index, ast.copy_location(new, node))
                changed = ast.unparse(tree.body[i])
                _put(parent, field, index, node)
                whole = "\n".join([*parts[:i], changed, *parts[i + 1 :]])
                if changed != plain and whole not in found:
                    was, becomes = _difference(plain, changed)
                    found[whole] = Mutant(
                        line=getattr(node, "lineno", 0),
                        where=getattr(part, "name", ""),
                        operator=operator,
                        was=was,
                        becomes=becomes,
                        source=whole,
                    )
    return sorted(found.values(), key=lambda m: m.line)


Place = tuple[ast.AST, str, int | None, ast.AST, ast.FunctionDef | None]


def _places(
    parent: ast.AST, function: ast.FunctionDef | None, only: ast.AST | None = None
) -> Iterator[Place]:
    """Every node (of one part only) that may be changed, where it hangs, in which function."""
    function = parent if isinstance(parent, ast.FunctionDef) else function
    for field, value in ast.iter_fields(parent):
        if field in NO_BEHAVIOUR:
            continue
        for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(node, ast.AST) or isinstance(node, (ast.Import, ast.ImportFrom)):
                continue
            if only is not None and node is not only:
                continue
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                continue  # a docstring
            yield parent, field, index, node, function
            yield from _places(node, function)


def _put(parent: ast.AST, field: str, index: int | None, node: ast.AST) -> None:
    if index is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[index] = node


def _difference(plain: str, changed: str) -> tuple[str, str]:
    """Return the lines between what two texts have in common at both ends."""
    a, b = ([line.strip() for line in text.splitlines()] for text in (plain, changed))
    while a and b and a[0] == b[0]:
        a, b = a[1:], b[1:]
    while a and b and a[-1] == b[-1]:
        a, b = a[:-1], b[:-1]
    return " / ".join(a), " / ".join(b)


# ------------------------------------------------------------------------------ the changes


def _changes(node: ast.AST, function: ast.FunctionDef | None) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        for table, operator in ((EDGE, "edge"), (OPPOSITE, "opposite")):
            if type(node.ops[0]) in table:
                yield operator, _with(node, ops=[table[type(node.ops[0])]()])
    elif isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            if type(op) in EDGE:
                ops = [EDGE[type(op)]() if j == i else o for j, o in enumerate(node.ops)]
                yield "edge", _with(node, ops=ops)
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "and, or", _with(node, op=other)
        for i in range(len(node.values)):
            rest = node.values[:i] + node.values[i + 1 :]
            yield "drop condition", rest[0] if len(rest) == 1 else _with(node, values=rest)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        yield "drop sign", node.operand
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        yield "arithmetic", _with(node, op=ARITHMETIC[type(node.op)]())
    elif isinstance(node, ast.Constant):
        yield from (("constant", ast.Constant(value)) for value in _constants(node.value))
    elif isinstance(node, ast.Attribute):
        yield from _members(node)
    elif isinstance(node, ast.Call):
        yield from _calls(node)
    elif isinstance(node, ast.Dict):
        for i in range(len(node.keys)):
            keys, values = (x[:i] + x[i + 1 :] for x in (node.keys, node.values))
            yield "drop entry", _with(node, keys=keys, values=values)
    elif isinstance(node, ast.Set) and len(node.elts) > 1:
        for i in range(len(node.elts)):
            yield "drop entry", _with(node, elts=node.elts[:i] + node.elts[i + 1 :])
    if isinstance(node, (ast.If, ast.While, ast.IfExp)) and not isinstance(node.test, ast.Compare):
        yield "opposite", _with(node, test=ast.UnaryOp(ast.Not(), node.test))
    if isinstance(node, ast.Return) and node.value is not None:
        yield "return None", ast.Return(ast.Constant(None))
    if function is not None and isinstance(node, DROPPED) and not _trivial(node, function):
        yield "drop statement", ast.Pass()


def _trivial(node: ast.AST, function: ast.FunctionDef) -> bool:
    """Whether dropping a statement is but a name that is missing, or the same as returning None."""
    if isinstance(node, ast.Assign):
        stored = [x.id for x in ast.walk(function) if isinstance(x, ast.Name) and _stores(x)]
        known = [*stored, *(a.arg for a in ast.walk(function) if isinstance(a, ast.arg))]
        targets = [x.id for x in ast.walk(node) if isinstance(x, ast.Name) and _stores(x)]
        return any(known.count(name) == 1 for name in targets)
    return node is function.body[-1] and isinstance(node, ast.Return)


def _stores(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def _with(node: ast.AST, **fields: object) -> ast.AST:
    """A copy of a node with other fields; what hangs below stays the same objects."""
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def _constants(value: object) -> list[object]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1]
    if isinstance(value, float):
        return [2.0 * value, 0.5 * value] if value else [1.0]
    return [f"{value}~"] if isinstance(value, str) else []


def _members(node: ast.Attribute) -> Iterator[tuple[str, ast.AST]]:
    if node.attr in TWIN:
        yield "twin", _with(node, attr=TWIN[node.attr])
    names = MEMBERS.get(node.value.id, ()) if isinstance(node.value, ast.Name) else []
    if node.attr in names:
        following = names[(names.index(node.attr) + 1) % len(names)]
        yield "other member", _with(node, attr=following)


def _calls(node: ast.Call) -> Iterator[tuple[str, ast.AST]]:
    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
    if name in TWIN and isinstance(node.func, ast.Name):
        yield "twin", _with(node, func=ast.Name(TWIN[name], ast.Load()))
    if name in TWIN:  # the order of their arguments is nothing
        return
    for i in range(len(node.args) - 1):
        args = [*node.args[:i], node.args[i + 1], node.args[i], *node.args[i + 2 :]]
        yield "exchange arguments", _with(node, args=args)
    for i in range(len(node.keywords) - 1):
        a, b = node.keywords[i : i + 2]
        pair = [ast.keyword(a.arg, b.value), ast.keyword(b.arg, a.value)]
        keywords = [*node.keywords[:i], *pair, *node.keywords[i + 2 :]]
        yield "exchange arguments", _with(node, keywords=keywords)
    if not name[:1].isupper():  # a constructor that misses a field is but an error
        for i in range(len(node.keywords)):
            keywords = node.keywords[:i] + node.keywords[i + 1 :]
            yield "drop argument", _with(node, keywords=keywords)
