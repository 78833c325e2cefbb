"""The descriptor of the number contest: where the package finds its parts."""

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
    batch=f"{_ROOM}.batch:KBCBatch",
    learning=f"{_ROOM}.faces.learning:LEARNING",
    scorecard=f"{_ROOM}.faces.scorecard:SCORECARD",
    synthetic_worlds=f"{_ROOM}.faces.synthetic_worlds:SYNTHETIC_WORLDS",
)
