import json

import numpy as np
import pytest

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.evacuation.injury import ancestor_attributes
from llm_coop_envs.evacuation_v0 import parallel_env
from llm_coop_envs.policies import play
from llm_coop_envs.policies.scripted.evacuation import NearestExit, RandomLegal, Sharing

DOOR = {"rows": 9, "cols": 9, "exits": [["door", 8, 4]], "talk": False, "record": True}


def corridor(positions, **more):
    """People at given places of a room with one exit below, all walking to it; returns the environment at its end."""
    env = parallel_env(**{**DOOR, "people": len(positions), **more})
    observations, infos = env.reset(seed=0, options={"positions": positions})
    policy = NearestExit()
    totals = dict.fromkeys(env.possible_agents, 0.0)
    ends = {}
    while env.agents:
        asked = [a for a in env.agents if observations[a]["turn"]]
        actions = {a: policy.decide(_request(a, observations[a], infos[a])) for a in asked}
        observations, rewards, terminations, _, infos = env.step(actions)
        for agent, reward in rewards.items():
            totals[agent] += reward
            if terminations[agent]:
                ends[agent] = env.round
    return env, totals, ends


def _request(agent, observation, info):
    from llm_coop_envs.core.policy import Request

    return Request(agent, observation, info)


def rounds(env):
    return [event for event in env.events if event["type"] == "round"]


def test_one_person_leaves_one_round_after_reaching_the_exit():
    # (6, 4) -> (7, 4) -> (8, 4), the exit; out at the start of round 3.
    env, totals, ends = corridor([(6, 4)])
    told = [(event["round"], event["positions"], event["escaped"]) for event in rounds(env)]
    assert told == [(1, [[7, 4]], []), (2, [[8, 4]], []), (3, [None], [[0, 0]])]
    assert totals == {"evacuee_0": -2.0}
    assert ends == {"evacuee_0": 3}
    assert env.events[-1]["reason"] == "nobody is left inside"
    assert env.events[-1]["truncated"] is False


def test_without_the_lag_one_is_out_in_the_same_round():
    env, totals, _ = corridor([(6, 4)], removal_lag=False)
    told = [(event["round"], event["positions"], event["escaped"]) for event in rounds(env)]
    assert told == [(1, [[7, 4]], []), (2, [None], [[0, 0]])]
    assert totals == {"evacuee_0": -2.0}


def test_an_exit_cell_is_blocked_until_its_person_has_left():
    # Both next to the exit: one enters in round 1, the other in round 2.
    env, totals, _ = corridor([(7, 4), (7, 3)])
    assert [event["escaped"] for event in rounds(env)] == [[], [[0, 0]], [[1, 0]]]
    assert totals == {"evacuee_0": -1.0, "evacuee_1": -2.0}


def test_departures_of_one_round_follow_the_list_of_exit_cells():
    env = parallel_env(rows=9, cols=9, people=4, talk=False, record=True)
    env.reset(seed=0, options={"positions": [(7, 4), (3, 1), (4, 1), (7, 3)]})
    play_on(env)
    first = next(event for event in rounds(env) if event["escaped"])
    assert [cell for _, cell in first["escaped"]] == sorted(cell for _, cell in first["escaped"])
    assert len(first["escaped"]) >= 3


def play_on(env):
    policy = NearestExit()
    observations, infos = env.look()
    while env.agents:
        asked = [a for a in env.agents if observations[a]["turn"]]
        actions = {a: policy.decide(_request(a, observations[a], infos[a])) for a in asked}
        observations, _, _, _, infos = env.step(actions)


@pytest.mark.parametrize(
    ("more", "numbers", "out"),
    [
        ({}, [1, 2, 3], 1),
        ({"extra_round": True}, [1, 2, 3], 1),
        ({"removal_lag": False}, [1, 2], 1),
    ],
)
def test_who_reaches_the_exit_in_the_last_round_still_counts(more, numbers, out):
    # Two steps to the exit, two rounds; the other person is far away.
    env, totals, _ = corridor([(6, 4), (1, 1)], rounds=2, reward_lost=-100.0, reward_out=10.0, **more)
    assert [event["round"] for event in rounds(env)] == numbers
    assert sum(len(event["escaped"]) for event in rounds(env)) == out
    assert totals == {"evacuee_0": -2.0 + 10.0, "evacuee_1": -2.0 - 100.0 - bool(more.get("extra_round"))}
    assert env.events[-1]["reason"] == "time is up"


def test_the_authors_51st_step_counts_for_nothing():
    # Three steps to the exit: reached in the extra round only.
    env, totals, _ = corridor([(5, 4)], rounds=2, extra_round=True, reward_out=10.0)
    assert rounds(env)[-1]["positions"] == [[8, 4]]
    assert sum(len(event["escaped"]) for event in rounds(env)) == 0
    assert totals == {"evacuee_0": -3.0}


def test_choices_phases_and_masks():
    env = parallel_env(people=30, talk=False)
    _, infos = env.reset(seed=1)
    assert env.phases == ("exit", "move")
    assert env.action_space("evacuee_0")["choice"].n == 3 + 9
    assert env.phase == "exit"
    for info in infos.values():
        assert info["action_mask"]["choice"].tolist() == [1, 1, 1] + [0] * 9
        assert [option.choice for option in info["slots"].options] == [0, 1, 2]
    observations, _, _, _, infos = env.step({a: {"choice": 2} for a in env.agents})
    assert env.phase == "move"
    for agent, info in infos.items():
        mask = info["action_mask"]["choice"]
        if observations[agent]["turn"]:
            assert not mask[:3].any()
            assert mask[3 + 4] == 1
            assert [option.choice for option in info["slots"].options] == np.flatnonzero(mask).tolist()
            assert info["slots"].target == "right"
            assert info["slots"].target_cell == (17, 32)
        else:
            assert mask.sum() == 1
            assert info["slots"].options == ()


def test_with_walking_people_only_choose_exits():
    env = parallel_env(people=20, control="exit", talk=False, record=True)
    env.reset(seed=3)
    assert env.phases == ("exit",)
    assert env.action_space("evacuee_0")["choice"].n == 3
    before = None
    steps = 0
    while env.agents:
        assert env.phase == "exit"
        planners = [env.possible_agents[i] for i in env.on_turn]
        before = env.round
        env.step({a: {"choice": 0} for a in planners})
        steps += 1
        assert env.round > before
    told = rounds(env)
    assert {cell for event in told for _, cell in event["escaped"]} <= {0, 2, 4}
    # Rounds in which nobody chose have passed without a step.
    assert steps == sum(bool(event["planners"]) for event in told)
    assert steps < len(told)
    assert sum(len(event["escaped"]) for event in told) == 20


def test_rewards_of_rounds_without_a_step_are_not_lost():
    env = parallel_env(people=5, control="exit", talk=False, replan_probability=0.05, record=True)
    env.reset(seed=3)
    total = 0.0
    while env.agents:
        _, rewards, _, _, _ = env.step({})
        total += sum(rewards.values())
    inside = sum(sum(cell is not None for cell in event["positions"]) for event in rounds(env))
    assert total == -inside


def test_fallbacks_and_flags():
    env = parallel_env(people=10, talk=False)
    env.reset(seed=2)
    nearest = env.get_state()["own"]["crowd"]["arrays"]
    assert nearest["heading"] == [-1] * 10
    _, _, _, _, infos = env.step({"evacuee_0": {"choice": 7}})
    heading = env.get_state()["own"]["crowd"]["arrays"]["heading"]
    for i, info in enumerate(infos.values()):
        away = [np.hypot(info["slots"].row - r, info["slots"].col - c) for _, r, c in env.settings.exit_list]
        assert env.settings.exit_list[int(np.argmin(away))][0] == ("bottom", "left", "right")[heading[i]]
        assert info["flags"] == (("illegal_choice",) if i == 0 else ("missing_action",))
    before = [info["slots"].row for info in infos.values()]
    turn = env.on_turn.tolist()
    _, _, _, _, infos = env.step({f"evacuee_{i}": {"choice": 0} for i in turn})
    for i in turn:
        assert infos[f"evacuee_{i}"]["flags"] == ("illegal_choice",)
        assert infos[f"evacuee_{i}"]["slots"].row == before[i]
    while env.round == 1:
        env.step({})
    while env.phase != "exit":
        env.step({})
    chosen = env.on_turn.tolist()
    heading = env.get_state()["own"]["crowd"]["arrays"]["heading"]
    env.step({})
    after = env.get_state()["own"]["crowd"]["arrays"]["heading"]
    assert [after[i] for i in chosen] == [heading[i] for i in chosen]


def test_everybody_plans_first_then_about_a_fifth():
    env = parallel_env(people=100, talk=False, record=True)
    play(env, RandomLegal(), seed=0)
    planners = [event["planners"] for event in rounds(env)[:50]]
    inside = [sum(cell is not None for cell in event["positions"]) for event in rounds(env)[:50]]
    assert len(planners[0]) == 100
    share = sum(map(len, planners[1:])) / sum(inside[1:])
    assert 0.18 < share < 0.22


def test_the_text_of_the_study_lets_a_fifth_plan_from_the_start():
    env = parallel_env(people=100, talk=False, record=True, all_plan_first=False)
    play(env, NearestExit(), seed=0)
    first = rounds(env)[0]
    assert 8 < len(first["planners"]) < 35
    # The others set off for the nearest exit.
    start = env.events[0]["positions"]
    for i, (cell, heading) in enumerate(zip(start, first["headings"], strict=True)):
        if i not in first["planners"]:
            away = [np.hypot(cell[0] - r, cell[1] - c) for _, r, c in env.settings.exit_list]
            assert env.settings.exit_list[int(np.argmin(away))][0] == ("bottom", "left", "right")[heading]


def test_the_target_cell_is_kept_until_one_plans_again():
    env = parallel_env(rows=33, cols=33, people=1, talk=False, replan_probability=0.0)
    env.reset(seed=0, options={"positions": [(10, 2)]})
    env.step({"evacuee_0": {"choice": 1}})
    cells = []
    for move in (3 + 1, 3 + 1, 3 + 1, 3 + 1, 3 + 1, 3 + 1, 3 + 1):
        slots = env.look()[1]["evacuee_0"]["slots"]
        cells.append(slots.target_cell)
        env.step({"evacuee_0": {"choice": move}})
    # From (10, 2) the nearest cell of the left exit is (15, 0), and stays the target beyond row 15.
    assert cells == [(15, 0)] * 7
    assert slots.previous == (15, 2)


def talk_env(**more):
    env = parallel_env(rows=12, cols=12, people=5, record=True, replan_probability=0.5, **more)
    # A row: 0 and 1 next to each other, 2 exactly 5 cells from 0, 3 beyond; 4 far away.
    env.reset(seed=1, options={"positions": [(5, 1), (5, 2), (5, 6), (5, 7), (10, 10)]})
    return env


def say_all(env):
    while env.phase == "talk":
        env.step({f"evacuee_{i}": {"message": f"I am {i}"} for i in env.on_turn.tolist()})


def test_hearing_is_euclidean_up_to_the_radius_and_includes_later_speakers():
    env = talk_env()
    order = env.get_state()["own"]["crowd"]["arrays"]["planners"]
    assert sorted(order) == [0, 1, 2, 3, 4]
    say_all(env)
    assert env.phase == "exit"
    _, infos = env.look()
    heard = {a: [message.speaker for message in info["slots"].heard] for a, info in infos.items()}
    assert heard == {
        "evacuee_0": ["evacuee_1", "evacuee_2"],
        "evacuee_1": ["evacuee_0", "evacuee_2", "evacuee_3"],
        "evacuee_2": ["evacuee_3", "evacuee_1", "evacuee_0"],
        "evacuee_3": ["evacuee_2", "evacuee_1"],
        "evacuee_4": [],
    }


def test_while_talking_and_without_later_speakers_only_earlier_ones_are_heard():
    near = {0: {1, 2}, 1: {0, 2, 3}, 2: {0, 1, 3}, 3: {1, 2}, 4: set()}
    env = talk_env(hear_later_speakers=False)
    order = env.get_state()["own"]["crowd"]["arrays"]["planners"]
    expected = {i: {j for j in near[i] if order.index(j) < order.index(i)} for i in range(5)}
    at_turn = {}
    while env.phase == "talk":
        _, infos = env.look()
        for i in env.on_turn.tolist():
            at_turn[i] = {int(m.speaker[-1]) for m in infos[f"evacuee_{i}"]["slots"].heard}
        env.step({f"evacuee_{i}": {"message": f"I am {i}"} for i in env.on_turn.tolist()})
    assert at_turn == expected
    state = json.loads(json.dumps(env.get_state()))
    for one in (env, parallel_env(rows=12, cols=12, people=5, replan_probability=0.5, hear_later_speakers=False)):
        one.set_state(state)
        _, infos = one.look()
        assert {i: {int(m.speaker[-1]) for m in infos[f"evacuee_{i}"]["slots"].heard} for i in range(5)} == expected


def test_a_snapshot_in_the_middle_of_a_talk_keeps_who_hears_whom():
    env = talk_env(hear_later_speakers=False)
    twin = parallel_env(rows=12, cols=12, people=5, replan_probability=0.5, hear_later_speakers=False)
    twin.set_state(json.loads(json.dumps(env.get_state())))
    say_all(env)
    say_all(twin)
    assert [i["slots"] for i in env.look()[1].values()] == [i["slots"] for i in twin.look()[1].values()]


def test_messages_live_one_round_and_only_planners_hear():
    env = talk_env()
    for _ in range(3):
        say_all(env)
        planners = env.get_state()["own"]["crowd"]["arrays"]["planners"]
        _, infos = env.look()
        for agent, info in infos.items():
            heard = {int(message.speaker[-1]) for message in info["slots"].heard}
            assert heard <= set(planners)
            if int(agent[-1]) not in planners:
                assert heard == set()
                assert info["slots"].plans is False
        number = env.round
        while env.agents and env.round == number:
            env.step({})


def test_talking_changes_nothing_in_the_published_stream():
    quiet = parallel_env(people=60, talk=False, record=True)
    loud = parallel_env(people=60, record=True)
    play(quiet, NearestExit(), seed=4)
    play(loud, NearestExit(), seed=4)
    assert [e["positions"] for e in rounds(quiet)] == [e["positions"] for e in rounds(loud)]
    shuffled = parallel_env(people=60, talk=False, record=True, option_order="shuffled")
    play(shuffled, NearestExit(), seed=4)
    assert [e["positions"] for e in rounds(quiet)] == [e["positions"] for e in rounds(shuffled)]


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


def test_given_positions_are_checked():
    env = parallel_env(**{**DOOR, "people": 2})
    for positions, why in (
        ([(1, 1)], "2 different cells"),
        ([(1, 1), (1, 1)], "2 different cells"),
        ([(1, 1), (0, 0)], "no free cell"),
        ([(1, 1), (8, 4)], "no free cell"),
        ([(1, 1), (1, 1, 1)], "no free cell"),
        ([(1, 1), (100, 1)], "no free cell"),
        (5, "list of"),
        ([(1, 1), "ab"], "no free cell"),
    ):
        with pytest.raises(SettingsError, match=why):
            env.reset(seed=0, options={"positions": positions})


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
    places = [(4, 4), (4, 5), (1, 7), (7, 1)]
    env = parallel_env(**{**DOOR, "people": 4})
    _, infos = env.reset(seed=0, options={"positions": places})
    assert [info["slots"].around for info in infos.values()] == [2, 2, 1, 1]
    for count_self in (True, False):
        env = parallel_env(**{**DOOR, "people": 4, "crowd_count": "visible", "count_self": count_self})
        _, infos = env.reset(seed=0, options={"positions": places})
        assert infos["evacuee_0"]["slots"].around == 3 + count_self
        assert infos["evacuee_0"]["slots"].around_kind == "visible"


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, [(True, True), (False, True), (True, False), (False, False)]),
        ({"persona_swap": False}, [(True, True), (True, False), (False, True), (False, False)]),
        ({"personas": "none"}, [(None, None)] * 4),
        ({"personas": "selfish"}, [(True, True), (False, True), (True, False), (False, False)]),
    ],
)
def test_personas(more, expected):
    env = parallel_env(people=8, talk=False, **more)
    _, infos = env.reset(seed=0)
    shown = [(info["slots"].strong, info["slots"].confident) for info in infos.values()]
    assert shown == expected * 2
    assert all(info["slots"].helpful is (more.get("personas") != "selfish") for info in infos.values())


def test_active_injury_knocks_people_over_who_then_do_nothing():
    env = parallel_env(rows=11, cols=11, people=70, injury="active", record=True, rounds=30)
    observations, infos = env.reset(seed=0)
    seen = 0
    policy = Sharing()
    while env.agents:
        for agent, info in infos.items():
            if agent in env.agents and info["slots"].overtaken:
                seen += 1
                assert observations[agent]["turn"] == 0
                assert info["slots"].plans is False
        asked = [a for a in env.agents if observations[a]["turn"]]
        actions = {a: policy.decide(_request(a, observations[a], infos[a])) for a in asked}
        observations, _, _, _, infos = env.step(actions)
    assert seen > 10
    before = env.events[0]["positions"]
    for event in rounds(env):
        for i in event["overtaken"]:
            assert event["positions"][i] == before[i]
        before = event["positions"]


def test_active_injury_disables_who_is_knocked_over_too_often():
    # The weakest person of the most fragile group stands among the strongest, and nobody moves.
    held = ancestor_attributes(25)
    strongest = np.argsort(-held.level, kind="stable").tolist()
    weak = int(np.flatnonzero((held.level == held.level.min()) & (held.count_limit == 23))[0])
    strongest.remove(weak)
    ring = [(r, c) for r in (2, 3, 4) for c in (2, 3, 4) if (r, c) != (3, 3)]
    rest = [(r, c) for r in range(1, 6) for c in range(1, 6) if (r, c) not in ring and (r, c) != (3, 3)]
    where = dict(zip(strongest, [*ring, *rest], strict=True)) | {weak: (3, 3)}
    env = parallel_env(
        rows=7, cols=7, people=25, exit_widths=(1, 0, 0), injury="active", record=True, talk=False, reward_lost=-100.0
    )
    env.reset(seed=0, options={"positions": [where[i] for i in range(25)]})
    total = 0.0
    while env.agents:
        _, rewards, _, _, _ = env.step({})
        total += sum(rewards.values())
    told = rounds(env)
    assert [(event["round"], event["disabled"]) for event in told if event["disabled"]] == [(23, [weak])]
    assert [weak in event["overtaken"] for event in told[:23]] == [True] * 22 + [False]
    assert told[21]["positions"][weak] == [3, 3]
    assert told[22]["positions"][weak] is None
    # 25 people for 22 rounds, 24 for the other 28; then all are lost.
    assert total == -(25 * 22 + 24 * 28) - 100.0 * 25


@pytest.mark.parametrize("injury", ["off", "inert"])
def test_inert_injury_changes_nothing(injury):
    env = parallel_env(rows=11, cols=11, people=70, injury=injury, record=True, talk=False)
    play(env, NearestExit(), seed=1)
    assert all(event["overtaken"] == [] for event in rounds(env))
    assert (env.events[0]["attributes"] is None) == (injury == "off")
    if injury == "off":
        twin = parallel_env(rows=11, cols=11, people=70, injury="inert", record=True, talk=False)
        play(twin, NearestExit(), seed=1)
        assert [e["positions"] for e in rounds(env)] == [e["positions"] for e in rounds(twin)]


def test_the_start_event_holds_what_a_replay_needs():
    env = parallel_env(people=5, desks=[[5, 5]], record=True)
    env.reset(seed=3)
    start = env.events[0]
    assert start["room"] == {
        "rows": 33,
        "cols": 33,
        "exits": [list(cell) for cell in env.settings.exit_list],
        "exit_names": ["bottom", "left", "right"],
        "desks": [[5, 5]],
    }
    assert len(start["positions"]) == 5
    assert start["physical"] == [0, 0, 1, 1, 0]
    assert start["mental"] == [0, 1, 0, 1, 0]
    assert json.loads(json.dumps(env.events)) == env.events


def test_the_picture():
    env = parallel_env(**{**DOOR, "people": 1, "desks": [[2, 2]], "render_mode": "ansi"})
    env.reset(seed=0, options={"positions": [(7, 4)]})
    lines = env.render().split("\n")
    assert lines[0] == "evacuation_v0, round 1, step 0: exit"
    assert lines[1] == lines[9].replace("E", "#") == "#########"
    assert lines[3] == "#.=.....#"
    assert lines[8] == "#...o...#"
    assert lines[9] == "####E####"
    assert lines[10] == "inside 1; out: door 0"
    play_on(env)
    assert env.render().split("\n")[-1] == "inside 0; out: door 1"
