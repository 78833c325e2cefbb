"""Q-learning in price competition (Calvano, Calzolari, Denicolo and Pastorello 2020), compiled.

    settings = QLearningSettings()                       # their representative experiment
    session = run_session(settings, seed=0)              # learn until convergence
    game = settings.game()
    cycle = limit_cycle(game, session.strategies, session.last_state)
    cycle_gain(game, cycle)                              # Delta
    summarise([cycle_responses(game, session.strategies, cycle)])

Many sessions: `runs.run`, or `python -m llm_coop_envs.baselines.q_learning`. The learner needs the extra `rl`; the
analysis of strategies does not.
"""

from llm_coop_envs.baselines.q_learning.analyse.analysis import (
    EquilibriumPlay,
    LimitCycle,
    QLoss,
    best_reply_values,
    cycle_gain,
    cycle_index,
    equilibrium_play,
    firm_gains,
    limit_cycle,
    q_loss,
    strategy_q,
    strategy_values,
)
from llm_coop_envs.baselines.q_learning.analyse.responses import (
    Response,
    ResponseSummary,
    cycle_responses,
    impulse_response,
    repaired,
    static_best_reply,
    summarise,
)
from llm_coop_envs.baselines.q_learning.learn.game import Game
from llm_coop_envs.baselines.q_learning.learn.sessions import Session, run_docked_session, run_session
from llm_coop_envs.baselines.q_learning.learn.settings import QLearningSettings

__all__ = [
    "EquilibriumPlay",
    "Game",
    "LimitCycle",
    "QLearningSettings",
    "QLoss",
    "Response",
    "ResponseSummary",
    "Session",
    "best_reply_values",
    "cycle_gain",
    "cycle_index",
    "cycle_responses",
    "equilibrium_play",
    "firm_gains",
    "impulse_response",
    "limit_cycle",
    "q_loss",
    "repaired",
    "run_docked_session",
    "run_session",
    "static_best_reply",
    "strategy_q",
    "strategy_values",
    "summarise",
]
