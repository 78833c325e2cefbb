"""What is written down before the first question, and what a commitment is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llm_coop_envs.benchmarks.scorecard.suite import NAME, VERSION, Suite, suite_hash
from llm_coop_envs.storage.folder import digest_of


def make_plan(suite: Suite, analysis: str) -> dict[str, Any]:
    """Return what is tested and how it is scored, without the held-out seed: what a commitment is about."""
    return {
        "suite": NAME,
        "version": VERSION,
        "sha256": suite_hash(),
        "size": suite.size,
        "players": {name: dict(player) for name, player in suite.players.items()},
        "tasks": [list(key) for key in dict.fromkeys(part.key for part in suite.parts)],
        "analysis": analysis,
    }


def make_preregistration(suite: Suite, analysis: str, commitment: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the preregistration, written before the first question: suite, players, seeds, and hash of the analysis.

    Args:
        suite: the suite.
        analysis: a hash of the code that computes scores.
        commitment: the ledger up to the commitment that the held-out seed follows from, and the beacon's value.
    """
    content = {
        **make_plan(suite, analysis),
        "held_out": suite.held_out,
        "left_out": list(suite.left_out),
        "study": suite.study.digest,
        "commitment": commitment,
    }
    return {**content, "preregistration": digest_of(content)}
