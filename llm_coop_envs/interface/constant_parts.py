"""Parts of templates that read alike in round after round: rendered once, and kept for as long as their slots stay.

Most of a text are rules, which are made of constant slots alone. Rendering them anew for every player in every round
was most of a text's cost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeGuard

from jinja2 import Environment, Template, meta, nodes, pass_context
from jinja2.runtime import Context

from llm_coop_envs.interface.sandbox import context_of

# It holds a space, so that no template can name it.
_FILTER = "constant part"
# To look up a text costs as much as rendering a part with fewer names and filters than these.
_LEAST_WORK = 3
# What names other templates, or has names that are seen elsewhere, stays where it is.
_UNSPLITTABLE = (
    nodes.Include,
    nodes.Import,
    nodes.FromImport,
    nodes.Extends,
    nodes.Block,
    nodes.CallBlock,
    nodes.Macro,
)
# Texts of some hundred players, in a few thousand megabytes at the very most; then all are forgotten.
_MOST_TEXTS = 4096
# Under this name a rendering keeps the texts of the parts that it has found.
_FOUND = "constant texts"

_Values = Callable[[Mapping[str, Any]], tuple[Any, ...]]


@dataclass(frozen=True, kw_only=True)
class _Part:
    """A constant part.

    Attributes:
        names: the slots that it uses.
        values: finds their values.
        template: its words.
        whole: the number of the template that it is a part of.
    """

    names: Set[str]
    values: _Values
    template: Template
    whole: int


class ConstantParts:
    """The constant parts of some templates, and their texts.

    A text is found by the identity of its slots' values, because equal values need not read alike: `1` and `1.0`. The
    values are kept with their text, so that no other value can get their identity. Looking at the values of each part
    costs more than all else about it: hence a rendering looks once at those of all of its template's parts, and only
    where it meets them for the first time at those of each. Parts are compiled like whole templates and run in the same
    sandbox.

    Args:
        environment: compiles the templates; it gets a filter of its own.
        constant: the slots that seldom change. Their values must be immutable.
    """

    def __init__(self, environment: Environment, constant: Collection[str]) -> None:
        self._environment = environment
        self._constant = frozenset(constant)
        self._parts: list[_Part] = []
        self._wholes: list[_Values] = []
        self._texts: dict[tuple[int, ...], tuple[tuple[Any, ...], str]] = {}
        self._by_whole: dict[tuple[int, ...], tuple[tuple[Any, ...], dict[int, str]]] = {}
        environment.filters[_FILTER] = self._text

    def split(self, template: nodes.Template) -> nodes.Template:
        """Replace the constant parts of a parsed template by their texts; it is changed in place."""
        if next(template.find_all(_UNSPLITTABLE), None) is None:
            stored = [name.name for name in template.find_all(nodes.Name) if name.ctx == "store"]
            once = {name for name in stored if stored.count(name) == 1}
            first = len(self._parts)
            self._split(template.body, self._constant.difference(stored), once, [])
            self._wholes.append(_getter({name for part in self._parts[first:] for name in part.names}))
            _drop_unused(template, once)
            template.set_environment(self._environment)
        return template

    def _split(
        self, body: list[nodes.Node], constant: frozenset[str], once: Set[str], before: Sequence[nodes.Assign]
    ) -> None:
        """Replace the constant parts of some statements, in place.

        Args:
            body: the statements.
            constant: the names that are constant where they begin.
            once: the names that are assigned in one place of the template alone.
            before: the assignments that made some of `constant`.
        """
        assignments = list(before)
        changed: list[nodes.Node] = []
        run: list[nodes.Node] = []
        for node in _apart(body):
            is_constant = self._undeclared([node]) <= constant
            if is_constant and _is_plain(node, once):
                assignments.append(node)
                constant |= _targets(node)
                # It says nothing itself: what is constant before and after it is one part.
                changed.append(node)
            elif is_constant and _only_says(node):
                run.append(node)
            else:
                changed += self._replaced(run, assignments)
                run = []
                if isinstance(node, nodes.If):
                    for branch in (node, *node.elif_):
                        self._split(branch.body, constant, once, assignments)
                    self._split(node.else_, constant, once, assignments)
                changed.append(node)
        body[:] = _together([*changed, *self._replaced(run, assignments)])

    def _replaced(self, run: list[nodes.Node], assignments: Sequence[nodes.Assign]) -> list[nodes.Node]:
        """What stands instead of a run of constant statements: the look-up of its text, where that pays."""
        if sum(1 for node in run for _ in node.find_all((nodes.Name, nodes.Filter))) < _LEAST_WORK:
            return run
        statements = list(run)
        for assignment in reversed(assignments):
            if _targets(assignment) & self._undeclared(statements):
                statements.insert(0, assignment)
        words = self._environment.from_string(self._template(statements))
        names = self._undeclared(statements)
        self._parts.append(_Part(names=names, values=_getter(names), template=words, whole=len(self._wholes)))
        number = nodes.Const(len(self._parts) - 1)
        look_up = nodes.Filter(number, _FILTER, [], [], None, None)
        return [nodes.Output([look_up], lineno=run[0].lineno).set_lineno(run[0].lineno)]

    def _template(self, statements: Sequence[nodes.Node]) -> nodes.Template:
        template = nodes.Template(list(statements), lineno=1)
        template.set_environment(self._environment)
        return template

    def _undeclared(self, statements: Sequence[nodes.Node]) -> set[str]:
        """The names that statements use and do not assign."""
        return meta.find_undeclared_variables(self._template(statements))

    @pass_context
    def _text(self, context: Context, number: int) -> str:
        """The filter: the text of a part."""
        found: dict[int, str] | None = vars(context).get(_FOUND)
        if found is None:
            found = vars(context)[_FOUND] = self._found(self._parts[number].whole, context.parent)
        text = found.get(number)
        if text is None:
            text = found[number] = self._text_of(number, context.parent)
        return text

    def _found(self, whole: int, slots: Mapping[str, Any]) -> dict[int, str]:
        """The texts of a template's parts that were rendered with these slots, by number."""
        values = self._wholes[whole](slots)
        key = (whole, *map(id, values))
        entry = self._by_whole.get(key)
        if entry is None:
            if len(self._by_whole) >= _MOST_TEXTS:
                self._by_whole.clear()
            entry = self._by_whole[key] = values, {}
        return entry[1]

    def _text_of(self, number: int, slots: Mapping[str, Any]) -> str:
        """The text of a part, by the values of its own slots."""
        part = self._parts[number]
        values = part.values(slots)
        key = (number, *map(id, values))
        entry = self._texts.get(key)
        if entry is not None:
            return entry[1]
        text = "".join(part.template.root_render_func(context_of(part.template, slots)))
        if len(self._texts) >= _MOST_TEXTS:
            self._texts.clear()
        self._texts[key] = values, text
        return text


def _getter(names: Collection[str]) -> _Values:
    """A function that finds the values of some names."""
    if not names:
        return lambda _: ()
    # With one name alone, `itemgetter` makes no tuple.
    ordered = sorted(names)
    return itemgetter(*ordered, *ordered[:1])


def _targets(assignment: nodes.Assign) -> set[str]:
    """The names that are assigned."""
    names = [assignment.target, *assignment.target.find_all(nodes.Name)]
    return {name.name for name in names if isinstance(name, nodes.Name)}


def _is_plain(node: nodes.Node, once: Set[str]) -> TypeGuard[nodes.Assign]:
    """Whether a statement assigns names that are assigned nowhere else."""
    return isinstance(node, nodes.Assign) and bool(_targets(node)) and _targets(node) <= once


def _only_says(node: nodes.Node) -> bool:
    """Whether a statement makes text and assigns no name."""
    is_text = isinstance(node, nodes.Output | nodes.If | nodes.For)
    return is_text and next(node.find_all((nodes.Assign, nodes.AssignBlock)), None) is None


def _apart(statements: Iterable[nodes.Node]) -> Iterable[nodes.Node]:
    """The same statements, with one piece of text or one expression in each output."""
    for node in statements:
        if isinstance(node, nodes.Output):
            for piece in node.nodes:
                yield nodes.Output([piece], lineno=node.lineno)
        else:
            yield node


def _together(statements: Iterable[nodes.Node]) -> list[nodes.Node]:
    """The same statements, with neighbouring outputs as one."""
    merged: list[nodes.Node] = []
    for node in statements:
        if isinstance(node, nodes.Output) and merged and isinstance(merged[-1], nodes.Output):
            merged[-1] = nodes.Output([*merged[-1].nodes, *node.nodes], lineno=merged[-1].lineno)
        else:
            merged.append(node)
    return merged


def _drop_unused(template: nodes.Template, once: Set[str]) -> None:
    """Remove assignments at the top of a template whose names nothing uses any more."""
    while True:
        used = {name.name for name in template.find_all(nodes.Name) if name.ctx == "load"}
        remaining = [node for node in template.body if not _is_plain(node, once) or _targets(node) & used]
        if len(remaining) == len(template.body):
            return
        template.body[:] = remaining
