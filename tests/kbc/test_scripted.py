import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_coop_envs import kbc_v0
from llm_coop_envs.core.policy import Episode
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.kbc import scripted as kbc
from llm_coop_envs.kbc.settings import KBCSettings
from llm_coop_envs.policies.play import play


def rounds(policies, seed=0, **given_settings):
    """The numbers named in each round when these policies play; one policy plays all seats."""
    env = kbc_v0.parallel_env(record=True, **given_settings)
    seats = policies if not isinstance(policies, list) else dict(zip(env.possible_agents, policies, strict=True))
    play(env, seats, seed=seed)
    return [event["choices"] for event in env.events if event["type"] == "round"]


def sayings(policies, seed=0, **given_settings):
    env = kbc_v0.parallel_env(record=True, **given_settings)
    seats = policies if not isinstance(policies, list) else dict(zip(env.possible_agents, policies, strict=True))
    play(env, seats, seed=seed)
    return [event["text"] for event in env.events if event["type"] == "message"]


@pytest.mark.parametrize(("k", "number"), [(0, 50), (1, 33), (2, 22), (3, 15), (4, 10)])
def test_levels_name_the_published_numbers(k, number):
    assert rounds(kbc.LevelK(k), players=3, session="single") == [[number] * 3]


@pytest.mark.parametrize(
    ("preset", "numbers"), [("half", (25, 13)), ("near_half", (26, 13)), ("half_plus_five", (30, 20))]
)
def test_levels_of_other_targets(preset, numbers):
    for k, number in zip((1, 2), numbers, strict=True):
        assert rounds(kbc.LevelK(k), preset=preset, players=2, talk=False)[0] == [number] * 2


def test_one_step_is_the_default():
    assert rounds(kbc.LevelK(), players=3, session="single") == [[33] * 3]
    assert sayings(kbc.LevelK(0), players=2, exchanges=1) == ["I am thinking of 50."] * 2
    assert sayings(kbc.LevelK(0, zero="random"), players=2) == []
    assert len(sayings(kbc.LevelK(1, zero="random"), players=2, exchanges=1)) == 2


def test_levels_stay_in_the_range():
    assert rounds(kbc.LevelK(9), players=2, session="single", ratio="4/3") == [[100, 100]]
    assert rounds(kbc.LevelK(9), players=2, session="single", ratio="2/3", low=20) == [[20, 20]]


def test_levels_start_from_the_announced_mean_in_later_rounds():
    numbers = rounds(kbc.LevelK(1), players=3, session="repeated", rounds=3, talk=False, choices="real", offset=1)
    # Each round's numbers are the target of the round before; announcements have two decimals.
    assert numbers[0] == [pytest.approx(50 * 2 / 3 + 1)] * 3
    assert numbers[1] == [pytest.approx(numbers[0][0] * 2 / 3 + 1, abs=0.005)] * 3
    assert numbers[2] == [pytest.approx(numbers[1][0] * 2 / 3 + 1, abs=0.005)] * 3


def test_an_announced_mean_outside_the_range_is_moved_into_it():
    # Everyone names 1: target 2/3, announced as 0.67, which gives away 1.005; level 0 then names 1.
    policies = [kbc.Announcer(1), kbc.Announcer(1), kbc.LevelK(0)]
    numbers = rounds(policies, players=3, session="repeated", rounds=2, talk=False, high=1)
    assert numbers[1][2] == 1


def test_random_level_zero_is_random_until_something_is_announced():
    numbers = rounds(kbc.LevelK(0, zero="random"), players=20, session="repeated", rounds=2, talk=False)
    assert len(set(numbers[0])) > 10
    assert len(set(numbers[1])) == 1
    assert numbers[1][0] == pytest.approx(np.mean(numbers[0]), abs=1)


def test_uniform_play_has_the_published_variance():
    # Uniform whole numbers from 0 to 100 have a variance of (101^2 - 1) / 12 = 850 ("Rule" mode of Wu et al.);
    # that of 5000 draws has a standard deviation of 850 x sqrt(0.8 / 5000) = 10.8.
    (numbers,) = rounds(kbc.UniformNumber(), players=5000, session="single", talk=False)
    assert abs(np.var(numbers) - 850) < 4 * 10.8
    assert set(numbers) == set(range(101))


def test_uniform_real_play_fills_the_range():
    (numbers,) = rounds(kbc.UniformNumber(), players=2000, session="single", talk=False, choices="real", low=-5, high=7)
    assert -5 <= min(numbers) < -4.9
    assert 6.9 < max(numbers) <= 7
    assert np.mean(numbers) == pytest.approx(1, abs=0.3)


def test_uniform_says_nothing():
    assert sayings(kbc.UniformNumber(), players=3) == []


def begun(policy, **given_settings):
    settings = KBCSettings(**given_settings)
    seats = tuple(f"player_{i}" for i in range(settings.players))
    policy.begin(Episode(scenario="kbc_v0", settings=settings, agents=seats, seats=seats, rng=np.random.default_rng(0)))
    return policy


def test_the_hierarchy_replies_to_the_mix_of_lower_levels():
    policy = begun(kbc.Poisson())
    numbers = policy.hierarchy(50.0, 3)
    # By hand, tau = 1.5: weights 1, 1.5, 1.125 of levels 0, 1, 2 (before e^-1.5, which cancels).
    first = 100 / 3
    second = 2 / 3 * (50 + 1.5 * first) / 2.5
    third = 2 / 3 * (50 + 1.5 * first + 1.125 * second) / 3.625
    assert numbers == pytest.approx([50, first, second, third])


@given(st.sampled_from(["2/3", "1/2", "4/3"]), st.sampled_from([0, 5, -20]), st.floats(0.1, 25), st.integers(0, 100))
def test_the_hierarchy_stays_in_the_range_and_finite(ratio, offset, tau, top):
    numbers = begun(kbc.Poisson(tau), ratio=ratio, offset=offset).hierarchy(50.0, top)
    assert len(numbers) == top + 1
    assert all(0 <= x <= 100 for x in numbers)


def test_levels_are_poisson_with_the_published_mean():
    policy = begun(kbc.Poisson(), players=20_000)
    drawn = np.array(list(policy.levels.values()))
    assert kbc.TAU == 1.5
    assert drawn.mean() == pytest.approx(1.5, abs=0.035)
    assert (drawn == 0).mean() == pytest.approx(np.exp(-1.5), abs=0.012)


def test_poisson_players_keep_their_level_and_say_their_number():
    numbers = rounds(kbc.Poisson(), players=30, exchanges=1, order="fixed")
    policy = kbc.Poisson()
    env = kbc_v0.parallel_env(players=30, exchanges=1, order="fixed", record=True)
    play(env, policy, seed=0)
    texts = {event["agent"]: event["text"] for event in env.events if event["type"] == "message"}
    silent = {agent for agent, level in policy.levels.items() if level == 0}
    assert silent
    assert set(texts) == set(env.possible_agents) - silent
    for i, agent in enumerate(env.possible_agents):
        if agent in texts:
            assert texts[agent] == f"My guess is {numbers[1][i]}."
            assert numbers[0][i] == numbers[1][i]


def test_announcers_announce_and_keep_their_word():
    numbers = rounds(kbc.Announcer(37), players=2, exchanges=1)
    assert numbers == [[37, 37], [37, 37]]
    assert sayings(kbc.Announcer(37), players=2, exchanges=1) == ["I will name 37. Let us all name it."] * 2


@pytest.mark.parametrize(("given_settings", "number"), [({}, 0), ({"preset": "half_plus_five"}, 10), ({"low": 5}, 5)])
def test_announcers_choose_the_number_that_is_its_own_target(given_settings, number):
    assert rounds(kbc.Announcer(), players=2, talk=False, **given_settings)[0] == [number, number]


def test_announcers_refuse_what_cannot_be_named():
    for wrong in ("37", float("nan"), True):
        with pytest.raises(SettingsError, match=r"^number="):
            kbc.Announcer(wrong)
    with pytest.raises(SettingsError, match="between low=0 and high=100"):
        begun(kbc.Announcer(101))


def test_followers_follow_what_they_heard():
    policies = [kbc.Announcer(41), kbc.Follower(), kbc.Follower()]
    numbers = rounds(policies, players=3, exchanges=2)
    assert numbers == [[41, 33, 33], [41, 41, 41], [41, 41, 41]]


def test_followers_that_heard_nothing_reason():
    assert rounds(kbc.Follower(k=2), players=2, talk=False)[0] == [22, 22]
    assert sayings([kbc.Follower(), kbc.UniformNumber()], players=2, exchanges=1) == ["I am thinking of 33."]


def test_followers_agree_aloud():
    policies = [kbc.Announcer(41), kbc.Follower()]
    assert (
        sayings(policies, players=2, session="single", talk_turns=2, order="fixed")
        == [
            "I will name 41. Let us all name it.",
            "Agreed, I will name 41.",
        ]
        * 2
    )


def test_followers_pick_the_most_frequent_or_the_latest_number():
    # player_3 hears 10, 10 and 20, in this order.
    def last(pick):
        policies = [kbc.Announcer(10), kbc.Announcer(10), kbc.Announcer(20), kbc.Follower(pick)]
        return rounds(policies, players=4, session="single", talk_turns=1, order="fixed")[0][3]

    assert last("frequent") == 10
    assert last("latest") == 20


def test_among_equally_frequent_numbers_the_one_heard_last_counts():
    policies = [kbc.Announcer(10), kbc.Announcer(20), kbc.Follower()]
    assert rounds(policies, players=3, session="single", talk_turns=1, order="fixed")[0][2] == 20
    assert rounds(policies, players=3, session="single", talk_turns=2, order="fixed")[0][2] == 20


def test_the_last_number_of_a_message_counts():
    class Talker(kbc.Announcer):
        def say(self, slots):
            return f"Not 50 but {self.spell_number(self.fixed)}."

    policies = [Talker(20), Talker(30), kbc.Follower()]
    assert rounds(policies, players=3, session="single", talk_turns=1, order="fixed")[0][2] == 30


def test_real_numbers_are_spoken_exactly():
    policies = [kbc.Announcer(100 / 3), kbc.Follower()]
    (numbers,) = rounds(policies, players=2, session="single", choices="real", order="fixed")
    assert numbers == [100 / 3, 100 / 3]
    assert sayings([kbc.Announcer(1e-7)] * 2, players=2, session="single", choices="real")[0].startswith(
        "I will name 0.0000001."
    )


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("I will name 20.", [20]),
        ("20", [20]),
        ("2/3 of 33 is 22", [33, 22]),
        ("player_3 said 14, I say 15!", [14, 15]),
        ("Player #7: 7.5?", [7.5]),
        ("about 50% will take 200 or -3", []),
        ("nothing", []),
        ("v2 or x3", []),
        ("10-20", [10, 20]),
        ("0 or 100", [0, 100]),
    ],
)
def test_numbers_are_read_from_plain_english(text, numbers):
    assert kbc.numbers_in(text, 0, 100) == numbers


def test_negative_numbers_are_read_where_they_are_legal():
    assert kbc.numbers_in("I take -3, not 3.", -5, 2) == [-3]


@given(st.text())
def test_any_message_can_be_read(text):
    assert all(0 <= x <= 100 for x in kbc.numbers_in(text, 0, 100))


@pytest.mark.parametrize("name", kbc.POLICIES)
@pytest.mark.parametrize(
    "case",
    [
        {"players": 4},
        {"players": 4, "preset": "large_scale", "rounds": 3},
        {"players": 4, "low": -3, "high": 3, "groups": 2, "session": "repeated", "rounds": 2},
        {"players": 4, "preset": "shall_we_talk"},
    ],
)
def test_every_policy_plays_legally_and_repeats_itself(name, case):
    def play_once(seed):
        env = kbc_v0.parallel_env(record=True, **case)
        play(env, kbc.POLICIES[name](), seed=seed)
        return env.events

    events = play_once(3)
    assert events == play_once(3)
    assert events[-1]["type"] == "end"
    assert all(event["flags"] == [] for event in events if event["type"] in ("choice", "message"))


def test_randomness_comes_from_the_given_generator():
    first = rounds(kbc.UniformNumber(), seed=1, players=10, talk=False)
    assert first != rounds(kbc.UniformNumber(), seed=2, players=10, talk=False)


def test_every_policy_is_described_in_one_line():
    assert set(kbc.POLICIES) == {"level_k", "poisson", "announcer", "follower", "uniform"}
    for factory in kbc.POLICIES.values():
        assert factory.__doc__.split("\n")[0].endswith(".")


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: kbc.LevelK(-1), "k"),
        (lambda: kbc.LevelK(1.5), "k"),
        (lambda: kbc.LevelK(101), "k"),
        (lambda: kbc.LevelK(zero="uniform"), "zero"),
        (lambda: kbc.Poisson(0), "tau"),
        (lambda: kbc.Poisson(25.1), "tau"),
        (lambda: kbc.Poisson("1.5"), "tau"),
        (lambda: kbc.Follower("first"), "pick"),
        (lambda: kbc.Follower(k=None), "k"),
    ],
)
def test_wrong_options_are_refused_by_name(make, field):
    with pytest.raises(SettingsError, match=f"^{field}="):
        make()


def test_other_scenarios_are_refused():
    episode = Episode(scenario="bertrand_v0", settings=None, agents=(), seats=(), rng=np.random.default_rng(0))
    with pytest.raises(SettingsError, match="plays kbc, not bertrand_v0"):
        kbc.UniformNumber().begin(episode)
