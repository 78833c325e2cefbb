"""Run folders whose files are not what they look like: links, pipes, folders, and archives that are too much."""

import functools
import gzip
import io
import json
import os
import struct
import zipfile

import attackers
import numpy as np
import zstandard

from llm_coop_envs.policies.llm.journal.frames import packer

#: What links of an attacker lead to, beside the working directory's runs.
VICTIM, VICTIM_TEXT = "victim", "precious\n"
#: Files that a session opens for writing, and folders in which it writes.
WRITTEN = (
    *(".lock", ".begin.1", ".ledger", "journal/main.jsonl.zst", "journal/main.jsonl.gz", "journal/.ledger"),
    *(".order-main.json", ".order-main.taken", ".control-main.json", "report/index.html", "export/run.html"),
    *("episodes.parquet", "answers.parquet", "claims/talk/0.1"),
)
FOLDERS = ("journal", "events", "events/talk", "claims", "report", "export")


def victim(folder):
    path = folder.parents[1] / VICTIM
    path.write_text(VICTIM_TEXT)
    return path


def replace(path, make):
    """Make something else where a file was, or was not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    make(path)


# Each takes the copy of a run at <working directory>/runs/theirs.


def links_for_all_that_is_written(folder):
    target = victim(folder)
    for name in WRITTEN:
        if not (folder / name).is_symlink():
            replace(folder / name, lambda path: path.symlink_to(target))


def links_to_what_is_not_there(folder):
    for name in WRITTEN:
        replace(folder / name, lambda path: path.symlink_to(folder.parents[1] / "escaped"))


def hard_links_for_all_that_is_written(folder):
    target = victim(folder)
    for name in WRITTEN:
        if not name.endswith(".1"):  # a lease that was touched just now is waited for
            replace(folder / name, lambda path: os.link(target, path))


def folders_that_are_links(folder):
    outside = folder.parents[1] / "outside"
    outside.mkdir()
    for name in FOLDERS:
        path = folder / name
        if path.is_dir():
            path.rename(folder.parents[1] / f"moved-{name.replace('/', '-')}")
        if path.parent.is_dir() and not path.parent.is_symlink():
            path.symlink_to(outside)


def links_in_a_circle(folder):
    for path in [*folder.glob("events/*/*.gz"), folder / "study.yaml", folder / "journal"]:
        path.unlink(missing_ok=True)
        path.symlink_to(path.name)


def every_file(folder, make):
    for path in [path for path in folder.rglob("*") if path.is_file() and path.name != "run.json"]:
        replace(path, make)
    for name in WRITTEN:
        if not (folder / name).exists():
            replace(folder / name, make)


def pipes_for_all_files(folder):
    every_file(folder, os.mkfifo)


def folders_for_all_files(folder):
    every_file(folder, os.mkdir)


def devices_for_all_files(folder):
    every_file(folder, lambda path: path.symlink_to("/dev/zero"))


def files_of_a_tebibyte(folder):
    """Sparse ones, which take no space."""

    def make(path):
        with path.open("wb") as file:
            os.truncate(file.fileno(), 1 << 40)

    every_file(folder, make)


def a_manifest_of_a_tebibyte(folder):
    os.truncate(folder / "run.json", 1 << 40)


def half_a_million_members(folder):
    for path in folder.glob("events/*/*.gz"):
        path.write_bytes(gzip.compress(b"") * 500_000)
    attackers.record_files(folder)


def a_journal_of_bombs(folder):
    """Frames of zstd and gzip that hold gigabytes, and one that asks for a window of two."""
    journal = folder / "journal"
    journal.mkdir(exist_ok=True)
    (journal / "main.jsonl.gz").write_bytes(attackers.compressed_zeros())
    frames = journal_frames()
    (journal / "other.jsonl.zst").write_bytes(frames)
    (journal / "third.jsonl.zst").write_bytes(struct.pack("<IB", 0xFD2FB528, 0) + bytes([0xA8]) + bytes(64))
    (journal / "fourth.jsonl.zst").write_bytes(struct.pack("<II", 0x184D2A50, 0) * 200_000)  # frames to be skipped


@functools.cache
def journal_frames():
    """One frame of 600 MiB of spaces."""
    compressor = zstandard.ZstdCompressor(level=3).compressobj()
    spaces = b" " * (1 << 20)
    return b"".join([*(compressor.compress(spaces) for _ in range(600)), compressor.flush()])


def a_journal_of_nonsense(folder):
    journal = folder / "journal"
    journal.mkdir(exist_ok=True)
    pack = packer(".jsonl.zst")
    lines = [
        b"[" * 100_000,
        b'{"type": "answer"}',
        b'{"type": "answer", "key": [1], "reply": 7}',
        b'{"type": "answer", "key": ["talk/0", "player_0", 1e400, "x"], "digest": "\\ud800", "reply": {"text": NaN}}',
        b'{"type": "error", "key": ["talk/0", "a", -1, ""], "error": []}',
        b'{"type": "begin", "part": "../../../escaped", "version": {}}',
    ]
    for number, line in enumerate(lines):
        (journal / f"p{number}.jsonl.zst").write_bytes(pack(line + b"\n"))


def arrays_with_pickles(folder):
    """A network and a table of objects, whose loading would run code, and of sizes below nothing."""

    class Evil:
        def __reduce__(self):
            return os.system, (f"touch {folder.parents[1] / attackers.CANARY}",)

    content = io.BytesIO()
    np.savez(content, about=np.array([Evil()], dtype=object), weights=np.array([Evil()], dtype=object))
    (folder / "network.npz").write_bytes(content.getvalue())
    header = b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (-5, 99999999999), }"
    with zipfile.ZipFile(folder / "table.npz", "w") as archive:
        archive.writestr("about.npy", header.ljust(128) + b"\n")
    attackers.forge(folder, attackers.seat(f"sb3:{folder / 'network.npz'}"))


def tables_of_something_else(folder):
    import pyarrow as pa
    import pyarrow.parquet as pq

    for path in folder.glob("*.parquet"):
        names = pq.read_schema(path).names
        rows = {name: pa.array([{"a": [None, {"b": 2**62}]}] * 3) for name in names}
        pq.write_table(pa.table(rows), path)
    attackers.record_files(folder)


def laughs_in_the_study(folder):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]" for k in range(1, 12)]
    (folder / "study.yaml").write_text("\n".join([*lines, "name: *a11", "conditions: *a11"]))
    attackers.record_files(folder)


def names_that_are_no_text(folder):
    for place in (folder, folder / "events", folder / "events" / "talk", folder / "journal"):
        place.mkdir(exist_ok=True)
        for name in (b"\xff\xfe.jsonl.gz", b"\x1b[31m.jsonl.zst", b"a\nb.jsonl.gz", "\u202etxt.jsonl.gz".encode()):
            with open(os.path.join(os.fsencode(place), name), "wb") as file:
                file.write(b"x")


def weights_of_its_own(folder):
    (folder / "evil.gguf").write_bytes(b"GGUF" + bytes(64))
    attackers.forge(folder, attackers.seat(f"llm:local:{folder / 'evil.gguf'}"))
    manifest = attackers.read_manifest(folder)
    attackers.reach_model(manifest, f"local:{folder / 'evil.gguf'}", base_url=None)
    attackers.write_manifest(folder, manifest)


def sessions_and_orders_of_anybody(folder):
    """Files by which sessions are found and steered, of a session that never was, on this machine and on another."""
    deep = json.dumps({"name": "0123456789abcdef", "host": os.uname().nodename, "pid": -1, "machine": "\x1b[31m"})
    for part in ("main", "\x1b[31m", "x"):
        (folder / f".control-{part}.json").write_text(deep)
    far = {"name": "0" * 16, "host": "\x1b[2J", "pid": 2**70, "answered": 1e300, "answer": {"playing": [1, {}]}}
    (folder / ".control-far.json").write_text(json.dumps(far))
    (folder / ".order-main.json").write_text("[" * 100_000)
    place = folder / "claims" / "talk"
    place.mkdir(parents=True, exist_ok=True)
    (place / "0.1").write_text(json.dumps({"name": 7, "pid": "../../../../etc", "machine": [], "started": {}}))
    (place / f"0.{'9' * 200}").write_text("[" * 100_000)


ATTACKS = (
    *(links_for_all_that_is_written, links_to_what_is_not_there, hard_links_for_all_that_is_written),
    *(folders_that_are_links, links_in_a_circle, pipes_for_all_files, folders_for_all_files, devices_for_all_files),
    *(files_of_a_tebibyte, a_manifest_of_a_tebibyte, half_a_million_members, a_journal_of_bombs),
    *(a_journal_of_nonsense, arrays_with_pickles, tables_of_something_else, laughs_in_the_study),
    *(names_that_are_no_text, weights_of_its_own, sessions_and_orders_of_anybody),
)
