"""The published values are pinned: whoever changes a digit has to change it twice."""

from llm_coop_envs.kbc.scenario import SCENARIO


def test_the_variance_arms():
    published = SCENARIO.published["variance"]
    arms = {arm["arm"]: arm for arm in published["arms"]}
    assert {name: arm["mean"] for name, arm in arms.items()} == {
        "gpt_4": [157, 51, 30, 18],
        "gpt_4_cooperate": [120, 2, 1, 1],
        "gpt_4_uncooperative": [207, 127, 125, 77],
        "claude_3_sonnet": [450, 28, 43, 41],
        "gpt_4_t_0": [123, 81, 75, 29],
        "gpt_4_t_1_2": [177, 66, 53, 53],
    }
    assert arms["gpt_4"]["band"] == [[107, 208], [0, 116], [0, 74], [0, 44]]
    assert arms["gpt_4_cooperate"]["band"] == [[71, 168], None, None, None]
    assert (published["k"], published["runs"], published["precision"]) == ([0, 1, 2, 3], 15, 2.0)
    assert "Wu et al. 2024" in published["source"]
    for arm in arms.values():
        for mean, band in zip(arm["mean"], arm["band"], strict=True):
            assert band is None or band[0] <= mean <= band[1]
