"""A question and a space per phase: every kind of move in every kind of player, view and record."""

import asyncio
import copy
import json
import warnings

import numpy as np
import pytest
from gymnasium import spaces
from llm_chats import Canned, run
from movers import LEGAL, MOVERS, MOVES, MoversEnv
from own_pack import COMPLETE
from rollout import play as rollout
from rollout import seed_actions

from llm_coop_envs.core import registry
from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies import from_function, play, scripted
from llm_coop_envs.policies.forced import Forced
from llm_coop_envs.policies.human.answers import hint, read_answer
from llm_coop_envs.policies.human.terminal import Terminal, TerminalHuman
from llm_coop_envs.policies.human.window import prompt
from llm_coop_envs.wrappers import NumericView, SingleAgentView, TextView

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test
    from pettingzoo.utils.conversions import parallel_to_aec

TYPED = {
    "bid": "12.5",
    "quotes": "3; 9",
    "offer": "counter; 2.5; too low",
    "approve": "stay, wait",
    "rank": "wait > stay > go",
    "mix": "go: 100",
    "write": "all for one",
    "pick": "go",
    "count": "5",
}


@pytest.fixture(autouse=True)
def movers(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})
    registry.register(MOVERS)


EVERY = " ".join(MOVES)


def env(phases=EVERY, **settings):
    return MoversEnv(phases=phases, record=True, **settings)


def chosen(played):
    return [(event["phase"], event["choice"]) for event in played.events if event["type"] == "choice"]


def flags(played):
    return [event["flags"] for event in played.events if event["type"] == "choice"]


def in_events(phase):
    return 1 if phase == "mix" else LEGAL[phase]


@pytest.mark.parametrize("phases", [" ".join(MOVES), *MOVES, "bid pick"])
@pytest.mark.parametrize("talk", [True, False])
def test_official(phases, talk):
    def make(**_):
        return MoversEnv(phases=phases, talk=talk)

    parallel_api_test(make(), num_cycles=40)
    parallel_seed_test(make, num_cycles=30)


def test_official_in_turn():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        api_test(parallel_to_aec(MoversEnv(talk=False)), num_cycles=60)


def test_whatever_is_drawn_is_legal_and_its_record_is_json():
    played = env(talk=False)
    played.reset(seed=3)
    seed_actions(played, 1)
    while played.agents:
        _, infos = played.look()
        actions = {a: played.action_space(a).sample(mask=infos[a]["action_mask"]) for a in played.agents}
        played.step(actions)
    assert json.loads(json.dumps(played.events)) == played.events
    # A set of scores need not be a list that is long enough; everything else that is drawn is a move.
    assert not any(flags(played))


def test_one_phase_has_its_space_and_several_have_all():
    assert isinstance(env("pick").action_space("mover_0")["choice"], spaces.Discrete)
    choice = env("bid pick").action_space("mover_0")["choice"]
    assert set(choice) == {"bid", "pick"}
    played = env("bid pick", talk=False)
    _, infos = played.reset(seed=1)
    assert infos["mover_0"]["action_mask"]["choice"]["bid"] is None
    assert infos["mover_0"]["action_mask"]["choice"]["pick"].tolist() == [1, 0, 0]
    _, _, _, _, infos = played.step({"mover_0": {"choice": {"bid": 7, "pick": 1}}, "mover_1": {"choice": 8}})
    assert infos["mover_0"]["action_mask"]["choice"]["pick"].tolist() == [1, 1, 1]
    # Who says nothing at all is flagged, though a bid may be passed; to submit None is to pass.
    assert [event["choice"] for event in played.events if event["type"] == "choice"] == [7.0, 8.0, None]
    assert flags(played) == [[], [], ["missing_action"]]


def test_to_pass_is_an_answer_everywhere():
    for submitted in (None, "", "pass", {"pass": 1, "bid": [3.0]}, np.nan):
        played = env("bid", talk=False, rounds=1)
        played.reset(seed=0)
        played.step({agent: {"choice": submitted} for agent in played.agents})
        assert chosen(played) == [("bid", None)] * 3
        assert flags(played) == [[]] * 3
    policy, chat = run(env("bid", talk=False, rounds=1, players=2), Canned(act=["I pass.", ""]), repairs=1, tries=2)
    assert policy.counters.total().requests == 2
    assert policy.counters.total().answered == 2
    assert "You may also give no number: answer none then." in chat.prompts("act")[0][1]


@pytest.mark.parametrize("pack", COMPLETE)
@pytest.mark.parametrize("answers", ["plain", "json", "reason"])
def test_a_model_plays_every_kind(pack, answers):
    played = env(players=2, rounds=3)
    policy, chat = run(played, pack=pack, answers=answers)
    total = policy.counters.total()
    assert total.asked == total.answered == total.requests
    assert not any(flags(played))
    # Metadata is what scripted answers are made from; it goes to no model.
    assert all(request.extra["metadata"] for _, request, _ in chat.log)
    assert len({json.dumps(move) for move in chosen(played)}) > 20


@pytest.mark.parametrize("phase", [phase for phase in MOVES if phase != "count"])
def test_a_person_types_every_kind(phase):
    said = []
    lines = iter(["?!", TYPED[phase]] if phase not in ("write",) else [TYPED[phase]])
    person = TerminalHuman(Terminal(read=lambda _: next(lines), write=said.append))
    played = env(phase, talk=False, rounds=1, players=2)
    play(played, {"mover_0": person, "mover_1": scripted.make("movers/same")}, seed=1)
    assert chosen(played) == [(phase, in_events(phase))] * 2
    assert not any(flags(played))
    assert phase == "write" or any("type" in text or "Give" in text or "give" in text for text in said)
    played.reset(seed=0)
    window = prompt("mover_0", played.look()[1]["mover_0"]["slots"], "text")
    assert window.hint
    assert window.longest >= len(TYPED[phase])


def test_hints():
    assert hint(MOVES["bid"]) == "your bid, 0 to 100, or nothing"
    assert hint(MOVES["rank"]) == "your ranking, 3 to 3, the best first: a (stay), b (go), c (wait)"
    assert hint(MOVES["approve"]) == "your approved, 0 to 3, with commas: a (stay), b (go), c (wait), or nothing"
    assert hint(MOVES["mix"]) == "your shares, per cents that sum to 100: stay: ..., go: ..., wait: ..."
    assert hint(MOVES["offer"]) == (
        "your answer: 0 (accept), 1 (counter); your price, 0 to 10 (only with counter); "
        "your remark, or nothing (only with counter)"
    )
    assert read_answer(MOVES["bid"], " ") == {"choice": None}


@pytest.mark.parametrize("phase", MOVES)
def test_text_views_functions_and_forced_choices(phase):
    for policy in (
        from_function(lambda request: TYPED[request.info["slots"].phase]),
        from_function(lambda request: 5 if phase == "count" else LEGAL[request.info["slots"].phase]),
        Forced(5 if phase == "count" else "go" if phase == "pick" else LEGAL[phase]),
    ):
        played = env(phase, talk=False, rounds=1)
        play(played, policy, seed=1)
        assert chosen(played) == [(phase, in_events(phase))] * 3, policy
        assert not any(flags(played))
    view = TextView(env(phase, talk=False, rounds=1))
    view.reset(seed=0)
    assert view.action_space("mover_0").contains(TYPED[phase])
    view.step(dict.fromkeys(view.agents, TYPED[phase]))
    assert chosen(view.unwrapped) == [(phase, in_events(phase))] * 3


def test_numbers_for_learners():
    view = NumericView(env("bid quotes rank approve mix pick count", talk=False))
    assert view.action_space("mover_0") == spaces.Box(-1, 1, (3,), np.float32)
    parallel_api_test(view, num_cycles=40)
    assert not any(flags(view.unwrapped))
    listed = NumericView(env("pick count", talk=True), mask_in_obs=True)
    assert listed.action_space("mover_0") == spaces.Discrete(4)
    observations, _ = listed.reset(seed=1)
    while listed.agents:
        masks = {agent: seen["action_mask"] for agent, seen in observations.items()}
        assert all(mask.shape == (4,) for mask in masks.values())
        observations, *_ = listed.step({agent: int(np.flatnonzero(mask)[-1]) for agent, mask in masks.items()})
    assert chosen(listed.unwrapped)[:6] == [("pick", 2)] * 3 + [("count", 3)] * 3
    assert not any(flags(listed.unwrapped))
    for phases, why in (("write", "words are asked for"), ("offer", "words are asked for")):
        with pytest.raises(SettingsError, match=why):
            NumericView(env(phases))
    with pytest.raises(SettingsError, match="no mask"):
        NumericView(env("bid"), mask_in_obs=True)
    alone = SingleAgentView(env("pick count"), "mover_0", scripted.make("movers/same"), numeric=True)
    alone.reset(seed=1)
    assert alone.action_masks().shape == (4,)


@pytest.mark.parametrize("stop", range(1, 20, 3))
def test_snapshots_continue(stop):
    first = env()
    first.reset(seed=5)
    seed_actions(first, 0)
    rollout(first, start=first.look(), limit=stop)
    other = env()
    other.set_state(json.loads(json.dumps(first.get_state())))
    copied = copy.deepcopy(first)
    for game in (first, other, copied):
        seed_actions(game, 9)
    assert not first.over
    whole = rollout(first, start=first.look())
    assert len(whole) > 1
    assert rollout(copied, start=copied.look()) == rollout(other, start=other.look()) == whole
    assert copied.events == first.events


def test_shares_are_recorded_beside_what_was_drawn():
    played = env("mix", talk=False, rounds=40)
    shares = {"stay": 70, "go": 0, "wait": 30}
    play(played, from_function(lambda _: shares), seed=4)
    events = [event for event in played.events if event["type"] == "choice"]
    assert all(event["stated"] == shares for event in events)
    drawn = [event["choice"] for event in events]
    assert set(drawn) == {0, 2}
    assert played.moves[0] == ["mix", drawn[:3]]
    again = env("mix", talk=False, rounds=40)
    play(again, from_function(lambda _: shares), seed=4)
    assert again.events == played.events


@pytest.mark.parametrize("phase", MOVES)
def test_a_regulator_sees_and_stops_every_kind(phase):
    powers = {"powers": ["veto", "fine"], "on": ["choices"], "leniency": 0.5, "fine": 1.0}
    played = env(phase, talk=False, rounds=2, players=2, regulator=powers)

    async def game():
        observations, infos = played.reset(seed=1)
        shown = []
        while played.agents:
            actions = {}
            for agent, info in infos.items():
                slots = info["slots"]
                if not info["slots"].on_turn and not observations[agent]["turn"]:
                    continue
                if agent == "regulator_0":
                    shown.append(slots.chosen)
                    actions[agent] = {"choice": 1 if slots.about == "mover_0" else 0}
                else:
                    actions[agent] = {"choice": 0 if played.phase == "report" else LEGAL[phase]}
                    if played.cycles % 2:
                        played.set_state(json.loads(json.dumps(played.get_state())))
            observations, _, _, _, infos = played.step(actions)
        return shown

    shown = asyncio.run(game())
    assert len(shown) == 4
    assert all(shown)
    stand_in = MOVES[phase].stand_in() if phase not in ("quotes", "count", "mix") else {"count": 0, "mix": 0}.get(phase)
    stand_in = {"to_0": 1, "to_1": 1} if phase == "quotes" else stand_in
    assert [move for _, moves in played.moves for move in moves] == [stand_in, in_events(phase)] * 2


def test_what_cannot_be_asked_is_refused_when_it_is_made():
    class Wide(MoversEnv):
        act_phases = ("act",)

        def _setup(self):
            super()._setup()
            self.phases = ("talk", "act")

        def _moves(self):
            return {}

    for space in (spaces.Box(0, 1, (3,)), spaces.MultiDiscrete([2, 2])):
        Wide._choice_space = lambda self, space=space: space
        with pytest.raises(SettingsError, match="is no space of one choice"):
            Wide()
    Wide._choice_space = MoversEnv._choice_space
    with pytest.raises(NotImplementedError, match="Wide: say in _moves"):
        Wide()
    Wide._moves = lambda self: {"vote": MOVES["pick"]}
    with pytest.raises(SettingsError, match="none of the act_phases of Wide"):
        Wide()


def test_a_name_is_all_that_metadata_need():
    class Named(MoversEnv):
        metadata = {"name": "named_v0"}  # noqa: RUF012

    assert Named().metadata == {**ScenarioEnv.metadata, "name": "named_v0"}
