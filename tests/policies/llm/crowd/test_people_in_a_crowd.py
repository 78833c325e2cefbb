"""A population in a crowd on arrays: the same people, asked in the same way, as in the seats of PettingZoo's `step`."""

import asyncio

import numpy as np
import pytest
from text_crowds import as_some, as_somebody, reply

from llm_coop_envs.core.policy import Seating
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.interface.question import Options
from llm_coop_envs.policies import Policy, make, play
from llm_coop_envs.policies.llm.chat import NotInJournal
from llm_coop_envs.policies.llm.crowd import TextCrowd
from llm_coop_envs.policies.llm.playing.policy import LLMPolicy
from llm_coop_envs.policies.llm.playing.settings import LLMSettings
from llm_coop_envs.policies.population.population import People
from llm_coop_envs.studies.dealing import assign_seats
from llm_coop_envs.studies.study import parse_study
from llm_coop_envs.util.draws import CROWD, key_of, seeds_of

STUDY = """\
name: crowd
seed: 1
conditions:
  - name: crowd
    scenario: SCENARIO
    population:
      attributes: {education: shipped, age: shipped, gender: shipped}
      play:
        policy: {shares: {POLICY: 0.25, llm: 0.75}}
        model: {by: gender, shares: {woman: {scripted-a: 1}, man: {scripted-bb: 1}}}
        temperature: {shares: {0.05: 0.5, 1.0: 0.5}}
        pack: {shares: {en-a: 0.5, de-a: 0.5}}
        personas: {shares: {PERSONAS}}
      backgrounds: {}
    seeds: [3]
"""
KBC = (
    STUDY.replace("SCENARIO", "kbc\n    settings: {players: 40, session: repeated, rounds: 2, talk: false}")
    .replace("POLICY", "poisson")
    .replace("PERSONAS", "in_role: 0.5, rational: 0.5")
)
FIRMS = (
    STUDY.replace("SCENARIO", "bertrand\n    settings: {firms: 8, rounds: 3, collusion_window: 2, talk: false}")
    .replace("POLICY", "price_matching")
    .replace("PERSONAS", "selfish: 0.5, explicit_cooperation: 0.5")
)
EVACUATION = (
    STUDY.replace("SCENARIO", "evacuation\n    settings: {people: 40, rounds: 3, talk: false}")
    .replace("POLICY", "shares")
    .replace("PERSONAS", "open: 0.5, calm: 0.5")
)


def drawn(study=KBC, seed=2):
    """A condition, its environment, its people, and who PettingZoo's seats are filled with."""
    (condition,) = parse_study(study, "crowd.yaml").conditions
    env = condition.spec.environment(record=True, **condition.settings)
    people = condition.crowd.draw(env.n_players, np.random.SeedSequence(seed))
    return env, people, assign_seats(condition, env.possible_agents, np.random.default_rng(1), people)


def seats_of(players, asked):
    """One policy for all seats of language models, a rule for the others."""
    rule = make(next(one.policy for one in players.values() if not one.policy.startswith("llm:")))
    return {agent: asked if one.policy.startswith("llm:") else rule for agent, one in players.items()}


def on_arrays(study=KBC, source=as_somebody, people_seed=2, **given):
    env, people, players = drawn(study, people_seed)
    with TextCrowd(source, people=people, **given) as crowd:
        play(env, seats_of(players, crowd), seed=5)
        assert crowd.counters.total().asked == crowd.counters.total().answered >= 18
    return env.events


class InSeats(Policy):
    """Decides request by request, from what the seat's own player and background say."""

    def __init__(self, players, backgrounds):
        self.players, self.backgrounds = players, backgrounds

    def begin(self, episode):
        super().begin(episode)
        self.key = key_of(episode.rng)

    async def act(self, requests):
        return [{"choice": self.choice(one.agent, one.info)} for one in requests]

    def choice(self, agent, info):
        player, question = self.players[agent], info["slots"].question
        options = {**player.options, "model": player.policy.partition(":")[2]}
        who = np.array([int(agent.rpartition("_")[2])])
        (seed,) = seeds_of(self.key, who, CROWD, info["step"]).tolist()
        found = reply(options, self.backgrounds[agent], seed, question)
        return found.choice if isinstance(question, Options) else question.choice(found)


def step_by_step(study):
    """The same game through PettingZoo's `step`."""
    env, people, players = drawn(study)
    backgrounds = people.backgrounds({agent: k for k, agent in enumerate(env.possible_agents)})
    table = Seating(seats_of(players, InSeats(players, backgrounds)), env.possible_agents)
    table.begin(env.metadata["name"], env.settings, env.possible_agents, np.random.SeedSequence([5, 1]))
    observations, infos = env.reset(seed=5)
    while env.agents:
        observations, _, _, _, infos = env.step(asyncio.run(table.act(observations, infos)))
    return env.events


@pytest.mark.parametrize("study", [KBC, FIRMS, EVACUATION], ids=["kbc", "bertrand", "evacuation"])
def test_a_crowd_plays_the_game_of_its_population_s_seats(study):
    events = step_by_step(study)
    assert on_arrays(study) == events
    assert on_arrays(study, as_some, many=True) == events


def test_people_reach_other_processes_and_the_journal_knows_them(tmp_path):
    events = on_arrays(folder=tmp_path, processes=2)
    assert events == on_arrays() == on_arrays(source=never, folder=tmp_path)
    with pytest.raises(NotInJournal, match="another question in step 0"):
        on_arrays(folder=tmp_path, people_seed=3)


async def never(asked, player, seed, person):
    raise AssertionError("was asked before")


def test_as_many_people_as_players():
    env, other = drawn()[0], drawn(KBC.replace("players: 40", "players: 44"))[1]
    with TextCrowd(as_somebody, people=other) as crowd, pytest.raises(SettingsError, match=r"44.*there are 40 players"):
        play(env, crowd, seed=0)


def test_nothing_is_written_of_somebody_who_is_not_asked(monkeypatch):
    written = []
    sentences = People.sentences

    def noted(self, person):
        written.append(person)
        return sentences(self, person)

    monkeypatch.setattr(People, "sentences", noted)

    async def source(asked, player, seed, person):
        return str(len(person.options["model"]) if player else len(person.background) % 100)

    env, people, _ = drawn()
    with TextCrowd(source, people=people) as crowd:
        play(env, crowd, seed=0)
    assert set(written) == {0}
    written.clear()
    model = LLMPolicy(None, LLMSettings.build(None, model="scripted-a", personas=("rational",)))
    model.backgrounds = people.backgrounds({agent: k for k, agent in enumerate(env.possible_agents)})
    table = Seating(dict.fromkeys(env.possible_agents, model), env.possible_agents)
    table.begin(env.metadata["name"], env.settings, env.possible_agents, np.random.SeedSequence(0))
    assert written == []
    assert model.personas()["player_7"] == "rational"
