import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_coop_envs.evacuation.metrics import MEASURES, balance, episode_metrics, round_rows, rounds_of
from llm_coop_envs.evacuation.scripted import NearestExit, SharingReports
from llm_coop_envs.evacuation_v0 import parallel_env
from llm_coop_envs.policies import ScriptedPolicy, make, play

START = {
    "type": "start",
    "agents": ["evacuee_0", "evacuee_1", "evacuee_2"],
    "settings": {"rounds": 10, "hear_later_speakers": True, "talk_mode": "sequential"},
    "room": {"exit_names": ["bottom", "left"], "exits": [["bottom", 8, 4], ["left", 4, 0], ["bottom", 8, 5]]},
    "positions": [[7, 4], [4, 3], [1, 1]],
}


def round_event(number, escaped, positions, *, planners=(), overtaken=(), disabled=(), played=True):
    return {
        "type": "round",
        "round": number,
        "escaped": escaped,
        "positions": positions,
        "planners": list(planners),
        "overtaken": list(overtaken),
        "disabled": list(disabled),
        "played": played,
    }


def choice(number, person, exit_):
    return {"type": "choice", "round": number, "phase": "exit", "agent": f"evacuee_{person}", "choice": exit_}


def message(number, person, hearers):
    names = [f"evacuee_{i}" for i in hearers]
    return {"type": "message", "round": number, "agent": f"evacuee_{person}", "hearers": names, "text": "x"}


# Person 0 steps onto the bottom exit and is out in round 2; person 1 walks to the left exit with a detour of one step
# and is out in round 6; person 2 never gets out. Exits are chosen anew in rounds 2 and 3.
EVENTS = [
    START,
    message(1, 1, [0, 2]),
    choice(1, 0, 0),
    choice(1, 1, 0),
    choice(1, 2, 1),
    {"type": "choice", "round": 1, "phase": "move", "agent": "evacuee_0", "choice": 3},
    round_event(1, [], [[8, 4], [5, 3], [1, 1]], planners=[1, 0, 2]),
    message(2, 2, [1]),
    choice(2, 1, 1),
    choice(2, 2, 1),
    round_event(2, [[0, 0]], [None, [4, 2], [1, 1]], planners=[1, 2]),
    choice(3, 2, 0),
    round_event(3, [], [None, [4, 2], [2, 1]], planners=[2], overtaken=[1]),
    round_event(4, [], [None, [4, 1], [3, 1]]),
    round_event(5, [], [None, [4, 0], [3, 1]]),
    round_event(6, [[1, 1]], [None, None, [3, 1]], played=False),
    {"type": "end", "round": 6, "reason": "time is up", "truncated": False},
]


def test_an_episode_worked_out_by_hand():
    measures = episode_metrics(EVENTS)
    assert measures == {
        "people": 3,
        "rounds": 6,
        "escaped": 2,
        "disabled": 0,
        "taken_out": 0,
        "left_inside": 1,
        "never_left": 1,
        "escaped_round_5": 1,
        "escaped_round_10": 2,
        **{f"escaped_round_{number}": None for number in range(15, 51, 5)},
        "escaped_bottom": 1,
        "escaped_left": 1,
        # One person by two cells, one by one.
        "balance": pytest.approx((1 / 3 * math.log(3) + 2 / 3 * math.log(3 / 2)) / math.log(2)),
        "mean_round": 4.0,
        "last_round": 6,
        # Person 1 stands still in round 3, person 2 in rounds 1, 2 and 5.
        "waiting": pytest.approx(4 / 3),
        "waiting_share": pytest.approx(4 / 11),
        # Person 0: 1 step of 1; person 1: (4,3) (5,3) (4,2) (4,1) (4,0), 4 steps of 3.
        "detour": pytest.approx((1 + 4 / 3) / 2),
        # Person 1 went by the nearest exit, person 2 stayed inside.
        "path_score": pytest.approx((1 + 3 / 4) / 3),
        "messages": 2,
        "overtaken": 1,
        "chose_again": 3,
        "exit_changes": 2,
        "exit_changes_after_message": 1,
        "change_rate_after_message": 1.0,
        "change_rate_unheard": 0.5,
    }


def test_rows():
    rows = round_rows(EVENTS)
    assert [row["round"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert [row["inside"] for row in rows] == [3, 2, 2, 2, 2, 1]
    assert [row["escaped"] for row in rows] == [0, 1, 1, 1, 1, 2]
    assert [row["escaped_bottom"] for row in rows] == [0, 1, 1, 1, 1, 1]
    assert [row["planners"] for row in rows] == [3, 2, 1, 0, 0, 0]
    assert [row["messages"] for row in rows] == [1, 1, 0, 0, 0, 0]
    assert [row["moved"] for row in rows] == [2, 1, 1, 2, 1, 0]
    assert [row["stationary"] for row in rows] == [1, 1, 1, 0, 1, 0]
    assert [row["changed"] for row in rows] == [0, 1, 1, 0, 0, 0]
    assert [row["chose_again"] for row in rows] == [0, 2, 1, 0, 0, 0]
    assert [row["chose_again_after_message"] for row in rows] == [0, 1, 0, 0, 0, 0]


def test_later_speakers_count_as_heard_only_where_they_are():
    def listeners(**settings):
        start = {**START, "settings": {**START["settings"], **settings}}
        return [set(round_.listeners) for round_ in rounds_of([start, *EVENTS[1:]])[1]][:2]

    assert listeners() == [{0, 2}, {1}]
    # In round 2 person 2 speaks after person 1.
    assert listeners(hear_later_speakers=False) == [{0, 2}, set()]
    assert listeners(hear_later_speakers=False, talk_mode="simultaneous") == [{0, 2}, {1}]


def test_the_disabled_are_neither_out_nor_inside():
    last = round_event(1, [], [[7, 4], None, [1, 1]], disabled=[1])
    measures = episode_metrics([START, last])
    assert (measures["disabled"], measures["escaped"], measures["left_inside"], measures["never_left"]) == (1, 0, 2, 3)


def test_balance():
    assert balance([5, 5, 5], [1, 1, 1]) == pytest.approx(1.0)
    assert balance([9, 0, 0], [3, 3, 1]) == 0.0
    assert balance([1, 1, 0], [2, 2, 5]) == pytest.approx(math.log(2) / math.log(3))
    assert balance([0, 0], [1, 1]) is None
    assert balance([7], [2]) is None


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(1, 9)), min_size=2, max_size=5), st.integers(1, 50))
def test_balance_is_one_where_exits_are_used_as_they_are_wide(exits, each):
    counts, widths = zip(*exits, strict=True)
    evenness = balance(counts, widths)
    assert evenness is None or 0 <= evenness <= 1 + 1e-12
    assert balance([each * width for width in widths], widths) == pytest.approx(1)
    # 3, 3 and 1 cells: alike is not even there, and what counts is the shares.
    assert balance([30, 30, 30], [3, 3, 1]) < 0.95
    if evenness is not None:
        assert balance([each * count for count in counts], widths) == pytest.approx(evenness)


def test_the_fewest_steps_without_diagonal_ones():
    # To (8, 4): 4 + 3 steps without diagonal ones, 4 with them.
    positions = ([[4, 1], [3, 4], [1, 1]], [None, [3, 4], [1, 1]])
    recorded = [round_event(1, [], positions[0]), round_event(2, [[0, 0]], positions[1])]
    for diagonals, fewest in ((True, 4), (False, 7)):
        start = {**START, "positions": positions[0], "settings": {**START["settings"], "diagonals": diagonals}}
        # The record knows of one step only: the one onto the exit.
        assert episode_metrics([start, *recorded])["detour"] == pytest.approx(1 / fewest)


def test_an_illegal_step_is_no_path():
    env = parallel_env(preset="single", record=True)
    play(env, NearestExit(), seed=0)
    assert episode_metrics(env.events)["path_score"] == 1.0
    step = next(i for i, event in enumerate(env.events) if event["type"] == "choice" and event["phase"] == "move")
    env.events[step] = {**env.events[step], "flags": ["illegal_choice"]}
    assert episode_metrics(env.events)["path_score"] == 0.0


def test_an_episode_without_a_round_or_an_escape():
    measures = episode_metrics([START])
    assert (measures["escaped"], measures["left_inside"], measures["rounds"]) == (0, 3, 0)
    assert measures["mean_round"] is measures["last_round"] is measures["detour"] is measures["balance"] is None
    assert measures["waiting_share"] is None


@pytest.mark.parametrize("lag", [True, False])
def test_played_episodes(lag):
    env = parallel_env(people=40, talk=True, record=True, removal_lag=lag)
    play(env, SharingReports(), seed=1)
    measures = episode_metrics(env.events)
    rows = round_rows(env.events)
    assert measures["escaped"] == 40
    assert measures["escaped_round_50"] == 40
    assert sum(measures[f"escaped_{name}"] for name in ("bottom", "left", "right")) == 40
    assert measures["last_round"] == rows[-1]["round"] == measures["rounds"]
    assert 1.0 <= measures["detour"] < 1.6
    assert all(later["escaped"] >= earlier["escaped"] for earlier, later in itertools.pairwise(rows))
    assert measures["messages"] > 40


def test_alone_in_the_room_there_is_no_detour():
    for lag in (True, False):
        env = parallel_env(people=1, talk=False, record=True, removal_lag=lag)
        totals = play(env, NearestExit(), seed=2)
        measures = episode_metrics(env.events)
        assert measures["detour"] == 1.0
        assert measures["waiting"] == 0.0
        # A round's lag: whoever leaves at the start of round r was inside for r - 1 rounds.
        assert measures["last_round"] == -totals["evacuee_0"] + lag


def test_every_measure_is_defined():
    measures = episode_metrics(EVENTS)
    assert all(MEASURES.define(name).endswith(".") for name in measures)
    assert {name for name in MEASURES.about if "*" not in name} <= measures.keys()
    assert "that exit" in MEASURES.define("escaped_left")
    assert "that round" in MEASURES.define("escaped_round_5")
    assert set(MEASURES.headline) <= measures.keys()


def test_nobody_leaves_later_than_the_last_round():
    env = parallel_env(rows=9, cols=9, people=8, exits=[["door", 8, 4]], talk=False, rounds=4, record=True)
    play(env, make("evacuation/nearest_exit"), seed=1)
    row = episode_metrics(env.events)
    assert row["escaped"] > 0
    assert [event["round"] for event in env.events if event["type"] == "round"][-1] == 5  # people only leave in it
    assert row["last_round"] == row["rounds"] == 4
    assert row["mean_round"] <= 4


@pytest.mark.parametrize("policy", ["nearest_exit", "crowd_aware", "rule_based", "herding", "shares", "random"])
def test_shipped_rules_never_choose_a_closed_exit(policy):
    powers = {"orders": ["close left", "close bottom"], "powers": []}
    env = parallel_env(preset="small", people=12, rounds=15, regulator=powers, record=True)
    seats = dict.fromkeys(env.possible_agents, make(f"evacuation/{policy}"))
    seats["regulator_0"] = Closing()
    play(env, seats, seed=0)
    ordered = {event["order"] for event in env.events if event["type"] == "regulation"}
    assert ordered == {"close left", "close bottom"}
    choices = [event for event in env.events if event["type"] == "choice" and event["phase"] == "exit"]
    assert len(choices) > 12
    assert [event for event in choices if event["flags"]] == []
    said = [event for event in env.events if event["type"] == "message"]
    assert not any("going to the left" in event["text"] for event in said if event["round"] % 2)


class Closing(ScriptedPolicy):
    """Closes the left exit in odd rounds, the bottom one in even ones."""

    slots_only = True

    def decide(self, request):
        return {"choice": 1 if request.info["slots"].round % 2 else 2}
