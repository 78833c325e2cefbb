"""Small networks as plain numbers, with forward passes in NumPy and files that execute nothing when read.

A file is an `.npz` (arrays only, no pickle) of the layers' weights `w0`, `b0`, `w1`, ... and a description of what the
network was trained on and how.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.baselines.stored import SUFFIX
from llm_coop_envs.errors import RunError
from llm_coop_envs.storage.arrays import pack_arrays, read_arrays
from llm_coop_envs.util.opening import DAMAGED

#: The format of files, and of files with one network per seat.
FORMAT, APART = 2, 3
#: Kinds of outputs: log-probabilities up to a constant, values of choices, one number from -1 to 1, or mean and
#: logarithm of the standard deviation of a normal number, whose tanh is such a number.
LOGITS, VALUES, NUMBERS, SQUASHED = "logits", "values", "numbers", "squashed"

_KEPT = (LOGITS, VALUES, SQUASHED)
_SPREAD = (-20.0, 2.0)  # stable-baselines3 keeps the logarithm of the standard deviation within these
_NORMAL = NormalDist()

_ACTIVATIONS: Mapping[str, Callable[[NDArray[np.floating[Any]]], NDArray[np.floating[Any]]]] = {
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, np.float32(0)),
    "leaky_relu": lambda x: np.maximum(x, np.float32(0.01) * x),
}


@dataclass(frozen=True, kw_only=True)
class Network:
    """A trained network.

    Attributes:
        scenario: the scenario's name; empty if unknown.
        features: the columns it reads, in order; empty for all columns of `NumericView`.
        layers: weights (outputs, inputs) and biases (outputs,) of each layer; with one network per seat, both have
            seats as their first axis.
        activation: the function between layers, `"tanh"`, `"relu"` or `"leaky_relu"`.
        output: `"logits"`, `"values"`, `"numbers"` or `"squashed"`.
        about: everything else about its training, as JSON data.
    """

    scenario: str
    features: tuple[str, ...]
    layers: tuple[tuple[NDArray[np.float32], NDArray[np.float32]], ...]
    activation: str
    output: str
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def n_choices(self) -> int:
        """The number of outputs."""
        return int(self.layers[-1][1].shape[-1])

    @property
    def points(self) -> int | None:
        """The number of choices, as `Choices` takes it; `None`: numbers from -1 to 1."""
        return None if self.output in (NUMBERS, SQUASHED) else self.n_choices

    @property
    def seats(self) -> int | None:
        """The number of seats with their own network; `None`: one network for all."""
        weights = self.layers[0][0]
        return len(weights) if weights.ndim == 3 else None

    def of_seat(self, seat: int) -> Network:
        """The network of one seat."""
        return self if self.seats is None else replace(self, layers=tuple((w[seat], b[seat]) for w, b in self.layers))

    def outputs(
        self, observations: NDArray[np.float32], seats: NDArray[np.integer[Any]] | None = None
    ) -> NDArray[np.floating[Any]]:
        """The last layer's outputs, (rows, choices).

        Args:
            observations: (rows, features).
            seats: (rows,) the observing seats; needed where each seat has its own network.
        """
        act = _ACTIVATIONS[self.activation]
        # Sums of single precision differ with the machine in their last digits: the best of several choices seldom
        # shows that, a number always does.
        x: NDArray[np.floating[Any]] = np.asarray(observations, dtype=np.float64 if self.points is None else np.float32)
        if self.seats is not None:
            assert seats is not None
            apart = np.empty((len(x), self.n_choices), dtype=x.dtype)
            for seat in np.unique(seats).tolist():
                apart[seats == seat] = self.of_seat(seat).outputs(x[seats == seat])
            return apart
        for weights, bias in self.layers[:-1]:
            x = act(x @ weights.T + bias)
        weights, bias = self.layers[-1]
        outputs: NDArray[np.floating[Any]] = x @ weights.T + bias
        return outputs

    def decide(
        self,
        play: str,
        observations: NDArray[np.float32],
        masks: NDArray[Any],
        rng: np.random.Generator,
        seats: NDArray[np.integer[Any]] | None = None,
    ) -> NDArray[Any]:
        """Decide for each row: `sample` if `play` is `"sample"`, else `best`."""
        if play == "sample":
            return self.sample(observations, masks, rng, seats)
        return self.best(observations, masks, seats)

    def best(
        self,
        observations: NDArray[np.float32],
        masks: NDArray[Any],
        seats: NDArray[np.integer[Any]] | None = None,
    ) -> NDArray[Any]:
        """The legal choice with the highest output for each row, the first of several, or the number that it means."""
        if self.points is None:
            return self._numbers(self.outputs(observations, seats)[:, 0])
        choices: NDArray[np.int64] = np.where(masks, self.outputs(observations, seats), -np.inf).argmax(axis=1)
        return choices

    def sample(
        self,
        observations: NDArray[np.float32],
        masks: NDArray[Any],
        rng: np.random.Generator,
        seats: NDArray[np.integer[Any]] | None = None,
    ) -> NDArray[Any]:
        """Draw a legal choice for each row with the network's probabilities, by one uniform number per row.

        A network of values or numbers has no probabilities: its best choice is taken.
        """
        if self.output in (VALUES, NUMBERS):
            return self.best(observations, masks, seats)
        if self.output == SQUASHED:
            means, spreads = self.outputs(observations, seats).T
            normal = [_NORMAL.inv_cdf(max(draw, 1e-16)) for draw in rng.random(len(means)).tolist()]
            return self._numbers(means + np.exp(spreads.clip(*_SPREAD)) * normal)
        logits = np.where(masks, self.outputs(observations, seats).astype(np.float64), -np.inf)
        chances = np.exp(logits - logits.max(axis=1, keepdims=True))
        edges = chances.cumsum(axis=1)
        draws = rng.random(len(edges)) * edges[:, -1]
        choices: NDArray[np.int64] = (draws[:, None] >= edges).sum(axis=1)
        return choices

    def _numbers(self, outputs: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """Outputs as numbers from -1 to 1, to as many digits as machines agree on."""
        numbers: NDArray[np.float64] = (np.tanh(outputs) if self.output == SQUASHED else outputs.clip(-1, 1)).round(7)
        return numbers

    def to_bytes(self) -> bytes:
        """The file's content; the same network gives the same bytes."""
        described = ("scenario", "features", "activation", "output", "about")
        meta = {"format": FORMAT if self.seats is None else APART, **{name: getattr(self, name) for name in described}}
        arrays: dict[str, NDArray[Any]] = {}
        for k, (weights, bias) in enumerate(self.layers):
            arrays |= {f"w{k}": weights, f"b{k}": bias}
        return pack_arrays(arrays, meta)


def read_network(path: Path) -> Network:
    """Read the network in a file.

    Raises:
        RunError: it cannot be read, or is no network of this package.
    """
    try:
        arrays, meta = read_arrays(path)
        if meta["format"] not in (FORMAT, APART):
            raise RunError(
                f"{path}: has format {meta['format']!r}, this version of llm-coop-envs reads format {FORMAT} or "
                f"{APART}; use the version that wrote it, or train again"
            )
        count = sum(name.startswith("w") for name in arrays)
        network = Network(
            scenario=str(meta["scenario"]),
            features=tuple(map(str, meta["features"])),
            layers=tuple((arrays[f"w{k}"], arrays[f"b{k}"]) for k in range(count)),
            activation=str(meta["activation"]),
            output=str(meta["output"]),
            about=dict(meta["about"]),
        )
        width = len(network.features)
        if network.activation not in _ACTIVATIONS or network.output not in _KEPT or not network.layers:
            raise ValueError("its description is not understood")
        seats = () if network.seats is None else (network.seats,)
        for weights, bias in network.layers:
            shape = (*seats, bias.shape[-1], width)
            if weights.shape != shape or bias.shape != shape[:-1] or weights.dtype != np.float32:
                raise ValueError("its layers do not fit together")
            if not (np.isfinite(weights).all() and np.isfinite(bias).all()):
                raise ValueError("its weights are not finite numbers")
            width = bias.shape[-1]
    except OSError as error:
        raise RunError(f"{path}: cannot be read ({error.strerror or error})") from error
    except DAMAGED as error:
        raise RunError(
            f"{path}: is no trained policy of llm-coop-envs ({error}); give a folder made by 'llm-coop train', "
            f"or a {SUFFIX} file in its folder 'policies'"
        ) from error
    return network


def columns(network: Network, names: Sequence[str]) -> list[int]:
    """The positions in `names` of the features that a network reads.

    Raises:
        ValueError: a feature is missing; the message is its name.
    """
    at = {name: k for k, name in enumerate(names)}
    missing = [name for name in network.features if name not in at]
    if missing:
        raise ValueError(missing[0])
    return [at[name] for name in network.features]
