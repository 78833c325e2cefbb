import asyncio

import pytest

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.errors import PlayerLeft
from llm_coop_envs.policies import play, scripted
from llm_coop_envs.policies.human.window import WindowHuman, prompt


class Window:
    """A window whose person types from a list, and closes it at its end."""

    def __init__(self, *lines):
        self.closed = False
        self.lines = list(lines)
        self.asked, self.told = [], []
        self.ticks = 0
        self.broken = False

    def ask(self, asked):
        self.asked.append(asked)

    def tell(self, sentence):
        self.told.append(sentence)

    def take(self):
        if not self.lines:
            self.closed = True
            return None
        return self.lines.pop(0)

    def tick(self):
        self.ticks += 1
        if self.broken:
            raise RuntimeError("the drawing failed")


def contest(window):
    env = kbc_v0.parallel_env(players=3, record=True)
    seats = {"player_0": WindowHuman(window), "player_1": scripted.make("kbc/poisson")}
    play(env, {**seats, "player_2": seats["player_1"]}, seed=1)
    return env.events


def test_lines_become_actions():
    window = Window("33", "I take 20", "20", "", "nonsense", "21", "x", "22")
    events = contest(window)
    mine = [event for event in events if event.get("agent") == "player_0"]
    assert [event["choice"] for event in mine if event["type"] == "choice"] == [33, 20, 21, 22]
    assert [event["text"] for event in mine if event["type"] == "message"] == ["I take 20", "x"]
    assert ["is no number" in sentence for sentence in window.told] == [True]
    assert "You are player_0" in window.asked[0].text
    assert window.ticks


def test_a_closed_window_leaves_the_game():
    with pytest.raises(PlayerLeft, match="the window was closed"):
        contest(Window("33"))


def test_a_window_that_breaks_is_told():
    window = Window()
    window.broken = True
    window.take = lambda: None
    with pytest.raises(RuntimeError, match="the drawing failed"):
        contest(window)


def test_the_window_lives_while_others_think():
    class Slow(Window):
        pass

    window = Slow("1")

    class Thinker(WindowHuman):
        def begin(self, episode):
            self.episode = episode

        async def act(self, requests):
            await asyncio.sleep(0.2)
            return [{"choice": 1} for _ in requests]

    env = kbc_v0.parallel_env(players=2, talk=False, session="single")
    play(env, {"player_0": WindowHuman(window), "player_1": Thinker(window)}, seed=1)
    assert window.ticks > 3


def slots(module, phase, **settings):
    env = module.parallel_env(**settings)
    env.reset(seed=1)
    for _ in range(300):
        _, infos = env.look(on_turn=True)
        for name, info in infos.items():
            if info["slots"].phase == phase and info["slots"].on_turn:
                return name, info["slots"]
        env.submit({})
    raise AssertionError(phase)


def test_steps_have_keys_and_exits_have_names():
    name, step = slots(evacuation_v0, "move", preset="small", talk=False)
    asked = prompt(name, step, "text")
    assert asked.steps == {option.name: option.letter for option in step.options}
    assert "arrow keys" in asked.hint
    asked = prompt(*slots(evacuation_v0, "exit", preset="small", talk=False), "text")
    assert asked.hint == "your exit: 0 (bottom), 1 (left), 2 (right)"
    assert not asked.steps


def test_messages_may_be_long_and_numbers_are_short():
    assert prompt(*slots(kbc_v0, "talk", players=3, message_length=77), "text").longest == 77
    assert prompt(*slots(kbc_v0, "act", players=3), "text").longest == 40


def test_the_chart_holds_what_a_firm_knows():
    env = bertrand_v0.parallel_env(preset="team_up_linear", talk=False)
    env.reset(seed=1)
    for price in (5.0, 6.0, 7.0):
        env.submit({"firm_0": {"choice": price}, "firm_1": {"choice": 8.0}})
    _, infos = env.look(on_turn=True)
    asked = prompt("firm_0", infos["firm_0"]["slots"], "text")
    assert asked.curves == {"your price": [(1, 2.0), (2, 6.0), (3, 7.0)], "firm_1": [(1, 2.0), (2, 8.0), (3, 8.0)]}
