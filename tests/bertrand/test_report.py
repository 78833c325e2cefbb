"""The published values are pinned: whoever changes a digit has to change it twice. And what is shaded."""

import numpy as np

from llm_coop_envs.bertrand.faces.report_prices import lasting
from llm_coop_envs.bertrand.scenario import SCENARIO


def test_the_price_paths_and_levels():
    published = SCENARIO.published
    assert [published["prices"][name] for name in ("nash", "cartel", "start")] == [6, 8, 2]
    assert (published["collusion"]["rounds"], published["collusion"]["longest"]) == (200, 1200)
    assert published["runs"]["count"] == 5
    silent, talking = published["trajectories"]
    assert all("Wu et al. 2024" in path["source"] for path in (silent, talking))
    assert [path["comparable"]["settings"]["talk"] for path in (silent, talking)] == [False, True]
    assert [len(path["prices"]) for path in (silent, talking)] == [2, 1]
    assert dict(zip(silent["rounds"], zip(*silent["prices"], strict=True), strict=True))[340] == (8.10, 7.82)
    assert [series[-1] for series in silent["prices"]] == [7.05, 7.10]
    assert dict(zip(talking["rounds"], talking["prices"][0], strict=True)) == {
        20: 6.5, 40: 6.66, 100: 6.85, 200: 7.18, 300: 7.5, 400: 7.6, 500: 7.7, 580: 7.77,
    }  # fmt: skip


def test_only_lasting_closeness_is_shaded():
    together = np.array([True] * 19 + [False] + [True] * 20)
    assert lasting(together).tolist() == [0.0] * 20 + [1.0] * 20


def test_what_else_is_measured():
    """EconEvals, Fish et al. and their replication, Keppo et al., and Wu et al. 2024."""
    published = SCENARIO.published["measures"]
    values = {(entry["measure"], entry["title"]): entry["value"] for entry in published if "measure" in entry}
    assert values == {
        ("collusiveness_index", "Claude 3.5 Sonnet"): 0.42,
        ("collusiveness_index", "Gemini 1.5 Pro"): 0.46,
        ("collusiveness_index", "GPT-4o"): 0.71,
        ("optimal_rounds", "GPT-4, one firm"): 0.96,
        ("mean_price_last", "Mistral Large, one firm"): 1.8028,
        ("mean_price_last", "GPT-4, talk until round 400"): (7.56 + 7.60) / 2,
    }
    texts = {entry["title"]: entry["words"] for entry in published if "words" in entry}
    assert all(phrase in texts["Mistral Large, two to five firms"] for phrase in ("3.7 %", "10.6 %", "18.8 %"))
    assert all(phrase in texts["Firms that are not alike"] for phrase in ("22 %", "10 %", "7 %"))
    assert all(entry["source"] and entry["comparable"] for entry in published)
