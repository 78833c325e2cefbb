"""Measurements of speed, as ratios against named alternatives in one run.

    python -m llm_coop_envs.benchmarks.speed --json speed.json

Nothing here is asserted by a unit test; the documentation holds a recorded run with machine and versions.
"""
