"""Run folders as an attacker would make them: whole, with right hashes, and with something in them that is not data."""

import functools
import gzip
import json
import os
import zlib

from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.verify import _study_of_digest
from llm_coop_envs.storage.files import pack_lines, read_lines
from llm_coop_envs.storage.folder import CHECK, digest_of

#: What the run is of that attackers change.
STUDY = """\
name: theirs
seed: 1
conditions:
  - {name: talk, scenario: kbc, settings: {players: 4, exchanges: 1}, policies: announcer, seeds: [0]}
"""
CANARY = "canary"
EVIL = """
from pathlib import Path

from llm_coop_envs.policies import ScriptedPolicy

Path({canary!r}).write_text("imported")

class P(ScriptedPolicy):
    def __init__(self, **options):
        pass

    def decide(self, request):
        return {{"choice": request.question.fallback if hasattr(request, "question") else 0}}
"""
ESCAPE = "{{ ''.__class__.__mro__[1].__subclasses__() }}"


def read_manifest(folder):
    return json.loads((folder / "run.json").read_bytes())


def write_manifest(folder, manifest):
    manifest.pop(CHECK, None)
    text = json.dumps({**manifest, CHECK: digest_of(manifest)})
    (folder / "run.json").write_text(text, encoding="utf-8")


def forge(folder, change):
    """Change the manifest, and make all hashes right again."""
    manifest = read_manifest(folder)
    change(manifest)
    write_manifest(folder, manifest)
    try:
        run = open_run(folder)
        manifest["digest"] = _study_of_digest(run).digest
    except Exception:  # what cannot be read is left as it is
        return
    for path in folder.glob("events/*/*.gz"):
        header, *events = read_lines(path)
        program = {name: hashes[0] for name, hashes in manifest["program"].items()}
        header |= {"study": manifest["digest"], "program": program}
        header["policies"] = dict.fromkeys(header["policies"], manifest["conditions"][0]["seats"][0][1][0]["policy"])
        path.write_bytes(pack_lines([header, *events]))
    record_files(folder, manifest)


def record_files(folder, manifest=None):
    """Record the files of a run as they are now."""
    manifest = manifest or read_manifest(folder)
    for name in manifest["files"]:
        if (folder / name).is_file():
            manifest["files"] |= open_run(folder).fingerprints(folder / name)
    write_manifest(folder, manifest)


def seat(policy, **options):
    def change(manifest):
        for condition in manifest["conditions"]:
            condition["seats"] = [["all", [{"policy": policy, "options": options, "share": 1.0}]]]
        manifest["policies"] = {policy: "own policy" if policy.endswith(":P") else "trained network"}
        manifest["program"] |= {policy: ["0123456789abcdef"]} if policy.endswith(":P") else {}

    return change


def reach_model(manifest, model="m", **fields):
    endpoint = {"model": model, **(fields or {"base_url": "http://127.0.0.1:9/v1"})}
    manifest["sessions"][0]["asking"] = {"endpoints": [endpoint]}


def every_event(folder, change):
    """Change all records of all episodes."""
    for path in folder.glob("events/*/*.gz"):
        path.write_bytes(pack_lines([change(record) for record in read_lines(path)]))
    record_files(folder)


def raw_event(folder, line):
    """Put a line into all episodes."""
    for path in folder.glob("events/*/*.gz"):
        first, _, others = gzip.decompress(path.read_bytes()).partition(b"\n")
        path.write_bytes(gzip.compress(b"\n".join([first, line, others])))
    record_files(folder)


def evil_module(folder, name="evil"):
    (folder / f"{name}.py").write_text(EVIL.format(canary=str(folder.parents[1] / CANARY)))


# Each takes the copy of a run at <working directory>/runs/theirs.


def a_policy_in_the_folder(folder):
    evil_module(folder)
    forge(folder, seat("runs.theirs.evil:P"))


def a_policy_in_a_package(folder):
    evil_module(folder)
    for place in (folder, folder.parent):
        (place / "__init__.py").write_text("")
    forge(folder, seat("runs.theirs.evil:P"))


def a_policy_beside_a_model(folder):
    evil_module(folder)

    def change(manifest):
        seat("runs.theirs.evil:P")(manifest)
        for condition in manifest["conditions"]:
            model = {"policy": "llm:m", "options": {}, "share": 1.0}
            condition["seats"] = [["player_0", [model]], *condition["seats"]]
        reach_model(manifest)

    forge(folder, change)


def a_policy_of_the_standard_library(folder):
    forge(folder, seat("antigravity:P"))


def a_pack_with_an_escape(folder):
    pack = folder / "pack"
    pack.mkdir()
    (pack / "manifest.yaml").write_text("{name: theirs, language: en, paraphrase: a, version: 1, base: en-a}")
    (pack / "repair.jinja").write_text(ESCAPE)

    def change(manifest):
        seat("llm:m", pack=str(pack))(manifest)
        reach_model(manifest)

    forge(folder, change)


def a_wording_with_an_escape(folder):
    wording = folder / "wording"
    wording.mkdir()
    (wording / "observation.jinja").write_text(ESCAPE)

    def change(manifest):
        for condition in manifest["conditions"]:
            condition["settings"]["wording"] = str(wording)

    forge(folder, change)


def a_network_of_its_own(folder):
    (folder / "network.npz").write_bytes(b"PK\x05\x06" + bytes(18))
    forge(folder, seat(f"sb3:{folder / 'network.npz'}"))


def a_table_of_its_own(folder):
    (folder / "table.npz").write_bytes(b"PK\x05\x06" + bytes(18))
    forge(folder, seat(f"tabular:{folder / 'table.npz'}"))


def ask_at(folder, model, **fields):
    def change(manifest):
        seat(f"llm:{model}")(manifest)
        reach_model(manifest, model, **fields)

    forge(folder, change)


def an_address_of_its_own(folder):
    ask_at(folder, "m", base_url="http://theirs.example/v1")


def one_address_of_its_own_of_two(folder):
    ask_at(folder, "m", base_url=["http://127.0.0.1:9/v1", "http://theirs.example/v1"])


def an_address_like_the_provider(folder):
    ask_at(folder, "gpt-4o-mini", base_url="http://api.openai.com/v1")


def an_address_as_a_model(folder):
    ask_at(folder, "huggingface/http://theirs.example/v1", client="litellm")


def the_key_of_something_else(folder):
    ask_at(folder, "m", base_url="http://127.0.0.1:9/v1", key_env="OTHER_TOKEN")


@functools.cache
def compressed_zeros():
    packer = zlib.compressobj(9, wbits=31)
    zeros = bytes(1 << 24)
    return b"".join([*(packer.compress(zeros) for _ in range(40)), packer.flush()])


def a_bomb(folder):
    for path in folder.glob("events/*/*.gz"):
        path.write_bytes(compressed_zeros())
    record_files(folder)


def pipes_for_events(folder):
    for path in list(folder.glob("events/*/*.gz")):
        path.unlink()
        os.mkfifo(path)


def a_pipe_for_the_study(folder):
    (folder / "study.yaml").unlink()
    os.mkfifo(folder / "study.yaml")


def a_pipe_for_the_journal(folder):
    (folder / "journal").mkdir()
    os.mkfifo(folder / "journal" / "main.jsonl.gz")


def a_pipe_for_the_manifest(folder):
    (folder / "run.json").unlink()
    os.mkfifo(folder / "run.json")


def brackets(folder):
    raw_event(folder, b"[" * 100_000)


def brackets_in_the_manifest(folder):
    (folder / "run.json").write_text("[" * 100_000)


def a_condition_with_a_null(folder):
    forge(folder, lambda manifest: manifest["conditions"][0].update(name="a\0b"))


def a_condition_with_half_a_sign(folder):
    forge(folder, lambda manifest: manifest["conditions"][0].update(name="a\ud800"))


def a_tournament_of_anything(folder):
    forge(folder, lambda manifest: manifest["conditions"][0].update(tournament={"policies": 3, "steps": 10**9}))


def an_import_that_counts_two_plays(folder):
    mark = {"format": "x", "by": "somebody", "of": "there", "commit": "c", "files": {}, "plays": {"talk": [1, 2]}}
    forge(folder, lambda manifest: manifest.update(imported=mark))


def a_condition_that_climbs(folder):
    forge(folder, lambda manifest: manifest["conditions"][0].update(name="../../../escaped"))


def integers_of_100_bits(folder):
    def change(record):
        return {name: 2**100 if type(value) is int else value for name, value in record.items()}

    every_event(folder, lambda record: record if record["type"] == "episode" else change(record))


def a_forged_model(folder):
    model = {"policy": "llm:gpt-9", "options": {}, "token_counter": "estimate"}
    model["pack"] = {"name": "en-a", "version": 1, "digest": "0" * 16}
    forge(folder, lambda manifest: manifest.update(models=[model], policies={"llm:gpt-9": "language model"}))


def a_report_that_is_a_link(folder):
    outside = folder.parents[1] / "outside"
    outside.mkdir()
    (folder / "report").symlink_to(outside)
    (folder / "export").symlink_to(outside)


def events_that_are_links(folder):
    secret = folder.parents[1] / "secret.gz"
    for path in folder.glob("events/*/*.gz"):
        path.rename(secret)
        path.symlink_to(secret)


def formulas(folder):
    def change(record):
        return record | {"text": '=cmd|"/C calc"!A0'} if record["type"] == "message" else record

    every_event(folder, change)
    manifest = read_manifest(folder)
    for path in folder.glob("*.parquet"):  # made anew from the events, then
        path.unlink()
        del manifest["files"][path.name]
    write_manifest(folder, manifest)


def unpaired_text(folder):
    raw_event(folder, b'{"type":"message","round":0,"step":0,"agent":"player_0","text":"\\ud800"}')


def a_session_that_is_no_session(folder):
    forge(folder, lambda manifest: manifest.update(sessions=[{"started": 5, "ended": [], "asking": "x"}]))


IMPORTING = (a_policy_in_the_folder, a_policy_in_a_package, a_policy_beside_a_model, a_policy_of_the_standard_library)
LOADING = (a_pack_with_an_escape, a_wording_with_an_escape, a_network_of_its_own, a_table_of_its_own)
REACHING = (
    *(an_address_of_its_own, one_address_of_its_own_of_two, an_address_like_the_provider, an_address_as_a_model),
    the_key_of_something_else,
)
DAMAGED = (
    *(a_bomb, pipes_for_events, a_pipe_for_the_study, a_pipe_for_the_journal, a_pipe_for_the_manifest),
    *(brackets, brackets_in_the_manifest, a_condition_with_a_null, a_condition_with_half_a_sign),
    *(a_condition_that_climbs, integers_of_100_bits, events_that_are_links, unpaired_text),
    *(a_session_that_is_no_session, a_tournament_of_anything, an_import_that_counts_two_plays),
)
DECEIVING = (a_forged_model, a_report_that_is_a_link, formulas)
