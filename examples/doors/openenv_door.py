"""A game's seat as an OpenEnv environment: server, client, and an episode over loopback.

Needs `pip install openenv-core`. A trainer that supports OpenEnv (TRL, verifiers, ...) connects to the server; the
client here shows the data that are exchanged. Run this file to see an episode. To start the server:

    uvicorn openenv_door:app --app-dir examples/doors
"""

from __future__ import annotations

from typing import Any

from openenv.core.client_types import StepResult
from openenv.core.env_client import EnvClient
from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State
from pydantic import Field

from llm_coop_envs.policies.llm.seats import ChatSeat


class ReplyAction(Action):
    """The model's reply; `None` if there is none, which is a forfeit."""

    text: str | None


class Asked(Observation):
    """The new messages to the seat, and the seat's info, at the end with the episode's measures."""

    messages: list[dict[str, str]] = Field(default_factory=list)
    info: dict[str, Any] = Field(default_factory=dict)


class SeatState(State):
    """The progress of the episode, and its recorded events."""

    events: list[dict[str, Any]] = Field(default_factory=list)


class SeatEnvironment(Environment[ReplyAction, Asked, SeatState]):
    """One learner's seat; `reset` takes the arguments of `ChatSeat`, by default a firm beside a price-matching one."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._state = SeatState(step_count=0)
        self._seat: ChatSeat | None = None

    def reset(self, seed: int | None = None, episode_id: str | None = None, **game: Any) -> Asked:
        """Begin an episode; an unknown scenario, seat, policy or reward is an error that names it."""
        self._seat = ChatSeat(game.pop("scenario", "bertrand"), **game)
        self._state = SeatState(episode_id=episode_id, step_count=0)
        messages = self._seat.init(0 if seed is None else seed)
        return Asked(messages=messages, info=self._seat.seats.infos()[self._seat.agent])

    def step(self, action: ReplyAction, timeout_s: float | None = None, **_: Any) -> Asked:
        """Take the model's reply, and play to its next question."""
        if self._seat is None:
            raise ValueError("no episode has begun; call reset first")
        messages, reward, done, info = self._seat.step(action.text)
        self._state.step_count += 1
        if done:
            info["metrics"] = self._seat.seats.metrics()
        return Asked(messages=messages, reward=reward, done=done, info=info)

    @property
    def state(self) -> SeatState:
        """The number of replies, and the events so far."""
        events = [] if self._seat is None else self._seat.seats.env.events
        return self._state.model_copy(update={"events": list(events)})


class SeatClient(EnvClient[ReplyAction, Asked, SeatState]):
    """The client: `reset(seed=..., scenario=..., ...)`, `step(ReplyAction(text=...))`."""

    def _step_payload(self, action: ReplyAction) -> dict[str, Any]:
        return {"text": action.text}

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[Asked]:
        outcome = {"reward": payload.get("reward"), "done": payload.get("done", False)}
        return StepResult(observation=Asked(**{**payload["observation"], **outcome}), **outcome)

    def _parse_state(self, payload: dict[str, Any]) -> SeatState:
        return SeatState(**payload)


app = create_app(SeatEnvironment, ReplyAction, Asked, env_name="llm_coop", max_concurrent_envs=64)


def serve(port: int) -> Any:
    """Start the server on loopback in a thread; set its `should_exit` to end it."""
    import threading
    import time

    import uvicorn

    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.02)
    return server


def main(port: int = 8765) -> None:
    """Play one episode with a firm that always sets the same price."""
    server = serve(port)
    with SeatClient(f"http://127.0.0.1:{port}").sync() as client:
        result = client.reset(seed=1, talk=False, max_cycles=5)
        while not result.done:
            print(result.observation.messages[-1]["content"], "\n")
            result = client.step(ReplyAction(text="1.6"))
            print("reward", result.reward, "\n")
    server.should_exit = True


if __name__ == "__main__":
    main()
