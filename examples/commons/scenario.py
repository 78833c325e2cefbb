"""The descriptor, by which the package finds the parts of the commons."""

from llm_coop_envs.core.scenario import Scenario

SCENARIO = Scenario(
    name="commons",
    title="Commons",
    env="commons.env:CommonsEnv",
    measures="commons.metrics:MEASURES",
    scripted="commons.scripted:POLICIES",
    opponent="threshold",
    film="round",
)
