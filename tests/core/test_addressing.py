"""Messages to somebody: who hears them, who does not, and what is recorded."""

import json
import warnings

import numpy as np
import pytest
from llm_chats import Canned, run
from movers import MOVERS, MoversEnv
from own_pack import COMPLETE

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.core import registry
from llm_coop_envs.core.channels import pairs
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.interface.addressing import Letter, split_letters
from llm_coop_envs.policies.branching import submit_again
from llm_coop_envs.render.scenes.from_events import frames

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from pettingzoo.test import parallel_api_test, parallel_seed_test

NAMES = ("firm_0", "firm_1", "firm_2")


@pytest.fixture(autouse=True)
def movers(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})
    registry.register(MOVERS)


@pytest.mark.parametrize(
    ("raw", "letters"),
    [
        ("hello", [("hello", None)]),
        ("to firm_2: hello", [("hello", ("firm_2",))]),
        ("TO Firm_2 and firm_0 :hello\nthere", [("hello\nthere", ("firm_2", "firm_0"))]),
        ("**to firm_1:** hello", [("hello", ("firm_1",))]),
        ("hi\nto firm_1: a\nan firm_0, firm_2: b", [("hi", None), ("a", ("firm_1",)), ("b", ("firm_0", "firm_2"))]),
        ("to all: hello", [("hello", None)]),
        ("to sellers: hello", [("hello", ("sellers",))]),
        ("to be honest: it is low", [("to be honest: it is low", None)]),
        ("to summarise: it is low", [("to summarise: it is low", None)]),
        ("to Bob: a secret", [("a secret", ("bob",))]),
        ("to firm_9: a secret", [("a secret", ("firm_9",))]),
        ({"text": "x", "to": ["firm_1"]}, [("x", ("firm_1",))]),
        ({"text": "x", "to": np.array([0, 1, 1])}, [("x", ("firm_1", "firm_2"))]),
        ({"text": "x", "to": np.array([0, 0, 0])}, [("x", None)]),
        ([{"text": "x", "to": "firm_1"}, "y"], [("x", ("firm_1",)), ("y", None)]),
        (None, []),
        (7, [(7, None)]),
    ],
)
def test_to_whom(raw, letters):
    assert split_letters(raw, NAMES, ("sellers",)) == [Letter(text, to) for text, to in letters]


def talks(players=4, **settings):
    return MoversEnv(players=players, phases="pick", record=True, **{"private_messages": 3, **settings})


def heard_by(env):
    return {agent: info["slots"].heard for agent, info in env.look(slots_only=True)[1].items()}


def said(env):
    return [event for event in env.events if event["type"] == "message"]


def test_those_alone_who_are_named_hear_it():
    env = talks(talk_mode="simultaneous")
    env.reset(seed=1)
    env.step(
        {
            "mover_0": {"message": "hello\nto mover_2: psst\nto mover_1, mover_3: you, too"},
            "mover_1": {"message": "a secret", "to": "mover_0"},
        }
    )
    assert [(e["text"], e["hearers"], e.get("private", False)) for e in said(env)] == [
        ("hello", None, False),
        ("psst", ["mover_2"], True),
        ("you, too", ["mover_1", "mover_3"], True),
        ("a secret", ["mover_0"], True),
    ]
    lines = {agent: [line.line for line in heard] for agent, heard in heard_by(env).items()}
    assert lines == {
        "mover_0": ['mover_1 -> mover_0: "a secret"'],
        "mover_1": ['mover_0: "hello"', 'mover_0 -> mover_1, mover_3: "you, too"'],
        "mover_2": ['mover_0: "hello"', 'mover_0 -> mover_2: "psst"'],
        "mover_3": ['mover_0: "hello"', 'mover_0 -> mover_1, mover_3: "you, too"'],
    }
    text = env.look()[0]["mover_2"]["text"]
    assert 'mover_0 -> mover_2: "psst"' in text
    assert "secret" not in text
    scene = frames(env.events)[-1]
    assert [(one.private, one.hearers) for one in scene.said][1:] == [(True, (2,)), (True, (1, 3)), (True, (0,))]


def test_who_is_not_there_is_not_reached_and_nobody_else_hears_it():
    gone = [{"from_round": 2, "players": "mover_3", "settings": {"present": False}}]
    env = talks(changes=gone, rounds=3)
    env.reset(seed=1)
    while env.round < 2:
        env.submit({})
    env.submit({"mover_0": {"message": "to mover_3: are you there?\nto mover_9, mover_1: hello\nto Bob: x"}})
    assert [(e["text"], e["hearers"]) for e in said(env)] == [("hello", ["mover_1"])]
    lost = [(e["to"], e["text"]) for e in env.events if e["type"] == "unreached"]
    assert lost == [(["mover_3"], "are you there?"), (["mover_9"], "hello"), (["bob"], "x")]
    info = env.look()[1]["mover_0"]
    assert info["flags"] == ("unreached",)
    assert info["slots"].notice.endswith('Not reached by what you said last: "mover_3, mover_9, bob".')
    restored = talks(changes=gone, rounds=3)
    restored.set_state(json.loads(json.dumps(env.get_state())))
    assert restored.look()[1]["mover_0"]["slots"] == info["slots"]


def test_nobody_is_addressed_who_does_not_hear_the_speaker(monkeypatch):
    env = talks()
    monkeypatch.setattr("movers.everyone", lambda: pairs({0: 1, 1: 0, 2: 3, 3: 2}))
    _, infos = env.reset(seed=1)
    assert "The others are mover_1." in infos["mover_0"]["slots"].notice
    env.step({"mover_0": {"message": "to mover_2: psst\nto mover_1: yes"}})
    assert [(e["text"], e["hearers"]) for e in said(env)] == [("yes", ["mover_1"])]


def test_more_messages_than_count_are_flagged():
    env = talks(private_messages=1, talk_mode="simultaneous")
    env.reset(seed=1)
    env.step({"mover_0": {"message": ["one", {"text": "two", "to": "mover_1"}]}})
    assert [e["text"] for e in said(env)] == ["one"]
    assert env.look()[1]["mover_0"]["flags"] == ("too_many_messages",)


def test_without_the_setting_words_are_words_and_data_for_some_is_heard_by_nobody():
    env = talks(private_messages=0, talk_mode="simultaneous")
    env.reset(seed=1)
    env.step({"mover_0": {"message": "to mover_1: hello"}, "mover_1": {"message": "secret", "to": ["mover_2"]}})
    assert [(e["text"], e["hearers"]) for e in said(env)] == [("to mover_1: hello", None)]
    assert env.look()[1]["mover_1"]["flags"] == ("unreached",)
    assert "private_messages" not in env.settings.to_json()


def test_official():
    def make(**_):
        return MoversEnv(private_messages=2)

    parallel_api_test(make(), num_cycles=60)
    parallel_seed_test(make, num_cycles=40)
    bertrand = bertrand_v0.parallel_env(firms=3, private_messages=2, max_cycles=20)
    parallel_api_test(bertrand, num_cycles=40)


def drawn_message(rng, names, speaker):
    """A message of a turn, in some form, and the players who may hear any of it."""
    letters, ears = [], set()
    for _ in range(rng.integers(1, 4)):
        to = [names[i] for i in rng.permutation(len(names))[: rng.integers(0, 3)].tolist()]
        letters.append({"text": f"word {rng.integers(1e9)}", "to": to} if to else f"open {rng.integers(1e9)}")
        ears |= set(to) or set(names)
    return letters, ears


@pytest.mark.parametrize("mode", ["sequential", "simultaneous"])
# 300 games; most of them are rare.
@pytest.mark.parametrize("start", [0, *(pytest.param(start, marks=pytest.mark.rare) for start in range(50, 300, 50))])
def test_whoever_is_not_named_notices_nothing(mode, start):
    """Two games differ in one private text alone: everybody but the speaker and those named sees the same bytes."""
    for seed in range(start, start + 50):
        rng = np.random.default_rng(seed)
        players = int(rng.integers(3, 6))
        settings = {"players": players, "rounds": 3, "private_messages": 3, "talk_mode": mode}
        settings |= {"delivery": ["deliver", "drop", "delay", "shuffle", "neutral"][seed % 5], "delivery_share": 0.7}
        kind = (lambda **s: MoversEnv(phases="pick mix", **s)) if seed % 2 else kbc_v0.parallel_env
        if seed % 2 == 0:
            settings |= {"session": "repeated", "talk_turns": 2} if seed % 4 else {}
        games = [kind(**settings), kind(**settings)]
        for game in games:
            game.reset(seed=seed)
        names = games[0].possible_agents
        secret_step, ears, speaker = int(rng.integers(0, 6)), set(), ""
        while games[0].agents:
            views = [game.look() for game in games]
            for agent in set(games[0].agents) - ears - {speaker}:
                assert repr(views[0][0][agent]) == repr(views[1][0][agent]), (seed, agent)
                assert views[0][1][agent]["slots"] == views[1][1][agent]["slots"], (seed, agent)
            actions = {}
            for i in games[0].on_turn.tolist():
                letters, _ = drawn_message(rng, names, names[i])
                actions[names[i]] = {"choice": int(rng.integers(3)), "message": letters}
            others = dict(actions)
            if games[0].phase == "talk" and not speaker and games[0].cycles >= secret_step:
                speaker = next(iter(actions))
                ears = {names[(names.index(speaker) + 1) % players]}
                letter = {"to": sorted(ears)}
                for changed, text in ((actions, "secret one"), (others, "quite another secret, and a longer one")):
                    changed[speaker] = {**changed[speaker], "message": [*actions[speaker]["message"][:1]]}
                    changed[speaker]["message"] = [changed[speaker]["message"][0], {**letter, "text": text}]
            for game, submitted in zip(games, (actions, others), strict=True):
                game.submit(submitted)
        assert speaker, seed


def test_a_recorded_episode_can_be_played_again():
    env = talks(rounds=3)
    env.reset(seed=4)
    rng = np.random.default_rng(4)
    while env.agents:
        names = env.possible_agents
        on_turn = [names[i] for i in env.on_turn.tolist()]
        env.submit({name: {"choice": 1, "message": drawn_message(rng, names, name)[0]} for name in on_turn})
    again = talks(rounds=4)
    again.reset(seed=4)
    submit_again(again, env.events)
    keys = ("agent", "text", "hearers", "private")
    assert [[e.get(key) for key in keys] for e in said(again)] == [[e.get(key) for key in keys] for e in said(env)]


@pytest.mark.parametrize("pack", COMPLETE)
def test_a_model_is_told_how_and_says_it_in_words(pack):
    env = talks(players=3, rounds=1, wording="en-a")
    said_first = "I think we should wait.\nto mover_2: but you and I go"
    _, chat = run(env, Canned(talk=[said_first, json.dumps({"message": said_first}), ""]), pack=pack)
    assert [(e["agent"], e["hearers"]) for e in said(env)] == [
        ("mover_0", None),
        ("mover_0", ["mover_2"]),
        ("mover_1", None),
        ("mover_1", ["mover_2"]),
    ]
    prompts = {key.agent: text for key, text in chat.prompts("talk")}
    assert 'begin a line with "to" and their names, as in "to mover_1: ..."' in prompts["mover_0"]
    assert "but you and I go" not in prompts["mover_1"]
    assert prompts["mover_2"].count('-> mover_2: "but you and I go"') == 2


@pytest.mark.parametrize("wording", ["en-a", "en-b", "de-a"])
@pytest.mark.parametrize("module", [bertrand_v0, kbc_v0, evacuation_v0])
def test_every_scenario_says_how_in_every_wording(module, wording):
    settings = {"wording": wording, "private_messages": 2, "record": True}
    settings |= {bertrand_v0: {"firms": 3}, kbc_v0: {"players": 3}, evacuation_v0: {"preset": "small"}}[module]
    env = module.parallel_env(**settings)
    observations, infos = env.reset(seed=2)
    steps = 0
    while steps < 60:
        speaking = [a for a, info in infos.items() if observations[a]["turn"] and info["slots"].phase == "talk"]
        speaking = [a for a in speaking if f"{a.rpartition('_')[0]}_" in infos[a]["slots"].notice]
        if speaking:
            break
        steps += 1
        observations, _, _, _, infos = env.step({})
    text = observations[speaking[0]]["text"]
    told, _, question = text.rpartition("\n\n")
    assert told.endswith(infos[speaking[0]]["slots"].notice)
    without = module.parallel_env(**{**settings, "private_messages": 0})
    without.reset(seed=2)
    for _ in range(steps):
        without.step({})
    assert without.look()[0][speaking[0]]["text"].endswith(f"\n\n{question}")
    other = next(word for word in infos[speaking[0]]["slots"].notice.split('"') if word.endswith(": ..."))
    name = other.split()[1].rstrip(":")
    env.step({speaking[0]: {"message": f"{other[:-3]}hello"}})
    assert [(e["agent"], e["hearers"]) for e in said(env)] == [(speaking[0], [name])]


def test_what_it_does_not_go_with_is_refused():
    with pytest.raises(SettingsError, match="private_messages=2: goes neither with a regulator"):
        MoversEnv(private_messages=2, regulator={"powers": ["log"]})
    with pytest.raises(SettingsError, match="nor with delivery_by: speaker"):
        MoversEnv(private_messages=2, delivery="paraphrase", delivery_by="speaker")
    with pytest.raises(SettingsError, match="private_messages"):
        MoversEnv(private_messages=-1)


def test_groups_are_addressed_by_their_name():
    class Grouped(MoversEnv):
        def _named_groups(self):
            return {"front": [0, 1], "back": [2, 3]}

    env = Grouped(players=4, phases="pick", record=True, private_messages=1, talk_mode="simultaneous")
    _, infos = env.reset(seed=1)
    assert "a line can begin with front or back, too" in infos["mover_0"]["slots"].notice
    groups = ["front", "back"] * 2
    env.step({agent: {"message": f"to {group}: hi"} for agent, group in zip(env.agents, groups, strict=True)})
    ears = [[int(name[-1]) for name in event["hearers"]] for event in said(env)]
    assert ears == [[1], [2, 3], [0, 1], [2]]
