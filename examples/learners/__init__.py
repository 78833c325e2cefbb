"""Four learners for price competition, each in one file: examples of how to bring your own.

    llm-coop run collusion_comparison --policy learners.sarsa:Sarsa --only 'given*' -o runs/sarsa

Run this in the parent of this folder. `learned_gain` and other columns of `metrics.parquet` describe what was learned.
"""
