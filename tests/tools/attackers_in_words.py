"""Run folders with texts wherever a text may stand that would act where they are shown: terminals, pages, tables."""

import contextlib

import attackers

from llm_coop_envs.errors import LlmCoopError
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.storage.files import pack_lines, read_lines
from llm_coop_envs.util.opening import DAMAGED

#: Sets the window's title, clears the screen, and writes from right to left.
ESCAPES = "\x1b]0;owned\x07\x1b[2J\u202eowned\x9b31m\r"
MARKUP = "</script><script>owned()</script><img src=x onerror=owned()>\"'--><b>"
MARKDOWN = "](javascript:owned()) ![x](http://theirs.example/x.png) <img src=http://theirs.example/x>\n---\nowned: true"
FORMULA = '=cmd|"/C calc"!A0'
RICH = "[bold red]owned[/] [link=http://theirs.example]owned[/link] [/]"
KINDS = {"escapes": ESCAPES, "markup": MARKUP, "markdown": MARKDOWN, "formulas": FORMULA, "rich": RICH}


def leaves(data, path=()):
    """The places of all texts in plain data."""
    if isinstance(data, str):
        yield path
    children = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in children:
        yield from leaves(value, (*path, key))


def changed(data, path, text):
    """Plain data with another text in one place."""
    key, *rest = path
    value = changed(data[key], rest, text) if rest else text
    if isinstance(data, dict):
        return {**data, key: value}
    return [*data[:key], value, *data[key + 1 :]]


def speak_everywhere(folder, text):
    """Put a text into every place of the manifest and of the events where the run can still be read."""
    put_into_events(folder, text)
    manifest = attackers.read_manifest(folder)
    manifest.pop("check", None)
    for path in list(leaves(manifest)):
        if path[0] in ("files", "format", "kind", "status", "digest", "policies") or path[-1] == "policy":
            continue
        tried = changed(manifest, path, text)
        attackers.write_manifest(folder, dict(tried))
        with contextlib.suppress(LlmCoopError, *DAMAGED):
            run = open_run(folder)
            (condition,) = run.conditions
            condition.spec.environment(**condition.settings)
            run.read_events(condition.name, condition.seeds[0])
            manifest = tried
    attackers.write_manifest(folder, manifest)


def rename_condition(folder, name):
    """Give the condition another name, in all places."""
    manifest = attackers.read_manifest(folder)
    before = manifest["conditions"][0]["name"]
    (folder / "events" / before).rename(folder / "events" / name)
    manifest["conditions"][0]["name"] = name
    manifest["files"] = {
        path.replace(f"events/{before}/", f"events/{name}/"): record for path, record in manifest["files"].items()
    }
    attackers.write_manifest(folder, manifest)
    for path in folder.glob("events/*/*.gz"):
        header, *events = read_lines(path)
        path.write_bytes(pack_lines([header | {"condition": name}, *events]))
    attackers.record_files(folder)


def put_into_events(folder, text):
    """In texts that players and rules wrote, and in fields that nobody knows."""
    known = ("type", "condition", "scenario", "format", "agent")

    def spoken(record):
        if record["type"] == "episode":
            return record
        return {name: text if isinstance(value, str) and name not in known else value for name, value in record.items()}

    for path in folder.glob("events/*/*.gz"):
        path.write_bytes(pack_lines([spoken(record) for record in read_lines(path)]))
    attackers.record_files(folder)
    manifest = attackers.read_manifest(folder)
    for path in folder.glob("*.parquet"):  # made anew from the events, then
        path.unlink()
        del manifest["files"][path.name]
    attackers.write_manifest(folder, manifest)
