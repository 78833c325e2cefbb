"""Listeners: chosen players are told when something happens, once, and no sooner than one by one."""

import json

import pytest
from llm_chats import Recorder, run

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies import ScriptedPolicy, make, play
from llm_coop_envs.treatments.listeners import MENTION, Listener, News, Notices

MENTIONS = [{"on": "mention"}]


class Speaker(ScriptedPolicy):
    """Says given words, and notes what it is told."""

    slots_only = True

    def __init__(self, words):
        self.words, self.noted = words, []

    def decide(self, request):
        slots = request.info["slots"]
        if slots.notice:
            self.noted.append((request.info["step"], slots.me, slots.phase, slots.notice))
        return {"message": self.words.get(slots.me, ""), "choice": 0}


def noted(env, words, seed=0):
    policy = Speaker(words)
    play(env, policy, seed=seed)
    return policy.noted


def test_whoever_is_named_is_told_once_when_the_talk_is_over():
    env = kbc_v0.parallel_env(players=4, session="single", talk_turns=1, order="fixed", listeners=MENTIONS, record=True)
    words = {"player_1": "player_0 and Player_3, and player_1 itself; player_30, player_9, xplayer_2 and player_2x"}
    assert noted(env, words) == [
        (4, "player_0", "act", "player_1 has said your name."),
        (4, "player_3", "act", "player_1 has said your name."),
    ]
    told = [event for event in env.events if event["type"] == "news"]
    assert [(event["what"], event["name"], event["agents"]) for event in told] == [
        ("mention", "player_1", ["player_0", "player_3"])
    ]


@pytest.mark.parametrize("seed", range(4))
def test_mentions_are_told_no_sooner_in_the_parallel_form(seed):
    given = {"players": 9, "session": "single", "talk_turns": 2, "audience": "neighbours", "hearers": 2}
    words = {f"player_{i}": f"player_{(i + 1) % 9}, listen" for i in range(9)}
    env = kbc_v0.parallel_env(listeners=MENTIONS, record=True, **given)
    found = noted(env, words, seed)
    talks = {event["step"]: event["talk"] for event in env.events if event["type"] == "message"}
    assert len({talk for talk in talks.values()}) == 2
    # Nobody is told anything in the first talk; in the second everybody of the first; then of the second.
    assert sorted(agent for step, agent, _, _ in found if talks.get(step) == 0) == []
    for phase in ("talk", "act"):
        assert sorted(agent for _, agent, now, _ in found if now == phase) == sorted(f"player_{i}" for i in range(9))


def test_only_the_chosen_listen():
    env = kbc_v0.parallel_env(
        players=4, session="single", talk_turns=1, listeners=[{"on": "mention", "players": ["player_[23]"]}]
    )
    found = noted(env, {"player_1": "player_0, player_3"})
    assert [agent for _, agent, _, _ in found] == ["player_3"]


def test_a_new_winning_number_is_told_to_those_who_listen():
    listeners = [{"on": "winning_number", "players": "player_0"}, {"on": "winning_number", "above": 20}]
    env = kbc_v0.parallel_env(
        players=3, session="repeated", rounds=3, talk=False, listeners=listeners, record=True, ratio="1/2"
    )
    seats = {"player_0": Speaker({}), "player_1": make("kbc/announcer", number=90), "player_2": Speaker({})}
    play(env, seats, seed=0)
    assert [one[0] for one in seats["player_0"].noted] == [1, 2]
    assert seats["player_0"].noted[0][3] == "There is a new target: 15."
    assert seats["player_2"].noted == []
    assert [event["number"] for event in env.events if event["type"] == "news"] == [15, 15, 15]


def test_a_crowded_exit_is_told_with_how_many_head_for_it():
    room = {"rows": 11, "cols": 11, "people": 30, "exits": {"bottom": [[10, 4]], "right": [[5, 10]]}, "rounds": 4}
    env = evacuation_v0.parallel_env(
        record=True, listeners=[{"on": "crowded_exit", "above": 10, "players": "evacuee_*"}], talk=False, **room
    )
    lines = set()

    class Walker(type(make("evacuation/nearest_exit"))):
        def decide(self, request):
            lines.update(request.info["slots"].notice.splitlines())
            return super().decide(request)

    play(env, Walker(), seed=0)
    told = [(event["name"], event["number"]) for event in env.events if event["type"] == "news"]
    assert told
    assert all(number > 10 for _, number in told)
    assert lines <= {f"{number} people are heading for the {name} exit." for name, number in told}
    assert lines


@pytest.mark.parametrize("wording", ["en-a", "en-b", "de-a"])
@pytest.mark.parametrize("module", [kbc_v0, bertrand_v0, evacuation_v0])
def test_texts_and_prompts_hold_the_line(module, wording):
    small = {evacuation_v0: {"people": 3, "rounds": 3}, kbc_v0: {"players": 3, "session": "single"}}
    given = {"wording": wording, "listeners": MENTIONS, **small.get(module, {"rounds": 3})}
    env = module.parallel_env(**given)
    env.begin(seed=0)
    one = env.possible_agents[0]
    env.happened(MENTION, name="who_it_was", concerned=[0])
    talk = env._open_talk_number()
    env._notices._waiting = {0: [News(MENTION, name="who_it_was", talk=-1)]}
    observations, infos = env.look()
    assert talk >= -1
    assert "who_it_was" in infos[one]["slots"].notice
    assert infos[one]["slots"].notice in observations[one]["text"]
    assert "who_it_was" not in observations[env.possible_agents[1]]["text"]


def test_a_model_is_told_in_its_prompt():
    chat = Recorder()
    env = kbc_v0.parallel_env(players=2, session="repeated", rounds=2, talk=False, listeners=[{"on": "winning_number"}])
    run(env, chat)
    prompts = [prompt for _, prompt in chat.prompts("choose")]
    assert ["There is a new target" in prompt for prompt in prompts] == [False, False, True, True]


def test_what_is_still_to_be_told_survives_a_snapshot():
    given = {"players": 3, "session": "single", "talk_turns": 1, "order": "fixed", "listeners": MENTIONS}
    env, other = kbc_v0.parallel_env(**given), kbc_v0.parallel_env(**given)
    env.begin(seed=0)
    env.submit({"player_0": {"message": "player_2!"}})
    other.set_state(json.loads(json.dumps(env.get_state())))
    for one in (env, other):
        one.submit({})
        one.submit({})
        assert one.look()[1]["player_2"]["slots"].notice == "player_0 has said your name."
    assert "notices" not in kbc_v0_state({})
    assert env.get_state() == other.get_state()


def kbc_v0_state(given):
    env = kbc_v0.parallel_env(**given)
    env.begin(seed=0)
    return env.get_state()


def test_a_message_that_nobody_hears_is_nobody_s_news():
    env = kbc_v0.parallel_env(
        players=3, session="single", talk_turns=1, listeners=MENTIONS, delivery="drop", record=True
    )
    assert noted(env, {"player_0": "player_1"}) == []
    assert not [event for event in env.events if event["type"] == "news"]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ("mention", "listeners"),
        ([3], "listeners"),
        ([{"on": "mentoin"}], r"listeners\[0\].on"),
        ([{"on": "crowded_exit"}], r"listeners\[0\].on"),
        ([{"on": "mention", "above": 3}], r"listeners\[0\].above"),
        ([{"on": "winning_number", "above": "high"}], r"listeners\[0\].above"),
        ([{"on": "mention", "players": ["firm_0"]}], r"listeners\[0\].players"),
        ([{"off": "mention"}], r"listeners\[0\].off"),
    ],
)
def test_impossible_listeners_are_refused(given, field):
    with pytest.raises(SettingsError, match=field):
        kbc_v0.parallel_env(listeners=given)


def test_settings_round_trip_and_older_studies_stay_the_same():
    settings = kbc_v0.parallel_env(listeners=[{"on": "winning_number", "above": 3, "players": "player_1"}]).settings
    assert type(settings).from_json(json.loads(json.dumps(settings.to_json()))) == settings
    assert "listeners" not in kbc_v0.parallel_env().settings.to_json()


def test_a_million_players_who_listen_share_one_piece_of_news():
    notices = Notices([Listener(on="winning_number")], [f"player_{i}" for i in range(1000)])
    told = notices.notify(News("winning_number", 3.0))
    assert len(told) == 1000
    assert len({id(notices.unread(i, -1)[0]) for i in told}) == 1
    notices.mark_read(range(1000), -1)
    assert not notices


def test_whoever_cannot_hear_a_message_is_not_told_of_it():
    given = {"players": 4, "session": "single", "talk_turns": 1, "groups": [2, 2], "audience": "group"}
    words = {"player_0": "player_1 and player_2!"}
    found = noted(kbc_v0.parallel_env(listeners=MENTIONS, **given), words)
    assert {agent for _, agent, *_ in found} == {"player_1"}
    room = {"rows": 20, "cols": 20, "people": 3, "exits": [["door", 19, 4]], "rounds": 1, "hearing_radius": 5}
    for in_order in (False, True):
        env = evacuation_v0.parallel_env(listeners=MENTIONS, record=True, hear_later_speakers=not in_order, **room)
        env.reset(seed=1, options={"positions": [(2, 2), (2, 4), (15, 15)]})
        everybody = {f"evacuee_{i}": {"message": "evacuee_0, evacuee_1, evacuee_2!"} for i in range(3)}
        while env.phase == "talk":
            _, _, _, _, infos = env.step(everybody)
        told = {name for name, info in infos.items() if info["slots"].notice}
        heard = {name for name, info in infos.items() if info["slots"].heard}
        assert told == heard
        assert len(told) == (1 if in_order else 2)
