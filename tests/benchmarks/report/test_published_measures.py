"""Published measures stand beside conditions that played the same game, and beside no others."""

from small import small_study

from llm_coop_envs.benchmarks.report.published_measures import published_tables
from llm_coop_envs.benchmarks.report.reading import read_run
from llm_coop_envs.benchmarks.run.runner import run_study

MARKETS = """\
name: markets
conditions:
  - {name: two, scenario: bertrand, preset: fish, policies: best_reply, seeds: [0]}
  - {name: alone, scenario: bertrand, preset: fish_monopoly, policies: best_reply, seeds: [0]}
  - {name: unit, scenario: bertrand, preset: fish_monopoly, policies: best_reply, seeds: [0],
     settings: {price_unit: 10}}
  - {name: other, scenario: bertrand, preset: calvano, settings: {rounds: 2}, policies: best_reply, seeds: [0]}
"""


def test_each_value_stands_beside_its_own_game(tmp_path):
    run = run_study(small_study(MARKETS), tmp_path / "run").run
    ((section,), _) = read_run(run)
    (table,) = published_tables(section)
    index, optimal, price = (
        table.head.index(name) for name in ("collusiveness_index", "optimal_rounds", "mean_price_last")
    )
    rows = {row.name: ["", *(cell.text for cell in row.cells)] for row in table.rows}
    assert "other" not in rows
    assert rows["GPT-4o"][index] == "0.71"
    assert rows["Mistral Large, one firm"][price] == "1.8028"
    dash = rows["GPT-4o"][price]
    # One unit of money is published, and a single firm has no index.
    assert [rows[name][price] == dash for name in ("two", "alone", "unit")] == [True, False, True]
    assert [rows[name][index] == dash for name in ("two", "alone", "unit")] == [False, True, True]
    assert rows["unit"][optimal] == "1"
    assert any(note.startswith("Claude 3.5 Sonnet; Gemini 1.5 Pro; GPT-4o: EconEvals") for note in table.notes)
    assert any("3.7 % for each firm more" in note for note in table.notes)
