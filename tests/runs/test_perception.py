"""What players see and remember, changed in play: in a study, in a branch of its run, and in the report."""

import pytest
from invoking import invoke
from small import small_study

from llm_coop_envs.reports.contrast_tables import contrast_tables
from llm_coop_envs.reports.contrasts import compare_arms
from llm_coop_envs.reports.run_sections import read_run
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.runs.verify import verify_run

GAMES = {
    "kbc": "policies: poisson, settings: {players: 4, session: repeated, rounds: 4, talk: false}",
    "bertrand": "policies: 'lookers:Copying', settings: {rounds: 4, collusion_window: 0, talk: false, firms: 3}",
    "evacuation": "policies: 'lookers:Steady', "
    "settings: {rows: 11, cols: 11, people: 8, rounds: 9, control: exit, replan_probability: 1.0, talk: false}",
}
TREATMENTS = {"own": "information: own", "noisy": "observation_noise: 0.7", "forgetful": "memory: 0"}
MEASURES = {"kbc": "mean_last", "bertrand": "mean_price_last", "evacuation": "detour"}
AT, SOME = 2, "players: '*_[0-3]', settings"


def conditions(game, *more):
    """A game as it is, or with something else in each condition, by the ending of its name."""
    # Alone, a condition draws the random numbers of its own name, which is that of the pair of several.
    pair = f"pair: {game}, " if len(more) > 1 else ""
    of = f"{pair}scenario: {game}, episodes: 2, {GAMES[game]}"
    return "".join(f"  - {{name: {game}{ending}, {of}{other}}}\n" for ending, other in more)


def study(*more):
    return small_study("name: seeing\nconditions:\n" + "".join(conditions(game, *more) for game in GAMES))


def plain(events):
    return [event for event in events if event["type"] not in ("start", "change")]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return run_study(study(("", "")), tmp_path_factory.mktemp("source") / "run").run


@pytest.fixture(scope="module")
def branched(source, tmp_path_factory):
    folder = tmp_path_factory.mktemp("branched")
    arms = "".join(f"  - {{name: {name}, {SOME}: {{{text}}}}}\n" for name, text in TREATMENTS.items())
    (folder / "arms.yaml").write_text(f"arms:\n{arms}", encoding="utf-8")
    result = invoke(
        "branch",
        source.folder,
        "--at",
        AT,
        "--arms",
        folder / "arms.yaml",
        "-o",
        folder / "run",
        "--trust-policies",
        "lookers",
    )
    assert result.exit_code == 0, result.stderr
    return open_run(folder / "run")


def test_what_is_seen_and_remembered_makes_a_difference_from_then_on(source, branched):
    moved = set()
    for arm in branched.conditions:
        before = arm.branch["condition"]
        for seed in arm.seeds:
            events, usual = branched.read_events(arm.name, seed)[1], source.read_events(before, seed)[1]
            earlier = [[event for event in plain(one) if event["round"] < AT] for one in (events, usual)]
            assert earlier[0] == earlier[1] != []
            if plain(events) != plain(usual):
                moved.add((arm.scenario, arm.name.rpartition("-")[2]))
    assert moved == {(scenario, name) for scenario in GAMES for name in TREATMENTS}
    assert verify_run(branched.folder).faults == []


def test_the_report_shows_each_as_an_effect_with_its_interval(branched):
    sections, _ = read_run(branched)
    found, told = compare_arms(sections, list(MEASURES.values())), []
    for section in sections:
        tables = [table for table in contrast_tables(found, section) if table.lead]
        assert len(tables) == len(TREATMENTS)
        for table in tables:
            (row,) = [row for row in table.rows if row.name == MEASURES[section.scenario.name]]
            difference = row.cells[2].number
            assert difference.n == 2
            assert difference.low <= difference.mean <= difference.high
            told.append(row.cells[2].below)
            assert "differ in nothing but this: " in table.notes[0]
    assert sum(" to " in below for below in told) >= len(GAMES) * len(TREATMENTS) - 2


def test_a_study_with_these_changes_plays_what_the_branch_plays(branched, tmp_path):
    changed = [
        (f"-{name}", f", changes: [{{from_round: {AT}, {SOME}: {{{setting}}}}}]")
        for name, setting in TREATMENTS.items()
    ]
    run = run_study(study(*changed), tmp_path / "run").run
    for one in run.conditions:
        for seed in one.seeds:
            assert run.read_events(one.name, seed)[1] == branched.read_events(one.name, seed)[1]


def test_what_a_worker_may_not_import_is_a_sentence(source, tmp_path):
    """This process has imported the players already; the workers of a branched run would have to."""
    (tmp_path / "arms.yaml").write_text("arms:\n  - {name: own, settings: {information: own}}\n", encoding="utf-8")
    result = invoke("branch", source.folder, "--at", AT, "--arms", tmp_path / "arms.yaml", "-o", tmp_path / "run")
    assert result.exit_code == 2
    assert "say so with --trust-policies lookers" in result.stderr
    assert "Traceback" not in result.stderr
