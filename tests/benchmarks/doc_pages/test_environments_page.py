"""The documentation's page on the environments is what the classes say."""

from pathlib import Path

from llm_coop_envs.benchmarks.doc_pages.environments import page

DOCS = Path(__file__).parents[3] / "docs" / "environments.md"


def test_the_page_is_up_to_date():
    assert DOCS.read_text(encoding="utf-8") == page(), (
        "write it anew: python -m llm_coop_envs.benchmarks.doc_pages.environments > docs/environments.md"
    )
