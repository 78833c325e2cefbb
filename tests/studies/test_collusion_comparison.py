"""The study of learners, rules and models in price competition: what is measured, continued and shown."""

import asyncio
import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from invoking import assert_sentence, invoke
from llm_chats import Recorder
from model_studies import answering
from small import contents

from llm_coop_envs.baselines.deep.shipped import find_networks
from llm_coop_envs.bertrand.faces.after import Deviations
from llm_coop_envs.bertrand.faces.after_panel import CONTROLS
from llm_coop_envs.bertrand.faces.comparison_report import WHY, PlayerComparison
from llm_coop_envs.bertrand.settings import BertrandSettings
from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.errors import MissingExtra, StudyError
from llm_coop_envs.policies.llm.asking.prices import Price
from llm_coop_envs.reports.page_parts import NOTHING
from llm_coop_envs.reports.played import PlayedCondition
from llm_coop_envs.reports.run_sections import read_run
from llm_coop_envs.runs.cost import Pace, estimate_cost
from llm_coop_envs.runs.episode import play_episode
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.runs.tables import read_episodes
from llm_coop_envs.studies.seating import read_player, with_players
from llm_coop_envs.studies.selection import select
from llm_coop_envs.studies.study import check_players, load_study, parse_study, shipped_studies

NAME = "collusion_comparison"
ROWS = json.loads((Path(__file__).parents[1] / "bertrand" / "comparison_rows.json").read_text())
"""Rows of episodes that were played and measured before the comparison was a study, by condition and seed (learners: by
number), in the columns' names of today."""


@pytest.fixture(scope="module")
def study():
    return load_study(NAME)


def condition(study, name, **given):
    return replace(next(one for one in study.conditions if one.name == name), **given)


def row(condition, seed, study_seed=0, chat=None):
    played = asyncio.run(play_episode(study_seed, condition, seed, chat))
    return {**find_scenario("bertrand").episode_metrics(played.events), **played.measures}


def as_before(condition):
    """A condition as it was played when the rows were recorded: the rules for longer and from the presets' own first
    prices, and prices at Nash counted as held together."""
    own = BertrandSettings.presets[condition.preset]
    before = {"rounds": 1200, "collusion_margin": "from_nash"}
    for name in ("initial_prices", "force_first_price"):
        before[name] = own.get(name, BertrandSettings.__dataclass_fields__[name].default)
    if condition.name.startswith("q_learning"):
        before |= {"rounds": 100, "initial_prices": None, "force_first_price": False}
    return replace(condition, settings={**condition.settings, **before})


def quick(rule="grim_trigger", market="calvano", rounds=210, **more):
    """A condition of a scripted rule, with shorter branches."""
    text = shipped_studies()[NAME].read_text().replace("horizon: 100", "horizon: 12")
    study = select(parse_study(text, "quick.yaml"), only=[f"{rule}-{market}"], rounds=rounds)
    return replace(study.conditions[0], **more)


def test_what_is_not_installed_is_needed_by_its_own_conditions_only(monkeypatch, tmp_path):
    # Else it would be imported for the first time here, and know of no compiler in all tests after.
    importlib.import_module("llm_coop_envs.util.compiling")
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.delitem(sys.modules, "llm_coop_envs.baselines.q_learning.learn.compiled", raising=False)
    whole = load_study(NAME)
    with pytest.raises(MissingExtra, match=r"in the condition 'q_learning-calvano' \(--only plays others\), needs the"):
        run_study(whole, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    check_players(select(whole, only=["tit_for_tat-*"]))


@pytest.mark.parametrize("old", ROWS, ids=lambda old: f"{old['condition']}-{old.get('number', old.get('seed'))}")
def test_rows_are_those_of_before(study, old):
    played = as_before(condition(study, old["condition"]))
    if "number" in old:
        pytest.importorskip("numba")
        seed = played.seeds[old["number"]]
    else:
        seed = old["seed"]
        played = replace(played, seeds=(seed,))
    found = row(played, seed)
    assert {name: found[name] for name in old["row"]} == old["row"]


def test_grim_trigger_is_measured_as_it_must_be():
    found = row(as_before(replace(quick(market="team_up", seeds=(0,)), seeds=(0,))), 0)
    # Round 1 is laid down at cost; then the grid price nearest to joint profit, for good.
    assert (found["lasting_from"], found["window_round"], found["rounds"]) == (2, 201, 1200)
    assert found["end_price"] == pytest.approx(8.0 + 0.4 / 14)
    assert found["end_gain"] == pytest.approx(1.0, abs=0.001)
    assert (found["end_cycle"], found["end_index"]) == ("1-symmetric", 1.0)
    assert found["deviation_answer"] == pytest.approx((6.0 - 0.4 / 14 * 1.0) / found["end_price"] - 1.0, abs=0.02)
    assert (found["deviation_unprofitable"], found["deviation_paid"], found["deviation_returned"]) == (1.0, 0.0, 0.0)
    assert (found["deviations"], found["deviation_length"]) == (2, None)
    assert len(found["deviator_path"]) == len(found["rival_path"]) == 13
    assert found["rival_path"][:2] == [found["deviator_path"][0]] * 2
    assert found["rival_path"][-1] == pytest.approx((5.9714 - 6.0) / 2.0, abs=0.001)


def test_prices_that_hold_too_shortly_do_not_stay():
    # From calvano's drawn first prices on, held together from the start: 150 rounds are no 200.
    assert row(quick(rounds=150, seeds=(0,)), 0)["lasting_from"] is None
    assert row(quick(seeds=(0,)), 0)["lasting_from"] == 1


def test_learners_are_counted_from_their_first_period(study):
    pytest.importorskip("numba")
    from llm_coop_envs.baselines.q_learning.analyse.measures import session_row
    from llm_coop_envs.baselines.q_learning.learn.sessions import run_session
    from llm_coop_envs.baselines.q_learning.learn.settings import QLearningSettings

    learners = condition(study, "q_learning-calvano")
    found = row(learners, learners.seeds[2], study_seed=1)
    settings = QLearningSettings()
    session = run_session(settings, 1, 2)
    expected = session_row(settings, settings.game(), session)
    assert found["learned_periods"] == session.periods
    assert found["learned_lasting_from"] in (None, session.periods - settings.window)
    assert found["end_gain"] == pytest.approx(expected["gain"])
    assert found["end_cycle"] == expected["cycle_class"]
    assert found["deviation_answer"] == pytest.approx(expected["answer"])
    assert (found["deviation_unprofitable"], found["deviations"]) == (expected["unprofitable"], expected["deviations"])
    assert found["rounds"] == 600


def test_the_study_has_every_player_in_every_market(study):
    assert len(study.conditions) == 26
    markets = {(one.preset, one.variant) for one in study.conditions}
    assert markets == {
        ("calvano", "Calvano et al. 2020"),
        ("team_up", "Wu et al. 2024, logit"),
        ("team_up_linear", "Wu et al. 2024, linear"),
    }
    assert {len(one.seeds) for one in study.conditions} == {50, 10, 5}
    assert all(one.after == {"horizon": 100, "everywhere": True} for one in study.conditions)
    # So that a window of 200 rounds may end at the published 400 and after.
    assert {one.settings["rounds"] for one in (*study.conditions, *study.optional)} == {600}
    # Nobody is put down at the edge of the grid; Q-learners go on from where they are.
    starts = {one.name.startswith("q_") for one in study.conditions if one.settings["initial_prices"] != "random"}
    assert starts == {True}
    assert not any(one.settings["force_first_price"] for one in (*study.conditions, *study.optional))
    # Networks are shown in the market in which they learned.
    deep = [one for one in study.conditions if any(policy.startswith("sb3:") for policy in one.policies)]
    assert [one.name for one in deep] == ["bertrand_dqn-calvano", "bertrand_ppo-calvano"]


def test_every_episode_of_a_network_has_another_training(study):
    for name in ("bertrand_dqn", "bertrand_ppo"):
        deep = condition(study, f"{name}-calvano")
        short = replace(deep, settings={**deep.settings, "rounds": 5}, after=None)
        about = [network.about["training"] for network in find_networks(f"{name}_*")]
        trained = [one["seed"] for one in about]
        assert trained == [row(short, seed)["training_seed"] for seed in deep.seeds] == [1, 2, 3, 4, 5]
        assert {(one["networks"], one["preset"]) for one in about} == {("independent", "calvano")}


def test_given_players_join_the_others_in_the_markets_they_know(study):
    def joined(text):
        return [one for one in with_players(study, read_player(text)).conditions if one not in study.conditions]

    # The two markets of Wu et al. have the same Nash and joint-profit prices, and so the same grid.
    assert [one.name for one in joined("q_learning:team_up")] == ["given-team_up", "given-team_up_linear"]
    assert [one.preset for one in joined("q_learning:calvano")] == ["calvano"]
    assert joined("q_learning:calvano")[0].title == "Q-learner calvano, Calvano et al. 2020"
    assert joined("tit_for_tat")[0].title == "tit_for_tat, Calvano et al. 2020"
    models = joined("llm:any/model")
    assert [one.settings["talk"] for one in models] == [False] * 3 + [True] * 3 + [False] * 3
    assert {(one.settings["rounds"], len(one.seeds), one.after["horizon"]) for one in models} == {(600, 5, 25)}
    # The last three play a Q-learner.
    assert [one.policies for one in models[5:7]] == [("llm:any/model",), ("llm:any/model", "q_learning")]
    assert models[6].title == "any/model against Q-learning, Calvano et al. 2020"
    assert [one.preset for one in joined("sb3:bertrand_dqn_1")] == ["calvano"]
    with pytest.raises(StudyError, match="is neither shipped nor a file"):
        joined("q_learning:nowhere")


@pytest.mark.parametrize("talk", [False, True])
def test_a_model_may_play(study, talk):
    chat = Recorder()
    name = "model_talk-team_up" if talk else "model-team_up"
    study = with_players(study, read_player("llm:scripted"))
    (model,) = select(study, only=[name], episodes=1, rounds=3).conditions
    model = replace(model, after={**model.after, "horizon": 3})
    seed = model.seeds[0]
    assert row(model, seed, chat=chat)["deviations"] == 2
    base = f"{name}/{seed}"
    assert {key.episode for key, _, _ in chat.log} == {
        base,
        f"{base}/usual-0",
        f"{base}/deviation-0-0",
        f"{base}/deviation-0-1",
    }
    assert len({(key.episode, key.agent, key.step, key.call, key.attempt) for key, _, _ in chat.log}) == len(chat.log)


def test_what_follows_an_episode_costs_too(study):
    short = select(with_players(study, read_player("llm:m")), only=["model-team_up"], episodes=1, rounds=2)
    (model,) = short.conditions
    price = Price(1e-6, 2e-6, 1e-6, "test")
    alone, with_branches = (
        estimate_cost(replace(short, conditions=(replace(model, after=after),)), lambda name: price, Pace())
        for after in (None, {"horizon": 3, "everywhere": False})
    )
    # Two rounds, and three branches of three rounds.
    assert with_branches.total.calls >= 5 * alone.total.calls


PLAY = ("--only", "grim_trigger-*", "--only", "price_matching_talk-calvano", "--episodes", 2, "--rounds", 20)


def test_the_command_plays_continues_and_reports(tmp_path):
    folder = tmp_path / "run"
    found = invoke("run", NAME, *PLAY, "-o", folder, "--workers", 1)
    assert (found.exit_code, "all 8 are in" in found.stderr) == (0, True), found.stderr
    again = invoke("run", NAME, *PLAY, "-o", tmp_path / "two", "--workers", 2)
    assert again.exit_code == 0
    assert contents(tmp_path / "two") == contents(folder)
    before = contents(folder)
    lost = next(folder.rglob("events/grim_trigger-calvano/*.gz"))
    lost.unlink()
    assert invoke("run", NAME, *PLAY, "-o", folder, "--workers", 1).exit_code == 0
    assert contents(folder) == before
    columns = pq.read_table(folder / "episodes.parquet").to_pydict()
    assert columns["rounds"] == [20] * 8
    assert columns["deviations"] == [2] * 8
    assert {len(path) for path in columns["rival_path"]} == {26}
    assert invoke("report", folder).exit_code == 0
    page = (folder / "report" / "index.html").read_text()
    assert (folder / "report" / f"{NAME}.png").read_bytes().startswith(b"\x89PNG")
    assert WHY.replace("'", "&#39;") in page
    for text in ("No language model was run", "1,751,250", "2,000", "grim trigger", "--only grim_trigger-*"):
        assert text in page
    refused = invoke("run", NAME, "--only", "grim_trigger-*", "-o", folder)
    assert_sentence(refused, "holds a run of")


@pytest.mark.rare
def test_the_command_asks_a_model_and_replays_its_answers(tmp_path):
    arms = ("model-team_up", "model_talk-team_up", "tit_for_tat-team_up")
    options = (*(part for arm in arms for part in ("--only", arm)), "--episodes", 1, "--rounds", 2)
    with answering() as server:
        words = ("--model", "m", "--base-url", server.base_url, "--workers", 1)
        found = invoke("run", NAME, *options, *words, "-o", tmp_path / "run")
        assert (found.exit_code, "all 3 are in" in found.stderr) == (0, True), found.stderr
        # Six calls are too few; what is paid for is kept, and the same command goes on with more.
        less = invoke("run", NAME, *options, *words, "-o", tmp_path / "less", "--max-calls", 6)
        assert less.exit_code == 130
        assert "1 of 3 episodes are in" in less.stderr
        assert invoke("run", NAME, *options, *words, "-o", tmp_path / "less", "--max-calls", 10**6).exit_code == 0
        assert contents(tmp_path / "less") == contents(tmp_path / "run")
    again = invoke("run", NAME, *options, "--model", "m", "--replay", tmp_path / "run", "-o", tmp_path / "again")
    assert again.exit_code == 0, again.stderr
    assert contents(tmp_path / "again") == contents(tmp_path / "run")
    rows = [one.metrics for one in read_episodes(open_run(tmp_path / "run"))]
    assert [one["condition"] for one in rows] == ["tit_for_tat-team_up", "model-team_up", "model_talk-team_up"]
    assert all(one["deviations"] == 2 for one in rows)
    assert invoke("report", tmp_path / "run").exit_code == 0
    assert "m, with talk" in (tmp_path / "run" / "report" / "index.html").read_text()


def test_a_model_that_refuses_to_play_is_no_result(tmp_path):
    words = ("--only", "model-team_up", "--only", "grim_trigger-team_up", "--episodes", 2, "--rounds", 3)
    with answering(lambda *_: "I would rather not say.") as server:
        more = ("--model", "m", "--base-url", server.base_url, "--workers", 1)
        assert invoke("run", NAME, *words, *more, "-o", tmp_path / "run").exit_code == 0
    (section,), answers = read_run(open_run(tmp_path / "run"))
    assert set(answers.invalid) == {"model-team_up"}
    (shown,) = [one for one in section.tables() if one.head[1] == "profit gain above Nash"]
    rows = {row.name: row for row in shown.rows}
    assert rows["m"].bad
    assert "choices flagged, invalid; " in rows["m"].below
    assert "; no result: 100 % of all decisions were taken by a fallback" in rows["m"].below
    assert {cell.text for cell in rows["m"].cells} == {NOTHING.text}
    assert not rows["grim trigger"].bad
    assert rows["grim trigger"].cells[0].text != NOTHING.text
    # Followed for another number of rounds, which is said where it is so.
    assert "followed for 25 rounds" in rows["m"].below
    assert "followed for 100 rounds" in rows["grim trigger"].below
    (drawing,) = next(one for one in section.figures() if one.name == "bertrand-comparison").draw()
    gain = drawing.figure.axes[0]
    line = [label.get_text() for label in gain.get_yticklabels()].index("m")
    dots = [drawn for drawn in gain.get_lines() if len(drawn.get_xdata()) == 1]
    assert dots
    assert not any(abs(y - line) < 0.5 for drawn in dots for y in drawn.get_ydata())


def test_deviations_count_alike_whatever_their_episode(study):
    """As in the published figures: one deviation that does not pay and three that do are 25 %, not 50 %."""
    episode = {
        "end_cycle": "2",
        "end_price": 1.5,
        "end_gain": 0.5,
        "end_index": 0.5,
        "lasting_from": 1,
        "window_round": 200,
    }
    rows = [
        {**episode, "deviations": count, "deviation_answer": -0.1 * count, "deviation_length": 4.0 * count}
        | {"deviation_unprofitable": share, "deviation_returned": 1.0}
        for count, share in ((2, 1.0), (6, 0.0))
    ]
    one = PlayedCondition(condition=condition(study, "best_reply-calvano"), who="scripted", color="", metrics=rows)
    one.seeds = [0, 1]
    (table,) = PlayerComparison(find_scenario("bertrand"), [one]).tables()
    head, cells = list(table.head)[1:], [cell.text for cell in table.rows[0].cells]
    shown = dict(zip(head, cells, strict=True))
    assert head[:3] == ["profit gain above Nash", "rivals' answer, %", "does not pay, %"]
    assert shown["does not pay, %"] == "25.0"
    assert shown["rivals' answer, %"] == "-50.0"
    assert shown["rounds until back"] == "20.0"
    assert shown["profit gain above Nash"] == "0.500"
    (length,) = [cell for name, cell in zip(head, table.rows[0].cells, strict=True) if name == "rounds until back"]
    assert length.number.high <= Deviations.horizon  # more rounds than are followed cannot be seen
    assert any("All are measured alike: 600 rounds from drawn prices" in note for note in table.notes)

    # With the controls, where a study asks for them, there is a second table.
    one.metrics = [{**row, **dict.fromkeys(CONTROLS, 0.25), "panel_cut": 1.5} for row in rows]
    _, controls = PlayerComparison(find_scenario("bertrand"), [one]).tables()
    found = dict(zip(controls.head[1:], (cell.text for cell in controls.rows[0].cells), strict=True))
    assert (found["level"], found["cut"]) == ("0.250", "1.50")
    assert len(controls.notes) == 1 + len(CONTROLS)


def test_a_model_plays_a_learner_that_goes_on_learning(study):
    pytest.importorskip("numba")
    study = with_players(study, read_player("llm:scripted"))
    (model,) = select(study, only=["model_q_learning-calvano"], episodes=1, rounds=3).conditions
    found = row(replace(model, after={**model.after, "horizon": 3}), model.seeds[0], chat=Recorder())
    assert found["learned_periods"] > 100_000
    assert found["deviations"] == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--policy", "tit_for_tit"), "did you mean 'tit_for_tat'?"),
        (("--policy", "q_learning:nowhere"), "is neither shipped nor a file"),
        (("--policy", "llm"), "which model? Give --model NAME"),
        (("--policy", "grim_trigger {tolerance: -1}"), "must be 0 or more"),
        (("--only", "tit_for_tit*"), "fits no condition"),
    ],
)
def test_mistakes_are_told_before_anything_starts(options, said, tmp_path):
    found = invoke("run", NAME, *options, "-o", tmp_path / "run")
    assert_sentence(found, said)
    assert not (tmp_path / "run").exists()


def test_it_is_listed():
    found = invoke("list")
    assert (found.exit_code, NAME in found.stdout) == (0, True)


def test_published_counts_have_sources():
    published = find_scenario("bertrand").published["until_collusion"]
    assert [one["rounds"] for one in published] == [400, 2000, 1751250]
    assert all(one["source"] for one in published)


AFTER = """\
name: after
conditions:
  - name: one
    scenario: bertrand
    preset: calvano
    settings: {talk: false, rounds: 5, collusion_window: 0}
    policies: grim_trigger
    after: {horizon: 4}
    seeds: [0]
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("horizon: 4", "horizon: 1", "line 8: conditions[0].after.horizon: 1: must be 2 or more"),
        (
            "horizon: 4",
            "tolerance: 0.05",
            "line 8: conditions[0].after.tolerance: 0.05: is less than a step of the",
        ),
        ("horizon: 4", "far: 4", "line 8: conditions[0].after.far: 4: is no setting of Deviations"),
        ("collusion_window: 0", "collusion_window: 9", "prices held together would end the episode; set it to 0"),
        ("scenario: bertrand\n    preset: calvano", "scenario: kbc", "kbc measures nothing after an episode"),
    ],
)
def test_what_cannot_be_measured_after_an_episode_is_told_with_its_line(old, new, said):
    text = AFTER.replace(old, new)
    if "kbc" in new:
        text = text.replace("rounds: 5, collusion_window: 0", "rounds: 5").replace("grim_trigger", "uniform")
    with pytest.raises(StudyError) as caught:
        parse_study(text, "after.yaml")
    assert said in str(caught.value)
