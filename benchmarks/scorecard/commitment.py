"""Commitments: a held-out seed that a tester cannot draw again without its being seen.

A tester first writes into a ledger what will be tested and which round of a public beacon will decide, and publishes
the entry's hash. When that round is public, the seed of the held-out half follows from the entry's hash and the
beacon's value. An entry holds the hash of the one before it. Whoever knows one published hash thus sees how often
was committed up to it, and no entry can be taken out, put in, or changed.

What a program without a network cannot know is whether a hash was published before the beacon's round, and whether the
value is the beacon's. The scorecard names both, so that its reader can look them up.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from llm_coop_envs.errors import RunError
from llm_coop_envs.storage.files import write_whole
from llm_coop_envs.storage.folder import digest_of
from llm_coop_envs.util.opening import DAMAGED, parse_json, read_file

SEED_LIMIT = 2**31
FIRST = "0" * 64
"""What stands for the hash before the first entry."""


def read_ledger(path: Path) -> list[dict[str, Any]]:
    """Read a ledger; one that is not there yet has no entries.

    Raises:
        RunError: It cannot be read, or its entries are no chain.
    """
    if not path.exists():
        return []
    try:
        entries = [parse_json(line) for line in read_file(path).splitlines()]
    except (OSError, *DAMAGED) as error:
        raise RunError(f"{path}: is no ledger of commitments ({error})") from error
    if fault := find_fault(entries):
        raise RunError(f"{path}: {fault}; a ledger is only ever added to")
    return entries


def find_fault(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence on the first entry that does not follow from the one before it; empty for a whole chain."""
    previous = FIRST
    for number, entry in enumerate(entries, start=1):
        try:
            links = (entry["number"], entry["previous"], entry["hash"])
            content = {name: value for name, value in entry.items() if name != "hash"}
        except (KeyError, TypeError, AttributeError):
            return f"entry {number} is no commitment"
        if links != (number, previous, digest_of(content)):
            return f"entry {number} was changed, or does not follow from the one before it"
        previous = entry["hash"]
    return ""


def commit(path: Path, plan: Mapping[str, Any], beacon: str) -> dict[str, Any]:
    """Add an entry to a ledger.

    Args:
        path: the ledger.
        plan: what will be tested.
        beacon: the beacon and its round, such as `"drand quicknet 12345678"`, which is not public yet.

    Returns:
        The entry. Its `hash` is what to publish.
    """
    entries = read_ledger(path)
    content = {
        "number": len(entries) + 1,
        "previous": entries[-1]["hash"] if entries else FIRST,
        "plan": dict(plan),
        "beacon": beacon,
    }
    entry = {**content, "hash": digest_of(content)}
    write_whole(path, b"".join(json.dumps(line).encode() + b"\n" for line in (*entries, entry)))
    return entry


def make_seed(commitment: str, value: str) -> int:
    """Return the held-out seed of a commitment.

    Args:
        commitment: the entry's hash.
        value: the beacon's value in its round, in hexadecimal digits.

    Raises:
        RunError: The value is not hexadecimal.
    """
    try:
        drawn = bytes.fromhex(value)
    except ValueError as error:
        raise RunError(f"--beacon-value {value}: is no value of a beacon; give its hexadecimal digits") from error
    return int.from_bytes(hashlib.sha256(bytes.fromhex(commitment) + drawn).digest()[:8], "big") % SEED_LIMIT


def commitment_fault(registration: Mapping[str, Any], plan: Mapping[str, Any]) -> str:
    """Return why a preregistration's held-out seed does not follow from its commitment; empty if it does, or has none.

    Args:
        registration: the preregistration.
        plan: what was tested.
    """
    committed = registration.get("commitment")
    if committed is None:
        return ""
    entries, value = committed["chain"], committed["value"]
    if fault := find_fault(entries):
        return f"its chain of commitments is broken: {fault}"
    entry = entries[-1]
    if differing := sorted(name for name in plan if entry["plan"].get(name) != plan[name]):
        return f"commitment {entry['number']} is for another test: {', '.join(differing)}"
    if make_seed(entry["hash"], value) != registration["held_out"]:
        return "its held-out seed does not follow from its commitment and the beacon's value"
    return ""


def describe_seed(registration: Mapping[str, Any]) -> str:
    """Say where a held-out seed comes from, and so what it is worth."""
    committed = registration.get("commitment")
    if committed is None:
        return f"held-out seed {registration['held_out']}, which the tester chose and may have drawn more than once"
    entry = committed["chain"][-1]
    return (
        f"held-out seed {registration['held_out']} from commitment {entry['number']} of its ledger, {entry['hash']}, "
        f"and the beacon {entry['beacon']}, value {committed['value']}"
    )
