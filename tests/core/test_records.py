"""Which choices were a player's own."""

import pytest

from llm_coop_envs.core.records import forced_choices, forced_players


def change(policy="forced", players=(), **fields):
    options = fields.pop("options", {"choice": 3} if policy == "forced" else {})
    return {"players": list(players), "policy": policy, "options": options, **fields}


def episode(*holding):
    """Two rounds of two firms with two phases; what holds in the second one is recorded when it begins."""
    rounds = [
        {"type": "choice", "round": number, "phase": phase, "agent": f"firm_{i}"}
        for number in (1, 2)
        for phase in ("plan", "act")
        for i in (0, 1)
    ]
    return [*rounds[:4], {"type": "change", "round": 2, "policies": list(holding)}, *rounds[4:]]


EVERYTHING = {(2, phase, f"firm_{i}") for phase in ("plan", "act") for i in (0, 1)}


@pytest.mark.parametrize(
    ("holding", "forced"),
    [
        ([], set()),
        ([change()], EVERYTHING),
        ([change(players=["firm_1"])], {one for one in EVERYTHING if one[2] == "firm_1"}),
        ([change(options={"choice": 3, "phase": "act"})], {one for one in EVERYTHING if one[1] == "act"}),
        ([change("bertrand/uniform"), change()], EVERYTHING),
        ([change(), change("bertrand/uniform")], set()),
        ([change(), change("", players=["firm_0"])], {one for one in EVERYTHING if one[2] == "firm_1"}),
        ([change(), change("", for_models=True)], EVERYTHING),
    ],
)
def test_the_last_change_that_means_a_player_decides_whether_its_choice_is_forced(holding, forced):
    events = episode(*holding)
    assert forced_choices(events) == forced
    assert forced_players(events) == ({2: {agent for *_, agent in forced}} if forced else {})


def test_a_change_of_settings_lets_what_is_forced_go_on():
    events = episode(change())
    events.insert(5, {"type": "change", "round": 2, "settings": {"talk": False}})
    assert forced_choices(events) == EVERYTHING
    events.insert(5, {"type": "change", "round": 2, "policies": []})
    assert forced_choices(events) == set()
