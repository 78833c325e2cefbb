import numpy as np
import pytest

from llm_coop_envs.core.policy import Episode, Request
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.evacuation.metrics import episode_metrics
from llm_coop_envs.evacuation.scripted import (
    POLICIES,
    CrowdAware,
    Herding,
    NearestExit,
    RandomLegal,
    RuleBased,
    SharingReports,
    mentions_exit,
    read_report,
)
from llm_coop_envs.evacuation_v0 import parallel_env
from llm_coop_envs.policies import play

ROOM = {"rows": 15, "cols": 15, "people": 30}


def moment(seed=0, *, talk=False, **settings):
    """An environment at its first question, and the requests of those on turn."""
    env = parallel_env(**{**ROOM, "talk": talk, **settings})
    env.reset(seed=seed)
    return env, requests(env)


def requests(env):
    observations, infos = env.look()
    return [Request(a, observations[a], infos[a]) for a in env.agents if observations[a]["turn"]]


def begin(policy, env, seed=0):
    agents = tuple(env.possible_agents)
    policy.begin(
        Episode(
            scenario="evacuation_v0",
            settings=env.settings,
            agents=agents,
            seats=agents,
            rng=np.random.default_rng(seed),
        )
    )
    return policy


@pytest.mark.parametrize("name", sorted(POLICIES))
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"talk": False, "engine": "simultaneous"},
        {"talk": False, "control": "exit"},
        {"talk": False, "desks": [[5, 5], [5, 6]], "option_order": "shuffled", "injury": "active"},
    ],
)
def test_every_policy_plays_legally(name, settings):
    env = parallel_env(**{**ROOM, "rounds": 8, "record": True, **settings})
    play(env, POLICIES[name](), seed=0)
    assert all(event["flags"] == [] for event in env.events if event["type"] in ("choice", "message"))
    assert env.events[-1]["type"] == "end"


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_every_policy_repeats_itself(name):
    records = []
    for _ in range(2):
        env = parallel_env(**{**ROOM, "rounds": 4, "record": True})
        play(env, POLICIES[name](), seed=3)
        records.append(env.events)
    assert records[0] == records[1]


@pytest.mark.parametrize("name", sorted(set(POLICIES) - {"random"}))
def test_scripted_people_get_out(name):
    env = parallel_env(people=40, talk=False, record=True)
    play(env, POLICIES[name](), seed=0)
    assert episode_metrics(env.events)["escaped"] >= 39


def test_every_policy_is_described_in_a_line():
    for factory in POLICIES.values():
        assert 10 < len(factory.__doc__.split("\n")[0]) < 120


def test_nearest_exit():
    _, question = moment()
    for request in question:
        away = [exit_.distance for exit_ in request.info["slots"].exits]
        assert NearestExit().decide(request)["choice"] == int(np.argmin(away))


def test_crowd_aware_weighs_people_without_itself():
    _, question = moment()
    policy = CrowdAware(2.0)
    for request in question:
        scores = [exit_.distance + 2.0 * (exit_.people - 1) for exit_ in request.info["slots"].exits]
        assert policy.decide(request)["choice"] == int(np.argmin(scores))
    assert CrowdAware().weight == 0.5
    uncounted = moment(count_self=False)[1][0].info["slots"]
    exit_ = uncounted.exits[0]
    assert policy.score(uncounted, exit_) == pytest.approx(exit_.distance + 2.0 * exit_.people)


def test_steps_prefer_free_cells_then_follow_then_stay():
    env = parallel_env(rows=9, cols=9, people=4, talk=False, engine="simultaneous", exits=[["right", 4, 8]])

    def step(cells):
        env.reset(seed=0, options={"positions": cells})
        env.step({a: {"choice": 0} for a in env.agents})
        request = requests(env)[0]
        move = NearestExit().decide(request)["choice"]
        return next(option.name for option in request.info["slots"].options if option.choice == move)

    assert step([(4, 4), (1, 1), (1, 2), (1, 3)]) == "right"
    assert step([(4, 4), (4, 5), (1, 2), (1, 3)]) == "down and right"
    assert step([(4, 4), (4, 5), (5, 5), (3, 5)]) == "right"
    assert step([(4, 7), (1, 1), (1, 2), (1, 3)]) == "right"


def test_somebody_shut_in_stays():
    env = parallel_env(rows=9, cols=9, people=4, talk=False, exits=[["right", 4, 8]])
    env.reset(seed=0, options={"positions": [(4, 1), (4, 2), (3, 2), (5, 2)]})
    env.step({a: {"choice": 0} for a in env.agents})
    while "evacuee_0" not in [request.agent for request in requests(env)]:
        env.step({f"evacuee_{i}": {"choice": 1 + 4} for i in env.on_turn.tolist()})
    request = next(request for request in requests(env) if request.agent == "evacuee_0")
    assert NearestExit().decide(request)["choice"] == 1 + 4


def test_a_cell_as_far_as_ones_own_is_no_step_forward():
    desks = [[3, 7], [4, 7], [4, 6]]
    env = parallel_env(rows=9, cols=9, people=1, talk=False, exits=[["right", 4, 8]], desks=desks)
    env.reset(seed=0, options={"positions": [(3, 6)]})
    env.step({"evacuee_0": {"choice": 0}})
    assert NearestExit().decide(requests(env)[0])["choice"] == 1 + 4


def test_the_rule_based_groups_are_dealt_out_in_order():
    env, _ = moment(people=100, rows=33, cols=33)
    policy = begin(RuleBased(), env)
    groups = [policy._group[name] for name in env.possible_agents]
    assert groups == [0] * 30 + [1] * 30 + [2] * 20 + [3] * 20


@pytest.mark.parametrize("panic", [True, False])
def test_the_rule_based_score(panic):
    env, question = moment(people=100, rows=33, cols=33)
    policy = begin(RuleBased(panic=panic), env)
    weights = {0: (2.4, 3.6, 1.2), 1: (4.0, 4.0, 1.6), 2: (6.0, 1.8, 1.8), 3: (6.0, 1.5, 1.2)}
    group_of = {name: min(3, (i >= 30) + (i >= 60) + (i >= 80)) for i, name in enumerate(env.possible_agents)}
    for request in question:
        slots = request.info["slots"]
        group = group_of[slots.me]
        a1, a2, a3 = weights[group]
        beta = (1 + slots.around / 10) * (1.2 if group in (0, 2) else 1.0)
        b1, b2, b3 = (6 * beta, 1 / (6 * beta), 1 / (4 * beta)) if panic else (1, 1, 1)
        for exit_ in slots.exits:
            people = exit_.people - 1
            expected = (a1**b1 * exit_.distance + a2**b2 * people + a3**b3 * people / 86) / (a1 + a2 + a3)
            assert policy.score(slots, exit_) == pytest.approx(expected)


def test_the_rule_based_model_takes_the_second_best_step_once_in_twenty():
    env, _ = moment(people=1)
    env.reset(seed=0, options={"positions": [(7, 7)]})
    env.step({"evacuee_0": {"choice": 2}})
    slots = requests(env)[0].info["slots"]
    policy = begin(RuleBased(), env)
    names = [policy.step(slots).name for _ in range(4000)]
    assert set(names) == {"right", "down and right"}
    assert slots.target_cell[0] > 7
    assert 0.93 < max(names.count(name) for name in set(names)) / 4000 < 0.97


def test_the_rule_based_model_moves_on_if_it_can_and_stays_if_it_cannot():
    env = parallel_env(rows=9, cols=9, people=4, talk=False, exits=[["right", 4, 8]], engine="simultaneous")
    policy = begin(RuleBased(), env)
    env.reset(seed=0, options={"positions": [(4, 4), (4, 5), (5, 5), (3, 5)]})
    env.step({a: {"choice": 0} for a in env.agents})
    # Nothing nearer is free: sideways it goes, the lower row first.
    assert {policy.step(requests(env)[0].info["slots"]).name for _ in range(200)} == {"up", "down"}
    shut_in = parallel_env(
        rows=9, cols=9, people=4, talk=False, exits=[["left", 1, 0], ["right", 4, 8]], engine="simultaneous"
    )
    shut_in.reset(seed=0, options={"positions": [(7, 1), (7, 2), (6, 1), (6, 2)]})
    shut_in.step({a: {"choice": 0} for a in shut_in.agents})
    assert policy.step(requests(shut_in)[0].info["slots"]).name == "stay"


def talk_moment(policy_text):
    """Two people next to each other; the second to choose has heard the given text from the first."""
    env = parallel_env(rows=15, cols=15, people=2)
    env.reset(seed=0, options={"positions": [(7, 7), (7, 8)]})
    while env.phase == "talk":
        env.step({a: {"message": policy_text} for a in env.agents})
    return requests(env)[0]


def test_herding_follows_the_seen_and_the_heard():
    _, question = moment()
    for request in question:
        slots = request.info["slots"]
        scores = [exit_.distance - 0.5 * (exit_.people - 1) for exit_ in slots.exits]
        assert Herding(0.5).decide(request)["choice"] == int(np.argmin(scores))
    assert Herding().pull == 1.0
    names = [exit_.name for exit_ in talk_moment("hello").info["slots"].exits]
    for name in names:
        request = talk_moment(f"I am going to the {name} exit, come along!")
        assert names[Herding(20.0).decide(request)["choice"]] == name
    talking = moment(talk=True)[1][0]
    chosen = names[Herding().best_exit(talking.info["slots"])]
    assert Herding().decide(talking) == {"message": f"I am going to the {chosen} exit, come along!"}


def test_sharing_says_what_it_sees():
    slots = moment(talk=True)[1][0].info["slots"]
    policy = SharingReports(crowd=slots.exits[0].people - 1)
    message = policy.say(slots)
    for exit_ in slots.exits:
        look = "crowded" if exit_.people >= slots.exits[0].people else "clear"
        assert f"The way to the {exit_.name} exit looks {look}." in message
    assert message.endswith(f"I am going to the {slots.exits[policy.best_exit(slots)].name} exit.")
    assert len(message.split()) <= 50
    assert (SharingReports().weight, SharingReports().trust, SharingReports().crowd) == (0.5, 1.0, 10.0)


def test_sharing_believes_what_it_hears():
    names = [exit_.name for exit_ in talk_moment("hello").info["slots"].exits]
    quiet = names[SharingReports().decide(talk_moment("hello"))["choice"]]
    warned = talk_moment(f"The way to the {quiet} exit looks crowded.")
    assert names[SharingReports(trust=20.0).decide(warned)["choice"]] != quiet
    assert names[SharingReports(trust=0.0).decide(warned)["choice"]] == quiet
    invited = talk_moment("The left exit is clear.")
    assert names[SharingReports(trust=20.0).decide(invited)["choice"]] == "left"


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("The way to the exit left looks crowded.", 1),
        ("LEFT is full!", 1),
        ("left is clear, right is jammed", -1),
        ("Left is not crowded", -1),
        ("left is no longer free", 1),
        ("The left exit. It is quiet.", 0),
        ("leftover is crowded", 0),
        ("I like it", 0),
        ("left crowded. left clear.", 0),
    ],
)
def test_reading_reports(text, verdict):
    assert read_report("left", text) == verdict


def test_reading_names():
    assert mentions_exit("exit (a)", "go to exit (a) now")
    assert not mentions_exit("a", "at the bar")


def test_random_draws_every_legal_choice():
    env, request = moment(people=5)
    policy = begin(RandomLegal(), env)
    drawn = {policy.decide(request[0])["choice"] for _ in range(100)}
    assert drawn == {0, 1, 2}
    assert policy.decide(request[0])["message"] == ""


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: CrowdAware(-1), "weight"),
        (lambda: Herding(float("nan")), "pull"),
        (lambda: SharingReports(trust=-0.1), "trust"),
    ],
)
def test_bad_options(make, field):
    with pytest.raises(SettingsError, match=field):
        make()
