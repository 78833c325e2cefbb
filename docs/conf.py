"""The site of the documentation: `make docs` builds it from these pages and the docstrings of what is public."""

from __future__ import annotations

import html
import importlib
import inspect
import json
import os
import re
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import nbformat
import typer
from sphinx.application import Sphinx

import llm_coop_envs
from llm_coop_envs.errors import LlmCoopError

project = "llm-coop-envs"
author = "The llm-coop-envs developers"
copyright = f"2026, {author}"
release = llm_coop_envs.__version__
version = release

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["_build", "joss", "jupyter_execute"]
html_theme = "furo"
html_title = "llm-coop-envs"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["to_section.js"]
html_search_scorer = str(Path(__file__).with_name("_static") / "scorer.js")
html_theme_options = {
    "source_repository": "https://github.com/llm-coop-envs/llm-coop-envs/",
    "source_branch": "main",
    "source_directory": "docs/",
}
html_show_sourcelink = False
GALLERY = Path(__file__).parents[1] / "build" / "gallery"
html_extra_path = [str(GALLERY / "site")] if (GALLERY / "gallery.json").is_file() else []

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_timeout = 120
nb_execution_raise_on_error = True
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_use_ivar = True
smartquotes_action = "q"  # and no dashes of the two hyphens of an option
copybutton_exclude = ".linenos, .gp"
suppress_warnings = ["myst.header", "ref.python"]

HERE = Path(__file__).parent
TABLE = re.compile(
    r"(?:^\*\*(?P<title>.+?)\*\*.*\n\n)?^\| import from \| names \|\n.*\n(?P<rows>(?:\|.*\n)+)", re.MULTILINE
)
NEEDS = "needs-"  # the tag of a notebook's cell, with the module that it needs
EVERY_NAME = ("all", "every", "the class")


def public_names(rows: str) -> Iterator[tuple[str, list[str] | None]]:
    """Yield the modules of one table of `public.md` with their names, or None for all that a module exports."""
    for row in rows.splitlines():
        modules, names = row.strip("| ").split(" | ", 1)
        places = re.findall(r"`([\w.]+)`", modules)
        parts = names.split(";") if ";" in names else [names] * len(places)
        for place, part in zip(places, parts, strict=True):
            yield place, None if any(word in part for word in EVERY_NAME) else re.findall(r"`(\w+)`", part)


def describe_module(module_name: str, names: list[str] | None, described: set[int]) -> list[str]:
    """Return the reference of one module as reStructuredText."""
    try:
        module = importlib.import_module(module_name)
    except LlmCoopError as error:  # an extra that this build does without
        return [module_name, "-" * len(module_name), "", f"``{'``, ``'.join(names or ())}``: {error}", ""]
    lines = [module_name, "-" * len(module_name), "", ".. currentmodule:: " + module_name, ""]
    for name in names if names is not None else sorted(getattr(module, "__all__", ())):
        member = getattr(module, name, None)
        if id(member) in described:  # listed by two modules
            lines += [f"* ``{name}``", ""]
        elif inspect.isclass(member):
            lines += [f".. autoclass:: {name}", "   :members:", "   :show-inheritance:", ""]
        elif inspect.isroutine(member):
            lines += [f".. autofunction:: {name}", ""]
        elif inspect.ismodule(member):
            lines += [f"* ``{module_name}.{name}`` (module)", ""]
        else:
            lines += [f"* ``{name}``", ""]
        described.add(id(member))
    return lines


def describe_command(name: str, command: Any) -> list[str]:
    """Return the reference of one command of the terminal as Markdown."""
    lines = [f"## llm-coop {name}", "", (command.help or "").replace("\b", "").strip(), ""]
    options = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
    if options:
        lines += ["| option | meaning |", "|---|---|"]
    for parameter in options:
        names = ", ".join(f"`{name}`" for name in parameter.opts)
        meaning = " ".join((getattr(parameter, "help", None) or "").split()).replace("|", "\\|")
        lines.append(f"| {names} | {meaning} |")
    return [*lines, ""]


def write_reference(app: Sphinx) -> None:
    """Write the pages of the reference before Sphinx looks for its sources."""
    from llm_coop_envs.benchmarks.doc_pages.environments import full_texts
    from llm_coop_envs.cli.main import app as command_line

    folder = HERE / "reference"
    folder.mkdir(exist_ok=True)
    described: set[int] = set()
    for table in TABLE.finditer((HERE / "public.md").read_text(encoding="utf-8")):
        title = table["title"] or "Environments"
        lines = [title, "=" * len(title), ""]
        for module_name, names in public_names(table["rows"]):
            lines += describe_module(module_name, names, described)
        (folder / f"{title.lower().replace(' ', '_')}.rst").write_text("\n".join(lines), encoding="utf-8")
    group = typer.main.get_command(command_line)
    pages = [describe_command(name, command) for name, command in sorted(group.commands.items()) if not command.hidden]
    text = ["# Commands", "", "What `llm-coop COMMAND --help` prints.", "", *(line for page in pages for line in page)]
    (folder / "commands.md").write_text("\n".join(text), encoding="utf-8")
    (folder / "settings.md").write_text(full_texts(), encoding="utf-8")
    (folder / "gallery.md").write_text(gallery_page(), encoding="utf-8")
    write_notebooks()


def write_notebooks() -> None:
    """Copy the notebooks, which are stored without outputs, to where Sphinx runs them and shows what they show."""
    folder = HERE / "notebooks"
    folder.mkdir(exist_ok=True)
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # for `!llm-coop`
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    for path in sorted((HERE.parent / "examples" / "notebooks").glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        for cell in notebook.cells:
            tags = cell.metadata.get("tags", [])
            missing = [tag for tag in tags if tag.startswith(NEEDS) and not find_spec(tag.removeprefix(NEEDS))]
            if missing:
                cell.metadata["tags"] = [*tags, "skip-execution"]
                module = missing[0].removeprefix(NEEDS)
                cell.source = f"# Not run for this page: {module} was not installed.\n{cell.source}"
        nbformat.write(notebook, folder / path.name)


def card(study: dict[str, Any]) -> str:
    """Return one study of the gallery as HTML."""
    about, source = html.escape(study["about"]), html.escape(study["source"])
    played = f"{study['episodes']} episodes" if study["whole"] else "one small episode of each condition"
    picture = f'<img src="../gallery/{study["picture"]}" alt="A figure of its report" loading="lazy">'
    link = f'<a href="../gallery/{study["name"]}/index.html">{picture if study["picture"] else ""}{study["name"]}</a>'
    return f'<div class="card">{link}<p>{about}</p><p><small>{source}. {study["players"]}, {played}.</small></p></div>'


def gallery_page() -> str:
    """Return the page of what can be seen without installing, as Markdown."""
    lines = ["# See it without installing", ""]
    if not html_extra_path:
        return "\n".join([*lines, "This copy of the site was built without its gallery; `make docs` builds it.", ""])
    record = json.loads((GALLERY / "gallery.json").read_text(encoding="utf-8"))
    lines += [
        "Everything here was played by **scripted rules**, in some studies by learners, never by a language model: "
        "it shows what runs, reports and films look like.",
        "",
        "## Click through a run",
        "",
        f"<a href='../gallery/run.html'>The run of the study <code>{record['clicked']}</code></a>: its answers, "
        "episodes, talk and agents, as `llm-coop view` shows them and `llm-coop export --to html` writes them.",
        "",
    ]
    if record["films"]:
        films = (
            f'<figure><a href="../gallery/{film["file"]}">'
            f'<img src="../gallery/{film["file"]}" alt="{html.escape(film["title"])}" loading="lazy"></a>'
            f"<figcaption>{html.escape(film['title'])}</figcaption></figure>"
            for film in record["films"]
        )
        lines += ["## Films", "", '<div class="gallery">', *films, "</div>", ""]
    lines += ["## Reports", "", '<div class="gallery">', *map(card, record["cards"]), "</div>", ""]
    skipped = ", ".join(f"`{name}`" for name in record["skipped"])
    lines += [f"Not here, because they need networks that you train first, or a model: {skipped}.", ""]
    return "\n".join(lines)


def show_settings(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Keep the lists of settings in the docstrings of `parallel_env` and its like as they are."""
    if name.rpartition(".")[0].endswith("_v0") and len(lines) > 4:
        lines[4:] = [".. code-block:: text", "", *(f"   {line}" for line in lines[4:])]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the writer of the reference."""
    app.connect("config-inited", lambda app, config: write_reference(app))
    app.connect("autodoc-process-docstring", show_settings)
    return {"parallel_read_safe": True}
