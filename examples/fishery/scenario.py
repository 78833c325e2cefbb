"""The descriptor, by which the package finds the parts of the fishery."""

from llm_coop_envs.core.scenario import Scenario

SCENARIO = Scenario(
    name="fishery",
    title="Common-pool fishery",
    env="fishery.env:FisheryEnv",
    measures="fishery.metrics:MEASURES",
    scripted="fishery.scripted:POLICIES",
    opponent="sharing",
    scene="fishery.scene:FisheryTracker",
    picture="fishery.scene:PICTURE",
)
