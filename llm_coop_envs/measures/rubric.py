"""The rubric: the kinds of messages and their meanings, with a version and a hash, and the question for a judge."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from llm_coop_envs.interface.question import Option, Options
from llm_coop_envs.interface.wording import Templates
from llm_coop_envs.policies.llm.playing.calls import Call, names
from llm_coop_envs.policies.llm.playing.packs import Prompts, load_pack

NAME, VERSION = "talk", 1
FALSE, THREAT, ACCEPTED, PROPOSED, PROMISE, NONE = KINDS = (
    "false claim",
    "threat",
    "agreement accepted",
    "agreement proposed",
    "promise",
    "none",
)
MEANINGS: Mapping[str, str] = {
    FALSE: "the speaker says what it does or will do, and then does something else",
    THREAT: "something bad is announced for others in case they do otherwise",
    ACCEPTED: "the speaker takes up what somebody proposed before in this round",
    PROPOSED: "the speaker asks others to choose something together or alike, or to share something out",
    PROMISE: "the speaker says what it will do itself, without asking others for anything",
    NONE: "none of these: a remark, a question, a report, or nothing that can be understood",
}
"""What the kinds mean. If several fit a message, the first counts."""

HOME = Path(__file__).parent
CALL = Call("judge", "", names("game said speaker message done kinds key"), (("said", "newest"),), beside=())
QUESTION = Options(name="kind", options=tuple(Option(choice=k, name=name) for k, name in enumerate(KINDS)))


def digest() -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of the meanings and the question's template."""
    content = json.dumps([NAME, VERSION, list(MEANINGS.items()), (HOME / CALL.template).read_text(encoding="utf-8")])
    return hashlib.sha256(content.encode()).hexdigest()[:16]


class RubricWords(Prompts):
    """Prompts whose question comes from the rubric; those for repair and second tries come from the pack `en-a`."""

    def __init__(self) -> None:
        self.pack = load_pack("en-a")
        self.scenario = "default"
        self.templates = Templates(HOME, {CALL.template: CALL.names})
        self.personas = {}
