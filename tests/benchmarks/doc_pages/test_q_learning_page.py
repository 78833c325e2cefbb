"""The documentation's page on Q-learning is what was recorded, and what was recorded holds."""

import math
from pathlib import Path

from llm_coop_envs.baselines.q_learning.analyse.price_tables import PUBLISHED_AS
from llm_coop_envs.baselines.q_learning.reproduce.entry import ENTRIES, ENTRY, ENTRY_SESSIONS
from llm_coop_envs.baselines.q_learning.reproduce.recorded import recorded, reproduced_variants
from llm_coop_envs.baselines.q_learning.reproduce.report import distance
from llm_coop_envs.baselines.q_learning.reproduce.studies import STUDIES
from llm_coop_envs.benchmarks.doc_pages.q_learning import page

DOCS = Path(__file__).parents[3] / "docs" / "q_learning.md"


def test_the_page_is_up_to_date():
    assert DOCS.read_text(encoding="utf-8") == page(), (
        "write it anew: python -m llm_coop_envs.benchmarks.doc_pages.q_learning > docs/q_learning.md"
    )
    assert "{{" not in page()


def test_everything_the_authors_print_came_out():
    figures = recorded()["docked"]
    assert len(figures) == 51
    for figure in figures:
        allowed = figure.get("allowed", 0.5 * 10.0 ** -figure["digits"])
        assert math.isclose(figure["found"], figure["printed"], rel_tol=0.0, abs_tol=allowed * (1.0 + 1e-4)), figure[
            "name"
        ]


def test_the_docked_sessions_give_the_printed_tables_by_price():
    tables = recorded()["price_tables"]
    assert {name: (figure["cells"], figure["printed_digits"]) for name, figure in tables["docked"].items()} == {
        name: (105, 105) for name in PUBLISHED_AS
    }
    # Of 420 cells a few may lie that far away by chance; those of one row stand on the same few sessions.
    assert sum(figure["beyond_three"] for figure in tables["representative"].values()) <= 4


def test_own_random_numbers_give_the_published_gains_within_three_standard_errors():
    studies = recorded()["studies"]
    far = {}
    for study, variant, sessions in reproduced_variants():
        row = studies[study][variant.name]
        assert row["sessions"] == row["converged"] == sessions
        far[study, variant.name] = abs(distance("gain", row, variant))
    for entry in ENTRIES.values():
        row = recorded()[ENTRY][entry.name]
        assert row["sessions"] == row["converged"] == ENTRY_SESSIONS
        assert abs(distance("gain", row, entry)) <= 3.0
    assert list(studies) == list(STUDIES)
    # Two rounds of memory: the authors' analysis mixes firms and rounds up.
    assert {name for name, apart in far.items() if apart > 3.0} == {("memory", "two rounds")}
    (representative,) = studies["representative"].values()
    assert abs(representative["gain"] - 0.849) <= 3.0 * 0.112 / math.sqrt(1000)
    assert abs(representative["time"] - 1_751_250) <= 3.0 * 293_250 / math.sqrt(1000)
