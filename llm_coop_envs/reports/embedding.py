"""Vectors of texts, by TF-IDF or an embedding model, and their projection on a plane."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.errors import RunError
from llm_coop_envs.policies.llm.clients.endpoint import Endpoint
from llm_coop_envs.util.extras import need
from llm_coop_envs.util.keys import read_key

MOST_TERMS = 2000
_BATCH = 128
_WORD = re.compile(r"\d+(?:[.,]\d+)*|\w+")
# Scripts written without spaces: a word there is any two neighbouring characters. Example: three
# characters give two words.
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")

Floats = NDArray[np.float64]
Embed = Callable[[Sequence[str]], Floats]


@dataclass(frozen=True, kw_only=True, eq=False)
class Plane:
    """Points in the plane of greatest variance.

    Attributes:
        points: (texts, 2).
        shares: how much of the variance each of the two directions holds.
    """

    points: Floats
    shares: tuple[float, float]


def split_words(text: str) -> list[str]:
    """Split a text into words and numbers, in lower case."""
    terms: list[str] = []
    for word in _WORD.findall(text.lower()):
        if len(word) > 2 and _UNSPACED.search(word):
            terms += [word[i : i + 2] for i in range(len(word) - 1)]
        else:
            terms.append(word)
    return terms


def tf_idf_vectors(texts: Sequence[str]) -> Floats:
    """Term frequency times inverse document frequency, each text scaled to length 1 (Salton and Buckley 1988).

    The idf is log((1 + n) / (1 + df)) + 1. Words that occur in a single text are left out, unless there are no others.
    At most the 2000 most frequent words are kept.

    Args:
        texts: the documents, one or more.

    Returns:
        (texts, terms); a text without any of these words is a row of zeros.
    """
    counts = [Counter(split_words(text)) for text in texts]
    spread = Counter(word for count in counts for word in count)
    shared = {word: n for word, n in spread.items() if n > 1} or dict(spread)
    vocabulary = sorted(sorted(shared, key=lambda word: (-shared[word], word))[:MOST_TERMS])
    column = {word: i for i, word in enumerate(vocabulary)}
    table = np.zeros((len(texts), max(1, len(vocabulary))))
    for row, count in enumerate(counts):
        for word, times in count.items():
            if word in column:
                weight = math.log((1 + len(texts)) / (1 + spread[word])) + 1
                table[row, column[word]] = times * weight
    length = np.linalg.norm(table, axis=1, keepdims=True)
    scaled: Floats = np.divide(table, length, out=table, where=length > 0)
    return scaled


def project(vectors: Floats) -> Plane:
    """Project vectors on their two main directions, by a singular value decomposition after centring.

    Args:
        vectors: (texts, dimensions), two texts or more.

    Returns:
        The points. The sign of each direction is chosen so that the point farthest out has a positive coordinate:
        the same vectors then give the same picture on every machine.
    """
    centred = vectors - vectors.mean(axis=0)
    left_vectors, values, _ = np.linalg.svd(centred, full_matrices=False)
    total = float((values**2).sum())
    points = np.zeros((len(vectors), 2))
    shares = [0.0, 0.0]
    for i in range(min(2, len(values))):
        column = left_vectors[:, i] * values[i]
        if values[i] > 1e-9 * max(1.0, float(values[0])):
            column *= np.sign(column[np.abs(column).round(9).argmax()]) or 1.0
            points[:, i] = column
            shares[i] = float(values[i] ** 2) / total
    return Plane(points=points, shares=(shares[0], shares[1]))


def embed_with_model(model: str, base_url: str | None = None) -> Embed:
    """Embed texts with a model behind an OpenAI-compatible endpoint.

    Args:
        model: the model's name.
        base_url: the server, such as `http://127.0.0.1:11434/v1`; OpenAI itself if left out.

    Returns:
        A function from texts to vectors; it raises `RunError` if the server gives none.

    Raises:
        MissingExtra: OpenAI's SDK is not installed.
        SettingsError: the key is needed and missing.
    """
    openai = need("openai", "embedding texts with a model", "openai")
    endpoint = Endpoint(model=model, base_url=base_url, client="openai")
    key = read_key(endpoint.key_variable, required=endpoint.needs_key)

    def embed(texts: Sequence[str]) -> Floats:
        client = openai.OpenAI(
            api_key="none" if key is None else key.reveal(), base_url=endpoint.url, max_retries=3, timeout=120
        )
        rows: dict[str, list[float]] = {}
        new = list(dict.fromkeys(texts))
        try:
            with client:
                for first in range(0, len(new), _BATCH):
                    batch = new[first : first + _BATCH]
                    answer = client.embeddings.create(model=endpoint.name, input=batch, encoding_format="float")
                    rows.update(zip(batch, (item.embedding for item in answer.data), strict=True))
            return np.array([rows[text] for text in texts], dtype=np.float64)
        except (openai.OpenAIError, ValueError, TypeError, KeyError) as error:
            detail = str(error).replace(key.reveal(), "[hidden]") if key else str(error)
            raise RunError(
                f"{endpoint.where}: gave no embeddings ({type(error).__name__}: {detail[:300]}); check the model's "
                "name and --base-url, or leave --embedding out"
            ) from None

    return embed
