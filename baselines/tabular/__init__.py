"""Tabular Q-learning, by a learner for each scenario that has one.

    train(KBCLearning(preset="half"), seed=0, folder=Path("runs/kbc"))     # learns, or goes on

On the command line: `python -m llm_coop_envs.baselines.tabular`. In studies a learned table plays as `tabular:NAME`;
`llm-coop evaluate tabular:NAME` compares it with others on the same seeds. Nothing but NumPy is needed to play a table;
learning writes its curve with the extra `study`.
"""

from llm_coop_envs.baselines.tabular.store import StoredTable, load, save
from llm_coop_envs.baselines.tabular.training import train

__all__ = ["StoredTable", "load", "save", "train"]
