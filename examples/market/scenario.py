"""The descriptor, by which the package finds the parts of the market."""

from llm_coop_envs.core.scenario import Scenario

SCENARIO = Scenario(
    name="market",
    title="Market with private costs and values",
    env="market.env:MarketEnv",
    measures="market.metrics:MEASURES",
    scripted="market.scripted:POLICIES",
    opponent={"seller": "margin", "buyer": "truthful"},
    importers={"emergent_collusion": "market.emergent:read_records"},
    synthetic_worlds="market.worlds:SYNTHETIC_WORLDS",
    film="round",
)
