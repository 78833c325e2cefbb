"""Scripted policies: always one action, reciprocity, and best replies."""

from abc import abstractmethod

from dilemma.env import DilemmaSettings, DilemmaSlots
from dilemma.games import best_reply
from llm_coop_envs.policies import Action, Episode, Request, ScriptedPolicy


class Chooser(ScriptedPolicy):
    """Chooses an action for sure, and says nothing."""

    def decide(self, request: Request) -> Action:
        """Choose an action."""
        return {"choice": self.choose(request.info["slots"]), "message": ""}

    @abstractmethod
    def choose(self, slots: DilemmaSlots) -> int:
        """The action."""


def others_last(slots: DilemmaSlots) -> tuple[int, ...]:
    """What the others did in the last round that is shown; in the first round nothing."""
    if not slots.history:
        return ()
    actions = slots.history[-1][1]
    return actions[: slots.index] + actions[slots.index + 1 :]


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


class BestResponse(Chooser):
    """Answers best to what the others did in the last round; at first it expects the competitive action of them."""

    def choose(self, slots: DilemmaSlots) -> int:
        """The best reply; of equally good ones the competitive one."""
        rules: DilemmaSettings = slots.rules
        expected = others_last(slots) or (rules.competitive,) * (rules.players - 1)
        return best_reply(rules.replies(slots.index, expected), rules.competitive)


POLICIES = {
    "cooperate": Cooperate,
    "defect": Defect,
    "tit_for_tat": TitForTat,
    "grim": Grim,
    "best_response": BestResponse,
}
