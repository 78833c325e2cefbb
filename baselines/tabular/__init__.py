"""Tabular Q-learning in the number contest and in the evacuation.

    train(EvacuationLearning(), seed=0, folder=Path("runs/evacuation"))     # learns, or goes on
    for row in compare(load("evacuation"), unseen_seeds(30)): ...           # against nearest_exit

On the command line: `python -m llm_coop_envs.baselines.tabular`. In studies a learned table plays as `tabular:NAME`.
Nothing but NumPy is needed to play a table; learning writes its curve with the extra `study`.
"""

from llm_coop_envs.baselines.tabular.compare import compare, estimate, unseen_seeds
from llm_coop_envs.baselines.tabular.settings import EvacuationLearning, KBCLearning
from llm_coop_envs.baselines.tabular.store import StoredTable, load, save, shipped
from llm_coop_envs.baselines.tabular.training import train

__all__ = [
    "EvacuationLearning",
    "KBCLearning",
    "StoredTable",
    "compare",
    "estimate",
    "load",
    "save",
    "shipped",
    "train",
    "unseen_seeds",
]
