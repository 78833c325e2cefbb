from hypothesis import given
from hypothesis import strategies as st

from llm_coop_envs.interface.slots import Heard
from llm_coop_envs.policies.llm.playing.context_window import MESSAGE_OVERHEAD, shorten


def words(text):
    return len(text.split())


def render(values):
    left = f" ({values['said_left_out']} left out)" if values.get("said_left_out") else ""
    said = " ".join(m.text for m in values["said"])
    return f"head {said}{left} " + " ".join(values.get("plans", ()))


def heard(*texts):
    return tuple(Heard(speaker=f"player_{k}", text=text, own=False) for k, text in enumerate(texts))


def test_what_fits_stays_as_it_is():
    fitted = shorten(render, {"said": heard("a b", "c d")}, (("said", "newest"),), 5 + MESSAGE_OVERHEAD, words)
    assert fitted.text == "head a b c d "
    assert fitted.left_out == {}
    assert fitted.fits


def test_the_oldest_give_way_and_the_prompt_says_how_many():
    many = heard(*(f"number {k} and so on" for k in range(100)))
    fitted = shorten(render, {"said": many}, (("said", "newest"),), 100 + MESSAGE_OVERHEAD, words)
    assert fitted.fits
    assert words(fitted.text) <= 100
    out = fitted.left_out["said"]
    assert f"({out} left out)" in fitted.text
    assert f"number {out - 1} " not in fitted.text
    assert f"number {out} " in fitted.text
    assert "number 99 " in fitted.text


def test_the_last_give_way_where_the_first_are_kept():
    many = heard(*(f"number {k} and so on" for k in range(100)))
    fitted = shorten(render, {"said": many}, (("said", "first"),), 100 + MESSAGE_OVERHEAD, words)
    assert fitted.fits
    assert "number 0 " in fitted.text
    assert "number 99 " not in fitted.text


def test_a_list_gives_way_only_when_the_one_before_is_empty():
    values = {"said": heard("x " * 50), "plans": tuple("p" for _ in range(50))}
    fitted = shorten(render, values, (("said", "newest"), ("plans", "newest")), 30 + MESSAGE_OVERHEAD, words)
    assert fitted.fits
    assert fitted.left_out["said"] == 1
    assert 0 < fitted.left_out["plans"] < 50
    fitted = shorten(render, values, (("plans", "newest"), ("said", "newest")), 60 + MESSAGE_OVERHEAD, words)
    assert fitted.fits
    assert set(fitted.left_out) == {"plans"}


def test_what_cannot_fit_is_said():
    fitted = shorten(
        render, {"said": heard("a", "b")}, (("said", "newest"), ("nothing", "newest")), 2 + MESSAGE_OVERHEAD, words
    )
    assert not fitted.fits
    assert fitted.left_out == {"said": 2}
    assert "(2 left out)" in fitted.text


def test_the_frame_is_part_of_the_limit():
    assert shorten(render, {"said": heard("a")}, (), 2 + MESSAGE_OVERHEAD, words).fits
    assert not shorten(render, {"said": heard("a")}, (), 1 + MESSAGE_OVERHEAD, words).fits


@given(st.lists(st.integers(0, 30), max_size=40), st.integers(5, 400))
def test_the_result_fits_or_nothing_is_left_to_leave_out(lengths, limit):
    many = heard(*("w " * length for length in lengths))
    fitted = shorten(render, {"said": many}, (("said", "newest"),), limit + MESSAGE_OVERHEAD, words)
    assert fitted.fits == (words(fitted.text) <= limit)
    if not fitted.fits:
        assert fitted.left_out.get("said", 0) == len(many)
    kept = len(many) - fitted.left_out.get("said", 0)
    assert render({"said": many[len(many) - kept :], "said_left_out": len(many) - kept}) == fitted.text
