import asyncio

import numpy as np
import pytest
from toy import ToyEnv

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies import Policy, ScriptedPolicy, Seating, play


class Chooser(ScriptedPolicy):
    """Chooses at random and says so."""

    def decide(self, request):
        return {"choice": int(self.episode.rng.integers(4)), "message": f"I am {request.agent}"}


class Short(Policy):
    async def act(self, requests):
        return []


class Slow(Chooser):
    """Thinks before it chooses."""

    async def act(self, requests):
        await asyncio.sleep(0.001)
        return await super().act(requests)


def test_an_episode_is_played_to_its_end_and_repeats():
    env = ToyEnv(record=True)
    totals = play(env, Chooser(), seed=3)
    events = env.events
    assert events[-1]["type"] == "end"
    assert set(totals) == set(env.possible_agents)
    assert totals == play(ToyEnv(), Chooser(), seed=3)
    assert totals != play(ToyEnv(), Chooser(), seed=4)


def test_policies_have_generators_of_their_own():
    one, two = Chooser(), Chooser()
    env = ToyEnv(talk=False)
    play(env, {"player_0": one, "player_1": two, "player_2": one}, seed=0, name="toy/0001")
    assert one.episode.seats == ("player_0", "player_2")
    assert two.episode.seats == ("player_1",)
    assert one.episode.rng.random() != two.episode.rng.random()
    assert one.episode.scenario == "toy_v0"
    assert one.episode.name == two.episode.name == "toy/0001"
    assert one.episode.settings == env.settings


def test_only_players_on_turn_are_asked():
    env = ToyEnv(levels=True)
    observations, infos = env.reset(seed=0)
    table = Seating(dict.fromkeys(env.possible_agents, Chooser()), env.possible_agents)
    table.begin("toy_v0", env.settings, env.possible_agents, np.random.SeedSequence(0))
    while env.agents:
        actions = asyncio.run(table.act(observations, infos))
        assert set(actions) == {a for a in env.agents if observations[a]["turn"]}
        observations, _, _, _, infos = env.step(actions)


def test_seats_must_be_filled_and_exist():
    with pytest.raises(SettingsError, match="no policy was given for player_1"):
        play(ToyEnv(players=2), {"player_0": Chooser()}, seed=0)
    with pytest.raises(SettingsError, match="'player_9': is no seat"):
        play(ToyEnv(players=2), dict.fromkeys(["player_0", "player_1", "player_9"], Chooser()), seed=0)


def test_a_policy_must_answer_every_request():
    with pytest.raises(RuntimeError, match=r"Short\.act answered 0 of 2 requests"):
        play(ToyEnv(players=2, talk=False), Short(), seed=0)


def test_steps_can_be_watched():
    seen = []
    env = ToyEnv(talk=False, rounds=4)
    play(env, Chooser(), seed=0, on_step=lambda e: seen.append(e.round))
    assert seen == [1, 2, 3, 4, 4]


@pytest.mark.parametrize("policies", [(Chooser, Chooser), (Slow, Slow), (Chooser, Slow)])
def test_episodes_are_played_where_an_event_loop_runs_already(policies):
    def play_one():
        one, two = (policy() for policy in policies)
        return play(ToyEnv(), {"player_0": one, "player_1": two, "player_2": one}, seed=3)

    async def notebook():
        return play_one()

    assert asyncio.run(notebook()) == play_one()


def test_rules_are_played_without_an_event_loop(monkeypatch):
    monkeypatch.setattr(asyncio, "new_event_loop", lambda: pytest.fail("an event loop was made"))
    play(ToyEnv(), {"player_0": Chooser(), "player_1": Chooser(), "player_2": Chooser()}, seed=3)
    assert (Policy.waits, ScriptedPolicy.waits, Chooser.waits, Slow.waits) == (True, False, False, True)
