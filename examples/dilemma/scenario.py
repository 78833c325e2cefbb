"""The descriptor, by which the package finds the parts of the dilemmas."""

from llm_coop_envs.core.scenario import Scenario

SCENARIO = Scenario(
    name="dilemma",
    title="Social dilemmas",
    env="dilemma.env:DilemmaEnv",
    measures="dilemma.metrics:MEASURES",
    scripted="dilemma.scripted:POLICIES",
    opponent="tit_for_tat",
    importers={"coopeval": "dilemma.coopeval:read_records"},
)
