"""A game's seats without an event loop: each step returns questions and takes the replies to them.

The policy of language models works underneath, with its workflow, readers and repairs. So an episode is the same,
event for event, as one in which a `Chat` gave the same replies. Only the messages may be shorter: the conversation
stays, so a question's later turns bring only what is new.
"""

from __future__ import annotations

import math
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
from llm_coop_envs.policies.llm.seats.question_log import Message, QuestionLog, question_in
from llm_coop_envs.util.references import load
from llm_coop_envs.util.waiting import run_coroutine, run_through

OWN, JOINT = "own", "joint"
#: A seat's reply: a text, a reply with its finish reason, or `None` if no reply came (a forfeit).
Reply = str | ChatReply | None
Info = dict[str, Any]
Deciding = Coroutine[Any, Any, Sequence[Action]]


@dataclass(frozen=True)
class _Question:
    """A question that awaits its reply."""

    key: RequestKey
    request: ChatRequest

    def __await__(self) -> Generator[_Question, ChatReply, ChatReply]:
        """Yield the question; the value that is sent back is the reply."""
        reply = yield self
        return reply


class _YieldingChat:
    """A `Chat` that yields its questions to the code that drives the coroutine."""

    async def ask(self, key: RequestKey, request: ChatRequest) -> ChatReply:
        """Return the reply that is sent into the coroutine."""
        return await _Question(key, request)


@dataclass(slots=True)
class _Seat:
    """One learner in the running episode.

    Attributes:
        conversation: its messages.
        deciding: the coroutine of its open decision.
        question: the question of that decision that awaits a reply.
        forfeits: how often no reply came.
        has_forfeited: whether no reply came in the open decision.
        decisions: how many decisions it was asked for.
        failed: for how many of them no reply could be read.
        has_failed: whether one of these was in the running round.
        earned: what it earned since the last step.
        paid: the rewards that it was given.
        new_messages: the messages of the open question.
        asking: the paragraph with which the environment's text asks for the open decision.
    """

    conversation: QuestionLog
    deciding: Deciding | None = None
    question: _Question | None = None
    forfeits: int = 0
    has_forfeited: bool = False
    decisions: int = 0
    failed: int = 0
    has_failed: bool = False
    earned: float = 0.0
    paid: float = 0.0
    new_messages: list[Message] = field(default_factory=list)
    asking: str = ""

    @property
    def share(self) -> float:
        """The share of this seat's decisions for which no reply could be read."""
        return self.failed / self.decisions if self.decisions else 0.0


class ChatSeats:
    """Some or all seats of a game: each step takes replies, and returns a question for each seat on turn.

    Args:
        scenario: its name.
        learners: the seats that are asked, by name or by number from 0; all by default.
        others: what plays the other seats: the name of a scripted policy, a policy, or a mapping from seats to either;
            the scenario's usual opponent by default.
        reward: `"own"` (what the environment pays the seat), `"joint"` (the sum over all players), or one that the
            scenario offers, such as `"consumer_surplus"` in price competition.
        most_fallbacks: a seat gets no reward once the share of its decisions for which no reply could be read exceeds
            this.
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
        seat_names = range(len(seats)) if learners is None else learners
        for seat in seat_names:
            if seat not in seats and seat not in range(len(seats)):
                raise SettingsError("seat", seat, f"is no seat; seats are {seats[0]} to {seats[-1]}")
        self.learners = tuple(seats[seat] if isinstance(seat, int) else seat for seat in seat_names)
        offered: Mapping[str, Callable[[Any, Event], float]] = load(self._scenario.rewards)
        if reward not in (OWN, JOINT, *offered):
            raise SettingsError("reward", reward, f"is none of {', '.join((OWN, JOINT, *offered))}")
        if not 0 <= most_fallbacks <= 1:
            raise SettingsError("most_fallbacks", most_fallbacks, "is a share, from 0 to 1")
        self._reward, self._round_reward = reward, offered.get(reward)
        self._max_fallbacks, self._delta = most_fallbacks, delta
        self._policy = LLMPolicy(_YieldingChat(), LLMSettings.build(**{"model": "learner", **(asking or {})}))
        other_seats = [name for name in seats if name not in self.learners]
        usual: Mapping[str, PolicyLike | str] = {name: self._scenario.opponent_of(name) for name in other_seats}
        given = usual if others is None else others
        by_seat = given if isinstance(given, Mapping) else dict.fromkeys(other_seats, given)
        names = {policy for policy in by_seat.values() if isinstance(policy, str)}
        scripted_by_name: dict[str, PolicyLike] = {name: self._scripted_policy(name) for name in sorted(names)}
        filled = {
            seat: scripted_by_name[policy] if isinstance(policy, str) else policy for seat, policy in by_seat.items()
        }
        occupied = sorted(filled.keys() & set(self.learners))
        if occupied:
            raise SettingsError("others", occupied[0], "is a learner's seat")
        self._table = Seating({**filled, **dict.fromkeys(self.learners, self._policy)}, seats)
        self._other_policies = Seating(filled, other_seats)
        self._seats: dict[str, _Seat] = {}

    def _scripted_policy(self, name: str) -> PolicyLike:
        own = f"{self._scenario.name}/"
        return scripted.make(own + name.removeprefix(own))

    def init(
        self, seed: int = 0, *, policy_seed: np.random.SeedSequence | None = None, name: str = "episode"
    ) -> dict[str, list[Message]]:
        """Begin an episode and play until the first questions; seeds and name are as in `policies.play`.

        Returns:
            The messages of each seat that is asked.
        """
        env = self.env
        self._seats = {name: _Seat(QuestionLog(delta=self._delta)) for name in self.learners}
        stream = np.random.SeedSequence([seed, 1]) if policy_seed is None else policy_seed
        self._table.begin(env.metadata["name"], env.settings, env.possible_agents, stream, name)
        env.begin(seed=seed)
        self._actions: dict[str, Action] | None = None
        self._event_count = len(env.events)
        self._play_on()
        return self._open_messages()

    def step(
        self, replies: Mapping[str, Reply]
    ) -> tuple[dict[str, list[Message]], dict[str, float], bool, dict[str, Info]]:
        """Take the replies to all open questions, and play until the next ones.

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
            self._take_reply(name, self._seats[name], reply)
        self._play_on()
        done = not self.env.agents
        rewards = {name: self._settle(seat, done) for name, seat in self._seats.items()}
        return self._open_messages(), rewards, done, self.infos()

    def infos(self) -> dict[str, Info]:
        """Information on each learner.

        `call`, `attempt`, `step` and `round` of its open question, and the `request`'s settings; `decisions`, of them
        `fallbacks` (no reply could be read) and `forfeits` (no reply came); and `why`: a sentence if a reward is
        withheld, else empty.
        """
        return {name: self._info(seat) for name, seat in self._seats.items()}

    def conversation(self, agent: str) -> list[Message]:
        """All messages of a learner so far, with its own replies."""
        return list(self._seats[agent].conversation.messages)

    def metrics(self) -> dict[str, Any]:
        """The scenario's metrics of the episode, once it is over."""
        return self._scenario.episode_metrics(self.env.events)

    def _open_messages(self) -> dict[str, list[Message]]:
        return {name: seat.new_messages for name, seat in self._seats.items() if seat.question is not None}

    def _take_reply(self, name: str, seat: _Seat, reply: Reply) -> None:
        if reply is None:
            seat.forfeits += 1
            seat.has_forfeited = True
        if not isinstance(reply, ChatReply):
            reply = ChatReply(reply or "", Usage(0, 0), "stop", "learner", 0.0)
        seat.conversation.answer(reply.text)
        self._send(name, seat, reply)

    def _send(self, name: str, seat: _Seat, reply: ChatReply | None) -> None:
        """Run a seat's decision until it asks a question or ends."""
        assert seat.deciding is not None, "a seat that is asked decides"
        assert self._actions is not None, "a step has begun"
        counts_before = self._policy.counters.total()
        try:
            question: _Question = seat.deciding.send(reply)
        except StopIteration as decided:
            seat.question = seat.deciding = None
            (self._actions[name],) = decided.value
        else:
            seat.question = question
            seat.new_messages = seat.conversation.ask(question.key, question.request, seat.asking)
        counts_after = self._policy.counters.total()
        failed = counts_after.fallbacks - counts_before.fallbacks
        if counts_after.ended > counts_before.ended:
            # Where players talk, silence may be an answer; a forfeit never is.
            failed, seat.has_forfeited = max(failed, int(seat.has_forfeited)), False
        seat.decisions += counts_after.asked - counts_before.asked
        seat.failed += failed
        seat.has_failed |= failed > 0

    def _play_on(self) -> None:
        """Play until a learner is asked, or the episode is over."""
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
        """Let the other policies decide, and start the learners' decisions."""
        observations, infos = self.env.look(on_turn=True, slots_only=self._table.slots_only)
        deciding = self._other_policies.act(observations, infos)
        self._actions = run_coroutine(deciding) if self._other_policies.waits else run_through(deciding)
        for name, seat in self._seats.items():
            if name in observations and observations[name]["turn"]:
                seat.asking = question_in(observations[name].get("text", ""))
                seat.deciding = self._policy.act([Request(name, observations[name], infos[name])])
                self._send(name, seat, None)

    def _earn(self) -> None:
        """Credit the rewards of the last step; gains count only in rounds in which the seat's replies were read."""
        settled = [event for event in self.env.events[self._event_count :] if event["type"] == "round"]
        self._event_count = len(self.env.events)
        if self._round_reward is not None:
            joint = math.fsum(self._round_reward(self.env.settings, event) for event in settled)
        else:
            joint = float(self.env.rewards.sum())
        any_failed = any(seat.has_failed for seat in self._seats.values())
        for name, seat in self._seats.items():
            own = self._reward == OWN
            earned = float(self.env.rewards[self.env.possible_agents.index(name)]) if own else joint
            seat.earned += min(earned, 0.0) if (seat.has_failed if own else any_failed) else earned
        if settled:
            for seat in self._seats.values():
                seat.has_failed = False

    def _settle(self, seat: _Seat, done: bool) -> float:
        """The reward that a seat is paid for what it earned; at the end, rewards paid in excess are taken back."""
        earned, seat.earned = seat.earned, 0.0
        if seat.share > self._max_fallbacks:
            earned = min(earned, 0.0)
            if done:
                earned -= max(seat.paid + earned, 0.0)
        seat.paid += earned
        return earned

    def _info(self, seat: _Seat) -> Info:
        reason = ""
        if seat.share > self._max_fallbacks:
            reason = (
                f"no reward: {seat.failed} of {seat.decisions} decisions had no reply that could be read, and "
                f"{self._max_fallbacks:g} of them is the most (most_fallbacks)"
            )
        info: Info = {"decisions": seat.decisions, "fallbacks": seat.failed, "forfeits": seat.forfeits, "why": reason}
        if seat.question is not None:
            key, request = seat.question.key, seat.question.request
            info.update(call=key.call, attempt=key.attempt, step=key.step, round=self.env.round)
            info["request"] = request.settings()
        return info


class ChatSeat:
    """One learner's seat; policies play the others.

    Args:
        scenario: its name.
        seat: the learner's; the first by default.
        **settings: what else `ChatSeats` takes.

    Raises:
        SettingsError: as `ChatSeats` does.
    """

    def __init__(self, scenario: str, seat: str | None = None, **settings: Any) -> None:
        self.seats = ChatSeats(scenario, learners=[0 if seat is None else seat], **settings)
        (self.agent,) = self.seats.learners

    def init(self, seed: int = 0) -> list[Message]:
        """Begin an episode, and return the first question."""
        return self.seats.init(seed).get(self.agent, [])

    def step(self, reply: Reply) -> tuple[list[Message], float, bool, Info]:
        """Take the reply to the open question, and play until the next one; see `ChatSeats.step`."""
        messages, rewards, done, infos = self.seats.step({self.agent: reply})
        return messages.get(self.agent, []), rewards[self.agent], done, infos[self.agent]
