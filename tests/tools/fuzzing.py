"""Fuzzing of every loader and reader: whatever a file holds, it is read, or refused with an error of our own.

`python tests/tools/fuzzing.py SECONDS` fuzzes each of them for that many seconds; `make fuzz` does.
"""

import contextlib
import importlib.util
import json
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from llm_coop_envs.baselines.deep.network import read_network
from llm_coop_envs.baselines.q_learning.analyse.tables import load_table
from llm_coop_envs.baselines.tabular.store import load as load_tabular
from llm_coop_envs.errors import LlmCoopError
from llm_coop_envs.interface.question import Number
from llm_coop_envs.policies.llm.asking.prices import PriceList
from llm_coop_envs.policies.llm.journal import journal_files, list_episodes, read_run
from llm_coop_envs.policies.llm.playing.memory import Note
from llm_coop_envs.policies.llm.playing.move_readers import reader_for
from llm_coop_envs.policies.llm.playing.packs import Pack
from llm_coop_envs.policies.population import load_population
from llm_coop_envs.runs.control import POINTER, query_sessions
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.verify import verify_run
from llm_coop_envs.storage.folder import CHECK, digest_of
from llm_coop_envs.studies.study import load_study

HOME = Path(__file__).parents[2]
MEMORY = 6 << 30
# What mistakes are made of: signs and values at the edges of what is expected.
EDGES = st.sampled_from(
    [None, True, -1, 0, 1, 2**63, 2**100, 0.5, float("inf"), "", "x", "a\0b", "\ud800", "all", [], [1], {}, {"a": 1}]
)
PEOPLE = b"attributes: {sex: {shares: {female: 0.5, male: 0.5}}, age: {shares: {young: 0.3, old: 0.7}}}\nsize: 20\n"
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
LEAKS = re.compile("<(class|function|module|built-in|bound method|method-wrapper|code) ")
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
def pack_like(draw):
    """The data files of a pack, one of them changed somewhere."""
    import yaml

    shipped = HOME / "policies/llm/packs/en-a"
    files = {path.name: yaml.safe_load(path.read_bytes()) for path in sorted(shipped.glob("*.yaml"))}
    files["manifest.yaml"] = {"name": "x", "language": "en", "paraphrase": "a", "version": 1, "base": "en-a"}
    files["words.json"] = {"left": "links", "right": "rechts"}
    changed = draw(st.sampled_from(sorted(files)))
    return {**files, changed: mutated(draw, files[changed])}


class Targets:
    """The loaders and readers, each with what it is given.

    Attributes:
        originals: the sound bytes of those that read bytes, set by `all`.
    """

    def __init__(self, folder, run, model_run):
        self.folder, self.run, self.model_run = folder, run, model_run
        question = Number(name="price", low=0, high=10)
        self.facts = {
            **reader_for(question, str).legal,
            **{"kind": "number", "answer": Note(1, "I take 7"), "answer_as": "json", "key": "price"},
        }
        self.study = (HOME / "benchmarks/studies/team_up.yaml").read_bytes()

    def all(self):
        """Each target's name, the strategy of what it reads, and the function that reads it."""
        manifest = json.loads((self.run / "run.json").read_bytes())
        events = next(self.run.glob("events/*/*.gz"))
        journal = journal_files(self.model_run)[0]
        pack = HOME / "policies/llm/packs/en-a/repair.jinja"
        network = next((HOME / "baselines/deep/shipped").glob("*.npz")).read_bytes()
        tabular = next((HOME / "baselines/tabular").rglob("*.npz")).read_bytes()
        table = next((HOME / "baselines/q_learning").rglob("*.npz")).read_bytes()
        prices = b"gpt-4o: {input: 2.5, output: 10}\nother: {input: 0, output: 0, cached_input: 0}\n"
        session = b'{"name": "0123456789abcdef", "host": "b", "pid": 1}'
        self.originals = {
            **{"events": events.read_bytes(), "journal": journal.read_bytes(), "study": self.study},
            **{"pack": pack.read_bytes(), "population": PEOPLE, "prices": prices, "control": session},
            **{"network": network, "Q table": table, "tabular": tabular},
        }
        return {
            "run.json": (manifest_like(manifest), self.read_manifest),
            "events": (bytes_like(events.read_bytes()), lambda content: self.read_in(self.run, events, content)),
            "events, lines": (events_like(events), lambda content: self.read_in(self.run, events, content, True)),
            "journal": (bytes_like(journal.read_bytes()), lambda content: self.read_journal(journal, content)),
            "study": (bytes_like(self.study), lambda content: load_study(str(self.put("study.yaml", content)))),
            "study, values": (study_like(self.study), lambda content: load_study(str(self.put("s.yaml", content)))),
            "pack": (bytes_like(pack.read_bytes()), self.read_pack),
            "pack, templates": (template_like(), self.render_pack),
            "pack, values": (pack_like(), self.read_pack_values),
            "population": (bytes_like(PEOPLE), lambda content: load_population(self.put("people.yaml", content))),
            "prices": (bytes_like(prices), lambda content: PriceList.load(self.put("prices.yaml", content))),
            "network": (bytes_like(network), lambda content: read_network(self.put("net.npz", content))),
            "Q table": (bytes_like(table), lambda content: load_table(str(self.put("table.npz", content)))),
            "tabular": (bytes_like(tabular), lambda content: load_tabular(str(self.put("tab.npz", content)))),
            "control": (bytes_like(session), self.read_control),
        }

    def put(self, name, content):
        path = self.folder / name
        path.write_bytes(content)
        return path

    def read_manifest(self, data):
        path = self.run / "run.json"
        original = path.read_bytes()
        with contextlib.suppress(TypeError, ValueError):
            path.write_text(json.dumps({**data, CHECK: digest_of(data)}))
            try:
                run = open_run(self.run)
                _ = run.conditions, run.finished(), run.describe_damage()
                verify_run(self.run)
            finally:
                path.write_bytes(original)

    def read_in(self, run, path, content, record=False):
        original, manifest = path.read_bytes(), (run / "run.json").read_bytes()
        path.write_bytes(content)
        if record:
            opened = open_run(run)
            opened.write(files={**opened.manifest["files"], **opened.fingerprints(path)})
        try:
            verify_run(run)
        finally:
            path.write_bytes(original)
            (run / "run.json").write_bytes(manifest)

    def read_journal(self, path, content):
        original = path.read_bytes()
        path.write_bytes(content)
        try:
            read_run(self.model_run)
            list_episodes(self.model_run, [])
        finally:
            path.write_bytes(original)

    def read_pack(self, content):
        folder = self.folder / "pack"
        folder.mkdir(exist_ok=True)
        (folder / "manifest.yaml").write_text("{name: x, language: en, paraphrase: a, version: 1, base: en-a}")
        (folder / "repair.jinja").write_bytes(content)
        (folder / "words.json").write_bytes(content)
        with contextlib.suppress(LlmCoopError):
            Pack(folder)
        (folder / "words.json").unlink()
        (folder / "manifest.yaml").write_bytes(content)
        Pack(folder)

    def render_pack(self, template):
        """Render what somebody wrote, as a question about an answer; nothing of the program may be shown."""
        folder = self.folder / "written"
        folder.mkdir(exist_ok=True)
        (folder / "manifest.yaml").write_text("{name: x, language: en, paraphrase: a, version: 1, base: en-a}")
        (folder / "repair.jinja").write_text(template, encoding="utf-8", errors="surrogatepass")
        text = Pack(folder).templates.render("repair.jinja", self.facts)
        assert not LEAKS.search(text), text

    def read_pack_values(self, files):
        folder = self.folder / "values"
        for name, data in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(ValueError):
                path.write_text(json.dumps(data), encoding="utf-8")  # JSON is YAML
        pack = Pack(folder)
        pack.all_prompts()
        pack.describe()

    def read_control(self, content):
        (self.folder / f"{POINTER}main.json").write_bytes(content)
        query_sessions(self.folder)


@st.composite
def manifest_like(draw, manifest):
    data = mutated(draw, {name: value for name, value in manifest.items() if name != CHECK})
    return data if isinstance(data, dict) else manifest


@st.composite
def events_like(draw, path):
    from llm_coop_envs.storage.files import read_lines

    header, *events = read_lines(path)
    place = draw(st.integers(0, len(events) - 1))
    changed = mutated(draw, events[place])
    records = [header, *events[:place], changed, *events[place + 1 :]]
    import gzip

    return gzip.compress(b"".join(json.dumps(record).encode() + b"\n" for record in records), 1)


@st.composite
def study_like(draw, content):
    import yaml

    text = yaml.safe_load(content)
    with contextlib.suppress(Exception):  # what YAML cannot write
        return yaml.safe_dump(mutated(draw, text), allow_unicode=True).encode("utf-8", "surrogatepass")
    return content


def fuzz(target, strategy, read, seconds):
    """Read what the strategy gives for a time; returns how many were read, and the errors that are not our own."""
    counts = {"inputs": 0, "refused": 0}
    found = {}
    end = time.process_time() + seconds

    @settings(
        max_examples=10**6,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def one(content):
        if counts["inputs"] and time.process_time() > end:
            raise TimeoutError
        counts["inputs"] += 1
        try:
            read(content)
        except LlmCoopError:
            counts["refused"] += 1
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            place = next((f for f in reversed(frames) if "llm_coop" in f.filename or "/baselines/" in f.filename), None)
            key = f"{type(error).__name__} at {place and Path(place.filename).name}:{place and place.lineno}"
            found.setdefault(key, "".join(traceback.format_exception(error))[-2500:])

    with contextlib.suppress(BaseException):
        one()
    return counts, found


def cover(name, seconds):
    """Fuzz a loader of bytes once more, for new paths through the code; returns whether that failed."""
    program = [sys.executable, "-W", "ignore", str(Path(__file__).with_name("covering.py")), seconds, name]
    with tempfile.TemporaryDirectory() as place:
        done = subprocess.run([*program, place], check=False, capture_output=True, text=True)
    lines = re.findall(r"stat::number_of_executed_units:\s*(\d+)", done.stderr)
    print(f"{name}, by paths: {lines[-1] if lines else 0} inputs, {'failed' if done.returncode else 'nothing found'}")
    if done.returncode:
        print(done.stderr[-3000:])
    return done.returncode != 0


def make_targets(folder):
    import damaging

    damaging.sound_runs(folder)
    place = folder / "place"
    place.mkdir()
    return Targets(place, folder / "rules", folder / "models")


def main(seconds, *names):
    failures = 0
    # What asks for all memory is a failure of its own, and not the machine's end.
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with tempfile.TemporaryDirectory() as place:
        targets = make_targets(Path(place))
        for name, (strategy, read) in targets.all().items():
            if names and name not in names:
                continue
            counts, found = fuzz(name, strategy, read, float(seconds))
            print(f"{name}: {counts['inputs']} inputs, {counts['refused']} refused, {len(found)} kinds of failures")
            for key, text in found.items():
                print(key, text, sep="\n")
            failures += len(found)
            if importlib.util.find_spec("atheris") and name in targets.originals:
                failures += cover(name, seconds)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
