"""The descriptor of price competition: where the package finds its parts."""

from __future__ import annotations

from llm_coop_envs.core.scenario import Scenario

_ROOM = __name__.rpartition(".")[0]

SCENARIO = Scenario(
    name="bertrand",
    title="Bertrand competition",
    env=f"{_ROOM}.env:BertrandEnv",
    measures=f"{_ROOM}.metrics:MEASURES",
    scripted=f"{_ROOM}.scripted:SCRIPTED",
    opponent="price_matching",
    workflow=f"{_ROOM}.faces.workflow:BertrandWorkflow",
    scene=f"{_ROOM}.faces.scene:BertrandTracker",
    picture=f"{_ROOM}.faces.drawing:PICTURE",
    page=f"{_ROOM}.faces.page_scene:PAGE",
    report=f"{_ROOM}.faces.report:BertrandSection",
    figures=f"{_ROOM}.faces.q_learning_figures:SESSION_FOLDERS",
    after=f"{_ROOM}.faces.after:Deviations",
    batch=f"{_ROOM}.batch:BertrandBatch",
    learning=f"{_ROOM}.faces.learning:LEARNING",
    scorecard=f"{_ROOM}.faces.scorecard:SCORECARD",
    rewards=f"{_ROOM}.rewards:REWARDS",
    synthetic_worlds=f"{_ROOM}.faces.synthetic_worlds:SYNTHETIC_WORLDS",
    film="round",
)
