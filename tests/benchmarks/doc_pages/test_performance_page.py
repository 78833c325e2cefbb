"""The page on speed is what `make speed` recorded."""

from pathlib import Path

from llm_coop_envs.benchmarks.doc_pages.performance import page

DOCS = Path(__file__).parents[3] / "docs" / "performance.md"


def test_the_page_is_up_to_date():
    assert DOCS.read_text(encoding="utf-8") == page(), (
        "run python -m llm_coop_envs.benchmarks.doc_pages.performance > docs/performance.md"
    )
    assert "{{" not in page()
