import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy import ToyEnv

from llm_coop_envs.errors import WordingError
from llm_coop_envs.interface.wording import Wording, _load_wording, lines, quoted, six_digits


@given(st.text(st.characters(codec="utf-8")))
def test_a_quoted_message_is_one_line_that_it_cannot_leave(text):
    line = quoted(text)
    assert len((line + "x").splitlines()) == 1
    assert line[0] == line[-1] == '"'
    inside = line[1:-1]
    position = 0
    while position < len(inside):
        assert inside[position] != '"'
        position += 2 if inside[position] == "\\" else 1
    assert position == len(inside)


def test_ordinary_characters_stay_as_they_are():
    assert quoted("größer 😀 שלום 価格") == '"größer 😀 שלום 価格"'
    assert quoted('a"b\n') == '"a\\"b\\n"'
    assert quoted("\u202ereversed") == '"\\u202ereversed"'


def folder(tmp_path, text, name="observation.jinja"):
    (tmp_path / name).write_text(text)
    return tmp_path


def test_a_folder_of_your_own(tmp_path):
    folder(tmp_path, "{% include 'greeting.jinja' %} Round {{ round }}.")
    folder(tmp_path, "Hello {{ me }}.", "greeting.jinja")
    env = ToyEnv(wording=str(tmp_path))
    observations, _ = env.reset(seed=0)
    assert observations["player_1"]["text"] == "Hello player_1. Round 0."


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{{ secret }}", "uses secret, which no player may know; known are"),
        ("line\n{% if %}", "line 2"),
        ("{{ me", "line 1"),
        ("{% include 'observation.jinja' %}", "break the circle"),
        ("{% include 'nowhere.jinja' %}", "includes nowhere.jinja; include templates of this folder"),
        ("{% include me %}", "includes a template whose name is computed"),
        ("{% for m in heard %}{{ m.text }}{% endfor %}", "without putting it in quotation marks"),
        ("{% for m in heard %}{{ m.text | upper | quoted }}{% endfor %}", "without putting it in quotation marks"),
        ("{{ heard | map(attribute='text') | join }}", "without putting it in quotation marks"),
    ],
)
def test_bad_templates_are_refused_at_construction(tmp_path, template, words):
    with pytest.raises(WordingError, match=words):
        ToyEnv(wording=str(folder(tmp_path, template)))


def test_an_included_template_is_checked_too(tmp_path):
    folder(tmp_path, "{% set number = 3 %}{% include 'more.jinja' %}")
    folder(tmp_path, "{{ number }} {{ me }}", "more.jinja")
    observations, _ = ToyEnv(wording=str(tmp_path)).reset(seed=0)
    assert observations["player_0"]["text"] == "3 player_0"
    _load_wording.cache_clear()
    folder(tmp_path, "{{ number }} {{ secret }}", "more.jinja")
    with pytest.raises(WordingError, match=r"more\.jinja: uses secret, which no player may know"):
        ToyEnv(wording=str(tmp_path))


def test_a_folder_without_a_template_or_none_at_all(tmp_path):
    with pytest.raises(WordingError, match=r"no file observation\.jinja"):
        ToyEnv(wording=str(tmp_path))
    with pytest.raises(WordingError, match="neither one of en-a nor a folder that exists"):
        ToyEnv(wording="c")
    (tmp_path / "observation.jinja").write_bytes(b"\xff\xfe")
    with pytest.raises(WordingError, match="not UTF-8"):
        ToyEnv(wording=str(tmp_path))


def test_a_template_that_fails_while_rendering_says_where(tmp_path):
    wording = Wording(folder(tmp_path, "{{ 1 // round }}"), {"round"})
    with pytest.raises(WordingError, match=r"observation\.jinja: .*zero"):
        wording.render({"round": 0})


def test_messages_are_never_templates(tmp_path):
    env = ToyEnv(players=2)
    observations, _ = env.reset(seed=0)
    speaker = next(a for a in env.agents if observations[a]["turn"])
    observations, *_ = env.step({speaker: {"message": "{{ me }} {% raw %}"}})
    listener = next(a for a in env.agents if a != speaker)
    assert f'{speaker}: "{{{{ me }}}} {{% raw %}}"' in observations[listener]["text"]


def test_lines_puts_rows_into_words():
    rows = ((1, 2.5, (3.0, 0.123456789)), (2, -0.0, (4.0, 1e9)))
    assert lines(rows, "%d: %.6g | %.6g | %.6g") == "1: 2.5 | 3 | 0.123457\n2: 0 | 4 | 1000000000"
    assert lines((), "%d") == ""


def test_lines_knows_one_zero_whichever_it_saw_first():
    assert [lines(((zero,),), "%.6g zero") for zero in (-0.0, 0.0)] == ["0 zero"] * 2


def test_lines_is_a_filter(tmp_path):
    (tmp_path / "observation.jinja").write_text('{{ rows | lines("%d = %.3g") }}')
    assert Wording(tmp_path, ["rows"]).render({"rows": ((0, 1.5), (1, 2.0))}) == "0 = 1.5\n1 = 2"


@given(st.one_of(st.floats(-1e15, 1e15), st.integers(-(10**15), 10**15).map(float)))
def test_large_numbers_are_written_out(value):
    shown = lines([(value, (value,))], "%.6g | %.6g")
    assert "e+" not in shown
    assert [float(part) for part in shown.split(" | ")] == [float(f"{value + 0.0:.6g}")] * 2
    assert six_digits(value) == six_digits(float(six_digits(value)))
    assert "e+" not in six_digits(value)


def test_numbers_of_a_million_and_more():
    assert lines([(1, 12345678.9, -1e7, 999999.4)], "%d: %.6g | %.6g | %.6g") == "1: 12345700 | -10000000 | 999999"
    assert six_digits(1234567) == "1234570"
