"""The comparison of learners, rules and models: what is measured, written down, continued and shown."""

import asyncio
import contextlib
import io
import json
from dataclasses import replace

import pytest
from llm_chats import Recorder
from model_studies import answering

from llm_coop_envs.benchmarks.cli import comparison as command
from llm_coop_envs.benchmarks.cli import main as cli
from llm_coop_envs.benchmarks.comparison.arms import MARKETS, Arm, model_arms, own_arms, policy_arm
from llm_coop_envs.benchmarks.comparison.playing import market_env, measured
from llm_coop_envs.benchmarks.comparison.published import published_rounds
from llm_coop_envs.benchmarks.comparison.report import WHY, write_comparison
from llm_coop_envs.benchmarks.comparison.runs import (
    all_tasks,
    fitted,
    is_comparison,
    read_rows,
    run_comparison,
)
from llm_coop_envs.errors import RunError, SettingsError


def quick(name="grim_trigger", **given):
    fields = {"episodes": 2, "rounds": 210, "horizon": 12, "presets": ("calvano",), **given}
    return Arm(**{"name": name, "title": name, "policy": f"bertrand/{name}", **fields})


def invoke(*arguments):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as caught:
        cli.app([str(a) for a in arguments])
    return caught.value.code or 0, out.getvalue(), err.getvalue()


def play(arm, preset="calvano", number=0, seed=0, chat=None):
    return asyncio.run(measured(arm, preset, number, seed, chat))


def test_grim_trigger_is_measured_as_it_must_be():
    row = play(quick(), "team_up")
    marks = market_env("team_up", talk=False, rounds=1).marks
    # Round 1 is laid down at cost; then the grid price nearest to joint profit, for good.
    assert (row["stays"], row["window"], row["rounds"]) == (2, 201, 210)
    assert row["price"] == pytest.approx(8.0 + 0.4 / 14)
    assert row["gain"] == pytest.approx(1.0, abs=0.001)
    assert (row["cycle"], row["index"]) == ("1-symmetric", 1.0)
    assert row["answer"] == pytest.approx((6.0 - 0.4 / 14 * 1.0) / row["price"] - 1.0, abs=0.02)
    assert (row["unprofitable"], row["paid"], row["returned"], row["deviations"]) == (1.0, 0.0, 0.0, 2)
    assert row["punishment"] is None
    assert len(row["deviator"]) == len(row["rival"]) == 13
    assert row["rival"][:2] == [row["deviator"][0]] * 2
    assert row["rival"][-1] == pytest.approx((5.9714 - marks.nash[0]) / 2.0, abs=0.001)


def test_prices_that_hold_too_shortly_do_not_stay():
    # From calvano's drawn first prices on, held together from the start: 150 rounds are no 200.
    assert play(quick(rounds=150))["stays"] is None
    assert play(quick())["stays"] == 1


def test_an_episode_is_decided_by_its_seed_alone():
    arm = quick("uniform")
    first = play(arm)
    assert play(arm) == first
    assert play(arm, number=1)["price"] != first["price"]
    assert play(arm, seed=1)["price"] != first["price"]
    assert first["cycle"] == "none"


def test_learners_are_counted_from_their_first_period():
    pytest.importorskip("numba")
    from llm_coop_envs.baselines.q_learning.analyse.measures import session_row
    from llm_coop_envs.baselines.q_learning.learn.sessions import run_session
    from llm_coop_envs.baselines.q_learning.learn.settings import QLearningSettings

    (arm,) = [one for one in own_arms() if not one.policy]
    row = play(arm, number=2, seed=1)
    settings = QLearningSettings()
    game, session = settings.game(), run_session(settings, 1, 2)
    expected = session_row(settings, game, session)
    assert row["rounds"] == session.periods
    assert row["stays"] in (None, session.periods - settings.window)
    assert row["window"] is None or 200 < row["window"] < session.periods
    assert row["gain"] == pytest.approx(expected["gain"])
    assert row["cycle"] == expected["cycle_class"]
    assert row["answer"] == pytest.approx(expected["answer"])
    assert row["unprofitable"] == expected["unprofitable"]
    assert row["deviations"] == expected["deviations"]


@pytest.mark.parametrize("talk", [False, True])
def test_a_model_may_play(talk):
    chat = Recorder()
    arm = replace(model_arms("scripted")[talk], rounds=3, horizon=3)
    assert arm.talk == talk
    row = play(arm, "team_up", chat=chat)
    assert row["deviations"] == 2
    episodes = {key.episode for key, _, _ in chat.log}
    name = f"team_up-{arm.name}/0000"
    branches = {f"{name}/usual-0", f"{name}/deviation-0-0", f"{name}/deviation-0-1"}
    assert episodes == {name, *branches}
    assert len({(key.episode, key.agent, key.step, key.call, key.attempt) for key, _, _ in chat.log}) == len(chat.log)


def test_runs_are_continued_and_the_same_on_one_core_or_two(tmp_path):
    arms = [quick(), quick("uniform")]
    whole = run_comparison(arms, tmp_path / "one")
    assert [(row["number"], row["arm"]) for row in whole] == [(n, arm.name) for n in (0, 1) for arm in arms]
    told = []
    journal = tmp_path / "one" / "episodes.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:2]) + lines[2][:40])
    again = run_comparison(arms, tmp_path / "one", report=lambda done, total: told.append((done, total)))
    assert again == whole
    assert told == [(2, 4), (3, 4), (4, 4)]
    assert run_comparison(arms, tmp_path / "two", workers=2) == whole
    assert len(run_comparison([*arms, quick("tit_for_tat")], tmp_path / "two")) == 6
    from llm_coop_envs.storage.parquet import read_rows as read_parquet

    assert len(read_parquet(tmp_path / "two" / "comparison.parquet")) == 6


def test_other_runs_are_refused(tmp_path):
    run_comparison([quick(episodes=1)], tmp_path / "mine")
    with pytest.raises(RunError, match="holds a comparison with seed 0, not 1"):
        run_comparison([quick(episodes=1)], tmp_path / "mine", seed=1)
    with pytest.raises(RunError, match="holds grim_trigger with other settings"):
        run_comparison([quick(episodes=1, rounds=300)], tmp_path / "mine")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(RunError, match="holds something else"):
        run_comparison([quick()], tmp_path / "other")
    (tmp_path / "mine" / "episodes.jsonl").write_text("no json\n")
    with pytest.raises(RunError, match="line 1, is damaged"):
        read_rows(tmp_path / "mine")
    (tmp_path / "mine" / "comparison.json").write_text("{}")
    with pytest.raises(RunError, match="cannot be read"):
        run_comparison([quick()], tmp_path / "mine")
    with pytest.raises(RunError, match="nobody to answer; name a model"):
        run_comparison(model_arms("any"), tmp_path / "asked")


def test_trained_players_play_the_markets_they_know():
    arm = policy_arm("q_learning:team_up")
    # The two markets of Wu et al. have the same Nash and joint-profit prices, and so the same grid.
    assert fitted(arm).presets == ("team_up", "team_up_linear")
    assert fitted(policy_arm("q_learning:calvano")).presets == ("calvano",)
    assert fitted(policy_arm("bertrand/best_reply")).presets == tuple(MARKETS)
    with pytest.raises(SettingsError, match="neither shipped nor a file"):
        fitted(policy_arm("q_learning:nowhere"))
    assert (arm.title, arm.kind) == ("Q-learner team_up", "Q-learner")


def test_all_arms_and_markets_take_turns():
    arms = own_arms()
    tasks = all_tasks(arms)
    assert len(tasks) == 3 * (50 + (len(arms) - 1) * 10)
    assert {task.preset for task in tasks[:3]} == set(MARKETS)
    assert len({task.key for task in tasks}) == len(tasks)


def test_the_command_plays_and_reports(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "own_arms", lambda: [quick(episodes=1), quick("price_matching", talk=True)])
    folder = tmp_path / "run"
    code, out, err = invoke("run", "collusion_comparison", "-o", folder, "--workers", 1)
    assert (code, is_comparison(folder)) == (0, True)
    assert "Done: all 3 episodes are in" in err
    assert f"Next: llm-coop report {folder}" in out
    code, out, err = invoke("report", folder)
    assert code == 0
    page = (folder / "report" / "index.html").read_text()
    assert (folder / "report" / "collusion_comparison.png").read_bytes().startswith(b"\x89PNG")
    assert WHY.replace("'", "&#39;") in page
    assert "No language model was run" in page
    for text in ("1,751,250", "2,000", "400", "grim_trigger", "price_matching", "Not complete"):
        assert (text in page) == (text != "Not complete")
    # One episode more is wanted than there is.
    plan = json.loads((folder / "comparison.json").read_text())
    plan["arms"]["grim_trigger"]["episodes"] = 2
    (folder / "comparison.json").write_text(json.dumps(plan))
    code, _, err = invoke("report", folder)
    assert code == 2
    assert "is not complete (3 of 4 episodes)" in err
    assert "Not complete" in write_comparison(folder, tmp_path / "partly", partial=True).read_text()


def test_the_command_takes_a_player_more(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "own_arms", lambda: [quick(episodes=1)])
    monkeypatch.setattr(command, "policy_arm", lambda policy, options: quick("tit_for_tat", options=options))
    code, _, err = invoke(
        "run", "collusion_comparison", "--policy", "tit_for_tat", "-o", tmp_path / "a", "--workers", 1
    )
    assert (code, "all 3 episodes" in err) == (0, True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--seat", "firm_0=tit_for_tat"), "every kind of player plays all seats; use --policy"),
        (("--policy", "tit_for_tit"), "did you mean 'tit_for_tat'?"),
        (("--policy", "q_learning:nowhere"), "neither shipped nor a file"),
        (("--policy", "llm"), "which model? Give --model NAME"),
        (("--policy", "grim_trigger {tolerance: -1}"), "must be 0 or more"),
    ],
)
def test_mistakes_are_told_before_anything_starts(options, said, tmp_path):
    code, _, err = invoke("run", "collusion_comparison", *options, "-o", tmp_path / "run")
    assert code == 2
    assert said in err
    assert err.startswith("Error: ")
    assert not (tmp_path / "run").exists()


def test_it_is_listed():
    code, out, _ = invoke("list")
    assert code == 0
    assert "collusion_comparison" in out


def test_published_counts_have_sources():
    assert [one.rounds for one in published_rounds()] == [400, 2000, 1751250]
    assert all(one.source for one in published_rounds())


def test_the_command_asks_a_model_and_replays_its_answers(tmp_path, monkeypatch):
    def shorter(model, options):
        short = {"episodes": 1, "rounds": 2, "horizon": 3, "presets": ("team_up",)}
        return [replace(arm, **short) for arm in model_arms(model, options)]

    monkeypatch.setattr(command, "own_arms", lambda: [quick(episodes=1)])
    monkeypatch.setattr(command, "model_arms", shorter)
    with answering() as server:
        words = ("--model", "scripted", "--base-url", server.base_url, "-o", tmp_path / "run", "--workers", 1)
        code, _, err = invoke("run", "collusion_comparison", *words)
        assert (code, "all 3 episodes" in err) == (0, True)
        # Six calls are too few; what is paid for is kept, and the same command goes on.
        words = ("--model", "scripted", "--base-url", server.base_url, "-o", tmp_path / "less", "--workers", 1)
        code, _, err = invoke("run", "collusion_comparison", *words, "--max-calls", 6)
        assert code == 2
        assert f"What was finished is in {tmp_path / 'less'}; continue with: llm-coop run collusion_comparison" in err
        assert invoke("run", "collusion_comparison", *words)[0] == 0
        assert read_rows(tmp_path / "less") == read_rows(tmp_path / "run")
    rows = read_rows(tmp_path / "run")
    assert [row["arm"] for row in rows] == ["grim_trigger", "llm_m", "llm_m_talk"]
    words = ("--model", "scripted", "--replay", tmp_path / "run", "-o", tmp_path / "again", "--workers", 1)
    assert invoke("run", "collusion_comparison", *words)[0] == 0
    assert read_rows(tmp_path / "again") == rows
    page = write_comparison(tmp_path / "again").read_text()
    assert "No language model was run" not in page
    assert "m, with talk" in page
