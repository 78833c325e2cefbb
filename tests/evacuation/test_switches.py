"""The settings in play."""

import numpy as np
import pytest
from episodes import DOOR, request, rounds

from llm_coop_envs.evacuation.injury import ancestor_attributes
from llm_coop_envs.evacuation.scripted import NearestExit, RandomLegal, SharingReports
from llm_coop_envs.evacuation_v0 import parallel_env
from llm_coop_envs.policies import play


def test_shuffled_options_are_all_there_in_another_order():
    env = parallel_env(people=40, talk=False, option_order="shuffled")
    env.reset(seed=0)
    env.step({})
    _, infos = env.look()
    orders = set()
    for i in env.on_turn.tolist():
        info = infos[f"evacuee_{i}"]
        choices = [option.choice for option in info["slots"].options]
        assert sorted(choices) == np.flatnonzero(info["action_mask"]["choice"]).tolist()
        assert [option.letter for option in info["slots"].options] == list("abcdefghi"[: len(choices)])
        orders.add(tuple(choices))
    assert len(orders) > 5


def test_engines_never_put_two_people_into_a_cell():
    for engine in ("sequential", "simultaneous"):
        for control in ("move", "exit"):
            env = parallel_env(
                rows=9, cols=9, people=40, engine=engine, control=control, talk=False, record=True, rounds=25
            )
            play(env, RandomLegal(), seed=5)
            for event in rounds(env):
                cells = [tuple(cell) for cell in event["positions"] if cell is not None]
                assert len(set(cells)) == len(cells)


def test_the_simultaneous_engine_offers_taken_cells_and_says_so():
    env = parallel_env(**{**DOOR, "people": 2, "engine": "simultaneous"})
    env.reset(seed=0, options={"positions": [(4, 4), (4, 5)]})
    env.step({a: {"choice": 0} for a in env.agents})
    options = {option.name: option for option in env.look()[1]["evacuee_0"]["slots"].options}
    assert options["right"].taken is True
    assert [option.taken for name, option in options.items() if name != "right"] == [False] * 8
    # 0 follows 1, which goes on to the right.
    env.step({"evacuee_0": {"choice": 1}, "evacuee_1": {"choice": 1}})
    assert rounds(env)[0]["positions"] == [[4, 5], [4, 6]]


def test_seated_people_start_below_the_desks():
    env = parallel_env(preset="desks_seated", talk=False)
    _, infos = env.reset(seed=0)
    desks = set(env.settings.desk_list)
    assert {(i["slots"].row - 1, i["slots"].col) for i in infos.values()} == desks
    assert all(info["slots"].counts_desks for info in infos.values())


@pytest.mark.parametrize("switch", ["count_self", "count_desks"])
def test_what_counts_as_seen(switch):
    with_it = parallel_env(preset="desks", talk=False).reset(seed=0)[1]
    without = parallel_env(preset="desks", talk=False, **{switch: False}).reset(seed=0)[1]
    for agent, info in with_it.items():
        for mine, theirs in zip(info["slots"].exits, without[agent]["slots"].exits, strict=True):
            if switch == "count_self":
                assert mine.people == pytest.approx(theirs.people + 1)
            else:
                assert mine.people >= theirs.people
        assert getattr(without[agent]["slots"], switch.replace("count", "counts")) is False
        assert info["slots"] != without[agent]["slots"]


def test_people_around_near_or_in_sight():
    cells = [(4, 4), (4, 5), (1, 7), (7, 1)]
    env = parallel_env(**{**DOOR, "people": 4})
    _, infos = env.reset(seed=0, options={"positions": cells})
    assert [info["slots"].around for info in infos.values()] == [2, 2, 1, 1]
    for count_self in (True, False):
        env = parallel_env(**{**DOOR, "people": 4, "crowd_count": "visible", "count_self": count_self})
        _, infos = env.reset(seed=0, options={"positions": cells})
        assert infos["evacuee_0"]["slots"].around == 3 + count_self
        assert infos["evacuee_0"]["slots"].around_kind == "visible"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [(True, True), (False, True), (True, False), (False, False)]),
        ({"persona_swap": False}, [(True, True), (True, False), (False, True), (False, False)]),
        ({"personas": "none"}, [(None, None)] * 4),
        ({"personas": "selfish"}, [(True, True), (False, True), (True, False), (False, False)]),
    ],
)
def test_personas(settings, expected):
    env = parallel_env(people=8, talk=False, **settings)
    _, infos = env.reset(seed=0)
    personas = [(info["slots"].strong, info["slots"].confident) for info in infos.values()]
    assert personas == expected * 2
    assert all(info["slots"].helpful is (settings.get("personas") != "selfish") for info in infos.values())


def test_active_injury_knocks_people_over_who_then_do_nothing():
    env = parallel_env(rows=11, cols=11, people=70, injury="active", record=True, rounds=6)
    observations, infos = env.reset(seed=0)
    seen = 0
    policy = SharingReports()
    while env.agents:
        for agent, info in infos.items():
            if agent in env.agents and info["slots"].overtaken:
                seen += 1
                assert observations[agent]["turn"] == 0
                assert info["slots"].plans is False
        on_turn = [a for a in env.agents if observations[a]["turn"]]
        actions = {a: policy.decide(request(a, observations[a], infos[a])) for a in on_turn}
        observations, _, _, _, infos = env.step(actions)
    assert seen > 10
    previous = env.events[0]["positions"]
    for event in rounds(env):
        for i in event["overtaken"]:
            assert event["positions"][i] == previous[i]
        previous = event["positions"]


def packed_room(**settings):
    """25 people in a full room, all standing still, and the one whom the others knock over until it is disabled."""
    # The weakest person of the most fragile group stands among the strongest, and nobody moves.
    attributes = ancestor_attributes(25)
    strongest = np.argsort(-attributes.level, kind="stable").tolist()
    weak = int(np.flatnonzero((attributes.level == attributes.level.min()) & (attributes.count_limit == 23))[0])
    strongest.remove(weak)
    ring = [(r, c) for r in (2, 3, 4) for c in (2, 3, 4) if (r, c) != (3, 3)]
    others = [(r, c) for r in range(1, 6) for c in range(1, 6) if (r, c) not in ring and (r, c) != (3, 3)]
    where = dict(zip(strongest, [*ring, *others], strict=True)) | {weak: (3, 3)}
    env = parallel_env(
        rows=7, cols=7, people=25, exit_widths=(1, 0, 0), injury="active", record=True, talk=False, **settings
    )
    env.reset(seed=0, options={"positions": [where[i] for i in range(25)]})
    return env, weak


def test_active_injury_disables_who_is_knocked_over_too_often():
    env, weak = packed_room(reward_lost=-100.0)
    total = 0.0
    while env.agents:
        _, rewards, _, _, _ = env.step({})
        total += sum(rewards.values())
    recorded = rounds(env)
    assert [(event["round"], event["disabled"]) for event in recorded if event["disabled"]] == [(23, [weak])]
    assert [weak in event["overtaken"] for event in recorded[:23]] == [True] * 22 + [False]
    assert recorded[21]["positions"][weak] == [3, 3]
    assert recorded[22]["positions"][weak] is None
    # 25 people for 22 rounds, 24 for the other 28; then all are lost.
    assert total == -(25 * 22 + 24 * 28) - 100.0 * 25


def wander(env, seed):
    """Everybody takes any legal answer until the end."""
    rng = np.random.default_rng(seed)
    while not env.over:
        env.advance((env.masks() * (1 + rng.random(env.masks().shape))).argmax(axis=1))
    return env.events


@pytest.mark.parametrize("engine", ["sequential", "simultaneous"])
@pytest.mark.parametrize("block", [True, False])
def test_disabled_people_block_their_cell_if_that_is_set(engine, block):
    env, weak = packed_room(disabled_block=block, engine=engine)
    while weak not in np.flatnonzero(~env.alive):
        env.step({})
    assert env.round == 23
    twin = parallel_env(**env.settings.to_json(), record=True)
    twin.set_state(env.get_state())
    recorded = [event for event in wander(env, 0) if event["type"] == "round"][22:]
    assert [event for event in wander(twin, 0) if event["type"] == "round"] == recorded
    stood = [tuple(cell) for event in recorded for cell in event["positions"] if cell]
    assert ((3, 3) in stood) != block
    for event in recorded:
        cells = [tuple(cell) for cell in event["positions"] if cell]
        assert len(set(cells)) == len(cells)


@pytest.mark.parametrize("injury", ["off", "inert"])
def test_inert_injury_changes_nothing(injury):
    env = parallel_env(rows=11, cols=11, people=70, injury=injury, record=True, talk=False, control="exit")
    play(env, NearestExit(), seed=1)
    assert all(event["overtaken"] == [] for event in rounds(env))
    assert (env.events[0]["attributes"] is None) == (injury == "off")
    if injury == "off":
        twin = parallel_env(rows=11, cols=11, people=70, injury="inert", record=True, talk=False, control="exit")
        play(twin, NearestExit(), seed=1)
        assert [e["positions"] for e in rounds(env)] == [e["positions"] for e in rounds(twin)]
