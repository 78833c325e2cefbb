"""Scripted policies: always one action, reciprocity, and best replies."""

from abc import abstractmethod

from dilemma.env import DilemmaSettings, DilemmaSlots
from dilemma.games import best_reply
from llm_coop_envs.policies import Episode
from llm_coop_envs.policies.scripted.stage_games import GAME_POLICIES, BestResponder, GamePlayer


class Chooser(GamePlayer):
    """Chooses an action for sure, says nothing, and takes no part in what a mechanism asks."""

    @abstractmethod
    def choose(self, slots: DilemmaSlots) -> int:
        """The action."""


def others_last(slots: DilemmaSlots) -> tuple[int, ...]:
    """What the others did in the last round that is shown; in the first round nothing."""
    if not slots.history:
        return ()
    return tuple(action for name, action in slots.history[-1][1] if name != slots.me)


class Cooperate(Chooser):
    """Always chooses the cooperative action."""

    def choose(self, slots: DilemmaSlots) -> int:
        """The first action."""
        return 0


class Defect(Chooser):
    """Always chooses the competitive action."""

    def choose(self, slots: DilemmaSlots) -> int:
        """The last action."""
        return slots.rules.competitive


class TitForTat(Chooser):
    """Cooperates at first, then does the most competitive thing that another player did in the last round."""

    def choose(self, slots: DilemmaSlots) -> int:
        """The last action of the others."""
        return max(others_last(slots), default=0)


class Grim(Chooser):
    """Cooperates until another player has not, and competes from then on."""

    def begin(self, episode: Episode) -> None:
        """Forget earlier episodes."""
        super().begin(episode)
        self.betrayed: set[str] = set()

    def choose(self, slots: DilemmaSlots) -> int:
        """The first action, or the last for ever."""
        if any(others_last(slots)):
            self.betrayed.add(slots.me)
        return slots.rules.competitive if slots.me in self.betrayed else 0


class BestResponse(BestResponder):
    """Answers best to what the others did in the last round; at first it expects the competitive action of them.

    What a mechanism asks for it answers as `best_responder` does.
    """

    def choose(self, slots: DilemmaSlots) -> int:
        """The best reply; of equally good ones the competitive one. Under a contract its part of the equilibrium."""
        if slots.mechanism is not None and slots.mechanism.binding:
            return super().choose(slots)
        rules: DilemmaSettings = slots.rules
        expected = others_last(slots) or (rules.competitive,) * (rules.together - 1)
        return best_reply(rules.replies(slots.index, expected), rules.competitive)


POLICIES = {
    **GAME_POLICIES,
    "cooperate": Cooperate,
    "defect": Defect,
    "tit_for_tat": TitForTat,
    "grim": Grim,
    "best_response": BestResponse,
}
