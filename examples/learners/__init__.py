"""Four learners for price competition, each in one file: examples of how to bring your own.

    llm-coop run collusion_comparison --policy learners.sarsa:Sarsa --only 'given*' -o runs/sarsa

in this folder's parent; `learned_gain` and the other columns of `metrics.parquet` tell what it learned.
"""
