import gc
import json

import numpy as np
import pytest
from episodes import DOOR, corridor, play_on, rounds
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.evacuation.scripted import NearestExit, RandomLegal
from llm_coop_envs.evacuation_v0 import parallel_env
from llm_coop_envs.policies import make, play


def test_one_person_leaves_one_round_after_reaching_the_exit():
    # (6, 4) -> (7, 4) -> (8, 4), the exit; out at the start of round 3.
    env, totals, ends = corridor([(6, 4)])
    recorded = [(event["round"], event["positions"], event["escaped"]) for event in rounds(env)]
    assert recorded == [(1, [[7, 4]], []), (2, [[8, 4]], []), (3, [None], [[0, 0]])]
    assert totals == {"evacuee_0": -2.0}
    assert ends == {"evacuee_0": 3}
    assert env.events[-1]["reason"] == "nobody is left inside"
    assert env.events[-1]["truncated"] is False


def test_without_the_lag_one_is_out_in_the_same_round():
    env, totals, _ = corridor([(6, 4)], removal_lag=False)
    recorded = [(event["round"], event["positions"], event["escaped"]) for event in rounds(env)]
    assert recorded == [(1, [[7, 4]], []), (2, [None], [[0, 0]])]
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


@pytest.mark.parametrize(
    ("settings_", "numbers", "out"),
    [
        ({}, [1, 2, 3], 1),
        ({"extra_round": True}, [1, 2, 3], 1),
        ({"removal_lag": False}, [1, 2], 1),
    ],
)
def test_who_reaches_the_exit_in_the_last_round_still_counts(settings_, numbers, out):
    # Two steps to the exit, two rounds; the other person is far away.
    env, totals, _ = corridor([(6, 4), (1, 1)], rounds=2, reward_lost=-100.0, reward_out=10.0, **settings_)
    assert [event["round"] for event in rounds(env)] == numbers
    assert sum(len(event["escaped"]) for event in rounds(env)) == out
    assert totals == {"evacuee_0": -2.0 + 10.0, "evacuee_1": -2.0 - 100.0 - bool(settings_.get("extra_round"))}
    assert env.events[-1]["reason"] == "time is up"


def test_the_authors_51st_step_counts_for_nothing():
    # Three steps to the exit: reached in the extra round only.
    env, totals, _ = corridor([(5, 4)], rounds=2, extra_round=True, reward_out=10.0, reward_lost=0)
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
    last_round = None
    steps = 0
    while env.agents:
        assert env.phase == "exit"
        planners = [env.possible_agents[i] for i in env.on_turn]
        last_round = env.round
        env.step({a: {"choice": 0} for a in planners})
        steps += 1
        assert env.round > last_round
    recorded = rounds(env)
    assert {cell for event in recorded for _, cell in event["escaped"]} <= {0, 2, 4}
    # Rounds in which nobody chose have passed without a step.
    assert steps == sum(bool(event["planners"]) for event in recorded)
    assert steps < len(recorded)
    assert sum(len(event["escaped"]) for event in recorded) == 20


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
    assert env.get_state()["own"]["crowd"]["heading"]["values"] == [-1] * 10
    _, _, _, _, infos = env.step({"evacuee_0": {"choice": 7}})
    heading = env.get_state()["own"]["crowd"]["heading"]["values"]
    for i, info in enumerate(infos.values()):
        away = [np.hypot(info["slots"].row - r, info["slots"].col - c) for _, r, c in env.settings.exit_list]
        assert env.settings.exit_list[int(np.argmin(away))][0] == ("bottom", "left", "right")[heading[i]]
        assert info["flags"] == (("illegal_choice",) if i == 0 else ("missing_action",))
    start_rows = [info["slots"].row for info in infos.values()]
    turn = env.on_turn.tolist()
    _, _, _, _, infos = env.step({f"evacuee_{i}": {"choice": 0} for i in turn})
    for i in turn:
        assert infos[f"evacuee_{i}"]["flags"] == ("illegal_choice",)
        assert infos[f"evacuee_{i}"]["slots"].row == start_rows[i]
    while env.round == 1:
        env.step({})
    while env.phase != "exit":
        env.step({})
    chosen = env.on_turn.tolist()
    heading = env.get_state()["own"]["crowd"]["heading"]["values"]
    env.step({})
    headings = env.get_state()["own"]["crowd"]["heading"]["values"]
    assert [headings[i] for i in chosen] == [heading[i] for i in chosen]


def test_everybody_plans_first_then_about_a_fifth():
    env = parallel_env(people=100, talk=False, record=True)
    env.begin(seed=0)
    rng = np.random.default_rng(0)
    while not env.over:
        masks = env.masks()
        env.advance((masks * (1 + rng.random(masks.shape))).argmax(axis=1))
    planners = [event["planners"] for event in rounds(env)[:50]]
    inside = [sum(cell is not None for cell in event["positions"]) for event in rounds(env)[:50]]
    assert len(planners[0]) == 100
    share = sum(map(len, planners[1:])) / sum(inside[1:])
    assert 0.18 < share < 0.22


def test_the_text_of_the_study_lets_a_fifth_plan_from_the_start():
    env = parallel_env(people=100, talk=False, record=True, all_plan_first=False, rounds=1)
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


def test_given_positions_are_checked():
    env = parallel_env(**{**DOOR, "people": 2})
    for positions, reason in (
        ([(1, 1)], "2 different cells"),
        ([(1, 1), (1, 1)], "2 different cells"),
        ([(1, 1), (0, 0)], "no free cell"),
        ([(1, 1), (8, 4)], "no free cell"),
        ([(1, 1), (1, 1, 1)], "no free cell"),
        ([(1, 1), (100, 1)], "no free cell"),
        (5, "list of"),
        ([(1, 1), "ab"], "no free cell"),
    ):
        with pytest.raises(SettingsError, match=reason):
            env.reset(seed=0, options={"positions": positions})


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
    assert start["shown"] == [[True, True], [False, True], [True, False], [False, False], [True, True]]
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


@given(
    rounds_=st.integers(2, 6),
    inside=st.sampled_from([-2.0, -1.0, 0.0, 0.5]),
    far=st.integers(1, 5),
    lag=st.booleans(),
    out=st.sampled_from([0.0, 3.0]),
)
@settings(max_examples=40)
def test_leaving_is_better_than_staying_by_default(rounds_, inside, far, lag, out):
    # One person walks straight to the exit; another one, walled in by nobody, never moves.
    settings_ = {"rounds": rounds_, "reward_inside": inside, "reward_out": out, "removal_lag": lag}
    env = parallel_env(**{**DOOR, "people": 2, **settings_})
    env.reset(seed=0, options={"positions": [(8 - far, 4), (1, 1)]})
    totals = np.zeros(2)
    while env.agents:
        actions = {"evacuee_0": {"choice": 2 if env.phase == "move" else 0}}
        if env.phase == "exit":
            actions["evacuee_1"] = {"choice": 0}
        _, rewards, *_ = env.step(actions)
        totals += [rewards.get(f"evacuee_{i}", 0.0) for i in range(2)]
    leaves_in_time = far <= rounds_
    assert leaves_in_time == any(event["escaped"] for event in rounds(env))
    spent = inside * rounds_
    assert totals[1] == spent + rounds_ * min(inside, -1.0)
    assert not leaves_in_time or totals[0] > totals[1]
    # Once nothing is said of it, staying and leaving in the last round were the same.
    assert parallel_env(**{**DOOR, "people": 2, **settings_, "reward_lost": 0}).settings.lost == 0


@given(crowds_seed=st.integers(0, 10_000), engine=st.sampled_from(["sequential", "simultaneous"]), walks=st.booleans())
@settings(max_examples=25)
def test_without_diagonals_nobody_steps_diagonally(crowds_seed, engine, walks):
    env = parallel_env(
        rows=9, cols=9, people=20, desks=[[3, 3], [5, 6]], diagonals=False, engine=engine, talk=False, record=True,
        control="exit" if walks else "move", rounds=12,
    )  # fmt: skip
    play(env, RandomLegal() if crowds_seed % 2 else NearestExit(), seed=crowds_seed)
    assert not [event for event in env.events if event.get("flags")]
    previous = env.events[0]["positions"]
    for event in rounds(env):
        for first, second in zip(previous, event["positions"], strict=True):
            assert second is None or abs(first[0] - second[0]) + abs(first[1] - second[1]) <= 1
        previous = event["positions"]


def test_without_diagonals_four_moves_and_staying_are_offered():
    env = parallel_env(**{**DOOR, "people": 1, "diagonals": False})
    env.reset(seed=0, options={"positions": [(4, 4)]})
    env.step({"evacuee_0": {"choice": 0}})
    info = env.look()[1]["evacuee_0"]
    assert [option.name for option in info["slots"].options] == ["right", "down", "left", "up", "stay"]
    assert info["action_mask"]["choice"].tolist() == [0, 1, 1, 1, 1, 1, 0, 0, 0, 0]


def test_a_long_evacuation_keeps_no_more_than_a_short_one():
    env = parallel_env(rows=60, cols=60, people=200, rounds=12)
    sizes = {}

    def follow(env):
        if env.round not in sizes:
            gc.collect()
            sizes[env.round] = len(gc.get_objects())

    gc.freeze()  # what other tests left need not be looked through in every round
    try:
        play(env, make("evacuation/shares"), seed=0, on_step=follow)
    finally:
        gc.unfreeze()
    assert env.alive.sum() > 150
    assert max(sizes[number] for number in range(7, 13)) < max(sizes[number] for number in range(1, 7)) + 2000
