"""Commands as a fresh installation runs them, without any extra, or with some.

    python tests/tools/without_extras.py COMMANDS.json

reads a list of command lines, and for each prints the extras that it asks for, one after the other, each granted before
the next try. Every try is a process of its own, in which the libraries of all other extras cannot be imported.
"""

import json
import os
import re
import sys
import tempfile
from pathlib import Path

import tomllib

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
ASKED = re.compile(r"pip install 'llm-coop-envs\[([\w,-]+)\]'")
#: What packages are imported as, where their name does not say it.
MODULES = {"pygame-ce": "pygame", "python-docx": "docx", "imageio-ffmpeg": "imageio_ffmpeg", "inspect-ai": "inspect_ai"}


def packages(extra, extras):
    """The modules that an extra brings, those of other extras in it among them."""
    for requirement in extras[extra]:
        name = re.match(r"[\w-]+", requirement)[0]
        if name == "llm-coop-envs":
            for inner in re.search(r"\[(.*?)\]", requirement)[1].split(","):
                yield from packages(inner, extras)
        else:
            yield MODULES.get(name, name.replace("-", "_"))


class Without:
    """A finder that does not find some modules."""

    def __init__(self, finder, modules):
        self._finder, self._modules = finder, frozenset(modules)

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self._modules:
            return None
        return self._finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self._finder, name)


def run(arguments, absent):
    """The output of a command in a process without some modules."""
    with tempfile.TemporaryFile("w+") as file:
        child = os.fork()
        if not child:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            finders = [finder for finder in sys.meta_path if hasattr(finder, "find_spec")]
            sys.meta_path[:] = [Without(finder, absent) for finder in finders]
            from llm_coop_envs.cli.main import main

            sys.argv = ["llm-coop", *arguments]
            try:
                main()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(0)
        os.waitpid(child, 0)
        file.seek(0)
        return file.read()


def asks(arguments, extras):
    """The extras that a command asks for until it asks for none, and its last output."""
    everything = {module for extra in extras for module in packages(extra, extras)}
    granted, asked = set(), []
    while True:
        output = run(arguments, everything - granted)
        found = ASKED.search(output)
        wanted = set() if found is None else {part for extra in found[1].split(",") for part in packages(extra, extras)}
        if wanted <= granted:  # nothing is missing, or what is not installed here either
            return asked, output
        asked.append(found[1])
        granted |= wanted


def main():
    extras = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    extras = {name: extras[name] for name in extras if name not in ("all", "test", "docs", "dev")}
    for arguments in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")):
        asked, output = asks(arguments, extras)
        print(json.dumps([arguments, asked, output[-600:]]), flush=True)


if __name__ == "__main__":
    main()
