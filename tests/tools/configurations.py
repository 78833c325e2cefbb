"""What every contract test is run on: each scenario, with and without talk, in every control mode."""

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0

# Some get out in 12 rounds of random steps, and some do not.
SMALL_ROOM = {
    "rows": 9,
    "cols": 9,
    "people": 8,
    "rounds": 12,
    "exits": {"bottom": [[8, 3], [8, 4]], "left": [[4, 0], [5, 0]], "right": [[4, 8]]},
}

#: A regulator with all powers; scenarios add what it may order.
REGULATOR = {
    "on": ["talk", "choices"],
    "powers": ["log", "revise", "veto", "fine"],
    "orders": ["silence"],
    "fine": 2.0,
    "detection": 0.5,
    "leniency": 0.5,
    "reward": "fines",
}

# For single switches: what they change shows with few people, and random steps take long.
FEW = {**SMALL_ROOM, "people": 6, "rounds": 5}


def perceived(role):
    """Later all are off in what they see, one player learns of nobody else, and one remembers nothing."""
    return [
        {"from_round": 2, "settings": {"observation_noise": 0.2}},
        {"from_round": 2, "players": f"{role}_0", "settings": {"information": "own"}},
        {"from_round": 2, "players": f"{role}_2", "settings": {"memory": 1}},
        {"from_round": 3, "players": f"{role}_2", "settings": {"memory": 0, "observation_noise": 1.0}},
    ]


CONFIGURATIONS = {
    "kbc": (kbc_v0, {"players": 5}),
    "kbc-talk-until": (kbc_v0, {"players": 5, "talk_until": 2}),
    "kbc-silent": (kbc_v0, {"players": 5, "talk": False}),
    "kbc-together": (kbc_v0, {"players": 5, "talk_mode": "simultaneous"}),
    "kbc-single": (kbc_v0, {"players": 4, "session": "single"}),
    "kbc-repeated-real": (
        kbc_v0,
        {"players": 6, "session": "repeated", "rounds": 6, "choices": "real", "talk": False},
    ),
    "kbc-groups": (
        kbc_v0,
        {"players": 6, "low": 10, "session": "repeated", "rounds": 5, "groups": [2, 2, 2], "talk": False},
    ),
    "kbc-leaving": (
        kbc_v0,
        {
            **{"players": 4, "session": "repeated", "rounds": 3, "groups": [2, 2], "talk_turns": 1},
            "changes": [{"from_round": 2, "players": "player_1", "settings": {"present": False}}, *perceived("player")],
        },
    ),
    "kbc-regulated": (kbc_v0, {"players": 3, "session": "single", "regulator": REGULATOR}),
    "bertrand": (bertrand_v0, {"rounds": 8}),
    "bertrand-talk-until": (bertrand_v0, {"rounds": 4, "talk_until": 2}),
    "bertrand-alone": (bertrand_v0, {"rounds": 8, "firms": 1, "talk": False}),
    "bertrand-alone-grid": (bertrand_v0, {"rounds": 8, "firms": 1, "talk": False, "prices": "grid"}),
    "bertrand-silent": (bertrand_v0, {"rounds": 8, "talk": False}),
    "bertrand-grid": (bertrand_v0, {"rounds": 8, "prices": "grid", "talk": False}),
    "bertrand-grid-talk": (bertrand_v0, {"rounds": 5, "prices": "grid"}),
    "bertrand-team-up-linear": (bertrand_v0, {"preset": "team_up_linear", "rounds": 6}),
    "bertrand-three": (bertrand_v0, {"firms": 3, "rounds": 5, "talk_mode": "simultaneous"}),
    "bertrand-in-turn": (bertrand_v0, {"rounds": 6, "moves": "alternating", "initial_prices": "random"}),
    "bertrand-grid-in-turn": (
        bertrand_v0,
        {
            **{"rounds": 6, "firms": 3, "talk": False, "prices": "grid", "moves": "alternating"},
            "initial_prices": 1.5,
        },
    ),
    "bertrand-regulated": (
        bertrand_v0,
        {"rounds": 3, "regulator": {**REGULATOR, "orders": ["silence", "cap 1.6"], "reward": "welfare"}},
    ),
    "bertrand-grid-regulated": (
        bertrand_v0,
        {"rounds": 3, "talk": False, "prices": "grid", "regulator": {**REGULATOR, "orders": ["cap 1.6"]}},
    ),
    "bertrand-leaving": (
        bertrand_v0,
        {
            **{"firms": 3, "rounds": 3, "exchanges": 1, "initial_prices": "random"},
            "changes": [
                {"from_round": 2, "players": "firm_1", "settings": {"present": False}},
                {"from_round": 3, "players": "firm_0", "settings": {"present": False}},
                *perceived("firm"),
            ],
        },
    ),
    "evacuation-sequential": (evacuation_v0, SMALL_ROOM),
    "evacuation-silent": (evacuation_v0, {**SMALL_ROOM, "talk": False}),
    "evacuation-simultaneous": (evacuation_v0, {**SMALL_ROOM, "engine": "simultaneous", "talk": False}),
    "evacuation-simultaneous-talk": (evacuation_v0, {**SMALL_ROOM, "engine": "simultaneous"}),
    "evacuation-exit": (evacuation_v0, {**SMALL_ROOM, "control": "exit"}),
    "evacuation-exit-simultaneous": (
        evacuation_v0,
        {**SMALL_ROOM, "control": "exit", "engine": "simultaneous", "talk": False},
    ),
    "evacuation-regulated": (
        evacuation_v0,
        {
            **{**SMALL_ROOM, "people": 3, "rounds": 2},
            "regulator": {**REGULATOR, "orders": ["silence", "close left", "recommend right"]},
        },
    ),
    "evacuation-talk-until": (evacuation_v0, {**FEW, "talk_until": 1}),
    "evacuation-changes": (
        evacuation_v0,
        {
            **FEW,
            "talk": False,
            "changes": [
                {"from_round": 2, "settings": {"talk": True, "delivery": "swap"}},
                {"from_round": 3, "players": ["evacuee_1", "evacuee_3"], "settings": {"present": False}},
                *perceived("evacuee"),
            ],
        },
    ),
    "evacuation-no-diagonals": (evacuation_v0, {**FEW, "diagonals": False}),
    "evacuation-disabled-block": (evacuation_v0, {**FEW, "injury": "active", "disabled_block": True}),
    "evacuation-injury": (evacuation_v0, {**SMALL_ROOM, "injury": "active", "talk": False}),
}

# Where chance decides something even if all players choose the same: placements, speaking orders.
CHANCE = ["kbc", "kbc-single", "bertrand", *(name for name in CONFIGURATIONS if name.startswith("evacuation"))]
