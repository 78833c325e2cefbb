"""The SkyRL door as SkyRL's generator calls it; needs skyrl-gym, which is not among the packages that tests install."""

import pytest

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies.llm.seats import ChatSeat

skyrl_gym = pytest.importorskip("skyrl_gym")
pytestmark = pytest.mark.filterwarnings("ignore")  # of the library and what it brings

GAME = {"seat": "firm_1", "talk": True, "max_cycles": 24, "reward": "joint"}


def make_env(row):
    from doors import skyrl_door

    return skyrl_gym.make(skyrl_door.NAME, env_config={}, extras={**row, "max_turns": 3})


def test_an_episode_through_it_is_the_seats_own():
    from doors.skyrl_door import rows

    row = rows(5, scenario="bertrand", most_fallbacks=None, **GAME)[4]
    env, seat, prices = make_env(row), ChatSeat("bertrand", **GAME), iter(["1.7", *["what?"] * 3, *["1.65"] * 9])
    messages, done = seat.init(4), False
    first, info = env.init(row["prompt"])
    assert first == messages
    while not done:
        reply = next(prices) if info["call"] == "price" else "I would keep it at 1.7."
        messages, reward, done, info = seat.step(reply)
        output = env.step(reply)
        assert output == {"observations": messages, "reward": reward, "done": done, "metadata": info}
    assert env.seat.seats.env.events == seat.seats.env.events
    assert info["fallbacks"] == 1
    assert env.get_metrics().items() >= seat.seats.metrics().items()
    assert type(env).aggregate_metrics([env.get_metrics()])["fallbacks"] == info["fallbacks"]


@pytest.mark.parametrize("given", [{"seat": "firm_9"}, {"reward": "fame"}])
def test_what_is_unknown_is_named(given):
    with pytest.raises(SettingsError, match=r"is no seat|is none of"):
        make_env({"game": given})
