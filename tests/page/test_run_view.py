"""The page in a real browser: a run's answers, its episodes as a table, many runs, labels, comparisons, notices."""

import json
import re
import shutil
import threading
import time

import pytest
from browser import needs_chromium
from model_studies import answering, play
from small import ALL, KBC, small_study, write_manifest
from viewing import looked_at, opened, usable

from llm_coop_envs.page.labels import labels_path, write_labels
from llm_coop_envs.runs import workers
from llm_coop_envs.runs.control import order
from llm_coop_envs.runs.runner import run_study

pytestmark = [
    needs_chromium,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
EVIL = "<img src=x onerror='window.broken = 1'><script>window.broken = 2</script>"
NEIGHBOURS = """\
name: ring
seed: 1
conditions:
  - name: ring
    scenario: kbc
    settings: {players: 6, audience: neighbours, hearers: 4}
    policies: {mix: [{name: announcer, share: 1}, {name: follower, share: 1}]}
    seeds: [0]
  - name: pairs
    scenario: kbc
    settings: {players: 6, audience: neighbours, hearers: 2}
    policies: {mix: [{name: announcer, share: 1}, {name: follower, share: 1}]}
    seeds: [0]
"""


@pytest.fixture(scope="module")
def folder(runs, tmp_path_factory):
    """Five runs: two that can be compared, one half played, one of neighbours, one broken; not to be changed."""
    folder = tmp_path_factory.mktemp("many") / "runs"
    shutil.copytree(runs / "rules", folder / "rules")
    shutil.copytree(runs / "deep" / "model", folder / "model")
    run_study(small_study(ALL.replace("seed: 1", "seed: 2")), folder / "other")
    run_study(small_study(ALL), folder / "half", limit=5)
    run_study(small_study(NEIGHBOURS), folder / "ring")
    (folder / "broken").mkdir()
    (folder / "broken" / "run.json").write_text("{")
    write_labels(folder / "other", {"tags": ["pilot"], "note": "seed 2"})
    return folder


@pytest.fixture(scope="module")
def page(browser, folder):
    with looked_at(browser, folder) as (_, address):
        browser.size(1280)
        browser.open(address)
        browser.shows("everything")
        yield address.split("?")[0]


def names(browser):
    return browser.run("[...document.querySelectorAll('tbody th .under')].map(e => e.innerText.split(' ')[0])")


def column(browser, number):
    return browser.run(f"[...document.querySelectorAll('.episodes tbody tr')].map(e => e.children[{number}].innerText)")


def label_of(browser, place=".curves [role=img]"):
    return browser.run(f"document.querySelector({json.dumps(place)}).getAttribute('aria-label')")


def test_a_run_says_at_its_top_why_it_stopped(browser, folder, tmp_path):
    shutil.copytree(folder / "half", tmp_path / "runs" / "half")
    (session,) = json.loads((folder / "half" / "run.json").read_text())["sessions"]
    why = "stopped at the budget: $0.0498 of $0.0500 are used"
    write_manifest(tmp_path / "runs" / "half", sessions=[{**session, "asked": {"why": why}}])
    with looked_at(browser, tmp_path / "runs") as (_, address):
        browser.open(f"{address}#/run/half")
        browser.shows("Stopped at the budget: $0.0498 of $0.0500 are used.")
        places = "['.caveat', '.answers'].map(one => document.querySelector(one).getBoundingClientRect().top)"
        reason, answers = browser.run(places)
        assert reason < answers


def test_what_was_shown_stays_when_the_server_is_gone(browser, folder, tmp_path):
    shutil.copytree(folder / "half", tmp_path / "runs" / "half")
    with looked_at(browser, tmp_path / "runs") as (_, address):
        browser.open(f"{address}#/run/half")
        browser.until("document.querySelectorAll('.episodes tbody tr').length === 12")
        browser.run("window.fetch = () => Promise.reject(new TypeError('gone'))")
        run_study(small_study(ALL), tmp_path / "runs" / "half", limit=2)  # the page asks again, in vain
        browser.shows("the server does not answer")
        assert browser.run("document.querySelectorAll('.episodes tbody tr').length") == 12


@pytest.mark.parametrize(
    ("condition", "last"), [("kbc-talk", "round 3"), ("bertrand-talk", "round"), ("evacuation-talk", "0 inside")]
)
def test_a_finished_episode_opens_at_its_end(browser, page, condition, last):
    opened(browser, page, f"run/rules/episode/{condition}/0")
    browser.until("document.querySelector('output b')")
    now, end = browser.run("document.querySelector('output').innerText").removeprefix("round ").split(" of ")
    assert now == end
    browser.shows(last)
    assert browser.run(
        "document.querySelector('input[type=range]').value === document.querySelector('input[type=range]').max"
    )
    browser.until("document.querySelector('.curves canvas')")
    assert browser.run("document.querySelector('.curves').dataset.last") == end  # the axis ends there, too
    browser.press("ArrowLeft")
    browser.until(f"document.querySelector('output b').innerText === '{int(end) - 1}'")
    assert browser.run("document.querySelector('.curves').dataset.last") == end
    assert "at=" in browser.run("location.hash")
    browser.press("End")
    browser.until("!location.hash.includes('at=')")


def test_playing_begins_anew_at_the_end(browser, page):
    opened(browser, page, "run/rules/episode/kbc-talk/0")
    browser.press(" ")
    browser.until("document.querySelector('output b').innerText !== '3'")


def test_an_episode_that_is_not_there_yet_is_shown_once_it_is(browser, tmp_path):
    study = small_study(KBC)
    run_study(study, tmp_path / "run", limit=1)
    condition = study.conditions[-1]
    with looked_at(browser, tmp_path) as (_, address):
        browser.open(f"{address}#/run/run/episode/{condition.name}/{condition.seeds[-1]}")
        browser.shows("is not there yet")
        run_study(study, tmp_path / "run")
        browser.shows("Round")


def test_an_episode_that_is_played_is_followed_until_somebody_looks_back(browser, tmp_path, monkeypatch):
    rules = KBC.replace("talk: false, players: 5", "talk: false, players: 5, session: repeated, rounds: 200")
    fast = workers.play_episode
    monkeypatch.setattr(
        workers,
        "play_episode",
        lambda *given, on_step: fast(*given, on_step=lambda env: (on_step(env), time.sleep(0.05))),
    )
    with looked_at(browser, tmp_path) as (_, address):
        playing = threading.Thread(target=lambda: run_study(small_study(rules), tmp_path / "run"))
        playing.start()
        browser.open(address)
        browser.shows("running")
        browser.open(f"{address.split('?')[0]}#/run/run/episode/silent/1")
        rounds = "Number(document.querySelector('output b').innerText)"
        browser.until("document.querySelector('.chip.playing') && document.querySelector('output b')")
        for _ in range(2):
            before = browser.run(rounds)
            browser.until(f"document.querySelector('output b') && {rounds} > {before}")
        browser.press("Home")
        browser.until(f"{rounds} < 2")
        time.sleep(1.5)
        assert browser.run(rounds) < 2
        browser.press("End")
        before = browser.run(rounds)
        browser.until(f"{rounds} > {before}")
        order(tmp_path / "run", {"do": "stop"})
        playing.join(60)


def test_both_courses_are_on_one_scale_with_the_difference_below(browser, page):
    opened(browser, page, "compare?a=rules%7Cbertrand-talk%7C0&b=rules%7Cbertrand-silent%7C0")
    browser.until("document.querySelectorAll('.both canvas').length === 2")
    assert browser.run("document.querySelectorAll('.pair canvas').length") == 0
    both, apart = browser.run(
        "[...document.querySelectorAll('.both [role=img]')].map(e => e.getAttribute('aria-label'))"
    )
    assert both.startswith("mean price of both by round")
    ends = browser.run("""Promise.all(["talk", "silent"].map(async name =>
        (await (await fetch(`api/course?run=rules&condition=bertrand-${name}&seed=0`)).json()).series[0].values))""")
    shared = min(map(len, ends)) - 1
    assert float(re.search(r"of both (\S+)$", apart)[1]) == pytest.approx(ends[1][shared] - ends[0][shared], abs=0.001)
    browser.fill("Course of", "lowest price")
    browser.until("document.querySelector('.both [role=img]').getAttribute('aria-label').startsWith('lowest price')")
    browser.shows("Second minus first")
    for dark in (True, False):
        browser.size(390, dark=dark)
        usable(browser)
    browser.size(1280)
    opened(browser, page, "compare?a=rules%7Cbertrand-talk%7C0&b=rules%7Ckbc-talk%7C0")
    browser.shows("no course in common")


def test_two_whole_runs_are_compared(browser, page):
    opened(browser, page, "")
    browser.until("document.querySelectorAll('tbody input[type=checkbox]').length === 5")
    for name in ("rules", "other"):
        browser.tap(f"document.querySelector('input[aria-label=\"Compare {name}\"]')")
    browser.click("Compare rules and other", "a")
    browser.shows("conditions", 60)
    browser.shows("Difference")
    assert browser.run("document.querySelectorAll('table.means').length") == 6
    usable(browser)
    opened(browser, page, "compare?a=rules&b=half")
    browser.shows("5 of 12 episodes")  # the command says why it cannot be
    browser.shows("Difference")


def test_a_run_answers_first(browser, page):
    opened(browser, page, "run/rules")
    browser.until("document.querySelector('.answer .sentence')", 60)
    order_of = "[...document.querySelectorAll('h1, h2')].map(e => e.innerText.split('\\n')[0].split(' ')[0])"
    assert browser.run(order_of) == ["everything", "Answers", "Episodes", "Sessions"]
    browser.shows("llm-coop report")
    browser.shows("Scripted players")
    assert browser.run("document.querySelectorAll('.strip svg').length") == 6
    circles = browser.run("document.querySelector('.strip svg').querySelectorAll('circle').length")
    assert circles == 2
    browser.fill("Measure", "mean_last")
    label = "document.querySelector('.strip svg').getAttribute('aria-label')"
    browser.until(f"{label}.includes('mean of the numbers in the last decision, mean')")
    for width, dark in ((390, True), (1280, False)):
        browser.size(width, dark=dark)
        usable(browser)


def test_the_chart_of_conditions_grows_while_a_run_is_played(browser, tmp_path):
    with looked_at(browser, tmp_path) as (_, address):
        run_study(small_study(ALL), tmp_path / "run", limit=2)
        browser.open(address)
        browser.shows("2 of 12 episodes")
        browser.open(f"{address.split('?')[0]}#/run/run")
        browser.shows("2 of 12 episodes so far", 60)
        browser.until("document.querySelectorAll('.strip circle').length === 2")
        run_study(small_study(ALL), tmp_path / "run", limit=4)
        browser.until("document.querySelectorAll('.strip circle').length === 6")
        browser.shows("6 of 12 episodes so far", 60)


def test_a_report_that_was_written_is_opened(browser, folder, tmp_path):
    shutil.copytree(folder / "rules", tmp_path / "rules")
    (tmp_path / "rules" / "report").mkdir()
    (tmp_path / "rules" / "report" / "index.html").write_text(f"<h1>The report</h1>{EVIL}")
    with looked_at(browser, tmp_path) as (_, address):
        browser.open(address)
        browser.shows("everything")
        opened(browser, address.split("?")[0], "run/rules")
        browser.until("document.querySelector('a.button[target=_blank]')")
        browser.open(browser.run("document.querySelector('a.button[target=_blank]').href"))
        browser.shows("The report")
        assert browser.run("window.broken") is None


def test_episodes_are_a_table_that_is_sorted_filtered_and_searched(browser, page):
    opened(browser, page, "run/rules")
    browser.until("document.querySelectorAll('.episodes tbody tr').length === 12")
    assert browser.run("document.querySelectorAll('a.tag').length") == 0
    browser.fill("Search", "bertrand 1")
    browser.shows("2 episodes")
    browser.fill("Search", "no such episode")
    browser.shows("No episode fits")
    browser.click("Show all")
    browser.shows("12 episodes")
    browser.fill("Condition", "evacuation-talk")
    browser.shows("Round in which people leave")
    browser.click("Round in which people leave", "th button")
    browser.until("location.hash.includes('sort=mean_round')")
    browser.until("document.querySelector('th[aria-sort=ascending]')?.innerText.startsWith('Round in which')")
    values = [float(text) for text in column(browser, 3)]
    assert values == sorted(values)
    browser.click("Round in which people leave", "th button")
    browser.until("document.querySelector('th[aria-sort=descending]')")
    browser.until(f"document.querySelector('.episodes tbody td:nth-child(4)').innerText === '{column(browser, 3)[0]}'")
    browser.tap("document.querySelector('.episodes tbody a')")
    browser.shows("talk seed")
    opened(browser, page, "run/half")
    browser.fill("State", "waiting")
    browser.shows("7 episodes")


def test_cost_and_fallbacks_of_a_models_episodes_are_shown(browser, page):
    opened(browser, page, "run/model")
    browser.shows("Fallbacks")
    browser.until("document.querySelectorAll('.episodes tbody tr').length === 5")
    assert all("tokens" in text for text in column(browser, 4))  # nobody knows the price
    assert set(column(browser, 5)) == {"0.0 %"}


def test_a_page_without_a_server_has_the_same_table(browser, folder, tmp_path):
    from llm_coop_envs.page.one_file import write_page

    path = write_page(folder / "rules", tmp_path / "run.html")
    browser.open(f"{path.as_uri()}#/run/rules")
    browser.until("document.querySelectorAll('.episodes tbody tr').length === 12")
    browser.fill("Search", "bertrand 1")
    browser.shows("2 episodes")
    browser.until("document.querySelector('.answer .sentence')")
    browser.fill("Condition", "bertrand-talk")
    browser.click("Profit gain", "th button")
    browser.until("document.querySelector('th[aria-sort=ascending]')")
    assert "Notify me" not in browser.text()
    assert "Add tags" not in browser.text()
    browser.open(f"{path.as_uri()}#/run/rules/episode/bertrand-talk/0")
    browser.until("document.querySelector('.curves canvas')")


def test_runs_are_filtered_and_sorted(browser, page):
    opened(browser, page, "")
    browser.until("document.querySelectorAll('tbody tr').length === 6")
    browser.fill("Search", "every")
    browser.until("document.querySelectorAll('tbody tr').length === 3")
    browser.fill("State", "interrupted")
    browser.until("document.querySelectorAll('tbody tr').length === 1")
    assert names(browser) == ["half"]
    browser.fill("State", "unreadable")
    browser.shows("No run fits")
    browser.click("Show all 6")
    browser.until("document.querySelectorAll('tbody tr').length === 6")
    browser.fill("Tag", "pilot")
    browser.until("document.querySelectorAll('tbody tr').length === 1")
    assert names(browser) == ["other"]
    browser.fill("Tag", "")
    browser.click("Progress", "th button")
    browser.until("location.hash.includes('sort=progress')")
    browser.until("document.querySelector('tbody th .under').innerText === 'half'")
    browser.click("Progress", "th button")
    browser.until("document.querySelector('tbody th .under').innerText !== 'half'")
    assert names(browser)[-1] == "broken"  # what has none comes last either way
    for width, dark in ((390, True), (1280, False)):
        browser.size(width, dark=dark)
        usable(browser)


def test_tags_and_a_note_are_written_and_shown_as_text(browser, folder, tmp_path):
    shutil.copytree(folder / "rules", tmp_path / "rules")
    with looked_at(browser, tmp_path) as (_, address):
        browser.open(address)
        browser.shows("everything")
        base = address.split("?")[0]
        opened(browser, base, "run/rules")
        browser.click("Add tags or a note")
        browser.until("document.querySelector('form.notes')")
        usable(browser)
        browser.fill("Tags", f"first, {EVIL[:30]}")
        browser.run(
            "(area => { area.value = "
            + json.dumps(EVIL)
            + "; area.dispatchEvent(new Event('input', {bubbles: true})) })"
            "(document.querySelector('textarea'))"
        )
        browser.click("Keep", "button")
        browser.shows("window.broken = 2")
        assert json.loads(labels_path(tmp_path / "rules").read_text())["note"] == EVIL
        opened(browser, base, "")
        browser.click("first", "a.tag")
        browser.until("location.hash === '#/?tag=first'")
        assert browser.run("window.broken") is None
        assert browser.run("document.querySelectorAll('img').length") == 0
        opened(browser, base, "run/rules")
        browser.click("Change tags and note")
        browser.fill("Tags", "x" * 41)
        browser.click("Keep", "button")
        browser.shows("at most 20, each of at most 40 characters")


def test_progress_is_one_truth(browser, tmp_path):
    with answering(latency=0.05) as server, looked_at(browser, tmp_path) as (_, address):
        playing = threading.Thread(target=lambda: play(server, tmp_path / "run"))
        playing.start()
        browser.open(address)
        browser.shows("of their rounds")
        order(tmp_path / "run", {"do": "pause"})
        browser.until("document.querySelector('.chip.paused')", 60)
        text = browser.run("document.querySelector('.bar').getAttribute('aria-valuetext')")
        finished, in_play, share = map(int, re.match(r"(\d+) of 5 episodes, (\d+) in play, (\d+) % of", text).groups())
        widths = browser.run("[...document.querySelectorAll('.bar i')].map(e => parseFloat(e.style.width))")
        assert widths[0] == pytest.approx(20 * finished)
        assert widths[1] == pytest.approx(20 * in_play * share / 100, abs=20 * in_play * 0.006)
        order(tmp_path / "run", {"do": "stop"})
        playing.join(60)


def test_a_run_that_plays_is_steered_in_sight(browser, folder, tmp_path):
    """Below the run that plays, and below no other; nothing is cut at the right."""
    shutil.copytree(folder / "rules", tmp_path / "rules")
    with answering(latency=0.05) as server, looked_at(browser, tmp_path) as (_, address):
        playing = threading.Thread(target=lambda: play(server, tmp_path / "run"))
        playing.start()
        browser.open(address)
        browser.until("document.querySelectorAll('tr.steer').length === 1")
        label = "document.querySelector('tr.steer input').getAttribute('aria-label')"
        assert browser.run(label) == "At most so many at a time in short"
        assert browser.run("document.querySelector('tr.steer').innerText.includes('at most')")
        assert browser.run("document.querySelector('tr.steer .steering').scrollWidth <= innerWidth - 48")
        assert browser.run("document.querySelector('table.rows').offsetWidth <= innerWidth")
        assert "Begun" in browser.text()
        order(tmp_path / "run", {"do": "stop"})
        browser.until("!document.querySelector('tr.steer')", 60)
        playing.join(60)


def test_messages_say_to_whom_in_words(browser, page):
    def listeners():
        browser.until("document.querySelector('.talk .to')")
        return browser.run("[...document.querySelectorAll('.talk .to')].map(e => [e.innerText.trim(), e.title])")

    opened(browser, page, "run/ring/episode/ring/0?at=1")
    assert {text for text, _ in listeners()} == {"to 4 neighbours"}
    assert all(len(title.split(", ")) == 4 and "player_" in title for _, title in listeners())
    opened(browser, page, "run/ring/episode/pairs/0?at=1")
    assert all(re.fullmatch(r"to player_\d and player_\d", text) for text, _ in listeners())
    opened(browser, page, "run/rules/episode/kbc-talk/0?at=1")
    assert {text for text, _ in listeners()} == {"to everyone"}
    opened(browser, page, "run/rules/episode/evacuation-talk/0?at=1")
    told = {text for text, _ in listeners()}
    assert told
    assert "to 0" not in " ".join(told)
    assert all(
        re.fullmatch(r"to \d+ neighbours|to evacuee_\d+( and evacuee_\d+)?|heard by nobody", one) for one in told
    )
    opened(browser, page, "run/ring/episode/ring/0/agent/0")
    browser.shows("to 4 neighbours")


def test_keys_are_listed_and_work_everywhere(browser, page):
    opened(browser, page, "run/rules/episode/kbc-talk/0/agents")
    browser.press("?")
    browser.shows("one level up")
    usable(browser)
    browser.press("Escape")
    browser.until("!document.querySelector('.keys')")
    browser.press("/")
    browser.until("document.activeElement.type === 'search'")
    browser.run("document.activeElement.blur()")
    for route in ("run/rules/episode/kbc-talk/0", "run/rules", ""):
        browser.press("u")
        browser.until(f"document.querySelector('.trail [aria-current]').getAttribute('href') === '#/{route}'")


def test_the_empty_and_the_broken_say_so(browser, page, tmp_path):
    opened(browser, page, "run/broken")
    browser.shows("is damaged")
    browser.shows("unreadable")
    usable(browser)
    for address, said in (("run/nosuch", "there is no such run"), ("nosuch/place", "There is nothing at this address")):
        opened(browser, page, address)
        browser.shows(said)
        browser.click("All runs")
        browser.shows("Mark two runs to compare them")
    (tmp_path / "empty").mkdir()
    with looked_at(browser, tmp_path / "empty") as (_, address):
        browser.open(address)
        browser.shows("There is no run in this folder yet")
        browser.shows("llm-coop run team_up")
        for width, dark in ((390, True), (1280, False)):
            browser.size(width, dark=dark)
            usable(browser)


def test_the_desktop_is_told_of_what_happens(browser, tmp_path):
    stub = """(() => { window.told = [];
        window.Notification = class { constructor(title, options) { told.push(options.body) } };
        Notification.requestPermission = async () => "granted" })()"""
    with answering(latency=0.05) as server, looked_at(browser, tmp_path) as (_, address):
        playing = threading.Thread(target=lambda: play(server, tmp_path / "run"))
        playing.start()
        browser.open(address)
        browser.shows("price unknown")
        browser.run(stub)
        browser.click("Notify me")
        browser.shows("Notifying")
        order(tmp_path / "run", {"do": "pause"})
        browser.until("told.some(text => /^run is paused: \\d of 5 episodes\\.$/.test(text))", 30)
        server.latency = 0.0
        order(tmp_path / "run", {"do": "resume"})
        playing.join(60)
        browser.until("told.includes('run is finished: 5 episodes.')", 30)
        assert browser.run("told.length") == 2
