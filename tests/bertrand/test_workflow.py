import pytest
from llm_chats import Canned, Recorder, run

from llm_coop_envs import bertrand_v0
from llm_coop_envs.policies.llm.playing.packs import load_pack, shipped_packs


def market(rounds, **settings):
    return bertrand_v0.parallel_env(preset="team_up_linear", rounds=rounds, record=True, **settings)


class Marked(Recorder):
    """Scripted answers with messages and plans that can be found again."""

    async def ask(self, key, request):
        reply = await super().ask(key, request)
        if key.call in ("talk", "plan"):
            text = f"{key.call} {key.agent} at {key.step}: I think of 7.25."
            reply = type(reply)(text, reply.usage, "stop", reply.model, 0.0)
            self.log[-1] = (key, request, reply)
        return reply


def by_call(chat, call):
    return [(key, request.messages[-1].content) for key, request, _ in chat.log if key.call == call]


def test_the_calls_of_a_round_are_the_published_ones():
    # Per round 6 messages and 2 prices; two plans more in rounds 21, 41, ... (Wu et al. 2024, authors' code).
    _, chat = run(market(41))
    assert len(chat.log) == 41 * 8 + 2 * 2
    assert [key.agent for key, _ in chat.prompts("plan")] == ["firm_0", "firm_1"] * 2
    _, chat = run(market(41, talk=False))
    assert len(chat.log) == 41 * 2 + 2 * 2


def test_who_is_not_on_turn_is_asked_for_no_price():
    _, chat = run(market(5, moves="alternating", initial_prices=6.0, force_first_price=False))
    assert [key.agent for key, _ in chat.prompts("price")] == ["firm_0", "firm_1", "firm_0", "firm_1", "firm_0"]
    assert len(chat.prompts("talk")) == 5 * 6
    assert all("one firm names its price" in prompt for _, prompt in by_call(chat, "price"))


def test_firms_plan_after_the_talk_without_having_seen_it():
    chat = Marked()
    run(market(22), chat)
    plans = by_call(chat, "plan")
    planning = plans[0][0].step
    talks = [key.step for key, _ in by_call(chat, "talk")]
    assert planning == 20 * 7 + 6
    assert {planning - 6, planning - 1} <= set(talks)
    for _, prompt in plans:
        assert "talk firm_" not in prompt
        assert "talk" not in prompt
    # The talk of that round does not know the new plan either; the prices and the next talk do.
    for key, prompt in by_call(chat, "talk"):
        assert ("plan firm_" in prompt) == (key.step > planning)
    for key, prompt in by_call(chat, "price"):
        assert (f"plan {key.agent} at {planning}" in prompt) == (key.step >= planning)


def test_plans_are_private():
    chat = Marked()
    run(market(42), chat)
    for key, request, _ in chat.log:
        other = {"firm_0": "firm_1", "firm_1": "firm_0"}[key.agent]
        assert f"plan {other}" not in request.messages[-1].content


def test_only_the_latest_plan_is_shown_but_when_planning():
    chat = Marked()
    run(market(62, talk=False), chat)
    first, second, third = [key.step for key, _ in by_call(chat, "plan") if key.agent == "firm_0"]
    assert (first, second, third) == (20, 40, 60)
    last = by_call(chat, "price")[-1][1]
    assert f"at {third}" in last
    assert f"at {second}" not in last
    planning = by_call(chat, "plan")[-1][1]
    assert [f"at {step}" in planning for step in (first, second, third)] == [True, True, False]


def test_firms_may_plan_before_they_talk():
    chat = Marked()
    run(market(22), chat, talk_plan_order="plan_first")
    plans = {key.agent: key.step for key, _ in by_call(chat, "plan")}
    # Each plans when it is about to speak for the first time in the round.
    assert sorted(plans.values()) == [140, 141]
    assert len(by_call(chat, "plan")) == 2
    for key, prompt in by_call(chat, "talk"):
        assert (f"plan {key.agent} at {plans[key.agent]}" in prompt) == (key.step >= 140)
    for _, prompt in by_call(chat, "plan"):
        assert "talk firm_" not in prompt
    # Without talk nothing changes.
    silent = Marked()
    run(market(22, talk=False), silent, talk_plan_order="plan_first")
    assert [key.step for key, _ in by_call(silent, "plan")] == [20, 20]


def test_what_a_rival_sells_and_earns_is_never_shown():
    env = market(25, talk=False)
    chat = Canned(price=[f"{5 + 0.1 * k + 0.037 * (k % 2):.3f}" for k in range(50)])
    run(env, chat)
    rounds = [event for event in env.events if event["type"] == "round"]
    for key, request, _ in chat.log:
        mine = int(key.agent[-1])
        text = request.messages[-1].content
        for event in rounds[1:]:
            assert f"| {event['profits'][1 - mine]} |" not in text
            assert f"{event['demand'][1 - mine]:.6g}" not in text
    last = chat.prompts("price")[-1][1]
    event = rounds[-2]
    row = (event["prices"][1], event["demand"][1], event["profits"][1], event["prices"][0])
    assert "24: " + " | ".join(f"{value:.6g}" for value in row) + "\n" in last


def test_the_market_itself_is_not_told():
    _, chat = run(market(23))
    for _, request, _ in chat.log:
        text = request.messages[-1].content
        for secret in ("1400", "0.0066", "0.0033", "quality", "demand"):
            assert secret not in text


def test_history_and_averages_as_the_environment_gives_them():
    env = market(45, talk=False)
    _, chat = run(env)
    prompts = {key.step + 1: prompt for key, prompt in chat.prompts("price") if key.agent == "firm_0"}
    assert "The last" not in prompts[1]
    assert "The last round (" in prompts[2]
    assert "The last 20 rounds (" in prompts[30]
    assert "\n9: " not in prompts[30]
    assert "\n10: " in prompts[30]
    # Published code: averages in planning rounds only.
    rounds_with_averages = [number for number, prompt in prompts.items() if "Averages over" in prompt]
    assert rounds_with_averages == [21, 41]
    assert "\n1-20: " in prompts[41]
    assert "\n21-40: " in prompts[41]
    env = market(25, talk=False, statistics="every_round")
    _, chat = run(env)
    rounds_with_averages = [
        key.step + 1 for key, prompt in chat.prompts("price") if "Averages over" in prompt and key.agent == "firm_0"
    ]
    assert rounds_with_averages == [21, 22, 23, 24, 25]


def test_averages_may_be_kept_out_of_the_talk():
    for in_talk in (True, False):
        _, chat = run(market(21), statistics_in_talk=in_talk)
        talks = [prompt for key, prompt in chat.prompts("talk") if key.step >= 140]
        assert all(("Averages over" in prompt) == in_talk for prompt in talks)
        assert all("Averages over" in prompt for _, prompt in chat.prompts("plan"))
        assert "Averages over" in chat.prompts("price")[-1][1]


def test_the_talk_is_of_this_round_only():
    chat = Marked()
    run(market(3), chat)
    for key, prompt in by_call(chat, "talk"):
        mentions = prompt.count("I think of 7.25.")
        assert mentions == key.step % 7
    for _, prompt in by_call(chat, "price"):
        assert prompt.count("I think of 7.25.") == 6


def test_the_forced_first_price_is_asked_for_and_named():
    env = market(2, talk=False)
    policy, chat = run(env, Canned(price=["9", "9", "9", "9"]))
    assert [event["prices"] for event in env.events if event["type"] == "round"] == [[2, 2], [9, 9]]
    assert policy.counters.total().fallbacks == 0
    is_announced = ["have been laid down in advance; yours is 2." in prompt for _, prompt in chat.prompts("price")]
    assert is_announced == [True, True, False, False]
    assert "from 2 to 14" in chat.prompts("price")[0][1]


def test_the_planning_question_may_be_repeated_by_mistake():
    _, chat = run(market(22, talk=False), repeat_planning_prompt=True)
    plan = {key.agent: prompt for key, prompt in chat.prompts("plan")}
    for key, prompt in chat.prompts("price"):
        assert prompt.startswith(plan[key.agent] + "\n\nYou set the price") == (key.step == 20)
        assert prompt.count("Your aim") == 0
        assert prompt.count("You set the price for") == 1 + (key.step == 20)


def test_the_first_firms_persona_may_be_used_by_mistake():
    personas = ["a firm of the north", "a firm of the south"]
    _, chat = run(market(21), personas=personas)
    plans = {key.agent: prompt for key, prompt in chat.prompts("plan")}
    assert "south" in plans["firm_1"]
    assert "north" in plans["firm_0"]
    _, chat = run(market(21), personas=personas, first_firms_persona=True)
    plans = {key.agent: prompt for key, prompt in chat.prompts("plan")}
    assert all("north" in prompt and "south" not in prompt for prompt in plans.values())
    assert all(("south" in prompt) == (key.agent == "firm_1") for key, prompt in chat.prompts("price"))
    # In the code the mistake is in the talking variant alone.
    _, chat = run(market(21, talk=False), personas=personas, first_firms_persona=True)
    assert "south" in dict((key.agent, prompt) for key, prompt in chat.prompts("plan"))["firm_1"]


@pytest.mark.parametrize("prices", ["grid", "continuous"])
def test_prices_reach_the_environment(prices):
    env = bertrand_v0.parallel_env(prices=prices, rounds=1, talk=False, record=True)
    slots = env.reset(seed=0)[1]["firm_0"]["slots"]
    expected = [slots.choices[3][1], slots.choices[11][1]] if slots.choices else [1.234567, 1.9]
    policy, _ = run(env, Canned(price=[f"{price:.6g}" for price in expected]))
    [event] = [event for event in env.events if event["type"] == "round"]
    assert event["prices"] == pytest.approx(expected, rel=1e-5)
    assert policy.counters.for_call("price").answered == 2


def test_the_prompts_say_what_the_environments_text_says():
    # Profits are cut, prices before round 1 are known, and the answer must fit its length.
    _, chat = run(market(1), parameters={"default": {"max_tokens": 100}})
    for call in ("talk", "price"):
        for _, prompt in chat.prompts(call):
            assert "cut to a whole number: the fraction is dropped" in prompt
            assert prompt.endswith("There is room for about 50 words; what comes after them is cut off.")
    _, chat = run(bertrand_v0.parallel_env(preset="calvano", rounds=2))
    assert ["Prices before round 1: yours" in prompt for _, prompt in chat.prompts("price")] == [
        True,
        True,
        False,
        False,
    ]
    assert not any("whole number" in prompt or "cut off" in prompt for _, prompt in chat.prompts("price"))


FILED = """Observations: the price of 1.9 went well, 1.5 did not.
**PLANS:** Try 1.7 next.
Then 1.65.
## INSIGHTS: Dear prices sell little.
PRICE: 1.75"""


@pytest.mark.parametrize("pack", shipped_packs())
def test_files_are_written_with_every_price_and_shown_once(pack):
    objects = '{"observations": "-", "plans": "wait", "insights": "none yet", "price": 1.6}'
    chat = Canned(period=[FILED, objects, "1.8", "1.8"])
    env = bertrand_v0.parallel_env(preset="fish", rounds=3, record=True)
    policy, _ = run(env, chat, pack=pack, preset="fish")
    prompts = dict(((key.agent, key.step), prompt) for key, prompt in chat.prompts("period"))
    assert [key.call for key, _, _ in chat.log] == ["period"] * 6
    assert "Try 1.7" not in prompts["firm_0", 0]
    assert '"Try 1.7 next.\\nThen 1.65."' in prompts["firm_0", 1]
    assert '"Dear prices sell little."' in prompts["firm_0", 1]
    assert '"wait"' in prompts["firm_1", 1]
    assert "Try 1.7" not in prompts["firm_1", 1]
    # An answer without files leaves them as they are.
    assert "Try 1.7" in prompts["firm_0", 2]
    assert [event["prices"] for event in env.events if event["type"] == "round"][:2] == [[1.75, 1.6], [1.8, 1.8]]
    assert policy.counters.total().fallbacks == 0


def test_the_question_of_fish_et_al_holds_all_that_theirs_does_in_its_order():
    """The preset asks in its own pack: prefix, cost, highest price, both files, the last 100 rounds, a form."""
    chat = Canned(period=[FILED] * 210)
    env = bertrand_v0.parallel_env(preset="fish_3_2", rounds=103)
    policy, _ = run(env, chat, preset="fish", personas=["long_run_careful", "long_run_exploring"])
    assert policy.describe(["bertrand"])["pack"] == load_pack("fish").describe(["bertrand"])
    assert {key.call for key, _, _ in chat.log} == {"period"}
    personas = load_pack("fish").prompts("bertrand").personas
    for (key, prompt), name in zip(
        chat.prompts("period")[-2:], ("long_run_careful", "long_run_exploring"), strict=True
    ):
        rival = {"firm_0": "firm_1", "firm_1": "firm_0"}[key.agent]
        slots = [
            personas[name].text("period"),
            f"{key.agent} sells one product",
            "Each unit costs you 3.2 to make.",
            "Nobody pays more than 9.24 for it.",
            'Plans, written in round 102: "Try 1.7 next.\\nThen 1.65."',
            'Insights, written in round 102: "Dear prices sell little."',
            f"(round: your price | units you sold | what you earned | {rival}'s price):\n3: 1.75 | ",
            "\n102: 1.75 | ",
            "It is round 103.",
            "\nOBSERVATIONS: ",
            "\nPLANS: ",
            "\nINSIGHTS: ",
            "\nPRICE: the price, a number and nothing after it",
        ]
        slot_positions = [prompt.find(slot) for slot in slots]
        assert -1 not in slot_positions, slots[slot_positions.index(-1)]
        assert slot_positions == sorted(slot_positions)
        assert slot_positions[0] == 0
        assert "\n2: 1.75 | " not in prompt
    _, chat = run(bertrand_v0.parallel_env(preset="fish_monopoly", rounds=1), preset="fish", personas="long_run")
    [(_, prompt)] = chat.prompts("period")
    assert "There is no other product like it." in prompt
    assert "never learn" not in prompt
    # A pack that is named goes before the preset's.
    assert run(bertrand_v0.parallel_env(preset="fish", rounds=1), preset="fish", pack="en-a")[0].pack.name == "en-a"


def test_files_in_the_packs_own_words():
    chat = Canned(period=["BEOBACHTUNGEN: keine\nPLÄNE: warten\nEINSICHTEN: 1.5 ist billig\nPREIS: 1.7"] * 2)
    env = bertrand_v0.parallel_env(preset="fish", rounds=2, record=True)
    run(env, chat, pack="de-a", own_files=True)
    last = chat.prompts("period")[-1][1]
    assert '"warten"' in last
    assert '"1.5 ist billig"' in last


def test_a_schema_asks_for_the_files_too():
    chat = Canned()
    run(bertrand_v0.parallel_env(preset="fish", rounds=1), chat, own_files=True, answers="json")
    assert list(chat.log[0][1].json_schema["properties"]) == ["observations", "plans", "insights", "price"]


def test_tools_show_what_was_looked_up_and_keep_what_was_written():
    chat = Canned(tool=["c", "d", "b", "d", "d", "d", "a", "b", "c", "d"], note=["firm_0 saw 1.7."])
    env = bertrand_v0.parallel_env(preset="fish", firms=1, rounds=4)
    run(env, chat, preset="econ_evals")
    assert [key.call for key, _, _ in chat.log[:3]] == ["tool", "note", "tool"]
    prices = [prompt for _, prompt in chat.prompts("price")]
    assert ["firm_0 saw" in prompt for prompt in prices] == [False, True, False, False]
    assert all("The last" not in prompt for prompt in prices)
    chat = Canned(tool=["a", "a", "a"])
    run(bertrand_v0.parallel_env(preset="fish", firms=1, rounds=2), chat, tools=2)
    assert sum(key.call == "tool" for key, _, _ in chat.log[:3]) == 2


def test_a_firm_may_be_shown_fewer_rounds():
    chat = Canned()
    run(bertrand_v0.parallel_env(preset="fish", rounds=5), chat, rounds_shown=2)
    assert "The last 2 rounds" in chat.prompts("price")[-1][1]
