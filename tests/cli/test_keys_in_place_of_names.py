"""A key in place of a model's name is refused wherever a model is named, and is nowhere shown or written."""

import pytest
from invoking import assert_sentence, invoke

KEYS = ["sk-proj-" + "Ab3" * 16, "sk-ant-api03-" + "x9Q" * 20, "openai/sk-" + "7Zk" * 16]
STUDY = """\
name: s
conditions:
  - name: a
    scenario: kbc
    settings: {{players: 3, exchanges: 1}}
    policies: {policies}
    seeds: [0]
"""


def assert_hidden(result, key, folder):
    assert_sentence(result, "looks like a key")
    secret = key.rpartition("/")[2]
    assert secret not in result.stdout + result.stderr
    assert not (folder / "run").exists()


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("option", ["--model", "--policy", "--seat"])
def test_on_the_command_line(tmp_path, monkeypatch, key, option):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(STUDY.format(policies="uniform"))
    given = {
        "--model": ["--policy", "llm", "--model", key],
        "--policy": ["--policy", f"llm:{key}"],
        "--seat": ["--seat", f"player_0=llm:{key}"],
    }[option]
    assert_hidden(invoke("run", "s.yaml", "-o", "run", *given), key, tmp_path)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    "policies",
    [
        "'llm:{key}'",
        "{{name: llm, options: {{model: '{key}'}}}}",
        "{{name: llm, options: {{model: m, parameters: {{default: {{user: '{key}'}}}}}}}}",
    ],
)
def test_in_a_study_file(tmp_path, monkeypatch, key, policies):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(STUDY.format(policies=policies.format(key=key)))
    assert_hidden(invoke("run", "s.yaml", "-o", "run"), key, tmp_path)
