"""A prompt pack of one's own: a shipped one in one folder, as docs/llm_policies.md says."""

import shutil
from pathlib import Path

from llm_coop_envs.policies.llm.playing.packs import load_pack

SCENARIOS = ("kbc", "bertrand", "evacuation")


def copy_pack(folder, name="en-a", scenarios=SCENARIOS):
    shipped = load_pack(name)
    shutil.copytree(shipped.folder, folder)
    for scenario in scenarios:
        shutil.copytree(shipped.folder_of(scenario), folder / scenario)
    return Path(folder)
