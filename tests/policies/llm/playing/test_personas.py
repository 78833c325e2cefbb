import pytest
from llm_chats import run

from llm_coop_envs import bertrand_v0, kbc_v0
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies.llm.playing.packs import load_pack, shipped_packs

OCEAN = ("open", "conventional", "conscientious", "careless", "extraverted", "introverted", "neurotic", "calm")
WANTED = {
    "neutral": {"kbc", "bertrand", "evacuation"},
    "agreeable": {"kbc", "bertrand", "evacuation"},
    "disagreeable": {"kbc", "bertrand", "evacuation"},
    "explicit_cooperation": {"kbc", "bertrand", "evacuation"},
    "uncooperative": {"kbc", "bertrand", "evacuation"},
    "explore": {"bertrand"},
    "aggressive": {"bertrand"},
    "selfish": {"bertrand"},
    **{name: {"kbc"} for name in ("rational", "adaptive", "variation", "in_role")},
    **{name: {"bertrand"} for name in ("long_run", "long_run_careful", "long_run_exploring", "patient", "impatient")},
    **{name: {"kbc", "bertrand", "evacuation"} for name in OCEAN},
}


@pytest.mark.parametrize("pack", shipped_packs())
def test_every_pack_has_the_published_personas(pack):
    prompts = {one.scenario: one for one in load_pack(pack).all_prompts()}
    found = {name: {s for s, one in prompts.items() if name in one.personas} for name in WANTED}
    assert found == WANTED
    assert {name for one in prompts.values() for name in one.personas} == set(WANTED)
    # The number contest: one instruction changes both questions, the other the decision alone (authors' code).
    personas = prompts["kbc"].personas
    for call, explicit, unwilling in (("talk", True, False), ("choose", True, True)):
        assert bool(personas["explicit_cooperation"].text(call)) == explicit
        assert bool(personas["uncooperative"].text(call)) == unwilling


def shown(chat, words):
    return {key.agent for key, request, _ in chat.log if words in request.messages[-1].content}


def test_personas_are_dealt_in_equal_blocks():
    # Thirds of 24 (first paper): 8, 8, 8.
    policy, chat = run(kbc_v0.parallel_env(players=24, exchanges=1), personas=["agreeable", "none", "disagreeable"])
    dealt = list(policy.personas().values())
    assert dealt == ["agreeable"] * 8 + ["none"] * 8 + ["disagreeable"] * 8
    words = load_pack("en-a").prompts("kbc").personas["agreeable"].text("choose")
    assert shown(chat, words) == {f"player_{k}" for k in range(8)}


def test_personas_can_be_shuffled_by_the_policys_own_generator():
    settings = {"personas": ["agreeable", "disagreeable"], "deal": "shuffled"}
    dealt = [
        list(run(kbc_v0.parallel_env(players=10, talk=False), seed=seed, **settings)[0].personas().values())
        for seed in (0, 0, 1)
    ]
    assert dealt[0] == dealt[1] != dealt[2]
    assert all(sorted(one) == ["agreeable"] * 5 + ["disagreeable"] * 5 for one in dealt)


def test_more_personas_than_seats_are_thinned_out():
    policy, _ = run(bertrand_v0.parallel_env(rounds=1), personas=["explore", "none", "aggressive", "none"])
    assert policy.personas() == {"firm_0": "explore", "firm_1": "aggressive"}


def test_a_text_with_spaces_is_a_persona_of_ones_own():
    policy, chat = run(kbc_v0.parallel_env(players=2), personas="  You like cats. ")
    assert set(policy.personas().values()) == {"own"}
    assert all("\n\nYou like cats.\n\n" in request.messages[-1].content for _, request, _ in chat.log)


def test_a_persona_can_set_in_later():
    # Published for the firms (after round 400), and the number contest's first question (k = 0) never shows one.
    env = kbc_v0.parallel_env(players=2)
    _, chat = run(env, personas="You like cats.", persona_from=1)
    assert {key.step for key, request, _ in chat.log if "cats" not in request.messages[-1].content} == {0}
    _, chat = run(bertrand_v0.parallel_env(rounds=4, talk=False), personas="You like cats.", persona_from=3)
    assert [("cats" in prompt) for _, prompt in chat.prompts("price")] == [False] * 4 + [True] * 4


def test_personas_that_do_not_exist_are_named():
    with pytest.raises(SettingsError, match="is no persona of pack en-a; did you mean 'agreeable'"):
        run(kbc_v0.parallel_env(players=2), personas="agreable")
    with pytest.raises(SettingsError, match="'explore': has no words for kbc in pack en-a"):
        run(kbc_v0.parallel_env(players=2), personas="explore")
