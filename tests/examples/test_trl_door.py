"""The TRL door: its tools without TRL, and a rollout and a training step in TRL's trainer where that is installed."""

import random

import pytest
from doors.trl_door import Contestant, Evacuee, Firm

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies.llm.seats import ChatSeat

GAME = {"talk": True, "max_cycles": 6, "reward": "joint"}


@pytest.mark.parametrize(
    ("kind", "scenario", "game", "tools"),
    [
        (Firm, "bertrand", {"exchanges": 1}, {"talk": ("say", "Mine is 1.7."), "price": ("set_price", 1.7)}),
        (Contestant, "kbc", {"players": 4}, {"talk": ("say", "Low."), "choose": ("name_number", 20)}),
        (
            Evacuee,
            "evacuation",
            {"people": 6},
            {
                "talk": ("say", "Go on."),
                "panic": ("answer", "calm"),
                "evaluate": ("answer", "near"),
                "exit": ("choose", "A"),
                "move": ("choose", "1"),
            },
        ),
    ],
)
def test_tools_give_the_same_replies(kind, scenario, game, tools):
    seat, env = ChatSeat(scenario, **GAME, **game), kind(**GAME, **game)
    messages, done, total = seat.init(5), False, 0.0
    assert env.reset(seed=5, prompt=[]) == "\n\n".join(message["content"] for message in messages)
    while not done:
        tool, value = tools[seat.seats.infos()[seat.agent]["call"]]
        messages, reward, done, _ = seat.step(str(value))
        answer = getattr(env, tool)(value)
        assert answer == ("The game is over." if done else "\n\n".join(message["content"] for message in messages))
        total += reward
    assert env._seat.seats.env.events == seat.seats.env.events
    assert env.get_reward() == total
    with pytest.raises(ValueError, match="the game is over"):
        env.say("more")


def test_what_is_left_open_is_forfeited_and_another_question_is_no_reply():
    env = Firm(talk=False, max_cycles=4)
    env.reset()
    with pytest.raises(ValueError, match="you are asked for something else now: price"):
        env.say("1.7")
    env.set_price(1.7)
    assert env._reward > 0
    assert env.get_reward() == env.get_reward() == 0
    assert env._info["fallbacks"] == 3
    assert len([event for event in env._seat.seats.env.events if event["type"] == "round"]) == 4


@pytest.mark.parametrize("given", [{"seat": "firm_9"}, {"reward": "fame"}])
def test_what_is_unknown_is_named(given):
    with pytest.raises(SettingsError, match=r"is no seat|is none of"):
        Firm(**given)


@pytest.mark.filterwarnings("ignore")  # of the library and what it brings
def test_a_rollout_in_the_trainer_is_the_seats_own(tmp_path):
    pytest.importorskip("trl")
    import torch
    from doors import training

    game = {"talk": True, "exchanges": 1, "max_cycles": 6}
    tokens, model = training.network(game, width=16)
    trainer = training.trainer(tokens, model, game, steps=1, rollouts=2, folder=tmp_path)
    decisions = []

    def scripted(input_ids, **_):
        """Say something when asked for a message, else set a price; another one in each rollout."""
        answers = []
        for row in input_ids:
            text = tokens.decode(row).rpartition("<|im_start|>user")[2]
            price = 1.3 + random.Random(len(decisions)).randrange(60) / 100
            over, talk = "The game is over." in text, "Answer with the number only." not in text
            arguments = {"message": "Let us rest."} if talk else {"price": price}
            call = training.format_call("say" if talk else "set_price", **arguments)
            decisions.append((tuple(row.tolist()), "" if over else "Let us rest." if talk else str(price)))
            answers.append(tokens("Done.<|im_end|>" if over else call)["input_ids"])
        longest = max(map(len, answers))
        padded = [answer + [tokens.pad_token_id] * (longest - len(answer)) for answer in answers]
        return torch.cat([input_ids, torch.tensor(padded)], dim=1)

    trainer.model.generate = scripted
    trainer.train()
    assert len(trainer.environments) == 2
    for environment in trainer.environments:
        seats = environment._seat.seats
        replies = iter(
            [message["content"] for message in seats.conversation("firm_0") if message["role"] == "assistant"]
        )
        seat = ChatSeat("bertrand", **game)
        seat.init(0)
        done, total = False, 0.0
        while not done:
            _, reward, done, _ = seat.step(next(replies))
            total += reward
        assert seat.seats.env.events == seats.env.events
        assert environment.get_reward() == total > 0
        assert not next(replies, None)
    (logged,) = [entry for entry in trainer.state.log_history if "reward" in entry]
    assert logged["reward"] == pytest.approx(sum(environment.get_reward() for environment in trainer.environments) / 2)
    assert logged["tools/failure_frequency"] == 0
