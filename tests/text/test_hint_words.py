"""No text a player sees says what is studied."""

import re
from pathlib import Path

import pytest
from configurations import CONFIGURATIONS
from rollout import sampled

import llm_coop_envs
from llm_coop_envs.policies import play
from llm_coop_envs.policies.scripted import factories, make

ROOT = Path(llm_coop_envs.__file__).parent
LIST = Path(__file__).parents[2] / "docs" / "development.md"


def hint_words():
    block = re.search(r"```hint-words\n(.*?)```", LIST.read_text(encoding="utf-8"), re.DOTALL)
    words = block.group(1).split("\n")
    return [word for word in words if word]


HINTS = re.compile("|".join(re.escape(word) for word in hint_words()), re.IGNORECASE)


def test_the_list_is_read():
    assert {"cooperat", "collu", "equilibri", "price war"} <= set(hint_words())
    assert HINTS.search("Let us COOPERATE")


@pytest.mark.parametrize("path", sorted(ROOT.glob("*/wordings/**/*.jinja")), ids=lambda p: str(p.relative_to(ROOT)))
def test_templates(path):
    text = re.sub(r"\{#.*?#\}", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert not HINTS.search(text), HINTS.search(text)


@pytest.mark.parametrize("wording", ["a", "b"])
@pytest.mark.parametrize("name", sorted(CONFIGURATIONS))
def test_observations(name, wording):
    module, settings = CONFIGURATIONS[name]
    env = module.parallel_env(**settings, wording=wording)
    observations, infos = env.reset(seed=0)
    while env.agents:
        for observation in observations.values():
            # What sampled players say is random letters; the quotation marks keep it apart.
            text = re.sub(r'"(?:[^"\\]|\\.)*"', '""', observation["text"])
            assert not HINTS.search(text), text
        observations, _, _, _, infos = env.step(sampled(env, infos))


QUICK = {
    "kbc": ("kbc", {}),
    "bertrand": ("bertrand", {}),
    "evacuation": ("evacuation-sequential", {}),
}


@pytest.mark.parametrize("name", sorted(factories()))
def test_messages_of_scripted_policies(name):
    scenario = name.split("/")[0]
    module, settings = CONFIGURATIONS[QUICK[scenario][0]]
    env = module.parallel_env(**settings, record=True)
    play(env, make(name), seed=0)
    for event in env.events:
        if event["type"] == "message":
            assert not HINTS.search(event["text"]), event["text"]
