"""Q-learning in price competition (Calvano, Calzolari, Denicolo and Pastorello 2020), compiled.

    settings = QLearningSettings()                       # their representative experiment
    session = run_session(settings, seed=0)              # learn until convergence
    game = settings.game()
    cycle = limit_cycle(game, session.strategies, session.last_state)
    cycle_gain(game, cycle)                              # Delta
    summarise([cycle_responses(game, session.strategies, cycle)])

Many sessions: `reproduce.runs.run`, or `python -m llm_coop_envs.baselines.q_learning`. The learner needs the extra
`rl`; the analysis of strategies (`analyse`), and learners of one's own (`PricingLearner`), do not.
"""

from llm_coop_envs.baselines.q_learning.analyse.analysis import cycle_gain, limit_cycle
from llm_coop_envs.baselines.q_learning.analyse.responses import cycle_responses
from llm_coop_envs.baselines.q_learning.learn.sessions import run_session
from llm_coop_envs.baselines.q_learning.learn.settings import QLearningSettings
from llm_coop_envs.baselines.q_learning.pricing_learner import PricingLearner, Trained
from llm_coop_envs.bertrand.deviation import summarise

__all__ = [
    "PricingLearner",
    "QLearningSettings",
    "Trained",
    "cycle_gain",
    "cycle_responses",
    "limit_cycle",
    "run_session",
    "summarise",
]
