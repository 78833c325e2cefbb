"""The question is the last paragraph of a text, whatever treatment has more to tell."""

import itertools

import pytest

from auction.env import AuctionEnv
from commons.env import CommonsEnv
from dilemma.env import DilemmaEnv
from fishery.env import FisheryEnv
from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.mechanisms.settings import MECHANISM_PHASES
from llm_coop_envs.policies.llm.seats.question_log import question_in
from llm_coop_envs.treatments.regulator import PHASES, SEAT
from market.env import MarketEnv

WORDINGS = ("en-a", "en-b", "de-a")
PAIRS = {"group_size": 2, "matching": "random"}
GRID = {"prices": "grid", "rounds": 3}
TOLD = {
    "a regulator": {"regulator": {"powers": ["log"]}},
    "private messages": {"private_messages": 2},
    "news": {"listeners": [{"on": "mention"}]},
    "who has left": {"changes": [{"from_round": 2, "players": "*_0", "settings": {"present": False}}]},
}
GAMES = {
    "bertrand": (bertrand_v0.parallel_env, {"firms": 3, "rounds": 3}),
    "kbc": (kbc_v0.parallel_env, {"players": 3, "rounds": 3}),
    "evacuation": (evacuation_v0.parallel_env, {"preset": "small", "talk_mode": "simultaneous"}),
}
OUTSIDE = {"auction": AuctionEnv, "commons": CommonsEnv, "fishery": FisheryEnv, "market": MarketEnv}
CASES = [
    (name, wording, told)
    for name, wording, told in [*itertools.product(GAMES, WORDINGS, TOLD), *itertools.product(OUTSIDE, ["en-a"], TOLD)]
    if told != "who has left" or name in ("bertrand", "kbc")  # in the other games nobody leaves, or nobody is told
]
#: What texts say to those of whom nothing is asked.
IDLE = ("Nothing is asked of you", "you have nothing to do", "nichts von dir verlangt")
MECHANISMS = {
    "repetition": {},
    "reputation": PAIRS,
    "reputation_higher": PAIRS,
    "mediation": {},
    "contracting": {},
}


def asked(env):
    """(whether the scenario asks, text, words of the scenario, what is told besides) of everybody on turn."""
    env.reset(seed=2)
    for _ in range(40):
        observations, infos = env.look(on_turn=True)
        for agent, info in infos.items():
            slots = info["slots"]
            if agent != SEAT and slots.notice:
                own = slots.phase not in (*MECHANISM_PHASES, *PHASES)
                yield own, observations[agent]["text"], env._wording.render(vars(slots)), slots.notice
        # Everybody who speaks names somebody else, who is told so.
        named = dict(zip(env.possible_agents[1:] + env.possible_agents[:1], env.possible_agents, strict=True))
        env.step({agent: {"message": f"hello {named[agent]}"} for agent in infos if env.phase == "talk"})
        if not env.agents:
            return


def check(env):
    kinds = set()
    for is_own, text, scenarios, notice in asked(env):
        question = question_in(text)
        assert question == question_in(scenarios if is_own else notice), text
        assert sorted(text.split()) == sorted([*scenarios.split(), *notice.split()]), "nothing is lost"
        assert is_own or not any(words in text for words in IDLE), text
        kinds.add(is_own)
    return kinds


@pytest.mark.parametrize(("name", "wording", "told"), CASES)
def test_with_a_treatment(name, wording, told):
    make, fields = GAMES[name] if name in GAMES else (OUTSIDE[name], {})
    if told == "a regulator":
        fields = {**fields, "private_messages": 0}
    assert True in check(make(talk=True, wording=wording, **fields, **TOLD[told]))


@pytest.mark.parametrize("kind", MECHANISMS)
@pytest.mark.parametrize("wording", WORDINGS)
def test_under_a_mechanism(kind, wording):
    fields = MECHANISMS[kind]
    kinds = check(DilemmaEnv(mechanism=kind, stated=True, **({"players": 4} if fields else {}), **fields))
    grid = {**GRID, **({"firms": 4} if fields else {}), "wording": wording}
    if "rep" in kind:
        del grid["rounds"]
    kinds |= check(bertrand_v0.parallel_env(mechanism=kind, **grid, **fields))
    pools = {"preset": "small", **({"villagers": 6, "matching": "random", "group_size": 3} if fields else {})}
    kinds |= check(
        CommonsEnv(mechanism=kind, wording={"en-b": "pasture", "de-a": "pollution"}.get(wording, wording), **pools)
    )
    assert kinds == {True, False} if kind in ("mediation", "contracting") else {True}
