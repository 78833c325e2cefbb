"""A prompt pack of one's own: a shipped one in one folder, as docs/llm_policies.md says."""

import shutil
from pathlib import Path

from llm_coop_envs.policies.llm.playing.packs import load_pack, shipped_packs

SCENARIOS = ("kbc", "bertrand", "evacuation")
COMPLETE = tuple(name for name in shipped_packs() if load_pack(name).base is None)
"""The shipped packs that hold all words themselves; only these are wordings of environments."""


def copy_pack(folder, name="en-a", scenarios=SCENARIOS):
    shipped = load_pack(name)
    shutil.copytree(shipped.folder, folder)
    for scenario in scenarios:
        shutil.copytree(shipped.folder_for(scenario), folder / scenario)
    return Path(folder)
