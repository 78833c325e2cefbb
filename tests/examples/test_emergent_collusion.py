"""Games in the form of emergent_collusion, made here: read, played by our rules, refused if they are others."""

import json

import pytest

from llm_coop_envs.core import registry
from llm_coop_envs.errors import RunError
from llm_coop_envs.runs.imported import import_records
from llm_coop_envs.runs.tables import read_episodes
from llm_coop_envs.runs.verify import verify_run
from llm_coop_envs.util.foreign import ForeignFolder
from market.emergent import _read_lines
from market.scenario import SCENARIO

COSTS, VALUES = {"S1": 10, "S2": 30, "S3": 50}, {"B1": 90, "B2": 60, "B3": 20}
#: By round the quotes, and who trades at which price: in the first two buyers bid alike, and the second is drawn first.
ROUNDS = [
    ({"S1": 41, "S2": 45, "S3": 70, "B1": 60, "B2": 60, "B3": 20}, [("S1", "B2", 51), ("S2", "B1", 52)]),
    ({"S1": 80, "S2": 81, "S3": 82, "B1": 60, "B2": 50, "B3": 20}, []),
]
SAID = [(1, "S1", "all_sellers", "let us ask 41"), (1, "B1", "S2", "hello"), (2, "B2", "all_traders", "good day")]


@pytest.fixture(autouse=True)
def market(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})
    registry.register(SCENARIO)


@pytest.fixture
def games(tmp_path):
    seller = {"role": "seller", "valuation": None}
    agents = {who: {**seller, "model_name": f"model {who}", "cost": cost} for who, cost in COSTS.items()}
    agents |= {who: {"role": "buyer", "model_name": "other", "valuation": v, "cost": None} for who, v in VALUES.items()}
    lines = [{"type": "init", "data": {"num_rounds": len(ROUNDS), "num_buyers": 3, "num_sellers": 3, "agents": agents}}]
    for number, who, to, text in SAID:
        lines.append({"type": "conversation", "round": number, "player_id": who, "recipient_id": to, "message": text})
    for number, (quotes, trades) in enumerate(ROUNDS, 1):
        lines += [{"type": "bid_ask", "round": number, "agent_id": who, "price": p} for who, p in quotes.items()]
        for seller, buyer, price in trades:
            middle = (quotes[seller] + quotes[buyer]) / 2
            line = {"type": "trade", "round": number, "seller_id": seller, "buyer_id": buyer, "cleared_price": price}
            lines.append({**line, "midpoint_exact": middle})
            for who, gained in ((seller, price - COSTS[seller]), (buyer, VALUES[buyer] - price)):
                lines.append({"type": "payoff_change", "round": number, "seat_id": who, "delta": gained})
    folder = tmp_path / "logs"
    folder.mkdir()
    for number in range(2):
        text = "".join(json.dumps({"schema_version": "1.4.0", "game_id": str(number), **line}) + "\n" for line in lines)
        (folder / f"auction_{number}.jsonl").write_text(text)
    return folder


def test_a_game_is_read_with_its_talk_its_ties_and_its_rounding(games, tmp_path):
    done = import_records("emergent_collusion", games, tmp_path / "run", commit="c0")
    assert done.plays == {"sealed": [4, 2, 4]}  # the price 52 is half a unit below the midpoint
    assert verify_run(tmp_path / "run").faults == []
    first = next(iter(read_episodes(done.run)))
    assert first.policies["seller_0"] == "recorded:model S1"
    assert first.by_type["round"][0]["trades"] == [[0, 1, 50.5], [1, 0, 52.5]]
    assert {(row["speaker"], row["text"], row["hearers"]) for row in first.messages if row["text"]} == {
        ("seller_0", "let us ask 41", '["seller_1", "seller_2"]'),
        ("buyer_0", "hello", '["seller_1"]'),
        ("buyer_1", "good day", '["seller_0", "seller_1", "seller_2", "buyer_0", "buyer_2"]'),
    }
    assert first.metrics["markup"] == pytest.approx(51.5 - 40)  # two want to trade at 30 to 50


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"1.4.0"', '"2.0"'),
        ('"round": 1, "agent_id": "S1"', '"round": 3, "agent_id": "S1"'),
        ('"cost": 10', '"cost": 1000'),
        ('"player_id": "S1"', '"player_id": "S9"'),
        ('"price": 41', '"price": "41"'),
        ('"price": 41', '"price": -41'),
        ('"price": 41', '"price": 1e308'),
        ('"delta": 41', '"delta": NaN'),
        ("let us ask 41", "let us ask 41" * 1000),
        ('"role": "buyer"', '"role": "seller"'),
        ('"num_rounds": 2', '"num_rounds": 2000000'),
        ('"type": "init"', '"type": "start"'),
    ],
)
def test_games_of_another_form_are_a_sentence(games, tmp_path, old, new):
    path = games / "auction_1.jsonl"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(RunError, match="this version reads what emergent_collusion wrote"):
        import_records("emergent_collusion", games, tmp_path / "run")


def test_what_nobody_asked_for_is_not_kept(games):
    path = games / "auction_1.jsonl"
    text = path.read_text().replace('"num_buyers": 3', '"num_buyers": [[], []]')
    path.write_text(text + '{"type": "x", "schema_version": "1.4.0", "more": [[], []]}\n')
    lines = _read_lines(ForeignFolder(games, "emergent_collusion"), path.name)
    assert "x" not in lines
    assert set(lines["init"][0]["data"]) == {"num_rounds", "agents"}
    assert set(lines["conversation"][0]) == {"round", "player_id", "recipient_id", "message"}
