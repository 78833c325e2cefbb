"""The OpenEnv door over loopback; needs openenv-core, which is not among the packages that tests install."""

import socket

import pytest

from llm_coop_envs.policies.llm.seats import ChatSeat

pytest.importorskip("openenv")
pytestmark = pytest.mark.filterwarnings("ignore")  # of the library and what it brings


@pytest.fixture(scope="module")
def address():
    from doors.openenv_door import serve

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = serve(port)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True


GAME = {"talk": True, "max_cycles": 12, "reward": "joint"}
REPLIES = ["I would keep it at 1.7.", "1.7", "", "what?", "1.65", None]


def test_an_episode_through_it_is_the_seats_own(address):
    from doors.openenv_door import ReplyAction, SeatClient

    seat = ChatSeat("bertrand", "firm_1", **GAME)
    messages, done, replies = seat.init(4), False, iter(REPLIES * 10)
    with SeatClient(address).sync() as client:
        result = client.reset(seed=4, scenario="bertrand", seat="firm_1", **GAME)
        while not done:
            assert result.observation.messages == messages
            reply = next(replies)
            messages, reward, done, info = seat.step(reply)
            result = client.step(ReplyAction(text=reply))
            assert (result.reward, result.done) == (reward, done)
            own_info = dict(result.observation.info)
            measured = own_info.pop("metrics", None)
            assert own_info == info
        assert measured == seat.seats.metrics()
        assert client.state().events == seat.seats.env.events


@pytest.mark.parametrize(
    ("given", "sentence"),
    [({"seat": "firm_9"}, "seat='firm_9': is no seat"), ({"reward": "fame"}, "reward='fame': is none of")],
)
def test_what_is_unknown_is_named(address, given, sentence):
    from doors.openenv_door import SeatClient

    with SeatClient(address).sync() as client, pytest.raises(RuntimeError, match=sentence):
        client.reset(**given)
