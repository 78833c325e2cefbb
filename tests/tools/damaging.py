"""Random damage to run folders, and what everything that reads them makes of it.

By hand, with more damages than the suite has time for: `python tests/tools/damaging.py 500 SEED`.
"""

import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import invoking
import model_studies
import small

from llm_coop_envs.errors import LlmCoopError
from llm_coop_envs.page.one_file import write_page
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.model_access import ModelAccess
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.runs.tables import make_tables
from llm_coop_envs.runs.verify import verify_run

NOBODY = {"base_url": "http://127.0.0.1:9/v1", "retry": {"attempts": 1, "first_pause": 0.0}}
STUDIES = {"rules": small.small_study, "models": lambda: model_studies.study_with_model(model_studies.TINY)}


def sound_runs(folder):
    """A run of rules and one of models."""
    run_study(STUDIES["rules"](), folder / "rules")
    with model_studies.answering() as server:
        model_studies.play(server, folder / "models", model_studies.TINY)


def files_of(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file() and ".lock" not in path.name)


def damage(folder, draw):
    """Damage one file; returns what was done, and whether any byte is another one."""
    files = files_of(folder)
    path = draw.choice(files)
    data = path.read_bytes()
    place = draw.randrange(len(data) + 1)
    length = draw.randint(1, 40)
    kind = draw.choice(
        ["bit", "bytes", "cut", "append", "insert", "remove", "zeros", "empty", "delete", "copy", "swap"]
    )
    if kind == "bit" and place < len(data):
        new = data[:place] + bytes([data[place] ^ (1 << draw.randrange(8))]) + data[place + 1 :]
    elif kind == "bytes":
        new = data[:place] + draw.randbytes(length) + data[place + length :]
    elif kind == "cut":
        new = data[:place]
    elif kind == "append":
        new = data + draw.randbytes(length)
    elif kind == "insert":
        new = data[:place] + draw.randbytes(length) + data[place:]
    elif kind == "remove":
        new = data[:place] + data[place + length :]
    elif kind == "zeros":
        new = data[:place] + bytes(len(data[place : place + length])) + data[place + length :]
    elif kind in ("copy", "swap"):
        alike = [one for one in files if one != path and one.suffix == path.suffix] or [path]
        other = draw.choice(alike)
        new = other.read_bytes()
        if kind == "swap":
            other.write_bytes(data)
    else:
        new = b""
    path.write_bytes(new)
    if kind == "delete":
        path.unlink()
    return f"{kind} {path.relative_to(folder)}", kind == "delete" or new != data


def outcome_of(use):
    """What a use of a run came to: `"sentence"` if it was refused with one; anything else is raised."""
    try:
        return use()
    except LlmCoopError as error:
        said = str(error)
    assert said
    assert "\n" not in said, said
    return "sentence"


def check(sound, folder, name, draw):
    """Damage a copy of a sound run, and use it in every way; returns what was done, and what came of it."""
    shutil.copytree(sound, folder)
    what, changed = damage(folder, draw)
    before = {path: path.read_bytes() for path in files_of(folder)}
    whole = {path.name: table for path, table in make_tables(open_run(sound)).items()}

    found = outcome_of(lambda: verify_run(folder, again=True).faults)
    assert bool(found) == changed, (what, found)

    def tables():
        run = open_run(folder)
        made = {path.name: table for path, table in make_tables(run).items()}
        gone = len(run.finished()) < run.total
        assert gone or made == whole, what
        return "episodes gone" if gone else "as sound"

    seen = [outcome_of(tables)]
    shown = folder.with_suffix(".html")
    shown.unlink(missing_ok=True)
    outcome_of(lambda: write_page(folder, shown))
    for command in (["report"], ["figures", "--only", "seeds", "--format", "svg"]) if draw.random() < 0.05 else ():
        done = invoking.invoke(*command[:1], folder, *command[1:], "-o", folder.parent / "shown")
        assert done.exit_code in (0, 2), (what, done.stderr)
    if name == "models":
        for command in (["journal"], ["transcript", "kbc", "0"]):
            assert invoking.invoke(command[0], folder, *command[1:]).exit_code in (0, 2), what
    # So far everything was only read.
    assert {path: path.read_bytes() for path in files_of(folder)} == before, what

    def again():
        return run_study(STUDIES[name](), folder, access=ModelAccess(endpoint=NOBODY)).complete

    continued = outcome_of(again)
    if continued is True:
        results = [
            path for path in files_of(sound) if path.suffix in (".gz", ".parquet") and "journal" not in path.parts
        ]
        for path in results:
            assert (folder / path.relative_to(sound)).read_bytes() == path.read_bytes(), (what, path)
    return what, [bool(found), *seen, continued]


def main():
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    results, kinds, started = Counter(), Counter(), time.time()
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        sound_runs(home / "sound")
        for number in range(count):
            name = "models" if number % 2 else "rules"
            draw = random.Random(f"{seed} {number}")
            what, came = check(home / "sound" / name, home / "run", name, draw)
            shutil.rmtree(home / "run")
            results[str(came)] += 1
            kinds[what.split()[0]] += 1
    print(f"{count} damages in {time.time() - started:.0f} s: {dict(kinds)}")
    for came, times in results.most_common():
        print(f"{times:5}  [verify found it, tables, continued] = {came}")


if __name__ == "__main__":
    main()
