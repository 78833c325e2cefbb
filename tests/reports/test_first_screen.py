"""The report's first screen in a browser: its size, its contents, its folds, and what axe finds."""

import re
from dataclasses import replace

import pytest
from browser import Browser, needs_chromium
from small import ALL, small_study

from llm_coop_envs.reports.arm_words import part_titles, title_of_both
from llm_coop_envs.reports.build import first_sentence, write_report
from llm_coop_envs.reports.headline import read_answers
from llm_coop_envs.reports.small_picture import LEFT, MOST_ARMS, RIGHT, small_picture
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.statistics.intervals import COUNT, FROM_0, SHARE, Interval

#: Two screens of a phone.
TWO_SCREENS = 1_688


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Six conditions, three comparisons."""
    text = ALL
    for scenario in ("kbc", "bertrand", "evacuation"):
        text = text.replace(f"scenario: {scenario}\n", f"scenario: {scenario}\n    pair: {scenario}\n")
    folder = tmp_path_factory.mktemp("first") / "run"
    run_study(small_study(text), folder)
    return folder


@pytest.fixture(scope="module")
def page(run):
    return write_report(run)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


def show(browser, page, width, *, dark=False):
    browser.size(width, 900, dark=dark)
    browser.open("about:blank")
    browser.open(page.as_uri())
    browser.until("document.readyState === 'complete' && document.querySelector('.card')")


@needs_chromium
@pytest.mark.parametrize(("width", "most"), [(1280, 1_200), (390, TWO_SCREENS)])
def test_the_answers_of_six_conditions_fit(browser, page, width, most):
    show(browser, page, width)
    assert browser.run("document.querySelectorAll('.card').length") == 3
    assert browser.run("document.querySelector('#answer').getBoundingClientRect().bottom") <= most
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")


@needs_chromium
def test_the_page_of_six_conditions_is_hardly_longer_than_a_screen(browser, page):
    show(browser, page, 1280)
    assert browser.run("document.querySelectorAll('details:not([open])').length") > 0
    assert browser.run("document.documentElement.scrollHeight") <= 1_200


@needs_chromium
def test_the_last_of_three_cards_has_its_row_and_the_others_share_one(browser, page):
    show(browser, page, 1280)
    boxes = "[...document.querySelectorAll('article.card')].map(one => one.getBoundingClientRect())"
    first, second, last = browser.run(f"{boxes}.map(one => [one.left, one.top, one.width, one.height])")
    assert first[1] == second[1]
    assert last[2] == pytest.approx(second[0] + second[2] - first[0], abs=1)
    assert last[3] < first[3]


@needs_chromium
def test_a_printed_page_is_whole_and_no_picture_takes_more_than_a_third_of_it(browser, page):
    show(browser, page, 720)
    try:
        browser.call("Emulation.setEmulatedMedia", media="print")
        folded = browser.run("[...document.querySelectorAll('main details:not([open])')].length")
        cells = "[...document.querySelectorAll('main td, main pre, main dd')]"
        unseen = browser.run(f"{cells}.filter(e => !e.offsetHeight)")
        assert folded > 0
        assert unseen == []
        assert browser.run("document.querySelector('.toc').offsetHeight") == 0
        pictures = "[...document.querySelectorAll('.pictures figure:not(.wide) img')]"
        heights = browser.run(f"{pictures}.map(e => e.offsetHeight)")
        assert heights
        assert max(heights) <= 8.5 / 2.54 * 96 + 1
        boxes = "[...document.querySelectorAll('article.card')].map(one => one.getBoundingClientRect())"
        first, second, last = browser.run(f"{boxes}.map(one => [one.left, one.top, one.width])")
        assert first[1] == second[1]
        assert last[2] == pytest.approx(second[0] + second[2] - first[0], abs=1)
        assert browser.run("document.documentElement.scrollWidth") <= 720
    finally:
        browser.call("Emulation.setEmulatedMedia", media="")


@needs_chromium
def test_nothing_is_cut_at_1280_when_everything_is_open(browser, page):
    show(browser, page, 1280)
    browser.run("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert (
        browser.run("[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 1).length")
        == 0
    )
    captions = "[...document.querySelectorAll('.pictures figcaption')].map(one => one.getBoundingClientRect().height)"
    heights = browser.run(captions)
    assert heights
    assert min(heights) > 0


@needs_chromium
def test_a_link_of_the_contents_opens_its_part_and_is_marked(browser, page):
    show(browser, page, 1280)
    assert not browser.run("document.querySelector('#methods').closest('details').open")
    browser.run("document.querySelector('.toc a[href=\"#methods\"]').click()")
    browser.until("document.querySelector('#methods').closest('details').open")
    assert browser.run("document.querySelector('.toc').getBoundingClientRect().top") == 0


@needs_chromium
@pytest.mark.parametrize(
    ("dark", "opened"), [pytest.param(False, False, marks=pytest.mark.rare), (True, True)], ids=["light", "dark-opened"]
)
def test_nobody_is_kept_out(browser, page, dark, opened):
    show(browser, page, 1280, dark=dark)
    if opened:
        browser.run("document.querySelectorAll('details').forEach(one => one.open = true)")
    # axe is a script, which the page's own policy forbids; the browser may run it all the same.
    assert browser.faults() == []


def test_a_picture_shows_each_value_where_it_lies(run):
    from xml.etree import ElementTree

    answer = read_answers(open_run(run))[0]
    picture = ElementTree.fromstring(small_picture(answer))
    drawn = [(float(dot.get("cx")), dot.get("cy")) for dot in picture.iter("circle")]
    values = [value for arm in answer.arms for value in sorted(arm.values)]
    assert len(drawn) == len(values) == 4
    pairs = list(zip(drawn, values, strict=True))
    (x, low), (other, high) = (ends(pairs, key=lambda pair: pair[1]) for ends in (min, max))
    slope = (other[0] - x[0]) / (high - low)
    for (place, _), value in zip(drawn, values, strict=True):
        assert place == pytest.approx(x[0] + slope * (value - low), abs=0.2)
        assert LEFT <= place <= RIGHT
    assert len(picture.findall("line[@class='pair']")) == 2
    assert len(picture.findall("line[@class='mean']")) == 2


def test_equal_shares_are_drawn_where_they_lie_in_what_can_be(run):
    """Two arms of nothing but 100 % stood in the middle of 50 to 150 %."""
    from xml.etree import ElementTree

    answer = read_answers(open_run(run))[0]
    arms = tuple(
        replace(arm, values=(100.0, 100.0), mean=Interval(mean=100.0, low=100.0, high=100.0, n=2))
        for arm in answer.arms
    )
    full = replace(answer, arms=arms, within=SHARE.scale(100.0), unit="%")
    picture = ElementTree.fromstring(small_picture(full))
    ticks = [float(text.text.removesuffix(" %")) for text in picture.iter("text") if text.text.endswith(" %")]
    assert min(ticks) == 0.0
    assert max(ticks) <= 100.0
    places = {float(dot.get("cx")) for dot in picture.iter("circle")}
    assert min(places) > LEFT + 0.9 * (RIGHT - LEFT)
    assert answer.within.low == 0.0  # what the scenario declares


def test_ticks_of_counts_are_whole(run):
    from xml.etree import ElementTree

    answer = read_answers(open_run(run))[0]
    few = Interval(mean=5.5, low=1.0, high=10.0, n=2)
    arms = tuple(replace(arm, values=(1.0, 10.0), mean=few) for arm in answer.arms)

    def ticks(within):
        picture = ElementTree.fromstring(small_picture(replace(answer, arms=arms, within=within, unit="")))
        return [float(text.text) for text in picture.iter("text") if text.text.replace(".", "").isdecimal()]

    assert 2.5 in ticks(FROM_0)
    assert len(ticks(COUNT)) > 1
    assert all(tick.is_integer() for tick in ticks(COUNT))


def test_a_picture_says_what_it_leaves_out(run):
    answer = read_answers(open_run(run))[0]
    longer = replace(answer.arms[0], title="firms that are told of each other's costs, and may talk")
    picture = small_picture(replace(answer, arms=(longer, answer.arms[1])))
    assert "firms that are" in picture
    assert "… and may talk" in picture
    assert "not drawn" not in picture
    many = small_picture(replace(answer, arms=(longer,) * (MOST_ARMS + 3)))
    assert "3 more not drawn" in many


def test_arms_go_by_what_tells_them_apart():
    assert part_titles(["trust, contracting", "trust, mediation"]) == ("trust", ["contracting", "mediation"])
    assert part_titles(["trust: a, b", "trust: a, c"]) == ("trust: a", ["b", "c"])
    assert part_titles(["talk", "talk until round 400"]) == ("", ["talk", "talk until round 400"])
    assert part_titles(["trust, contracting"]) == ("", ["trust, contracting"])
    assert part_titles([]) == ("", [])
    assert title_of_both("trust, contracting", "against", "trust, mediation") == "trust, contracting against mediation"
    assert title_of_both("talk", "minus", "no talk") == "talk minus no talk"


def test_what_all_conditions_share_is_told_once(run, page):
    text = page.read_text(encoding="utf-8")
    (table,) = re.findall(r'<table class="plain">.*?</table>', text, re.S)
    assert '<th scope="col">scenario</th>' in table
    seeds = {condition.seeds for condition in open_run(run).conditions}
    assert len(seeds) == 1
    assert text.count("Seeds, in every condition") == 1
    assert "<small>seed" not in table


def test_the_question_is_the_first_sentence():
    assert first_sentence("After Wu et al. 2024: talk. The rest. More.") == (
        "After Wu et al. 2024: talk.",
        "The rest. More.",
    )
    assert first_sentence("No end") == ("No end", "")
    assert first_sentence("") == ("", "")


@needs_chromium
def test_the_contents_mark_what_is_read_and_nothing_on_a_page_that_does_not_scroll(browser, page):
    """A page that fits the screen has no place in it that is read; the browser alone would mark the last section."""
    marked = "[...document.querySelectorAll('.toc a')].filter(e => e.matches(':target-current')).length"
    bold = "[...document.querySelectorAll('.toc a')].filter(e => getComputedStyle(e).fontWeight === '600').length"
    show(browser, page, 1280)
    if not browser.run("CSS.supports('scroll-target-group', 'auto') && CSS.supports('container-type', 'scroll-state')"):
        pytest.skip("this Chromium has neither")
    browser.run("document.querySelectorAll('details').forEach(e => e.open = true)")
    browser.until(f"{marked} === 1 && {bold} === 1")
    browser.run("document.querySelectorAll('details').forEach(e => e.open = false)")
    browser.size(1280, 4000)
    browser.until("document.documentElement.scrollHeight <= innerHeight")
    browser.until(f"{bold} === 0")


def test_of_many_comparisons_ten_are_listed_and_the_others_told_by_what_they_come_to(tmp_path):
    other = "  - {{<<: *arm, name: to-{0}, settings: {{players: 3, high: {0}}}}}\n"
    others = "".join(other.format(high) for high in range(101, 113))
    text = f"""\
name: many
conditions:
  - &arm {{name: to-100, pair: kbc, scenario: kbc, policies: uniform, seeds: [1], settings: {{players: 3}}}}
{others}"""
    run_study(small_study(text), tmp_path / "run")
    page = write_report(tmp_path / "run").read_text(encoding="utf-8")
    listed, folded = page.split('<details class="fold more">')
    assert listed.count('<article class="card') == 4
    assert listed.count('<details class="card') == 6
    assert folded.count('<details class="card') == 2
    assert re.search(r"<summary>2 more <small>2 [\w ]+</small></summary>", folded)
