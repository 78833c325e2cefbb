"""Entry and exit (Calvano et al. 2020, appendix): the two experiments and their published numbers."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from llm_coop_envs.baselines.q_learning.analyse.entry_measures import entry_row, entry_summary
from llm_coop_envs.baselines.q_learning.analyse.measures import Row
from llm_coop_envs.baselines.q_learning.learn.entering import EntrySettings, run_entry
from llm_coop_envs.baselines.q_learning.reproduce.studies import Variant
from llm_coop_envs.bertrand.settings import BertrandSettings

ENTRY = "entry_and_exit"
"""The name of these experiments in the record."""

ENTRY_SESSIONS = 400
"""The number of recorded sessions of each experiment."""

_PUBLISHED = {
    1e-3: {"gain": 0.583, "equilibrium": 0.048, "answer": -0.006, "unprofitable": 0.432, "punishment": 9.62},
    1e-4: {"gain": 0.566, "equilibrium": 0.07, "answer": -0.009, "unprofitable": 0.45, "punishment": 9.829},
}

ENTRIES: Mapping[float, Variant] = {
    rate: Variant(name=f"rho {rate:g}", settings=EntrySettings(rate=rate).learners, published=published)
    for rate, published in _PUBLISHED.items()
}
"""The experiments by the probability of an entry or exit per period. The published numbers are those of `table_A7.txt`
in the replication package, which its `table_A9.R` makes."""


def run_entries(
    rate: float, sessions: int, seed: int, workers: int | None = None, report: Callable[[], None] = lambda: None
) -> Row:
    """Run the first sessions of a seed and summarise them; `report` is called after each session."""
    settings = EntrySettings(rate=rate)
    game, without = settings.game(), BertrandSettings.build("calvano").equilibria

    def run_session(number: int) -> Row:
        row = entry_row(settings, game, without, run_entry(settings, seed, number, game=game))
        report()
        return row

    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        return entry_summary(list(pool.map(run_session, range(sessions))))
