from llm_coop_envs.policies.llm.seats.question_log import news


def test_a_line_said_again_in_a_window_that_moved_is_news():
    before = 'Said so far:\nA: "yes"\nB: "no"\nA: "well"\n\nYour price?'
    now = 'Said so far:\nB: "no"\nA: "well"\nB: "no"\n\nYour price?'
    assert news(before, now) == 'Said so far:\nB: "no"\n\nYour price?'


def test_the_question_at_the_end_is_kept_as_it_is():
    asked = "Rules.\n\nRound 1.\n\nName it.\nOnly the number."
    assert news(asked, asked.replace("1", "2")) == "Round 2.\n\nName it.\nOnly the number."
    assert news(asked, asked) == "Name it.\nOnly the number."
