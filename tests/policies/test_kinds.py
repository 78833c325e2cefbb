"""Every way of taking a seat, by name."""

import asyncio
import gc
import tempfile

import pytest

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0, policies
from llm_coop_envs.errors import LlmCoopError, SettingsError
from llm_coop_envs.policies.llm.testing.answers import scripted_answer
from llm_coop_envs.policies.llm.testing.server import ScriptedServer, in_thread
from llm_coop_envs.wrappers import SingleAgentView

MARKET = {"preset": "calvano", "rounds": 3}


@pytest.mark.parametrize(
    ("name", "options", "make"),
    [
        ("bertrand/grim_trigger", {}, lambda: bertrand_v0.parallel_env(**MARKET)),
        ("kbc/level_k", {"k": 2}, lambda: kbc_v0.parallel_env(players=3)),
        ("q_learning:calvano", {}, lambda: bertrand_v0.parallel_env(**MARKET)),
        ("tabular:kbc", {}, lambda: kbc_v0.parallel_env(talk=False)),
        ("sb3:bertrand_dqn_1", {"play": "best"}, lambda: bertrand_v0.parallel_env(**MARKET)),
        ("sb3:evacuation", {}, lambda: evacuation_v0.parallel_env(talk=False, control="exit")),
    ],
)
def test_it_plays(name, options, make):
    assert set(policies.play(make(), policies.make(name, **options), seed=0))


def test_options_behind_the_name_are_those_of_the_command_line(tmp_path):
    def prices(name, **options):
        env = bertrand_v0.parallel_env(preset="team_up_linear", talk=False, rounds=9, record=True)
        policies.play(env, policies.make(name, **options), seed=0)
        return [event["choice"] for event in env.events if event["type"] == "choice"]

    rule = "bertrand/win_continue_lose_reverse"
    assert prices(f"{rule} {{step: 0.5}}") == prices(rule, step=0.5) != prices(rule)
    assert prices(f"{rule} {{step: 0.5}}", spread=1) == prices(rule, step=0.5, spread=1)
    (tmp_path / "options.yaml").write_text("step: 0.5")
    assert prices(f"{rule} @{tmp_path / 'options.yaml'}") == prices(rule, step=0.5)
    with pytest.raises(SettingsError, match=r"step=1: is given twice, behind the name and by keyword"):
        policies.make(f"{rule} {{step: 0.5}}", step=1)
    for wrong in ("{step}", "{step: 0.5", "{stap: 1}"):
        with pytest.raises(LlmCoopError, match=r"step|stap"):
            policies.make(f"{rule} {wrong}")


def test_a_person_plays(monkeypatch, capsys):
    monkeypatch.setattr("builtins.input", lambda _: "7")
    env = kbc_v0.parallel_env(players=2, session="single", talk=False, record=True)
    policies.play(env, {"player_0": policies.make("human"), "player_1": policies.make("kbc/uniform")}, seed=0)
    assert next(event["choice"] for event in env.events if event["type"] == "choice") == 7
    assert "You play player_0." in capsys.readouterr().out


@pytest.mark.parametrize("inside", [False, True])
def test_a_language_model_plays_and_everything_is_closed_again(inside, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def play():
        rival = policies.make(f"llm:scripted {{base_url: {server.base_url}}}")
        env = bertrand_v0.parallel_env(rounds=2, record=True)
        for _ in range(2):
            policies.play(env, {"firm_0": rival, "firm_1": policies.make("bertrand/best_reply")}, seed=0)
        view = SingleAgentView(bertrand_v0.parallel_env(rounds=2), "firm_1", rival)
        view.reset(seed=0)
        view.step({"choice": 3.0, "message": "hello"})
        view.close()
        return [event["choice"] for event in env.events if event["type"] == "choice"]

    async def notebook():
        return play()

    with in_thread(ScriptedServer(scripted_answer)) as server:
        chosen = asyncio.run(notebook()) if inside else play()
    assert len(chosen) == 4
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_answers_can_be_kept(tmp_path):
    with in_thread(ScriptedServer(scripted_answer)) as server:
        for _ in range(2):
            model = policies.make("llm:scripted", base_url=server.base_url, folder=str(tmp_path))
            policies.play(kbc_v0.parallel_env(players=2, session="single", talk=False), model, seed=0)
        # The second episode was answered from the folder.
        assert server.asked.total() == 2


def test_what_is_none_is_refused():
    with pytest.raises(SettingsError, match="did you mean 'bertrand/grim_trigger'"):
        policies.make("bertrand/grim_triger")
    with pytest.raises(SettingsError, match="did you mean 'calvano'"):
        policies.make("q_learning:calvanno")
    with pytest.raises(SettingsError, match="paly='best'"):
        policies.make("sb3:kbc", paly="best")
    with pytest.raises(SettingsError, match="OPENAI_API_KEY"):
        policies.make("llm:openai/gpt-4o-mini")
    with pytest.raises(SettingsError, match="plays kbc, not bertrand_v0"):
        policies.play(bertrand_v0.parallel_env(rounds=2), policies.make("tabular:kbc"), seed=0)
    with pytest.raises(SettingsError, match="was trained on kbc, not on bertrand"):
        policies.play(bertrand_v0.parallel_env(rounds=2), policies.make("sb3:kbc"), seed=0)
