"""Write a source archive again, so that two builds of one commit are the same bytes.

`python tests/tools/same_archive.py SECONDS FILE` gives everything in it one time, one owner and a sorted place.
"""

import gzip
import io
import sys
import tarfile


def write_again(archive, seconds):
    """The same files as a `.tar.gz` that depends on their names and contents alone."""
    packed = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(archive)) as old,
        gzip.GzipFile("", "wb", fileobj=packed, mtime=seconds) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda one: one.name):
            member.mtime, member.uid, member.gid, member.uname, member.gname = seconds, 0, 0, "", ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.pax_headers = {}
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    return packed.getvalue()


def main(seconds, name):
    with open(name, "rb") as file:
        archive = file.read()
    with open(name, "wb") as file:
        file.write(write_again(archive, int(seconds)))


if __name__ == "__main__":
    main(*sys.argv[1:])
