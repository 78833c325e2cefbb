"""Parts of templates that are rendered once: texts are those of whole templates."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.errors import WordingError
from llm_coop_envs.interface.slots import constant_names
from llm_coop_envs.interface.wording import TEMPLATE, Templates, wording_names

NAMES = ("a", "b", "changing")


def templates(tmp_path, source, constant=("a", "b")):
    (tmp_path / TEMPLATE).write_text(source)
    return Templates(tmp_path, {TEMPLATE: NAMES}, constant=constant)


class Counted(tuple):
    """A value that counts how often it is put into words."""

    count = 0

    def __str__(self):
        Counted.count += 1
        return "counted"


def test_a_part_of_constant_slots_is_rendered_once(tmp_path):
    own = templates(tmp_path, "{{ a }} and {{ b }}{% if b %}, {{ b }}{% endif %}. {{ changing }}")
    a, Counted.count = Counted(), 0
    texts = [own.render(TEMPLATE, {"a": a, "b": 1, "changing": k}) for k in range(3)]
    assert texts == [f"counted and 1, 1. {k}" for k in range(3)]
    assert Counted.count == 1


def test_a_slot_that_changes_after_all_is_seen(tmp_path):
    own = templates(tmp_path, "{{ a }} {{ b }} {{ b }} {{ a }} / {{ changing }}")
    for value in (1, 1.0, True, 0.0, -0.0, "1", 1):
        text = own.render(TEMPLATE, {"a": value, "b": "b", "changing": 0})
        assert text == f"{value} b b {value} / 0"


@pytest.mark.parametrize(
    "source",
    [
        "{% set c = a ~ b %}{{ c }}{{ a }}{{ b }} {{ changing }} {{ c }}",
        "{% set c, d = a, b %}{{ c }}{{ d }}{{ a }} {{ changing }} {{ d }}",
        "{% set c = a %}{{ c }}{{ c }}{{ a }}{% set c = b %}{{ c }}{{ c }}{{ b }}",
        "{% set c = a %}{% if a %}{% set c = b %}{% endif %}{{ c }}{{ a }}{{ b }}{{ changing }}",
        "{% set a = changing %}{{ a }}{{ a }}{{ b }}{{ a }}",
        "{% for a in changing %}{{ a }}{{ b }}{{ b }}{{ a }}{% endfor %}{{ a }}{{ b }}{{ a }}{{ b }}",
        "{% for k in a %}{{ k }}{{ loop.index }}{{ b }}{% else %}{{ b }}{% endfor %}{{ changing }}",
        "{% if changing %}{{ a }}{{ b }}{{ a }}{% elif a %}{{ b }}{{ b }}{{ a }}{% else %}{{ a }}{{ b }}{% endif %}",
        "{% set c %}{{ a }}{{ b }}{{ a }}{% endset %}{{ c }}{{ c }}{{ a }}{{ changing }}",
        "{% macro m(x) %}{{ x }}{{ a }}{{ b }}{{ a }}{% endmacro %}{{ m(a) }}{{ m(changing) }}",
        "{% filter upper %}{{ a }}{{ b }}{{ a }}{% endfilter %}{{ changing }}",
        "\n\n{{ a }}\n\n\n{{ a }}{{ b }}\n\n\n\n\n\n{{ changing }}\n\n\n\n{{ b }}{{ b }}{{ b }}\n\n",
    ],
)
@given(values=st.lists(st.tuples(*[st.sampled_from(["", "x", "yz"])] * 3), min_size=1, max_size=6))
@settings(max_examples=20)
def test_texts_are_those_of_the_whole_template(tmp_path_factory, source, values):
    folder = tmp_path_factory.mktemp("wording")
    whole, split = templates(folder, source, ()), templates(folder, source)
    for a, b, changing in values:
        slots = {"a": a, "b": b, "changing": changing}
        assert outcome(split, slots) == outcome(whole, slots)


def outcome(own, slots):
    try:
        return own.render(TEMPLATE, slots)
    except WordingError as error:
        return str(error)


@pytest.mark.parametrize("unsafe", ["a.__class__", "a.append(1)", "a * 10 ** 99"])
def test_constant_parts_stay_in_the_sandbox(tmp_path, unsafe):
    own = templates(tmp_path, f"{{{{ {unsafe} }}}}{{{{ a }}}}{{{{ b }}}}")
    with pytest.raises(WordingError):
        own.render(TEMPLATE, {"a": [1], "b": 2, "changing": 3})


def test_no_template_can_name_the_filter(tmp_path):
    with pytest.raises(WordingError, match="line 1"):
        templates(tmp_path, "{{ 0 | constant part }}")


def change(from_round, players=(), **settings):
    return {"from_round": from_round, "players": players, "settings": settings}


PLAYED = {
    "bertrand": lambda wording: bertrand_v0.parallel_env(
        firms=3,
        talk=True,
        exchanges=2,
        wording=wording,
        known=["rival_costs", "demand"],
        rounds=30,
        changes=[change(8, ["firm_1"], present=False), change(12, information="own")],
    ),
    "kbc": lambda wording: kbc_v0.parallel_env(
        players=6,
        session="repeated",
        rounds=25,
        wording=wording,
        changes=[change(5, ["player_1"], present=False), change(9, memory=2)],
    ),
    "evacuation": lambda wording: evacuation_v0.parallel_env(
        people=12, wording=wording, changes=[change(3, hearing_radius=9.0), change(5, talk=False)]
    ),
}


@pytest.mark.parametrize("scenario", PLAYED)
def test_shipped_wordings_read_as_without_constant_parts(scenario):
    for wording in wording_names(PLAYED[scenario]("en-a").home):
        env = PLAYED[scenario](wording)
        whole = Templates(env._wording._templates.folder, {TEMPLATE: [*vars(first_slots(env))]})
        env.reset(seed=3)
        rng = np.random.default_rng(0)
        compared = 0
        while env.agents and compared < 400:
            for i in env.live.tolist():
                _, infos = env.look(who=np.array([i]))
                slots = infos[env.possible_agents[i]]["slots"]
                assert env._wording.render(vars(slots)) == whole.render(TEMPLATE, vars(slots))
                compared += 1
            env.step({name: {"choice": int(rng.integers(4)), "message": "Hello there."} for name in env.agents})
        assert compared > 100


def first_slots(env):
    _, infos = env.reset(seed=0)
    return infos[env.agents[0]]["slots"]


@pytest.mark.parametrize("scenario", PLAYED)
def test_slots_hold_all_fields_and_constant_ones_are_the_same_objects(scenario):
    env = PLAYED[scenario]("en-a")
    slots = first_slots(env)
    assert {*vars(slots)} == {field.name for field in fields(slots)}
    assert constant_names(env.slots_type) <= {*vars(slots)}
    name = env.agents[0]
    _, infos = env.look(who=np.array([0]))
    again = infos[name]["slots"]
    assert [key for key in constant_names(env.slots_type) if vars(again)[key] is not vars(slots)[key]] == []


def test_what_is_constant_is_the_same_in_every_episode_of_number_contests():
    first, second = (first_slots(PLAYED["kbc"]("en-a")) for _ in range(2))
    differing = [key for key in constant_names(type(first)) if vars(first)[key] is not vars(second)[key]]
    assert set(differing) <= {"groups"}


def test_names_are_looked_up_as_jinja_does(tmp_path):
    source = "{% set a = 'x' %}{% block inner %}{{ a }} {{ b }}{% endblock %}{% if b is defined %}!{% endif %}"
    assert templates(tmp_path, source).render(TEMPLATE, {"b": 1}) == "x 1!"
    source = "{% if changing %}{% set a = 'x' %}{% endif %}{{ a }}, {{ b is defined }}"
    own = templates(tmp_path, source)
    assert own.render(TEMPLATE, {"a": "y", "changing": False}) == "y, False"
    assert own.render(TEMPLATE, {"a": "y", "b": 0, "changing": True}) == "x, True"
    with pytest.raises(WordingError, match="'a' is undefined"):
        own.render(TEMPLATE, {"changing": False})
