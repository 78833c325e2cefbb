import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest

from llm_coop_envs.errors import RunError, SettingsError
from llm_coop_envs.reports.embedding import embed_with_model, project, split_words, tf_idf_vectors

TEXTS = ["the price is 7.5", "the price is 8", "let us say 7.5 then", "weather today"]


def test_words_are_words_and_numbers():
    assert split_words("I ask 7.50, NOT 8!") == ["i", "ask", "7.50", "not", "8"]
    assert split_words("שלום עולם") == ["שלום", "עולם"]
    assert split_words("我出七点五") == ["我出", "出七", "七点", "点五"]
    assert split_words("🙂!?") == []


def test_weights():
    table = tf_idf_vectors(TEXTS)
    # Words of several texts, in alphabetical order: 7.5, is, price, the.
    assert table.shape == (4, 4)
    assert np.allclose(np.linalg.norm(table[:3], axis=1), 1)
    assert not table[3].any()
    idf = np.log(5 / 3) + 1
    assert np.allclose(table[0], idf / np.linalg.norm([idf] * 4))
    assert np.allclose(table[2], [1, 0, 0, 0])


def test_texts_without_a_common_word_keep_all_words():
    assert tf_idf_vectors(["a b", "c"]).shape == (2, 3)
    assert tf_idf_vectors(["!", "?"]).shape == (2, 1)


def test_the_plane_holds_what_lies_in_a_plane():
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(30, 2)) * (3.0, 1.0)
    turned, _ = np.linalg.qr(rng.normal(size=(5, 5)))
    found = project(np.hstack([flat, np.zeros((30, 3))]) @ turned + 7.0)
    assert sum(found.shares) == pytest.approx(1)
    assert found.shares[0] > found.shares[1]

    def distances(points):
        return np.linalg.norm(points[:, None] - points[None], axis=2)

    assert np.allclose(distances(found.points), distances(flat))
    for column in found.points.T:
        assert column[np.abs(column).argmax()] > 0


def test_points_in_a_line_and_in_one_place():
    line = project(np.outer(np.arange(4.0), [1.0, 2.0]))
    assert line.shares == pytest.approx((1, 0))
    assert not line.points[:, 1].any()
    assert not project(np.ones((3, 2))).points.any()


class Server(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, asked["model"], asked["input"]))
        data = [
            {"object": "embedding", "index": i, "embedding": [len(text), 1.0]} for i, text in enumerate(asked["input"])
        ]
        body = json.dumps({"object": "list", "model": "m", "data": data, "usage": {}}).encode()
        if asked["model"] == "broken":
            body = b"{}"
        self.send_response(404 if asked["model"] == "unknown" else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("LLM_COOP_API_KEY", "key-secret-value")
    with HTTPServer(("127.0.0.1", 0), Server) as running:
        running.asked = []
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


def test_a_model_is_asked_for_each_text_once(server):
    embed = embed_with_model("m", f"http://127.0.0.1:{server.server_port}/v1")
    assert embed(["a", "bbb", "a"]).tolist() == [[1, 1], [3, 1], [1, 1]]
    assert server.asked == [("/v1/embeddings", "m", ["a", "bbb"])]


@pytest.mark.parametrize("model", ["unknown", "broken"])
def test_a_model_that_gives_none_is_a_sentence(server, model):
    with pytest.raises(RunError, match=r"gave no embeddings.*leave --embedding out") as caught:
        embed_with_model(model, f"http://127.0.0.1:{server.server_port}/v1")(["a"])
    assert "secret" not in str(caught.value)


def test_a_missing_key_is_a_sentence(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(SettingsError, match="OPENAI_API_KEY"):
        embed_with_model("text-embedding-3-small")
