"""A run as one page that needs no server: the same front end, with what it would have asked for inside."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from llm_coop_envs.errors import LlmCoopError, RunError
from llm_coop_envs.page.answers import read_cards
from llm_coop_envs.page.episode_table import all_rows
from llm_coop_envs.page.episodes import Episodes
from llm_coop_envs.page.known_runs import KnownRuns
from llm_coop_envs.runs.folder import Run, open_run
from llm_coop_envs.runs.remaining import count_of
from llm_coop_envs.storage.files import write_whole

STATIC = Path(__file__).with_name("static")
MOST_AGENTS = 2_000
"""From an episode with more agents than this no agents are held."""
MOST_FRAMES = 60_000_000
MOST_CALLS = 30_000_000
"""Characters of frames, and of questions with their answers, that are held at most."""


def write_page(folder: Path, out: Path | None = None) -> Path:
    """Write what is finished of a run as one page.

    Args:
        folder: the run's folder; it is only read.
        out: the file; by default `export/run.html` in the run's folder.

    Returns:
        The file.

    Raises:
        RunError: the run or an episode cannot be read, nothing is finished, or the file is there or cannot be written.
    """
    target = folder / "export" / "run.html" if out is None else out
    if target.exists():
        raise RunError(f"{target}: is there already; choose another file with -o")
    run = open_run(folder)
    if not run.finished():
        raise RunError(f"{folder}: holds no finished episode yet; run the study first")
    write_whole(target, page_of(dict(_answers(run))).encode())
    return target


def page_of(answers: dict[str, Any]) -> str:
    """The page that holds these answers, by the names of the questions (`question`)."""
    script = (STATIC / "app.js").read_text(encoding="utf-8").replace("</script", "<\\/script").replace("<!--", "<\\!--")
    style = (STATIC / "app.css").read_text(encoding="utf-8")
    # Nothing that somebody wrote can end the element, begin another one, or be a script.
    data = json.dumps(answers, separators=(",", ":")).replace("<", "\\u003c")
    policy = f"default-src 'none'; script-src {_hashed(script)}; style-src {_hashed(style)}; img-src data:"
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    page = re.sub(r"\s*<(script|link)[^>]*\./app\.[^>]*>(</script>)?", "", page)
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>\n</head>'
    body = (
        f'<script type="application/json" id="data">{data}</script>\n<script type="module">{script}</script>\n</body>'
    )
    return page.replace("</head>", head).replace("</body>", body)


def question(name: str, **query: Any) -> str:
    """What the front end calls a question (`key` in data.ts)."""
    return "\n".join([name, *(str(word) for pair in sorted(query.items()) for word in pair)])


def _answers(run: Run) -> Iterator[tuple[str, Any]]:
    """The answers to all questions that the page may ask, as far as there is room."""
    known_runs = KnownRuns(run.folder)
    episodes = Episodes(known_runs, apart=False)
    (name,) = known_runs.folders()
    left_out: list[str] = []
    room_frames, room_calls = MOST_FRAMES, MOST_CALLS
    yield "runs", [{**known_runs.summary(name), "live": {}}]
    finished = [row for row in all_rows(known_runs, episodes, name)[0] if row["state"] == "finished"]
    yield question("episodes", run=name), finished
    for condition in run.conditions:
        for row in (row for row in finished if row["condition"] == condition.name):
            address = {"run": name, "condition": condition.name, "seed": row["seed"]}
            about = episodes.summarise(name, condition.name, row["seed"])
            yield question("episode", **address), about
            frames = episodes.frames(name, condition.name, row["seed"], 0, len(about["rounds"]))
            room_frames -= len(json.dumps(frames))
            if room_frames < 0:
                left_out.append(f"the rounds of {condition.name} {row['seed']}")
                continue
            yield question("frames", **address), frames
            yield question("course", **address), episodes.course(name, condition.name, row["seed"])
            if about["players"] > MOST_AGENTS:
                left_out.append(f"the {count_of(about['players'], 'agent')} of {condition.name} {row['seed']}")
                continue
            agents = []
            for number in range(about["players"]):
                story = episodes.story(name, condition.name, row["seed"], number)
                yield question("story", **address, number=number), story
                own = [message["text"] for message in story["said"] if message["own"]]
                agents.append({**story, "said": len(own), "texts": "\n".join(own), "calls": None})
                for call in story["calls"]:
                    if room_calls > 0:
                        exchange = episodes.call(name, call["id"])
                        room_calls -= len(json.dumps(exchange))
                        yield question("call", run=name, number=call["id"]), exchange
            yield question("agents", **address), agents
    if room_calls <= 0:
        left_out.append("some prompts and answers")
    detail = {**known_runs.detail(name), "live": {}, "parts": [], "report": None}
    yield question("answers", run=name), _cards(run)
    if left_out:
        others = f" and {len(left_out) - 5} more" if len(left_out) > 5 else ""
        sentence = f"This page had no room for {', '.join(left_out[:5])}{others}; llm-coop view shows them"
        detail["mixed"] = [*detail["mixed"], sentence]
    yield question("run", run=name), detail


def _cards(run: Run) -> dict[str, Any]:
    """The answers, if they can be had: SciPy may not be installed, and an episode be damaged."""
    try:
        return read_cards(run)
    except LlmCoopError as error:
        return {"cards": [], "note": f"{error}."}


def _hashed(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
