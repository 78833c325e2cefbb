"""Games that mechanisms make of a round, against what is known of them on paper."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small import small_study

from dilemma.env import DilemmaSettings
from llm_coop_envs.errors import SettingsError, StudyError
from llm_coop_envs.mechanisms.matching import check_groups, match_players
from llm_coop_envs.mechanisms.stage_game import (
    StageGame,
    mediate,
    right_contract,
    right_mediator,
    transfers,
    with_contract,
    with_mediator,
)
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.studies.study import check_players

PRESETS = tuple(DilemmaSettings.presets)
DILEMMAS = tuple(preset for preset in PRESETS if preset != "matching_pennies")


def game_of(preset):
    return DilemmaSettings.build(preset).stage_game()


def matrices(size):
    row = st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=size, max_size=size)
    return st.lists(row, min_size=size, max_size=size)


@given(cells=st.integers(2, 4).flatmap(matrices))
@settings(max_examples=30)
def test_what_is_called_an_equilibrium_is_one_or_all_compete(cells):
    size = len(cells)
    game = StageGame(
        players=2,
        actions=tuple(map(str, range(size))),
        cooperative=0,
        competitive=size - 1,
        worth=lambda profile: cells[profile[0]][profile[1]],
    )
    row, column = game.equilibrium
    # Nobody gains by another action.
    is_stable = cells[row][column][0] == max(cells[k][column][0] for k in range(size)) and (
        cells[row][column][1] == max(cells[row][k][1] for k in range(size))
    )
    assert is_stable or (row, column) == (size - 1, size - 1)


@pytest.mark.parametrize("preset", DILEMMAS)
def test_equilibria_are_those_of_the_textbook(preset):
    game = game_of(preset)
    everybody = range(game.players)
    assert game.equilibrium == (game.competitive,) * game.players
    mediated = with_mediator(game, right_mediator(game))
    assert mediated.equilibrium == (len(game.actions),) * game.players
    assert list(mediated.worth(mediated.equilibrium)) == list(game.worth([0 for _ in everybody]))
    payments = tuple(right_contract(game).values())
    bound = with_contract(game, payments)
    for player in everybody:
        own = bound.of_player(player)
        assert (own[1:] < own[0]).all(), "to cooperate is strictly dominant"
    cheaper = tuple(payment + 1 if payment else payment for payment in payments)
    assert not all(
        (with_contract(game, cheaper).of_player(i)[1:] < with_contract(game, cheaper).of_player(i)[0]).all()
        for i in everybody
    ), "a contract that costs 1 less is too small"


def test_contracts_of_the_published_games():
    smallest = {preset: tuple(right_contract(game_of(preset)).values()) for preset in DILEMMAS}
    assert smallest["prisoners_dilemma"] == (0, -2)
    assert smallest["stag_hunt"] == (0, -4)
    assert smallest["trust"] == (0, -11)
    assert smallest["public_goods"] == (0, -1)


def test_a_mediator_who_cooperates_with_anybody_is_exploited():
    game = game_of("prisoners_dilemma")
    assert with_mediator(game, (0.0, 0.0)).equilibrium == (1, 1)


def test_pennies_have_no_equilibrium_to_arrive_at():
    game = game_of("matching_pennies")
    assert game.equilibrium == (1, 1)


@given(st.lists(st.integers(0, 2), min_size=2, max_size=6), st.tuples(*[st.integers(-50, 50)] * 3))
def test_contracts_neither_make_nor_destroy_money(choices, contract):
    received = transfers(choices, tuple(map(float, contract)))
    assert sum(received) == pytest.approx(0)
    if len(set(choices)) == 1:
        assert received == pytest.approx([0] * len(choices))


def test_a_mediator_chooses_by_the_number_that_delegates():
    assert mediate([None, 1, None], (5.0, 6.0, 7.0)) == [6, 1, 6]
    assert mediate([None, None, None], (5.0, 6.0, 7.0)) == [7, 7, 7]
    assert mediate([0, 1, 0], (5.0, 6.0, 7.0)) == [0, 1, 0]


def test_too_many_combinations_are_refused():
    game = DilemmaSettings.build("public_goods", players=18).stage_game()
    with pytest.raises(SettingsError, match="too many to compute an equilibrium"):
        _ = game.equilibrium


@given(st.integers(1, 8), st.integers(2, 4), st.sampled_from(["fixed", "random"]), st.integers(0, 50))
def test_everybody_is_in_one_group(groups, size, matching, round_):
    import numpy as np

    matched = match_players(groups * size, size, matching, round_, np.random.default_rng(round_))
    assert sorted(player for group in matched for player in group) == list(range(groups * size))
    assert {len(group) for group in matched} == {size}


@pytest.mark.parametrize("players", [2, 4, 6, 10])
def test_round_robin_is_every_pair_once(players):
    met = [
        frozenset(pair) for turn in range(players - 1) for pair in match_players(players, 2, "round_robin", turn, None)
    ]
    assert len(met) == len(set(met)) == players * (players - 1) // 2


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ((7, 2, "random"), "7 players do not divide into groups of 2; take 6 or 8 players"),
        ((2, 3, "fixed"), "2 players do not divide into groups of 3; take 3 players"),
        ((6, 3, "round_robin"), "goes round pairs, not groups of 3"),
        ((6, 0, "random"), "needs groups; set group_size"),
    ],
)
def test_matching_that_cannot_be_is_refused(fields, sentence):
    with pytest.raises(SettingsError, match=sentence):
        check_groups(*fields)


def test_a_game_too_large_to_solve_is_refused_before_it_is_played(tmp_path):
    """316 prices for two firms can be listed; with delegation, which is one action more, no longer."""
    text = """\
name: big
conditions:
  - {name: a, scenario: bertrand, policies: best_responder, episodes: 1,
     settings: {prices: grid, grid_points: 316, talk: false, rounds: 2, mechanism: KIND}}
"""
    words = r"condition 'a': bertrand/best_responder: .*2 players with 317 actions each are too many to compute"
    with pytest.raises(StudyError, match=words):
        run_study(small_study(text.replace("KIND", "mediation")), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    check_players(small_study(text.replace("KIND", "none")))
