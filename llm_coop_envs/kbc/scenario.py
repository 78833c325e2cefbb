"""The descriptor of this scenario: what the rest of the package needs to know of it."""

from __future__ import annotations

from llm_coop_envs.core.scenario import Scenario

_ROOM = __name__.rpartition(".")[0]

SCENARIO = Scenario(
    name="kbc",
    title="Keynesian beauty contest",
    env=f"{_ROOM}.env:KBCEnv",
    measures=f"{_ROOM}.metrics:MEASURES",
    scripted=f"{_ROOM}.scripted:POLICIES",
    opponent="poisson",
    workflow=f"{_ROOM}.faces.workflow:KBCWorkflow",
    scene=f"{_ROOM}.faces.scene:KbcTracker",
    picture=f"{_ROOM}.faces.drawing:PICTURE",
    page=f"{_ROOM}.faces.page_scene:PAGE",
    report=f"{_ROOM}.faces.report:KbcSection",
    learning=f"{_ROOM}.faces.learning:LEARNING",
    bench=f"{_ROOM}.faces.scorecard:BENCH",
    planted=f"{_ROOM}.faces.synthetic_worlds:PLANTED",
)
