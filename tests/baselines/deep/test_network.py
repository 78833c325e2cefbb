import json
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from llm_coop_envs.baselines.deep.choices import Choices
from llm_coop_envs.baselines.deep.network import LOGITS, SQUASHED, VALUES, Network, columns, read_network
from llm_coop_envs.errors import RunError, SettingsError


def small(output=LOGITS, activation="tanh", **about):
    rng = np.random.default_rng(0)

    def layer(rows, width):
        return rng.normal(size=(rows, width)).astype(np.float32), rng.normal(size=rows).astype(np.float32)

    return Network(
        scenario="kbc",
        features=("a", "b", "c"),
        layers=(layer(4, 3), layer(5, 4)),
        activation=activation,
        output=output,
        about=about,
    )


@pytest.mark.parametrize(("activation", "function"), [("tanh", np.tanh), ("relu", lambda x: x * (x > 0))])
def test_outputs_are_those_of_the_layers(activation, function):
    network = small(activation=activation)
    (w0, b0), (w1, b1) = network.layers
    x = np.array([0.5, -1.0, 2.0], dtype=np.float32)
    expected = w1 @ function(w0 @ x + b0) + b1
    assert np.allclose(network.outputs(x[None])[0], expected, atol=1e-6)
    assert network.n_choices == 5


def test_best_is_the_best_legal_choice():
    network = small()
    x = np.random.default_rng(1).normal(size=(50, 3)).astype(np.float32)
    masks = np.random.default_rng(2).random((50, 5)) < 0.5
    masks[:, 2] = True
    outputs = network.outputs(x)
    for row, choice in enumerate(network.best(x, masks)):
        legal = np.flatnonzero(masks[row])
        assert choice in legal
        assert outputs[row, choice] == outputs[row, legal].max()


def test_samples_follow_the_chances_of_legal_choices():
    network = small()
    x = np.repeat(np.array([[0.1, 0.2, 0.3]], dtype=np.float32), 20_000, axis=0)
    masks = np.ones((len(x), 5), dtype=bool)
    masks[:, 3] = False
    drawn = network.sample(x, masks, np.random.default_rng(0))
    logits = network.outputs(x[:1])[0].astype(float)
    chances = np.where(masks[0], np.exp(logits), 0)
    chances /= chances.sum()
    shares = np.bincount(drawn, minlength=5) / len(x)
    assert shares[3] == 0
    assert np.abs(shares - chances).max() < 4 * 0.5 / np.sqrt(len(x))
    assert np.array_equal(drawn, network.sample(x, masks, np.random.default_rng(0)))


def test_sampling_survives_extreme_outputs():
    weights = np.array([[1000.0], [-1000.0]], dtype=np.float32)
    network = Network(
        scenario="kbc", features=("a",), layers=((weights, np.zeros(2, np.float32)),), activation="tanh", output=LOGITS
    )
    drawn = network.sample(np.ones((100, 1), np.float32), np.ones((100, 2), bool), np.random.default_rng(0))
    assert (drawn == 0).all()
    only = np.array([[False, True]] * 100)
    assert (network.sample(np.ones((100, 1), np.float32), only, np.random.default_rng(0)) == 1).all()


def test_values_have_no_chances():
    network = small(VALUES)
    x = np.random.default_rng(1).normal(size=(9, 3)).astype(np.float32)
    masks = np.ones((9, 5), dtype=bool)
    assert np.array_equal(network.sample(x, masks, np.random.default_rng(0)), network.best(x, masks))


def test_a_file_is_read_back_as_it_was_and_the_same_bytes_come_again(tmp_path):
    network = small(play="best", steps=3)
    path = tmp_path / "net.npz"
    path.write_bytes(network.to_bytes())
    again = read_network(path)
    assert again.to_bytes() == network.to_bytes() == small(steps=3, play="best").to_bytes()
    assert (again.features, again.about) == (network.features, network.about)
    x = np.ones((2, 3), dtype=np.float32)
    assert np.array_equal(again.outputs(x), network.outputs(x))


def test_one_network_for_each_seat(tmp_path):
    one = small()
    two = replace(one, layers=tuple((-w, b + 1) for w, b in one.layers))
    pairs = zip(one.layers, two.layers, strict=True)
    both = replace(one, layers=tuple((np.stack([w, v]), np.stack([b, c])) for (w, b), (v, c) in pairs))
    path = tmp_path / "net.npz"
    path.write_bytes(both.to_bytes())
    again = read_network(path)
    assert (again.seats, again.n_choices, one.seats) == (2, 5, None)
    x = np.random.default_rng(1).normal(size=(6, 3)).astype(np.float32)
    seats = np.array([0, 1, 1, 0, 1, 0])
    expected = np.where(seats[:, None] == 0, one.outputs(x), two.outputs(x))
    assert np.allclose(again.outputs(x, seats), expected, atol=1e-6)
    masks = np.ones((6, 5), bool)
    assert np.array_equal(again.best(x, masks, seats), expected.argmax(axis=1))
    drawn = again.sample(x, masks, np.random.default_rng(0), seats)
    rng = np.random.default_rng(0)
    assert drawn.tolist() == [
        int(again.of_seat(seat).sample(row[None], masks[:1], rng)[0]) for row, seat in zip(x, seats, strict=True)
    ]


def damaged(tmp_path, change):
    """A file whose parts were changed after it was written."""
    path = tmp_path / "net.npz"
    path.write_bytes(small().to_bytes())
    with np.load(path) as data:
        arrays = {name: data[name] for name in data.files}
    change(arrays)
    np.savez(path, **arrays)
    return path


def set_meta(**changes):
    def change(arrays):
        about = {**json.loads(arrays["about"].tobytes()), **changes}
        arrays["about"] = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda arrays: arrays.pop("b1"), "no trained policy"),
        (lambda arrays: arrays.pop("about"), "no trained policy"),
        (lambda arrays: arrays.update(w0=arrays["w0"][:, :2]), "do not fit"),
        (lambda arrays: arrays.update(w0=arrays["w0"].astype(float)), "do not fit"),
        (lambda arrays: arrays.update(b1=np.full(5, np.nan, np.float32)), "not finite"),
        (set_meta(activation="exec"), "not understood"),
        (set_meta(output="exec"), "not understood"),
        (set_meta(format=1), "reads format 2"),
    ],
)
def test_damaged_files_are_sentences(tmp_path, change, words):
    with pytest.raises(RunError, match=words):
        read_network(damaged(tmp_path, change))


def test_other_files_are_sentences(tmp_path):
    (tmp_path / "text").write_text("hello")
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as archive:
        archive.writestr("data", "{}")
    (tmp_path / "cut.npz").write_bytes(small().to_bytes()[:200])
    for name in ("text", "model.zip", "cut.npz"):
        with pytest.raises(RunError, match="no trained policy"):
            read_network(tmp_path / name)
    with pytest.raises(RunError, match="No such file"):
        read_network(tmp_path / "nosuch.npz")


def test_pickles_are_not_executed(tmp_path):
    path = damaged(tmp_path, lambda arrays: arrays.update(w0=np.array([{"any": "object"}], dtype=object)))
    with pytest.raises(RunError, match="no trained policy"):
        read_network(path)


def squashed():
    network = small(SQUASHED, "leaky_relu")
    hidden, (weights, bias) = network.layers
    return replace(network, layers=(hidden, (weights[:2] / 8, bias[:2])))


def test_numbers_are_the_tanh_of_a_normal_number():
    network = squashed()
    (w0, b0), (w1, b1) = network.layers
    x = np.array([0.5, -1.0, 2.0], dtype=np.float32)
    hidden = w0 @ x + b0
    mean, spread = (w1 @ np.where(hidden > 0, hidden, 0.01 * hidden) + b1).tolist()
    rows, masks = np.repeat(x[None], 20_000, axis=0), np.ones((20_000, 1), dtype=bool)
    assert network.best(rows[:1], masks[:1]) == pytest.approx(np.tanh(mean), abs=1e-6)
    drawn = np.arctanh(network.sample(rows, masks, np.random.default_rng(0)).clip(-0.9999999, 0.9999999))
    assert np.median(drawn) == pytest.approx(mean, abs=0.05 * float(np.exp(spread)))
    low, high = np.quantile(drawn, [0.1587, 0.8413])
    assert high - low == pytest.approx(2 * np.exp(spread), rel=0.05)
    assert (
        network.decide("best", rows[:2], masks[:2], np.random.default_rng(0)).tolist()
        == [network.best(rows[:1], masks[:1])[0]] * 2
    )


def test_numbers_do_not_depend_on_how_many_are_asked_for():
    """One row or many, one layout or another: single precision would differ in its last digits."""
    network, masks = squashed(), np.ones((300, 1), dtype=bool)
    rows = np.random.default_rng(4).normal(size=(300, 3)).astype(np.float32)
    together = network.best(rows, masks)
    assert together.tolist() == [network.best(rows[k : k + 1], masks[:1])[0] for k in range(300)]
    assert together.tolist() == network.best(np.asfortranarray(rows), masks).tolist()


def test_networks_of_numbers_are_kept(tmp_path):
    network = squashed()
    (tmp_path / "p.npz").write_bytes(network.to_bytes())
    again = read_network(tmp_path / "p.npz")
    assert (again.output, again.points, again.activation) == (SQUASHED, None, "leaky_relu")
    assert again.to_bytes() == network.to_bytes()


def test_columns_by_name():
    assert columns(small(), ["c", "x", "a", "b"]) == [2, 3, 0]
    with pytest.raises(ValueError, match=r"^c$"):
        columns(small(), ["a", "b"])


def test_choices_on_grids():
    from llm_coop_envs import bertrand_v0, kbc_v0

    discrete = Choices(kbc_v0.parallel_env(players=3))
    assert discrete.n == 101
    assert discrete.values(np.array([3, 4, 5])).tolist() == [3, 4, 5]
    assert discrete.value(1, 7) == 7
    real = Choices(kbc_v0.parallel_env(preset="large_scale", players=3), points=11)
    assert real.values(np.array([0, 5, 10])).tolist() == [0.0, 50.0, 100.0]
    env = bertrand_v0.parallel_env(preset="team_up")
    prices = Choices(env)
    assert prices.n == env.settings.grid_points
    grid = env.settings.grids[1]
    assert prices.value(1, 4) == pytest.approx(grid[4])
    number = Choices(env, points=None)
    assert (number.n, number.space.shape) == (1, (1,))
    # Exactly the ends, and what lies between them.
    assert number.values(np.array([-1.0, 0.0, 1.0])).tolist() == [2.0, 8.0, 14.0]
    assert number.value(1, 0.5) == 11.0
    with pytest.raises(SettingsError, match="needed is a range of numbers"):
        Choices(kbc_v0.parallel_env(players=3), points=None)
    # The floor is the cost, and no price of the grid is below it or above the cap.
    low = Choices(bertrand_v0.parallel_env(preset="team_up", grid_margin=3.0))
    assert min(low.value(0, k) for k in range(low.n)) == env.settings.floors[0] == 2.0
    assert all(env.choice_space.contains(np.array([low.value(0, k)])) for k in range(low.n))
