"""The descriptor of this scenario: what the rest of the package needs to know of it."""

from __future__ import annotations

from llm_coop_envs.core.scenario import Scenario

_ROOM = __name__.rpartition(".")[0]

SCENARIO = Scenario(
    name="bertrand",
    title="Bertrand competition",
    env=f"{_ROOM}.env:BertrandEnv",
    measures=f"{_ROOM}.metrics:MEASURES",
    scripted=f"{_ROOM}.scripted:POLICIES",
    opponent="price_matching",
    workflow=f"{_ROOM}.workflow:BertrandWorkflow",
    scene=f"{_ROOM}.scene:BertrandTracker",
    picture=f"{_ROOM}.drawing:PICTURE",
    page=f"{_ROOM}.scene_page:PAGE",
    report=f"{_ROOM}.report:BertrandSection",
    figures=f"{_ROOM}.faces.q_learning_figures:SESSION_FOLDERS",
    after=f"{_ROOM}.after:Deviations",
    learning=f"{_ROOM}.learning:LEARNING",
    bench=f"{_ROOM}.bench:BENCH",
    rewards=f"{_ROOM}.metrics:REWARDS",
    planted=f"{_ROOM}.planted:PLANTED",
    film="round",
)
