"""The descriptor, by which the package finds the parts of the auction."""

from llm_coop_envs.core.scenario import Scenario

SCENARIO = Scenario(
    name="auction",
    title="Sealed-bid auction",
    env="auction.env:AuctionEnv",
    measures="auction.metrics:MEASURES",
    scripted="auction.scripted:POLICIES",
    opponent="shading",
)
