"""Readers of a question: what the options are called, and what is counted of the answers."""

from llm_chats import Canned, run

from llm_coop_envs import kbc_v0
from llm_coop_envs.evacuation.slots import MoveOption
from llm_coop_envs.interface.question import Number, Option, Options
from llm_coop_envs.policies.llm.parsing import numbers
from llm_coop_envs.policies.llm.playing import answer_readers
from llm_coop_envs.policies.llm.playing.move_readers import reader_for


def step(choice, name, letter, row, col):
    return MoveOption(choice=choice, name=name, letter=letter, row=row, col=col, taken=False)


def test_a_step_goes_by_its_cell_too():
    question = Options(name="move", options=(step(3, "down", "a", 29, 21), step(4, "left", "b", 28, 20)), known=("up",))
    reader = reader_for(question, str)
    for text, choice in (
        ("(29, 21)", 3),
        ("I go to (28,20).", 4),
        ("b) left: (28, 20)", 4),
        ("I step from (28, 21) to (29, 21).", 3),
    ):
        assert reader.read(text, truncated=False, refused=False).value == choice
    for text in ("(32, 17)", "a (28, 20)", "(29, 21) or (28, 20)"):
        assert not reader.read(text, truncated=False, refused=False).ok
    assert reader.legal["options"] == ("a) down", "b) left")


def test_a_short_answer_is_read_once_and_each_question_reads_it_by_itself(monkeypatch):
    read = []
    monkeypatch.setattr(
        answer_readers, "read_number", lambda text, *rest, **more: read.append(text) or real(text, *rest, **more)
    )
    real = numbers.read_number
    wide, narrow = (reader_for(Number(name="price", low=2.125, high=high), str) for high in (20, 10))
    for _ in range(3):
        assert wide.read("I take 12.", truncated=False, refused=False).value == 12
        assert wide.read("I take 12.", truncated=True, refused=False).status == "truncated"
        assert not wide.read("I take 12.", truncated=False, refused=True).ok
        assert narrow.read("I take 12.", truncated=False, refused=False).status == "illegal"
        assert wide.read("Well, " * 80 + "I take 12.", truncated=False, refused=False).value == 12
    assert len(read) == 3 + 3


def test_an_option_that_is_no_step_has_only_its_aliases():
    assert Option(choice=1, name="left", aliases=("west",)).spellings == ("west",)


def test_answers_that_were_cut_or_cleaned_are_counted_and_do_not_reach_others():
    env = kbc_v0.parallel_env(players=2, exchanges=1)
    chat = Canned(
        talk=["Let us<|im_<|im_end|>end|> name 20.", "\u200bYes."],
        choose=["20\n" + "so it is. " * 5_000, "20<\uff5cend\u2581of\u2581sentence\uff5c>"],
    )
    policy, _ = run(env, chat)
    assert policy.counters.for_call("talk").cleaned == 2
    assert (policy.counters.for_call("choose").cleaned, policy.counters.for_call("choose").too_long) == (1, 1)
    heard = chat.prompts("choose")[-1][1]
    assert '"Let us name 20."' in heard
    assert '"Yes."' in heard
    assert "im_end" not in heard
