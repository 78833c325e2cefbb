"""Policies of a test's own that go by what they are shown of others and of the past."""

import numpy as np

from llm_coop_envs.core.base_policy import ScriptedPolicy
from llm_coop_envs.core.policy import Request


class Copying(ScriptedPolicy):
    """A firm that asks what the others asked last, as far as it sees and remembers it; else any price."""

    plays = "bertrand"

    def decide(self, request: Request):
        slots = request.info["slots"]
        seen = slots.history[-1].rival_prices if slots.history else ()
        price = float(np.mean(seen)) if seen else float(self.episode.rng.uniform(slots.floor, slots.cap))
        return {"choice": min(max(price, slots.floor), slots.cap)}


class Steady(ScriptedPolicy):
    """A person that minds distance and people, as far as it sees them, and the exit of before, if it remembers."""

    plays = "evacuation"

    def decide(self, request: Request):
        slots = request.info["slots"]
        scores = [
            one.distance / 10 + (one.people or 0.0) - (slots.past_exits[-1:] == (one.name,)) for one in slots.exits
        ]
        return {"choice": int(np.argmin(scores))}
