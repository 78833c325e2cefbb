"""What firms are told of the market: in every wording, in slots and features, and to nobody else."""

import dataclasses
import math

import numpy as np
import pytest

from llm_coop_envs import bertrand_v0
from llm_coop_envs.bertrand.settings import KNOWABLE, BertrandSettings
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies.llm.playing.policy import LLMPolicy
from llm_coop_envs.policies.llm.playing.settings import LLMSettings
from llm_coop_envs.policies.llm.testing.answers import ScriptedChat
from llm_coop_envs.policies.play import play
from llm_coop_envs.wrappers import NumericView

WORDINGS = ("en-a", "en-b", "de-a")
FIRMS = {"firms": 3, "cost": [1, 1.25, 1.5], "quality": [2, 2.5, 3], "talk": False, "price_cap": 3.0, "rounds": 4}
MARKETS = {
    "logit": FIRMS,
    "linear": {**FIRMS, "demand": "linear", "quality": [14, 14.5, 15], "price_cap": 14.0, "beta": 0.75, "d": 0.5},
    "clamped": {**FIRMS, "demand": "linear", "quality": [14, 14.5, 15], "price_cap": 14.0, "clamp_demand": True},
}


def first(**settings):
    env = bertrand_v0.parallel_env(**settings)
    observations, infos = env.reset(seed=0)
    return env, observations["firm_1"], infos["firm_1"]["slots"]


@pytest.mark.parametrize("market", MARKETS)
@pytest.mark.parametrize("wording", WORDINGS)
def test_every_wording_tells_each_fact_with_its_numbers(wording, market):
    game = {**MARKETS[market], "wording": wording}
    plain = first(**game)[1]["text"]
    texts = {fact: first(**game, known=[fact])[1]["text"] for fact in KNOWABLE}
    assert len({plain, *texts.values()}) == 4
    assert "1.5" in texts["rival_costs"].replace(plain, "")
    assert all(name in texts["rival_costs"] for name in ("firm_0 1", "firm_2 1.5") if wording != "en-b")
    numbers = {"logit": ("0.25", "2.5", "exp("), "linear": ("0.75", "0.5", "14.5"), "clamped": ("14.5",)}[market]
    assert all(number in texts["demand"] for number in numbers)
    assert "4" in texts["rounds"]
    everything = first(**game, known=list(KNOWABLE))[1]["text"]
    assert len(everything) > max(map(len, texts.values()))


def test_identical_goods_are_told_as_such():
    game = {"demand": "linear", "quality": 14, "beta": 0.5, "d": 0.5, "talk": False, "known": ["demand"]}
    assert "lowest price share" in first(**game)[1]["text"]


def test_the_rule_in_the_slots_is_the_demand():
    for name, game in MARKETS.items():
        env, _, slots = first(**game, known=["demand", "rival_costs", "rounds"], price_unit=2.0)
        rule, prices = slots.demand_rule, [4.0, 4.5, 5.0]
        a = [rule.rival_qualities[0], rule.own_quality, rule.rival_qualities[1]]
        if name == "logit":
            weights = [math.exp((quality - price) / rule.mu) for quality, price in zip(a, prices, strict=True)]
            sold = [rule.scale * weight / (math.fsum(weights) + math.exp(rule.outside / rule.mu)) for weight in weights]
        else:
            slopes = np.full((3, 3), rule.d) + np.diag([rule.beta - rule.d] * 3)
            sold = np.linalg.solve(slopes, np.array(a) - prices)
        assert env.market.demand(prices) == pytest.approx(sold)
        assert slots.rival_costs == (2.0, 3.0)
        assert slots.last_round == 4


def test_features_tell_it_in_the_rivals_order():
    env, seen, _ = first(**MARKETS["logit"], known=list(KNOWABLE))
    told = dict(zip(env.feature_names[5:], seen["observation"][5:].tolist(), strict=True))
    assert told == {
        "rival_cost_1": 1,
        "rival_cost_2": 1.5,
        "own_quality": 2.5,
        "rival_quality_1": 2,
        "rival_quality_2": 3,
        "outside": 0,
        "mu": 0.25,
        "scale": 1,
        "rounds_left": 1,
    }
    view = NumericView(env)
    rows, _ = view.reset(seed=0)
    while env.agents:
        assert all(view.observation_space(name).contains(row) for name, row in rows.items())
        rows, *_ = view.step({name: view.action_space(name).sample() for name in env.agents})


def test_by_default_nothing_is_told():
    env, _, slots = first(**MARKETS["logit"])
    assert "known" not in env.settings.to_json()
    assert env.feature_names[-1] == "own_profit"
    assert (slots.rival_costs, slots.demand_rule, slots.last_round) == ((), None, 0)


def course(agent, known_to, known, features=True, **settings):
    """Everything that a firm sees in an episode of fixed prices, in which some firm is told something."""
    changes = [{"from_round": 1, "players": known_to, "settings": {"known": known}}]
    env = bertrand_v0.parallel_env(**{**MARKETS["logit"], "firms": 3, "changes": changes, **settings})
    observations, infos = env.reset(seed=3)
    seen = []
    while env.agents:
        slots = dataclasses.asdict(infos[agent]["slots"])
        row = observations[agent]["observation"].tolist() if features else None
        seen.append((observations[agent]["text"], slots, row))
        observations, _, _, _, infos = env.step({name: {"choice": 2 + k / 10} for k, name in enumerate(env.agents)})
    return seen


@pytest.mark.parametrize("fact", KNOWABLE)
def test_what_one_is_told_changes_no_byte_for_another(fact):
    seen, elsewhere = course("firm_1", "firm_0", [fact]), course("firm_1", "firm_2", [fact])
    assert seen == elsewhere
    for _, slots, row in seen:
        assert (slots["rival_costs"], slots["demand_rule"], slots["last_round"]) == ((), None, 0)
        assert not any(row[5:])
    mine = course("firm_0", "firm_0", [fact])
    assert all(own != other for own, other in zip(mine, course("firm_0", "firm_1", [fact]), strict=True))


@pytest.mark.parametrize(
    ("hidden", "other"),
    [("rival_costs", {"cost": [1, 1.25, 1.1]}), ("rounds", {"rounds": 9}), ("demand", {"quality": [2, 2.5, 2.9]})],
)
def test_what_is_not_known_changes_no_byte_of_text_and_slots(hidden, other):
    """Prices are fixed, so that of the market nothing but what is told can differ in the first round."""
    told = [fact for fact in KNOWABLE if fact != hidden]
    usual, changed = (course("firm_0", "firm_0", told, features=False, **more)[0] for more in ({}, other))
    assert usual == changed
    usual, changed = (course("firm_0", "firm_0", [hidden], features=False, **more)[0] for more in ({}, other))
    assert usual != changed
    if hidden != "demand":  # which decides what is sold
        silent, changed = (course("firm_0", "firm_0", told, features=False, **more)[:4] for more in ({}, other))
        assert silent == changed


def test_of_who_has_left_nothing_is_told():
    gone = [{"from_round": 2, "players": "firm_2", "settings": {"present": False}}]
    env, _, _ = first(**{**MARKETS["logit"], "known": list(KNOWABLE), "changes": gone})
    observations, *_, infos = env.step({name: {"choice": 2.0} for name in env.agents})
    slots = infos["firm_1"]["slots"]
    assert slots.rival_costs == (1.0,)
    assert slots.demand_rule.rival_qualities == (2.0,)
    told = dict(zip(env.feature_names, observations["firm_1"]["observation"].tolist(), strict=True))
    assert (told["rival_cost_1"], told["rival_cost_2"], told["rival_quality_2"]) == (1, 0, 0)
    assert told["rounds_left"] == 0.75
    assert env.observation_space("firm_1").contains(observations["firm_1"])


class Listening(ScriptedChat):
    """Keeps the prompts."""

    def __init__(self):
        super().__init__()
        self.prompts = []

    async def ask(self, key, request):
        self.prompts.append(request.messages[-1].content)
        return await super().ask(key, request)


@pytest.mark.parametrize(("pack", "preset"), [*((pack, None) for pack in WORDINGS), ("fish", "fish")])
def test_language_models_are_told(pack, preset):
    settings = LLMSettings.build(preset, model="m", pack=pack)
    prompts = []
    for known in ((), KNOWABLE):
        chat = Listening()
        env = bertrand_v0.parallel_env(**{**MARKETS["logit"], "rounds": 1, "known": known})
        play(env, LLMPolicy(chat, settings), seed=0)
        prompts.append(chat.prompts[-1])
    assert "exp(" not in prompts[0]
    assert all(word in prompts[1] for word in ("exp(", "1.25", "2.5"))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"known": "demand"}, "must be a list"),
        ({"known": ["rival_cost"]}, "rival_costs"),
        ({"known": ["rival_costs"], "firms": 1, "talk": False}, "no rivals"),
    ],
)
def test_misprints_are_refused(fields, reason):
    with pytest.raises(SettingsError, match=reason):
        BertrandSettings(**fields)
