"""The descriptor of this scenario: what the rest of the package needs to know of it."""

from __future__ import annotations

from llm_coop_envs.core.scenario import Scenario

_ROOM = __name__.rpartition(".")[0]

SCENARIO = Scenario(
    name="evacuation",
    title="Emergency evacuation",
    env=f"{_ROOM}.env:EvacuationEnv",
    measures=f"{_ROOM}.metrics:MEASURES",
    scripted=f"{_ROOM}.scripted:POLICIES",
    opponent="shares",
    workflow=f"{_ROOM}.faces.workflow:EvacuationWorkflow",
    scene=f"{_ROOM}.faces.scene:EvacuationTracker",
    picture=f"{_ROOM}.faces.drawing:PICTURE",
    page=f"{_ROOM}.faces.page_scene:PAGE",
    report=f"{_ROOM}.faces.report:EvacuationSection",
    batch=f"{_ROOM}.batch:EvacuationBatch",
    learning=f"{_ROOM}.faces.learning:LEARNING",
    synthetic_worlds=f"{_ROOM}.faces.synthetic_worlds:SYNTHETIC_WORLDS",
    scorecard=f"{_ROOM}.faces.scorecard:SCORECARD",
)
