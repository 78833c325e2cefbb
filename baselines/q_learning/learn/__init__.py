"""The Q-learner itself, compiled: sessions from the first draw to convergence."""
