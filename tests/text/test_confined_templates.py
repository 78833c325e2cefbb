"""Templates see plain data alone, in every scenario, example and pack; nothing leads from there to code."""

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path

import jinja2
import numpy as np
import pytest
from configurations import CONFIGURATIONS
from example_games import GAMES

from llm_coop_envs.interface.sandbox import is_shown
from llm_coop_envs.interface.wording import read_templates, template_environment

ROOT = Path(__file__).parents[2]
PLAIN = str | int | float | np.bool_ | None
FOLDERS = sorted(
    {
        path.parent
        for room in ("llm_coop_envs", "policies/llm/packs", "examples", "benchmarks/scorecard")
        for path in (ROOT / room).rglob("*.jinja")
        if {"prompts", "packs"} & set(path.parts)
    }
)
ESCAPES = [
    "{{ VALUE.__class__ }}",
    "{{ VALUE['__class__'] }}",
    "{{ VALUE | attr('__class__') }}",
    "{{ [VALUE] | map(attribute='__class__') | list }}",
    "{{ [VALUE] | groupby('__class__') }}",
    "{{ [VALUE] | sum(attribute='__class__') }}",
    "{{ [VALUE] | selectattr('__class__') | list }}",
    "{{ '{0.__class__}'.format(VALUE) }}",
    "{{ '{0.__class__}'.format_map({'0': VALUE}) }}",
    "{{ '%s' % VALUE.__init__ }}",
    "{{ self.__init__ }}",
    "{{ listed.__globals__ }}",
    "{{ cycler.__init__.__globals__ }}",
    "{% macro m() %}{% endmacro %}{{ m.__globals__ }}",
    "{% for x in [1] %}{{ loop.__class__ }}{% endfor %}",
    "{% for x in range(9) %}{{ x }}{% endfor %}",
    "{{ namespace }}",
    "{% import '/etc/passwd' as stolen %}",
    "{% include '../../../etc/passwd' %}",
]


def environments():
    for name, (module, settings) in CONFIGURATIONS.items():
        yield pytest.param(lambda module=module, settings=settings: module.parallel_env(**settings), id=name)
    for name, build in GAMES.items():
        yield pytest.param(build, id=name)


def slots_of(env):
    """What each player is told in the first steps."""
    env.reset(seed=3)
    for _ in range(4):
        if env.over:
            return
        _, infos = env.look(on_turn=True)
        yield from (info["slots"] for info in infos.values())
        env.step({agent: env.action_space(agent).sample() for agent in infos})


def check_plain(value, path, seen):
    """Refuse what is neither plain data nor made of it, looking at all that a template may look at."""
    if isinstance(value, PLAIN):
        return
    if isinstance(value, Mapping):
        value = [*value, *value.values()]
    if isinstance(value, tuple | list | frozenset) and not hasattr(value, "_fields"):
        for item in value:
            check_plain(item, f"{path}[]", seen)
        return
    assert dataclasses.is_dataclass(value) or hasattr(value, "_fields"), f"{path} is a {type(value)}"
    for attribute in dir(type(value)):
        if is_shown(type(value), attribute) and (type(value), attribute, path) not in seen:
            seen.add((type(value), attribute, path))
            check_plain(getattr(value, attribute), f"{path}.{attribute}", seen)


@pytest.mark.parametrize("build", [*environments()])
def test_slots_lead_to_plain_data_alone(build):
    seen = set()
    for slots in slots_of(build()):
        for field in dataclasses.fields(slots):
            check_plain(getattr(slots, field.name), field.name, seen)
    assert seen


@pytest.fixture(scope="module")
def kinds():
    """A value of each type that slots hold."""
    values = {}
    for case in environments():
        slots = next(slots_of(case.values[0]()))
        for field in dataclasses.fields(slots):
            values.setdefault(type(getattr(slots, field.name)), getattr(slots, field.name))
    return values


@pytest.mark.parametrize("escape", ESCAPES)
def test_templates_reach_no_code(escape, kinds):
    environment = template_environment(FOLDERS[0])
    template = escape.replace("VALUE", "it")
    for value in kinds.values():
        try:
            text = environment.from_string(template).render(it=value)
        except (jinja2.TemplateError, TypeError, ValueError, LookupError):
            continue
        # A list of what is not there is written as such.
        assert "Undefined" in text, text
        assert not re.search("<class|<function|<built-in|root:", text), text


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(ROOT).as_posix())
def test_no_template_asks_for_more(folder):
    """Templates that are shipped compile in the sandbox and name no attribute that begins with an underscore."""
    environment = template_environment(folder)
    for name, tree in read_templates(environment, folder).items():
        environment.compile(tree, name)
        named = {node.attr for node in tree.find_all(jinja2.nodes.Getattr)}
        assert not [attribute for attribute in named if attribute.startswith("_")], name
