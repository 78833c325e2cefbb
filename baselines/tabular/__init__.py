"""Tabular Q-learning, with a learner for each scenario that brings one (`Learning.tabular`).

    settings = learner_of(NAME).settings_type(preset=PRESET)            # NAME: a scenario's
    train(settings, seed=0, folder=Path("runs/table"))                  # learns, or continues

The same on the command line: `python -m llm_coop_envs.baselines.tabular`. In studies a learned table plays as
`tabular:NAME`; `llm-coop evaluate tabular:NAME` compares it with others on the same seeds. Playing a table needs
nothing but NumPy; learning writes its curve with the extra `study`.
"""

from llm_coop_envs.baselines.tabular.learner import learner_of
from llm_coop_envs.baselines.tabular.store import StoredTable, load, save
from llm_coop_envs.baselines.tabular.training import train

__all__ = ["StoredTable", "learner_of", "load", "save", "train"]
