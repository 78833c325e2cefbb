"""Read a population from YAML; errors name file, line and field."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies.population.columns import Column
from llm_coop_envs.policies.population.grammar import Grammar, place_names
from llm_coop_envs.policies.population.population import Background, Population
from llm_coop_envs.util.checks import suggestion
from llm_coop_envs.util.paths import StrPath
from llm_coop_envs.util.yaml_source import YamlNode, read_yaml_file

HOME = Path(__file__).parent / "shipped"
MAX_PEOPLE = 10_000_000
_FIELDS = ("name", "size", "draw", "deal", "seed", "attributes", "joint", "play", "backgrounds")
_COLUMN = ("by", "shares", "counts", "ranges", "forms", "sentences")
_BACKGROUND = ("model", "words", "prompt", "sentences", "vocabulary")
_SLACK = 1e-6


def load_population(path: StrPath) -> Population:
    """Read a population's file.

    Raises:
        StudyError: it cannot be read, or is wrong; the sentence names file, line and field.
    """
    return read_population(read_yaml_file(Path(path).expanduser())[1])


def read_population(node: YamlNode, *, recorded: bool = False) -> Population:
    """Read a population: a mapping in a study, or a file's content.

    Args:
        node: the mapping.
        recorded: whether it is `Population.data`, in which shipped attributes may have unused sentences.

    Raises:
        StudyError: it is wrong; the sentence names file, line and field.
    """
    fields = node.mapping(_FIELDS)
    written_attributes = fields["attributes"].mapping() if "attributes" in fields else {}
    for item in written_attributes.values() if "backgrounds" not in fields and not recorded else ():
        if isinstance(item.value, dict) and "sentences" in item.value:
            item.value["sentences"].fail("is told to nobody; add 'backgrounds: {}', or leave it out")
    attributes = _with_shipped(written_attributes)
    columns: list[Column] = []
    for item in fields["joint"].items() if "joint" in fields else []:
        columns += _joint(item, attributes)
    for name, item in attributes.items():
        columns.append(_column(name, item, columns, plain=False))
    own = fields["play"].mapping() if "play" in fields else {}
    play: list[Column] = []
    for name, item in own.items():
        if name in attributes:
            item.fail("is an attribute, too; give that another name")
        play.append(_column(name, item, [*columns, *play], plain=True))
    if not columns and not play:
        node.fail("says nothing of the people; write 'attributes', 'joint' or 'play'")
    background = _background(fields["backgrounds"], columns, attributes) if "backgrounds" in fields else None
    data = node.plain()
    if attributes:
        data["attributes"] = {name: item.plain() for name, item in attributes.items()}
    if background is not None:
        written = data["backgrounds"] or {}
        data["backgrounds"] = {name: value for name, value in written.items() if name not in background.endpoint}
    return Population(
        size=fields["size"].integer(1, MAX_PEOPLE) if "size" in fields else None,
        exact=_one_of(fields, "draw", ("quota", "sample")) == "quota",
        shuffled=_one_of(fields, "deal", ("shuffled", "in_order")) == "shuffled",
        seed=fields["seed"].integer(0, 2**63 - 1) if "seed" in fields else None,
        attributes=tuple(columns),
        play=tuple(play),
        background=background,
        data=data,
    )


@functools.cache
def shipped_attributes() -> Mapping[str, YamlNode]:
    """The attributes that come with the package, by name."""
    return read_yaml_file(HOME / "attributes.yaml")[1].mapping()


def _one_of(fields: Mapping[str, YamlNode], name: str, choices: Sequence[str]) -> str:
    if name not in fields:
        return choices[0]
    value = fields[name].text()
    if value not in choices:
        fields[name].fail(f"'{value}' must be {' or '.join(choices)}")
    return value


def _with_shipped(written: Mapping[str, YamlNode]) -> dict[str, YamlNode]:
    """The attributes, with those written as `shipped` replaced by the package's own."""
    attributes = dict(written)
    for name, item in written.items():
        if isinstance(item.value, str):
            if item.text() != "shipped" or name not in shipped_attributes():
                item.fail(f"must be a mapping, or 'shipped' for one of {', '.join(shipped_attributes())}")
            attributes[name] = shipped_attributes()[name]
    return attributes


def _column(name: str, node: YamlNode, earlier: Sequence[Column], *, plain: bool) -> Column:
    """Read a column.

    Args:
        name: its name.
        node: its definition.
        earlier: the columns on which it may depend.
        plain: whether its values are any data, and a single value may apply to everybody, as in `play`.
    """
    if plain and not (isinstance(node.value, dict) and node.value.keys() & {"by", "shares", "counts"}):
        return _make_column(name, (node.plain(),), [[1.0]])
    fields = node.mapping(("by", "shares", "counts") if plain else _COLUMN)
    namesake = next((column for column in earlier if column.name == name), None)
    keys = [key for key in ("shares", "counts", "ranges") if key in fields]
    if not keys:  # an attribute of a joint distribution may have forms and sentences of its own
        if namesake is None:
            node.fail("needs 'shares', 'counts' or 'ranges'")
        return namesake
    if len(keys) > 1:
        fields[keys[1]].fail(f"stands beside '{keys[0]}'; keep one")
    if namesake is not None:
        node.fail("is drawn in 'joint'; leave its shares out here")
    kind, distribution = keys[0], fields[keys[0]]
    by = fields["by"].text() if "by" in fields else ""
    if by:
        above = _column_above(fields["by"], earlier)
        if kind != "shares":
            distribution.fail("stands beside 'by'; write shares")
        values, rows = _conditional_shares(distribution, [str(value) for value in above.values], plain=plain)
    else:
        values, shares = _shares(distribution, plain=plain, counted=kind == "counts")
        rows = [shares]
    counts = tuple(int(count) for count in rows[0]) if kind == "counts" else ()
    rows = [[share / math.fsum(row) for share in row] for row in rows]
    ranges = tuple(_range(distribution, str(value)) for value in values) if kind == "ranges" else ()
    return _make_column(name, values, rows, by=by, counts=counts, ranges=ranges, forms=_forms(name, fields, values))


def _column_above(node: YamlNode, earlier: Sequence[Column]) -> Column:
    """The column named in `by`."""
    by = node.text()
    above = next((column for column in earlier if column.name == by), None)
    if above is None:
        names = [column.name for column in earlier]
        node.fail(f"there is no column '{by}' before this one; {suggestion(by, names)}")
    return above


def _forms(name: str, fields: Mapping[str, YamlNode], values: Sequence[Any]) -> dict[str, tuple[str, ...]]:
    """The forms by which a text may name each value of a column."""
    forms = _texts(fields, "forms")
    for key in forms:
        if key not in values:
            fields["forms"].mapping()[key].fail(f"is no value of '{name}'; {suggestion(key, list(map(str, values)))}")
    return forms


def _make_column(name: str, values: Sequence[Any], rows: Sequence[Sequence[float]], **optional: Any) -> Column:
    return Column(name=name, values=tuple(values), shares=np.array(rows), **{"forms": {}, **optional})


def _joint(node: YamlNode, attributes: Mapping[str, YamlNode]) -> list[Column]:
    """Read a joint distribution: a column of combinations, and the attributes' columns that depend on it."""
    fields = node.mapping(("of", "shares"), required=("of", "shares"))
    names = [item.text() for item in fields["of"].items()]
    rows = [item.mapping((*names, "share"), required=(*names, "share")) for item in fields["shares"].items()]
    combined = [tuple(row[name].text() for name in names) for row in rows]
    for number, row in enumerate(combined):
        if row in combined[:number]:
            fields["shares"].items()[number].fail(f"{', '.join(row)}: is listed twice")
    shares = [_share(row["share"]) for row in rows]
    _check_sum(fields["shares"], shares)
    above = _make_column(" and ".join(names), [", ".join(row) for row in combined], [shares], joint=True)
    columns = [above]
    for position, name in enumerate(names):
        values = tuple(dict.fromkeys(row[position] for row in combined))
        forms = _texts(attributes[name].mapping(), "forms") if name in attributes else {}
        one_hot = np.eye(len(values))[[values.index(row[position]) for row in combined]]
        columns.append(_make_column(name, values, one_hot.tolist(), by=above.name, forms=forms))
    return columns


def _texts(fields: Mapping[str, YamlNode], name: str) -> dict[str, tuple[str, ...]]:
    """Lists of texts by name; empty if the field is missing."""
    lists = fields[name].mapping() if name in fields else {}
    return {key: tuple(entry.text() for entry in item.items()) for key, item in lists.items()}


def _shares(node: YamlNode, *, plain: bool, counted: bool = False) -> tuple[list[Any], list[float]]:
    """Values and their shares: by name, or as a list of `value` and `share`."""
    read = _count if counted else _share
    if isinstance(node.value, list):
        entries = [item.mapping(("value", "share"), required=("value", "share")) for item in node.items()]
        values = [entry["value"].plain() for entry in entries]
        shares = [read(entry["share"]) for entry in entries]
    else:
        values = [_plain(key) if plain else key for key in node.mapping()]
        shares = [read(item) for item in node.mapping().values()]
    if not values:
        node.fail("must not be empty")
    if not counted:
        _check_sum(node, shares)
    elif not math.fsum(shares):
        node.fail("must not all be 0")
    return values, shares


def _conditional_shares(node: YamlNode, above: Sequence[str], *, plain: bool) -> tuple[list[Any], list[list[float]]]:
    """Read all values, and a row of shares for each value of the column above."""
    rows_by_value = node.mapping(above, required=above)
    rows = [_shares(rows_by_value[name], plain=plain) for name in above]
    values: list[Any] = []
    for row_values, _ in rows:
        values += [value for value in row_values if value not in values]
    return values, [
        [shares[row_values.index(value)] if value in row_values else 0.0 for value in values]
        for row_values, shares in rows
    ]


def _plain(key: str) -> Any:
    """A mapping's key as YAML would read it as a value: "2" is 2, "0.5" is 0.5, "true" is True."""
    if re.fullmatch(r"[-+]?\d{1,15}", key):
        return int(key)
    if re.fullmatch(r"[-+]?\d{0,15}\.?\d{1,15}([eE][-+]?\d{1,2})?", key):
        return float(key)
    return {"true": True, "false": False}.get(key, key)


def _share(node: YamlNode) -> float:
    """A share: a number, or a fraction such as `1/3`."""
    value = node.value
    if isinstance(value, str) and re.fullmatch(r"\d{1,9}/0*[1-9]\d{0,8}", value.strip()):
        value = float(Fraction(value.strip()))
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        node.fail(f"{node.value!r} must be a share from 0 to 1, such as 0.25 or 1/4")
    return float(value)


def _count(node: YamlNode) -> float:
    return float(node.integer(0, MAX_PEOPLE))


def _check_sum(node: YamlNode, shares: Sequence[float]) -> None:
    if abs(math.fsum(shares) - 1) > _SLACK:
        node.fail(f"the shares add up to {math.fsum(shares):.6g}; they must add up to 1")


def _range(node: YamlNode, value: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,9})-(\d{1,9})", value)
    if match is None or int(match[1]) > int(match[2]):
        node.mapping()[value].fail("must be a range of integers such as 18-29")
    return int(match[1]), int(match[2])


def _background(node: YamlNode, columns: Sequence[Column], attributes: Mapping[str, YamlNode]) -> Background:
    if node.value is None:
        node = replace(node, value={})
    fields = node.mapping()
    options, endpoint = _model_options({name: item for name, item in fields.items() if name not in _BACKGROUND}, node)
    names = [column.name for column in columns if not column.joint]
    # By default the attributes' own sentences and some on everyday life, so that people with equal attributes differ.
    everyday = read_yaml_file(HOME / "everyday.yaml")[1].mapping()
    texts = fields if "sentences" in fields else {**everyday, **fields}
    vocabulary = _texts(texts, "vocabulary")
    for name in vocabulary:
        if name in names:
            texts["vocabulary"].mapping()[name].fail("is an attribute, too; give the list another name")
    lists = texts["sentences"].items()
    if "sentences" not in fields:
        own = [item.mapping()["sentences"] for item in attributes.values() if "sentences" in item.mapping()]
        lists = [*own, *lists] if own else []
    sentences = tuple(tuple(_template(sentence, [*names, *vocabulary]) for sentence in item.items()) for item in lists)
    if not sentences:
        node.fail("needs 'sentences', or attributes that have some")
    prompt = _template(fields["prompt"], ["attributes", "words"]) if "prompt" in fields else ""
    return Background(
        grammar=Grammar(sentences=sentences, vocabulary=vocabulary),
        model=fields["model"].text() if "model" in fields else "",
        options=options,
        endpoint=endpoint,
        words=fields["words"].integer(10, 1000) if "words" in fields else 80,
        prompt=prompt or (HOME / "background.txt").read_text(encoding="utf-8"),
    )


def _model_options(fields: Mapping[str, YamlNode], above: YamlNode) -> tuple[dict[str, Any], dict[str, Any]]:
    """A model's options, and its endpoint's fields."""
    if not fields:
        return {}, {}
    # Imported here because only backgrounds written by a model need it.
    from llm_coop_envs.policies.llm.playing.parameters import ModelParameters
    from llm_coop_envs.policies.llm.playing.player import ENDPOINT_FIELDS, build_endpoint, settle

    above.mapping((*_BACKGROUND, *ModelParameters.__dataclass_fields__, *ENDPOINT_FIELDS))
    try:
        _, options, endpoint = settle("any", {name: item.plain() for name, item in fields.items()})
        ModelParameters.read(options, "backgrounds")
        build_endpoint("any", endpoint)
    except SettingsError as error:
        fields.get(error.field, above).fail(f"{error.value!r}: {error.why}")
    return options, endpoint


def _template(node: YamlNode, names: Sequence[str]) -> str:
    text = node.text()
    for name in sorted(place_names(text) - set(names)):
        node.fail(f"there is no attribute '{name}' to put into the text; {suggestion(name, names)}")
    return text
