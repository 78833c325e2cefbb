"""What loaders and readers are fuzzed with: sound files and data with mistakes in them, and what somebody might try."""

import contextlib
import copy
import json
import random
import re

import yaml
from hypothesis import strategies as st

# What mistakes are made of: signs and values at the edges of what is expected.
EDGES = st.sampled_from(
    [None, True, -1, 0, 1, 2**63, 2**100, 0.5, float("inf"), "", "x", "a\0b", "\ud800", "all", [], [1], {}, {"a": 1}]
)
VALUES = st.recursive(
    EDGES | st.text(max_size=8) | st.integers(), lambda v: st.lists(v) | st.dictionaries(st.text(), v)
)


def mutated(draw, data, depth=0):
    """Data with one value in it, anywhere, replaced, removed or doubled."""
    if depth > 12 or not isinstance(data, dict | list) or not data or draw(st.integers(0, 9)) == 0:
        return draw(VALUES)
    if isinstance(data, dict):
        name = draw(st.sampled_from(sorted(data, key=str)))
        if draw(st.integers(0, 9)) == 0:
            return {key: value for key, value in data.items() if key != name}
        return {**data, name: mutated(draw, data[name], depth + 1)}
    place = draw(st.integers(0, len(data) - 1))
    if draw(st.integers(0, 9)) == 0:
        return [*data, data[place]]
    return [*data[:place], mutated(draw, data[place], depth + 1), *data[place + 1 :]]


@st.composite
def like(draw, data):
    """Data with one to three mistakes."""
    for _ in range(draw(st.integers(1, 3))):
        data = mutated(draw, data)
    return data


@st.composite
def fields_like(draw, fields):
    """A mapping with one to three mistakes in its values."""
    data = draw(like(fields))
    return data if isinstance(data, dict) else copy.deepcopy(fields)


@st.composite
def json_like(draw, data):
    """The same as JSON."""
    return json.dumps(draw(like(data))).encode()


@st.composite
def yaml_like(draw, content):
    """A YAML file with one mistake in its data."""
    with contextlib.suppress(Exception):  # what YAML cannot write
        return yaml.safe_dump(mutated(draw, yaml.safe_load(content)), allow_unicode=True).encode(
            "utf-8", "surrogatepass"
        )
    return content


@st.composite
def lines_like(draw, records):
    """Lines of JSON, one of which has mistakes."""
    place = draw(st.integers(0, len(records) - 1))
    changed = [*records[:place], draw(like(records[place])), *records[place + 1 :]]
    return b"".join(json.dumps(record).encode() + b"\n" for record in changed)


@st.composite
def bytes_like(draw, content):
    """A file's bytes, with a few of them others."""
    chance = random.Random(draw(st.integers(0, 2**32)))
    data = bytearray(content)
    for _ in range(chance.randint(1, 6)):
        place = chance.randrange(len(data) + 1)
        kind = chance.randrange(4)
        if kind == 0 and place < len(data):
            data[place] ^= 1 << chance.randrange(8)
        elif kind == 1:
            data[place : place + chance.randint(0, 40)] = chance.randbytes(chance.randint(0, 8))
        elif kind == 2:
            data[place:place] = chance.choice([b"[" * 2000, b"1" * 30, b"\0", b": ", b"- ", b"{", b"&a *a", b"\xff"])
        else:
            del data[place:]
    return bytes(data)


# What a template could be made of: values and names, what leads from them to code, and what asks for much.
ATOMS = """
    answer answer.text key kind low high options allowed pattern integer listed lines cycler namespace range
    self loop caller varargs [] {} () 'a' '{0.__class__}' '%s' 0 -1 1e308 10**9 none true answer.step
""".split()  # noqa: SIM905
TAILS = """
    .__class__ .__init__ .__globals__ .__dict__ .mro() .upper() .items() .format(answer) .format_map(answer)
    .join(options) ['__class__'] [0] [0:9999999] (1) () |quoted |lines('%d') |listed |spoken('x') |price |bound
    |word |map('price') |map(attribute='__class__') |list |attr('__class__') |join(',') |upper
    |replace('a','b'*99) |tojson |pprint |batch(2) |groupby('__class__') |sort(attribute='__class__')
    |sum(attribute='__class__') |select |default(answer) |format(1) |xmlattr |truncate(3) |round(99)
    |int(base=99) |slice(3) |dictsort |unique |random |urlize |center(10**9) *10**9 ~answer
""".split()  # noqa: SIM905
FRAMES = """
{{ X }}
{{ X if X else X }}
{% for x in X %}{{ x }}{{ loop.index }}{% endfor %}
{% set y = X %}{{ y }}
{% if X is defined %}{{ X }}{% endif %}
{% macro m(a) %}{{ X }}{% endmacro %}{{ m(X) }}
{% with z = X %}{{ z }}{% endwith %}
{% include X %}
{% import 'manifest.yaml' as w %}{{ w.X }}
{% extends X %}
{% filter upper %}X{% endfilter %}
{% call X %}x{% endcall %}
{% block b %}{{ X }}{{ self.b() }}{% endblock %}
{% raw %}{{ X }}{% endraw %}
{# X #}
""".strip().splitlines()


@st.composite
def template_like(draw):
    """A few statements of expressions that somebody might try."""
    chance = random.Random(draw(st.integers(0, 2**32)))

    def expression():
        return chance.choice(ATOMS) + "".join(chance.choice(TAILS) for _ in range(chance.randint(0, 3)))

    statements = (re.sub(r"\bX\b", lambda _: expression(), chance.choice(FRAMES)) for _ in range(chance.randint(1, 4)))
    return "\n".join(statements)


@st.composite
def pack_like(draw, shipped):
    """The data files of a pack, one of them changed somewhere."""
    files = {path.name: yaml.safe_load(path.read_bytes()) for path in sorted(shipped.glob("*.yaml"))}
    files["manifest.yaml"] = {"name": "x", "language": "en", "paraphrase": "a", "version": 1, "base": "en-a"}
    files["words.json"] = {"left": "links", "right": "rechts"}
    changed = draw(st.sampled_from(sorted(files)))
    return {**files, changed: mutated(draw, files[changed])}


# What answers of models are made of: numbers in many writings, options, words of deciding, marks, and signs.
PIECES = """
    7 7.5 -3 1,000 1.000,5 \u00bd seven VII 1e3 1e999 0x10 \u0663 \uff14 10^400 33% $20 2/3 20-30 a b) (c) A. "left"
    **up** `down` exit I choose take go set price: answer final Answer: {"choice": "number" : } ] [ { null true not or
    and but wait no, if unless maybe <think> </think> ```json ``` \\boxed{ } | --- # * > ... ? ! . , ; = -> \u2013
    \u2014 ' " \u00e9 \u00df \u4f60\u597d \U0001f642 \u200b \u202e \x00 \x1b[31m \ud800 player_1 yes no pass all none
    a:50 b: 50; 100 > < & ' \\u0041 \\n %s {0} __class__
""".split()  # noqa: SIM905


@st.composite
def answer_like(draw):
    """A text such as a model, or something on its way, might give."""
    chance = random.Random(draw(st.integers(0, 2**32)))
    pieces = (chance.choice(PIECES) for _ in range(chance.randint(0, 24)))
    text = "".join(piece + chance.choice([" ", " ", " ", "", "\n", "\n\n"]) for piece in pieces)
    return text * 400 if chance.random() < 0.01 else text
