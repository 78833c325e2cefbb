"""What is installed is what is in the folders, and nothing heavy comes with it."""

import ast
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import warnings
import zipfile
from pathlib import Path

import pytest
from same_archive import write_again

from llm_coop_envs.registration import register_all

ROOT = Path(__file__).parents[1]
MAPPED = ("policies", "baselines", "render", "benchmarks")
HEAVY = ("pygame", "torch", "litellm", "openai", "matplotlib", "pyarrow", "stable_baselines3", "ray", "numba")


def declared():
    tomllib = pytest.importorskip("tomllib")
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]


def on_disk():
    found = set()
    for top in ("llm_coop_envs", *MAPPED):
        for init in (ROOT / top).rglob("__init__.py"):
            parts = init.parent.relative_to(ROOT).parts
            if top == "llm_coop_envs" and len(parts) > 1 and parts[1] in MAPPED:
                continue
            found.add(".".join(parts if top == "llm_coop_envs" else ("llm_coop_envs", *parts)))
    return found


def test_two_source_archives_of_the_same_files_are_the_same_bytes():
    """When they were built, by whom, and in which order files were listed makes no difference."""

    def archive(names, seconds, owner, mode):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            for name in names:
                member = tarfile.TarInfo(name)
                member.size, member.mtime, member.uname, member.mode = len(name), seconds, owner, mode
                tar.addfile(member, io.BytesIO(name.encode()))
        return packed.getvalue()

    first, second = archive("ab", 1e9, "x", 0o640), archive("ba", 1.5e9 + 0.5, "root", 0o664)
    assert first != second
    assert write_again(first, 7) == write_again(second, 7)
    with tarfile.open(fileobj=io.BytesIO(write_again(first, 7))) as tar:
        assert {name: tar.extractfile(name).read() for name in tar.getnames()} == {"a": b"a", "b": b"b"}


def test_the_notices_of_the_pages_libraries_are_in_the_wheel():
    """Every library that is bundled into the page is named with its licence, in a file that every wheel carries."""
    notices = (ROOT / "llm_coop_envs/page/static/notices.txt").read_text(encoding="utf-8")
    bundled = json.loads((ROOT / "llm_coop_envs/page/front/package.json").read_text())["dependencies"]
    assert {"preact", "@preact/signals", "uplot"} <= set(bundled)
    parts = re.split(r"\n(?=\S+ \d+\.\d+\.\d+)", notices)
    for name in bundled:
        own = [part for part in parts if re.match(rf"{re.escape(name)} \d", part, re.IGNORECASE)]
        assert own, name
        assert "MIT License" in own[0], name
        assert "Copyright (c)" in own[0], name
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "llm_coop_envs/page/static/notices.txt" in project["license-files"]


#: What only developers run is not in the wheel.
DEVELOPERS = {"llm_coop_envs.benchmarks.speed", "llm_coop_envs.benchmarks.doc_pages"}


def test_every_package_on_disk_is_declared_but_the_developers_own():
    assert set(declared()["packages"]) | DEVELOPERS == on_disk()
    assert not set(declared()["packages"]) & DEVELOPERS
    assert len(declared()["packages"]) == len(set(declared()["packages"]))


def test_every_data_file_is_declared():
    data = declared()["package-data"]
    assert list(data) == ["*"]
    covered = set()
    for pattern in data["*"]:
        found = {path.resolve() for package in on_disk() for path in (ROOT / package.replace(".", "/")).glob(pattern)}
        assert found, f"nothing matches {pattern}"
        covered |= found
    for top in ("llm_coop_envs", *MAPPED):
        for path in (ROOT / top).rglob("*"):
            if path.is_relative_to(ROOT / "llm_coop_envs" / "page" / "front"):  # what static/ was built of
                continue
            if any(path.is_relative_to(ROOT / name.partition(".")[2].replace(".", "/")) for name in DEVELOPERS):
                continue
            if path.suffix in {".jinja", ".yaml", ".csv", ".json", ".html", ".css", ".js"} and path.is_file():
                assert path.resolve() in covered, f"{path.relative_to(ROOT)} is not package data"


def project():
    return pytest.importorskip("tomllib").loads((ROOT / "pyproject.toml").read_text())["project"]


def brought_by(*extras):
    """The distributions that the package brings, alone and with extras, with the extras of extras."""
    found, waiting = set(), [*project()["dependencies"], *(f"llm-coop-envs[{extra}]" for extra in extras)]
    while waiting:
        name, inner = re.match(r"([\w.-]+)(?:\[([\w,]+)\])?", waiting.pop()).groups()
        found.add(re.sub(r"[-_.]+", "-", name).lower())
        if name == "llm-coop-envs":
            waiting += [one for extra in inner.split(",") for one in project()["optional-dependencies"][extra]]
    return found


#: What comes with another distribution, and modules with other names than their distributions.
COMES_WITH = {"torch": "stable-baselines3", "httpx": "openai", "httpx2": "openai", "httpx_aiohttp": "openai"} | {
    "yaml": "pyyaml",
    "docx": "python-docx",
    "pygame": "pygame-ce",
    "inspect_ai": "inspect-ai",
    "click": "typer",
    "llvmlite": "numba",
    "typing_extensions": "typing-extensions",
    "sb3_contrib": "sb3-contrib",
    "stable_baselines3": "stable-baselines3",
    "imageio_ffmpeg": "imageio-ffmpeg",
}
#: Used where they happen to be there; everything works without them.
WELCOME = {"tokenizers", "tiktoken", "transformers", "tensorboard", "jax"}


def sources():
    for top in ("llm_coop_envs", *MAPPED):
        for path in (ROOT / top).rglob("*.py"):
            if top != "llm_coop_envs" or path.relative_to(ROOT / top).parts[0] not in MAPPED:
                yield path, ast.parse(path.read_text(encoding="utf-8"))


def third_party(tree):
    """The libraries imported below a node, by the distribution that brings them."""
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module]
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "need" and len(node.args) == 3:
            names = [one.value for one in ast.walk(node.args[0]) if isinstance(one, ast.Constant) and one.value != 3]
        for name in (name.partition(".")[0] for name in names):
            if name not in sys.stdlib_module_names and name not in WELCOME | {"llm_coop_envs"}:
                yield COMES_WITH.get(name, name)


def test_whatever_is_imported_is_declared():
    known = brought_by(*project()["optional-dependencies"])
    assert {(path.name, one) for path, tree in sources() for one in third_party(tree) if one not in known} == set()
    assert {"rich", "typing-extensions", "typer", "numpy"} <= brought_by()


def test_a_missing_library_is_in_the_extra_that_the_sentence_names():
    named = 0
    for path, tree in sources():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "need" and len(node.args) == 3:
                extra, wanted = node.args[2].value, set(third_party(node))
            elif isinstance(node, ast.Try) and node.handlers and "MissingExtra" in ast.dump(node.handlers[0]):
                made = next((one for one in ast.walk(node.handlers[0]) if isinstance(one, ast.Call)), None)
                if made is None or len(made.args) < 2 or not isinstance(made.args[1], ast.Constant):
                    continue  # it passes on what another sentence said
                extra = made.args[1].value
                wanted = {one for line in node.body for one in third_party(line)}
            else:
                continue
            named += 1
            assert wanted - brought_by() <= brought_by(extra), f"{path}, line {node.lineno}"
    assert named > 10


def test_the_first_page_lists_every_extra_that_users_install():
    page = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
    named = {name for row in re.findall(r"^\| (`[^|]*) \|", page, re.M) for name in re.findall(r"`([^`]+)`", row)}
    assert set(project()["optional-dependencies"]) - named == {"all", "test", "docs", "dev"}


def test_extras_of_learners_stand_apart_and_all_installs_together():
    extras = project()["optional-dependencies"]
    assert brought_by("sb3") - brought_by() == {"llm-coop-envs", "stable-baselines3", "sb3-contrib"}
    assert extras["ray"] == ["ray>=2.60"]
    assert extras["rllib"] == ["ray[rllib]>=2.60"]
    # RLlib pins an older gymnasium, and SuperSuit is needed by tests alone.
    assert not {"ray", "supersuit"} & brought_by("all")
    assert "litellm>=1.84" in extras["llm"]


def test_the_links_are_relative_links():
    for name in MAPPED:
        link = ROOT / "llm_coop_envs" / name
        assert link.is_symlink()
        assert str(link.readlink()) == f"../{name}"


@pytest.fixture(scope="module")
def without_links(tmp_path_factory):
    """A checkout as git makes it on Windows, where a link is a small file with its target, and what is installed."""
    setuptools = pytest.importorskip("setuptools")
    if int(setuptools.__version__.partition(".")[0]) < 77:
        pytest.skip("needs setuptools 77 or newer, which pyproject.toml asks for to build")
    checkout, site = tmp_path_factory.mktemp("checkout"), tmp_path_factory.mktemp("site")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    if not listed:
        pytest.skip("needs the files that git lists")
    for name in listed.rstrip("\0").split("\0"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_symlink():
            (checkout / name).write_text(str((ROOT / name).readlink()))
        elif (ROOT / name).is_file():
            shutil.copyfile(ROOT / name, checkout / name)
    build = (  # which changes sys.argv
        "import sys; from setuptools.build_meta import build_editable, build_wheel; site = sys.argv[1];"
        "build_editable(site); build_wheel(site)"
    )
    subprocess.run([sys.executable, "-c", build, site], cwd=checkout, capture_output=True, check=True)
    (editable,) = site.glob("*editable*.whl")
    with zipfile.ZipFile(editable) as archive:
        archive.extractall(site)
    return checkout, site


@pytest.mark.rare
def test_a_checkout_without_links_installs_and_plays(without_links, tmp_path):
    """As on Windows, with calls that are missing there; `windows_stand_in.py` says what that does not show."""
    checkout, site = without_links
    assert not [path for path in checkout.rglob("*") if path.is_symlink()]
    (tmp_path / "study.yaml").write_text(SCRIPTED_STUDY)
    script = ROOT / "tests" / "tools" / "windows_stand_in.py"
    done = subprocess.run(
        [sys.executable, "-P" if sys.version_info >= (3, 11) else "-B", script, site, "study.yaml", "run"],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *_, imported = done.stdout.splitlines()
    assert json.loads(imported) == [
        str(checkout / name / "__init__.py") for name in ("llm_coop_envs", "policies", "render")
    ]
    assert "3 of 3 episodes are this run's own, 3 of them were played again" in done.stdout


def test_a_wheel_built_without_links_has_the_same_files(without_links):
    _, site = without_links
    (wheel,) = (path for path in site.glob("*.whl") if "editable" not in path.name)
    with zipfile.ZipFile(wheel) as archive:
        modules = {name for name in archive.namelist() if name.endswith(".py")}
        assert archive.read("llm_coop_envs/policies/__init__.py") == (ROOT / "policies/__init__.py").read_bytes()
    packaged = {name.replace(".", "/") for name in declared()["packages"]}
    assert modules == {f"{package}/{path.name}" for package in packaged for path in (ROOT / package).glob("*.py")}


def test_no_file_has_a_name_that_windows_does_not_take():
    paths = [
        path for top in ("llm_coop_envs", "docs", "tests", "examples", *MAPPED) for path in (ROOT / top).rglob("*")
    ]
    made = {"node_modules", "__pycache__"}
    names = [path.relative_to(ROOT).as_posix() for path in paths if not made & set(path.parts)]
    reserved = re.compile(r'[<>:"|?*\\]|(^|/)(con|prn|aux|nul|com\d|lpt\d)(\.|/|$)|[. ](/|$)', re.IGNORECASE)
    assert [name for name in names if reserved.search(name)] == []
    assert len({name.casefold() for name in names}) == len(names)


def elsewhere(code, tmp_path, *options):
    """Run code in a fresh interpreter that stands in an empty folder."""
    return subprocess.run(
        [sys.executable, *options, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{code}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_all_packages_import_from_anywhere(tmp_path):
    imports = "\n".join(f"import {package}" for package in declared()["packages"])
    assert elsewhere(f"{imports}\nprint('fine')", tmp_path) == "fine\n"


def test_nothing_heavy_is_imported(tmp_path):
    code = f"""
import llm_coop_envs
first = [m for m in {HEAVY!r} if m in sys.modules]
for module in (llm_coop_envs.kbc_v0, llm_coop_envs.bertrand_v0, llm_coop_envs.evacuation_v0):
    env = module.parallel_env(max_cycles=3)
    _, infos = env.reset(seed=0)
    while env.agents:
        env.step({{}})
print(first, [m for m in {HEAVY!r} if m in sys.modules])
"""
    assert elsewhere(code, tmp_path) == "[] []\n"


def test_the_scenarios_are_attributes_and_modules():
    import llm_coop_envs.kbc_v0

    assert llm_coop_envs.kbc_v0.parallel_env(players=2).possible_agents == ["player_0", "player_1"]
    assert {"kbc_v0", "bertrand_v0", "evacuation_v0"} <= set(dir(llm_coop_envs))
    with pytest.raises(AttributeError, match="nosuch_v0"):
        _ = llm_coop_envs.nosuch_v0
    for name in ("kbc_v0", "bertrand_v0", "evacuation_v0"):
        assert set(getattr(llm_coop_envs, name).__all__) - {"batch_env"} == {"env", "parallel_env", "raw_env"}


@pytest.mark.parametrize("scenario", ["kbc", "bertrand", "evacuation"])
def test_registration_in_both_registries(scenario):
    import pettingzoo

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        register_all()
    for spelling in (f"llm_coop/{scenario}-v0", f"llm_coop/{scenario}_v0"):
        env = pettingzoo.make("parallel", spelling, max_cycles=5)
        assert env.metadata["name"] == f"{scenario}_v0"
        assert env._horizon == 5
    assert pettingzoo.make("aec", f"llm_coop/{scenario}-v0").unwrapped.metadata["name"] == f"{scenario}_v0"


def test_exported_errors_all_derive_from_one():
    import inspect

    from llm_coop_envs import errors

    found = [e for _, e in inspect.getmembers(errors, inspect.isclass) if e.__module__ == errors.__name__]
    assert len(found) == 13
    assert all(issubclass(e, errors.LlmCoopError) for e in found)
    for error in found:
        assert error.__name__ in errors.__doc__ or error is errors.LlmCoopError


SCRIPTED_STUDY = """
name: rules
conditions:
  - {name: kbc, scenario: kbc, policies: poisson, episodes: 1}
  - {name: bertrand, scenario: bertrand, policies: best_reply, episodes: 1}
  - {name: evacuation, scenario: evacuation, policies: rule_based, episodes: 1}
"""


def test_a_run_without_models_loads_nothing_of_theirs_but_the_readers_of_what_was_said(tmp_path):
    (tmp_path / "study.yaml").write_text(SCRIPTED_STUDY)
    code = """
from typer.testing import CliRunner
from llm_coop_envs.cli.main import app
done = CliRunner().invoke(app, ["run", "study.yaml", "-o", "run", "--workers", "1"])
models = {name for name in sys.modules if name.startswith("llm_coop_envs.policies.llm.")}
readers = {name for name in models if ".parsing" in name or name.endswith((".playing", "_readers"))}
print(done.exit_code, sorted(models - readers))
"""
    assert elsewhere(code, tmp_path) == "0 []\n"


def test_the_readme_holds_on_a_package_page():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    home = project()["urls"]["Homepage"].removeprefix("https://github.com/")
    own = (f"https://github.com/{home}/blob/main/", f"https://raw.githubusercontent.com/{home}/main/")
    links = re.findall(r"\]\(([^)]+)\)", readme)
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    there = [link.removeprefix(own[0]).removeprefix(own[1]) for link in links if link.startswith(own)]
    assert len(there) > 10
    assert [one for one in there if not (ROOT / one.partition("#")[0]).exists()] == []


def test_what_is_not_code_is_in_the_source_distribution():
    listed = (ROOT / "MANIFEST.in").read_text().splitlines()
    assert {"graft tests", "graft docs", "graft examples"} <= set(listed)
