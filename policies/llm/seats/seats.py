"""A game's seats as questions that are handed out and replies that are handed back, without an event loop.

Under it are the policy of language models with its workflow, readers and repair, unchanged: an episode is the same,
event for event, as one in which a `Chat` gave the same replies. Only what is *shown* may be less: the conversation
stays, so a question's later turns bring their news alone.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from llm_coop_envs.core.base_policy import Action
from llm_coop_envs.core.policy import PolicyLike, Request, Seating
from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.core.scenario import Event
from llm_coop_envs.errors import ActionError, ResetNeeded, SettingsError
from llm_coop_envs.policies import scripted
from llm_coop_envs.policies.llm.chat import ChatReply, ChatRequest, RequestKey, Usage
from llm_coop_envs.policies.llm.playing.policy import LLMPolicy
from llm_coop_envs.policies.llm.playing.settings import LLMSettings
from llm_coop_envs.policies.llm.seats.question_log import Message, QuestionLog
from llm_coop_envs.util.references import load
from llm_coop_envs.util.waiting import run_coroutine, run_through

OWN, JOINT = "own", "joint"
#: What a seat replies: a text, a reply with its finish reason, or `None`: no reply came (a forfeit).
Reply = str | ChatReply | None
Info = dict[str, Any]
Deciding = Coroutine[Any, Any, Sequence[Action]]


@dataclass(frozen=True)
class _Question:
    """A question that waits for its reply."""

    key: RequestKey
    request: ChatRequest

    def __await__(self) -> Generator[_Question, ChatReply, ChatReply]:
        """Hand the question out; what is sent back is the reply."""
        reply = yield self
        return reply


class _HandedOut:
    """A `Chat` whose questions are answered by whoever drives the coroutine that asks."""

    async def ask(self, key: RequestKey, request: ChatRequest) -> ChatReply:
        """The reply that is sent into the coroutine."""
        return await _Question(key, request)


@dataclass(slots=True)
class _Seat:
    """One learner in the running episode."""

    conversation: QuestionLog
    deciding: Deciding | None = None
    question: _Question | None = None
    forfeits: int = 0
    forfeited: bool = False
    decisions: int = 0
    failed: int = 0
    fell: bool = False
    earned: float = 0.0
    given: float = 0.0
    shown: list[Message] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Of this seat's decisions, those that no reply could be read for."""
        return self.failed / self.decisions if self.decisions else 0.0


class ChatSeats:
    """Some or all seats of a game: a question for each that is on turn, and a reply to each of them.

    Args:
        scenario: its name.
        learners: the seats that are asked, by name or by number from 0; all by default.
        others: who sits in the other seats: the name of a scripted policy, a policy, or a mapping from seats to either;
            the scenario's usual opponent by default.
        reward: `"own"` (what the environment pays the seat), `"joint"` (the sum over all players), or one that the
            scenario offers, such as `"consumer_surplus"` in price competition.
        most_fallbacks: past this share of decisions that no reply could be read for, a seat is given no reward.
        delta: whether a question's later turns bring only what is new.
        asking: how a model is asked, as `LLMSettings.build` takes it (`preset`, `pack`, `answers`, ...).
        **settings: what `parallel_env` takes.

    Attributes:
        env: the environment, with the events of the episode in `env.events`.

    Raises:
        SettingsError: there is no such scenario, seat, policy or reward, or a setting is not possible.
    """

    def __init__(
        self,
        scenario: str,
        *,
        learners: Sequence[str | int] | None = None,
        others: Mapping[str, PolicyLike | str] | PolicyLike | str | None = None,
        reward: str = OWN,
        most_fallbacks: float = 0.1,
        delta: bool = True,
        asking: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        self._scenario = find_scenario(scenario)
        self.env = self._scenario.environment(record=True, **settings)
        seats = self.env.possible_agents
        asked = range(len(seats)) if learners is None else learners
        for one in asked:
            if one not in seats and one not in range(len(seats)):
                raise SettingsError("seat", one, f"is no seat; seats are {seats[0]} to {seats[-1]}")
        self.learners = tuple(seats[one] if isinstance(one, int) else one for one in asked)
        offered: Mapping[str, Callable[[Any, Event], float]] = load(self._scenario.rewards)
        if reward not in (OWN, JOINT, *offered):
            raise SettingsError("reward", reward, f"is none of {', '.join((OWN, JOINT, *offered))}")
        if not 0 <= most_fallbacks <= 1:
            raise SettingsError("most_fallbacks", most_fallbacks, "is a share, from 0 to 1")
        self._reward, self._of_round = reward, offered.get(reward)
        self._most, self._delta = most_fallbacks, delta
        self._policy = LLMPolicy(_HandedOut(), LLMSettings.build(**{"model": "learner", **(asking or {})}))
        rest = [name for name in seats if name not in self.learners]
        given = self._scenario.opponent if others is None else others
        named = given if isinstance(given, Mapping) else dict.fromkeys(rest, given)
        made: dict[str, PolicyLike] = {one: self._named(one) for one in named.values() if isinstance(one, str)}
        filled = {seat: made[one] if isinstance(one, str) else one for seat, one in named.items()}
        taken = sorted(filled.keys() & set(self.learners))
        if taken:
            raise SettingsError("others", taken[0], "is a learner's seat")
        self._table = Seating({**filled, **dict.fromkeys(self.learners, self._policy)}, seats)
        self._rest = Seating(filled, rest)
        self._seats: dict[str, _Seat] = {}

    def _named(self, name: str) -> PolicyLike:
        own = f"{self._scenario.name}/"
        return scripted.make(own + name.removeprefix(own))

    def init(
        self, seed: int = 0, *, policy_seed: np.random.SeedSequence | None = None, name: str = "episode"
    ) -> dict[str, list[Message]]:
        """Begin an episode and play to the first questions; seeds and name as `policies.play` takes them.

        Returns:
            The messages of each seat that is asked.
        """
        env = self.env
        self._seats = {name: _Seat(QuestionLog(delta=self._delta)) for name in self.learners}
        stream = np.random.SeedSequence([seed, 1]) if policy_seed is None else policy_seed
        self._table.begin(env.metadata["name"], env.settings, env.possible_agents, stream, name)
        env.begin(seed=seed)
        self._actions: dict[str, Action] | None = None
        self._seen = len(env.events)
        self._play_on()
        return self._asked()

    def step(
        self, replies: Mapping[str, Reply]
    ) -> tuple[dict[str, list[Message]], dict[str, float], bool, dict[str, Info]]:
        """Take the replies to all open questions, and play on to the next ones.

        Args:
            replies: one for each seat that was asked.

        Returns:
            The new messages of each seat that is asked now; what each learner earned meanwhile; whether the episode is
            over; and the learners' `infos`.

        Raises:
            ResetNeeded: no question is open.
            ActionError: a seat that was asked is missing, or one was not asked.
        """
        open_seats = {name for name, seat in self._seats.items() if seat.question is not None}
        if not open_seats:
            raise ResetNeeded("no question is open: the episode is over or not begun; call init() first")
        if open_seats != set(replies):
            raise ActionError(f"replies are awaited from {sorted(open_seats)}, and came from {sorted(replies)}")
        for name, reply in replies.items():
            self._take(name, self._seats[name], reply)
        self._play_on()
        done = not self.env.agents
        rewards = {name: self._settle(seat, done) for name, seat in self._seats.items()}
        return self._asked(), rewards, done, self.infos()

    def infos(self) -> dict[str, Info]:
        """What is known of each learner.

        `call`, `attempt`, `step` and `round` of its open question, and the `request`'s settings; `decisions`, of them
        `fallbacks` (no reply could be read) and `forfeits` (no reply came); and `why`: a sentence where a reward is
        withheld, else empty.
        """
        return {name: self._info(seat) for name, seat in self._seats.items()}

    def conversation(self, agent: str) -> list[Message]:
        """All messages of a learner so far, its own replies included."""
        return list(self._seats[agent].conversation.messages)

    def metrics(self) -> dict[str, Any]:
        """What is measured of the episode, once it is over."""
        return self._scenario.episode_metrics(self.env.events)

    def _asked(self) -> dict[str, list[Message]]:
        return {name: seat.shown for name, seat in self._seats.items() if seat.question is not None}

    def _take(self, name: str, seat: _Seat, reply: Reply) -> None:
        if reply is None:
            seat.forfeits += 1
            seat.forfeited = True
        if not isinstance(reply, ChatReply):
            reply = ChatReply(reply or "", Usage(0, 0), "stop", "learner", 0.0)
        seat.conversation.answer(reply.text)
        self._send(name, seat, reply)

    def _send(self, name: str, seat: _Seat, reply: ChatReply | None) -> None:
        """Let a seat decide on until it asks, or has decided."""
        assert seat.deciding is not None, "a seat that is asked decides"
        assert self._actions is not None, "a step has begun"
        before = self._policy.counters.total()
        try:
            question: _Question = seat.deciding.send(reply)
        except StopIteration as decided:
            seat.question = seat.deciding = None
            (self._actions[name],) = decided.value
        else:
            seat.question = question
            seat.shown = seat.conversation.ask(question.key, question.request)
        after = self._policy.counters.total()
        failed = after.fallbacks - before.fallbacks
        if after.ended > before.ended:
            # Where players talk, silence may be meant and is an answer; no reply at all never is.
            failed, seat.forfeited = max(failed, int(seat.forfeited)), False
        seat.decisions += after.asked - before.asked
        seat.failed += failed
        seat.fell |= failed > 0

    def _play_on(self) -> None:
        """Play until somebody is asked, or the episode is over."""
        env = self.env
        while env.agents:
            if self._actions is None:
                self._begin_step()
            if any(seat.question is not None for seat in self._seats.values()):
                return
            env.submit(self._actions or {})
            self._actions = None
            self._earn()

    def _begin_step(self) -> None:
        """Have the others on turn decide, and the learners begin to."""
        observations, infos = self.env.look(on_turn=True, slots_only=self._table.slots_only)
        deciding = self._rest.act(observations, infos)
        self._actions = run_coroutine(deciding) if self._rest.waits else run_through(deciding)
        for name, seat in self._seats.items():
            if name in observations and observations[name]["turn"]:
                seat.deciding = self._policy.act([Request(name, observations[name], infos[name])])
                self._send(name, seat, None)

    def _earn(self) -> None:
        """Credit what the last step brought; what stands in for a reply is never a success of the seat."""
        settled = [event for event in self.env.events[self._seen :] if event["type"] == "round"]
        self._seen = len(self.env.events)
        if self._of_round is not None:
            shared = sum(self._of_round(self.env.settings, event) for event in settled)
        else:
            shared = float(self.env.rewards.sum())
        fallen = any(seat.fell for seat in self._seats.values())
        for name, seat in self._seats.items():
            own = self._reward == OWN
            earned = float(self.env.rewards[self.env.possible_agents.index(name)]) if own else shared
            seat.earned += min(earned, 0.0) if (seat.fell if own else fallen) else earned
        if settled:
            for seat in self._seats.values():
                seat.fell = False

    def _settle(self, seat: _Seat, done: bool) -> float:
        """What a seat is given for what it earned; at the end, what it was given too much is taken back."""
        earned, seat.earned = seat.earned, 0.0
        if seat.share > self._most:
            earned = min(earned, 0.0)
            if done:
                earned -= max(seat.given + earned, 0.0)
        seat.given += earned
        return earned

    def _info(self, seat: _Seat) -> Info:
        why = ""
        if seat.share > self._most:
            why = (
                f"no reward: {seat.failed} of {seat.decisions} decisions had no reply that could be read, and "
                f"{self._most:g} of them is the most (most_fallbacks)"
            )
        found: Info = {"decisions": seat.decisions, "fallbacks": seat.failed, "forfeits": seat.forfeits, "why": why}
        if seat.question is not None:
            key, request = seat.question.key, seat.question.request
            found.update(call=key.call, attempt=key.attempt, step=key.step, round=self.env.round)
            found["request"] = request.settings()
        return found


class ChatSeat:
    """One learner's seat; policies play the others.

    Args:
        scenario: its name.
        seat: the learner's; the first by default.
        **given: what `ChatSeats` takes.

    Raises:
        SettingsError: as `ChatSeats` does.
    """

    def __init__(self, scenario: str, seat: str | None = None, **given: Any) -> None:
        self.seats = ChatSeats(scenario, learners=[0 if seat is None else seat], **given)
        (self.agent,) = self.seats.learners

    def init(self, seed: int = 0) -> list[Message]:
        """Begin an episode; the first question."""
        return self.seats.init(seed).get(self.agent, [])

    def step(self, reply: Reply) -> tuple[list[Message], float, bool, Info]:
        """Take the reply to the open question, and play on to the next one; see `ChatSeats.step`."""
        asked, rewards, done, infos = self.seats.step({self.agent: reply})
        return asked.get(self.agent, []), rewards[self.agent], done, infos[self.agent]
