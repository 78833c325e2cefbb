import pytest
from llm_tools import key, question, reply

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies.llm.asking.cache import Cache, CacheError
from llm_coop_envs.policies.llm.clients import Endpoint

HERE = Endpoint(model="m", base_url="http://127.0.0.1:1/v1")


def shared(folder, put, get, *, samples=(None, None), endpoints=(HERE, HERE), kept=None):
    """What the second run finds of the first one's answer."""
    first = Cache(folder, samples[0])
    number, request = put
    first.store(endpoints[0], key(number), request, request.digest(), kept or reply("kept"))
    first.close()
    second = Cache(folder, samples[1])
    number, request = get
    found = second.get(endpoints[1], key(number), request, request.digest())
    second.close()
    return found


cold, warm = question(temperature=0), question(temperature=0.7)


def test_at_temperature_0_whoever_asks_the_same_gets_the_same(tmp_path):
    assert shared(tmp_path, (1, cold), (2, cold)) == reply("kept")


@pytest.mark.parametrize("asked", [warm, question()])
def test_samples_are_not_shared_unless_the_sample_is_stated(tmp_path, asked):
    assert shared(tmp_path / "a", (1, asked), (1, asked)) is None
    assert shared(tmp_path / "b", (1, asked), (1, asked), samples=(0, 0)) == reply("kept")


def test_a_sample_is_one_decisions_own(tmp_path):
    assert shared(tmp_path / "a", (1, warm), (2, warm), samples=(0, 0)) is None
    assert shared(tmp_path / "b", (1, warm), (1, warm), samples=(0, 1)) is None


def test_another_question_model_or_endpoint_is_another_answer(tmp_path):
    other = question("Another?", temperature=0)
    assert shared(tmp_path / "a", (1, cold), (1, other)) is None
    assert (
        shared(tmp_path / "b", (1, cold), (1, cold), endpoints=(HERE, Endpoint(model="m", base_url="http://h/v1")))
        is None
    )


@pytest.mark.parametrize("kept", [reply("", refusal="no"), reply("", finish_reason="content_filter")])
def test_refusals_are_not_shared(tmp_path, kept):
    assert shared(tmp_path, (1, cold), (1, cold), kept=kept) is None


def test_two_runs_use_it_at_the_same_time(tmp_path):
    one, two = Cache(tmp_path), Cache(tmp_path)
    for number in range(50):
        asked = question(str(number), temperature=0)
        (one if number % 2 else two).store(HERE, key(1), asked, asked.digest(), reply(str(number)))
    for number in range(50):
        asked = question(str(number), temperature=0)
        assert (two if number % 2 else one).get(HERE, key(1), asked, asked.digest()) == reply(str(number))
    one.close()
    two.close()


def test_bad_samples_and_folders(tmp_path):
    with pytest.raises(SettingsError, match="sample"):
        Cache(tmp_path, -1)
    (tmp_path / "answers.sqlite3").write_text("this is no database, whatever it is called")
    with pytest.raises(CacheError, match=r"answers\.sqlite3: cannot be used .*--cache"):
        Cache(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(CacheError):
        Cache(tmp_path / "file")
