"""Export of a finished run to a folder in another tool's form. A failed export leaves no folder behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from llm_coop_envs.errors import RunError, SettingsError
from llm_coop_envs.runs.failures import count_there
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.storage.files import TEMPORARY, cannot_write, check_folder_inside
from llm_coop_envs.util.checks import suggestion
from llm_coop_envs.util.paths import StrPath
from llm_coop_envs.util.references import load

#: The function that writes each form; it takes the run and an empty folder. The first line of its docstring is the
#: form's description on the command line.
FORMS: Mapping[str, str] = {
    form: f"{__name__.rpartition('.')[0]}.{reference}"
    for form, reference in {
        "parquet": "parquet:write_parquet",
        "csv": "csv_tables:write_csv",
        "otree": "otree:write_otree",
        "inspect": "inspect_log:write_inspect",
        "hf": "hugging_face:write_hugging_face",
        "eee": "every_eval:write_every_eval",
    }.items()
}


STATES_LICENCE = "hf"


def all_forms() -> list[str]:
    """The names of all forms, with the one that the page writes."""
    return [*FORMS, "html"]


def export_run(
    folder: StrPath, form: str, out: StrPath | None = None, *, partial: bool = False, licence: str = ""
) -> Path:
    """Write a finished run in another form.

    Args:
        folder: the run's folder; it is only read.
        form: a name in `FORMS`.
        out: a new or empty folder; by default `export/FORM` in the run's, or `export/FORM-N` with N episodes of an
            unfinished run.
        partial: whether the finished episodes of an unfinished run may be written.
        licence: the licence under which the data will be published, as SPDX names it; for `hf` alone.

    Returns:
        The folder that was written.

    Raises:
        SettingsError: there is no such form or licence, or the form has no place for one.
        RunError: the run is not finished (without `partial`), has no finished episode, an episode is damaged, or the
            target is in use or cannot be written.
        MissingExtra: a library is not installed.
    """
    if form not in FORMS:
        raise SettingsError("to", form, f"is no form of export; {suggestion(form, all_forms())}")
    if licence and form != STATES_LICENCE:
        raise SettingsError("licence", licence, f"has no place in {form}; it is stated in the card of {STATES_LICENCE}")
    folder = Path(folder)
    run = open_run(folder)
    finished = len(run.finished())
    whole = finished == run.total and run.complete
    if not whole and not (partial and finished):
        how = "or export what is there with --partial" if finished and not partial else "then export it"
        raise RunError(f"{folder}: is not finished ({count_there(run)}); continue it with 'llm-coop run', {how}")
    name = form if whole else f"{form}-{finished}"
    target = folder / "export" / name if out is None else Path(out)
    write: Callable[..., object] = load(FORMS[form])
    with _new_folder(target) as unfinished:
        write(run, unfinished, **({"licence": licence} if licence else {}))
    return target


@contextlib.contextmanager
def _new_folder(target: Path) -> Iterator[Path]:
    """Yield a temporary folder that becomes the target when the block ends, and is removed if the block raises."""
    check_folder_inside(target)
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise RunError(f"{target}: is in use; choose a new or empty folder with -o")
        missing = [folder for folder in target.parents if not folder.exists()]
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=TEMPORARY, dir=target.parent))
        try:
            yield temporary
            temporary.chmod(0o777 & ~_umask())
            os.replace(temporary, target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
            for folder in missing:
                with contextlib.suppress(OSError):  # it holds what was written
                    folder.rmdir()
    except OSError as error:
        raise cannot_write(target, error) from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
