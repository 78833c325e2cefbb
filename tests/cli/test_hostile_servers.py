"""`llm-coop run` at servers that are not there, refuse, filter, and speak to the terminal."""

import contextlib
import json
import socket
import time

import pytest
from aiohttp import web
from invoking import assert_sentence, invoke
from model_studies import TINY, answering
from small import contents

from llm_coop_envs.policies.llm.testing.answers import scripted_answer
from llm_coop_envs.policies.llm.testing.server import ScriptedServer, in_thread

ACTING = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"


@pytest.fixture
def path(study_file):
    return study_file(TINY, "tiny.yaml")


def run(path, url, folder, *more):
    return invoke("run", path, "--policy", "llm", "--model", "scripted", "--base-url", url, "-o", folder, *more)


@contextlib.contextmanager
def nobody():
    """The address of a port that is taken and at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/v1"


@pytest.mark.parametrize("more", [(), ("--max-calls", 3), ("--client", "openai")])
def test_a_server_that_is_not_there_is_said_at_once(path, tmp_path, more):
    with nobody() as url:
        began = time.monotonic()
        found = run(path, url, tmp_path / "run", "--wait", 2, *more)
    assert found.exit_code == 2
    assert time.monotonic() - began < 20
    said = [line for line in found.stderr.splitlines() if "cannot be reached (" in line]
    assert said[0].startswith(f"{url} cannot be reached (Connection refused)")
    assert "tried again for 2 s" in said[0]
    assert said[-1].startswith(f"Error: {url} cannot be reached (")
    assert "budget" not in found.stderr.replace("no further attempt fits into the budget", "").lower()
    assert "continue with: llm-coop run" in said[-1]


def test_a_name_that_nobody_knows_is_said(path, tmp_path):
    found = run(path, "http://no-such-host.invalid/v1", tmp_path / "run", "--wait", 0)
    assert found.exit_code == 2
    assert "no-such-host.invalid/v1 cannot be reached (" in found.stderr


def test_a_server_that_hangs_from_the_start_is_said(path, tmp_path):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(64)
        began = time.monotonic()
        found = run(path, f"http://127.0.0.1:{silent.getsockname()[1]}/v1", tmp_path / "run", "--wait", 1)
    assert time.monotonic() - began < 25
    assert found.exit_code == 2
    assert "s, nor anything else; check the address" in found.stderr


class Refusing(ScriptedServer):
    """Refuses questions with an answer of its own, as long as `refusal` is one."""

    refusal = None

    async def _respond(self, request, body, fault, question):
        if self.refusal is None or len(self.answered) < self.after:
            return await super()._respond(request, body, fault, question)
        status, message = self.refusal
        return web.json_response({"error": {"message": message}}, status=status)


def refusing(status, message, after=0):
    server = Refusing(scripted_answer)
    server.refusal, server.after = (status, message), after
    return in_thread(server)


def test_a_run_that_was_refused_as_too_long_goes_on_when_the_server_is_mended(path, tmp_path):
    with answering() as fine:
        assert run(path, fine.base_url, tmp_path / "whole").exit_code == 0
    folder = tmp_path / "run"
    with refusing(413, "Request Entity Too Large", after=9) as server:
        for _ in range(2):
            found = run(path, server.base_url, folder)
            assert found.exit_code == 2
            assert "let the server take longer ones, then run again to continue" in found.stderr
        paid = sum(server.answered.values())
        server.refusal = None
        assert run(path, server.base_url, folder).exit_code == 0
        assert sum(server.answered.values()) == len(server.answered)  # nothing was paid for twice
        assert paid >= 9
    assert contents(folder) == contents(tmp_path / "whole")


def test_a_run_whose_questions_were_all_filtered_says_so(path, tmp_path):
    with refusing(400, "content_filter: rejected by the content management policy") as server:
        found = run(path, server.base_url, tmp_path / "run")
    assert found.exit_code == 0
    assert "The provider's content filter rejected every one of" in " ".join(found.stderr.split())


def test_several_addresses_play_a_run_as_one_does(path, tmp_path):
    with in_thread(ScriptedServer(scripted_answer)) as first, in_thread(ScriptedServer(scripted_answer)) as second:
        assert run(path, first.base_url, tmp_path / "one").exit_code == 0
        assert run(path, f"{first.base_url},{second.base_url}", tmp_path / "two").exit_code == 0
        found = run(path, f"{first.base_url},{first.base_url}", tmp_path / "three")
    assert sum(second.answered.values()) > 0
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert found.exit_code == 2
    assert "is given twice" in found.stderr
    shown = invoke("report", tmp_path / "two")
    assert shown.exit_code == 0, shown.stderr


def test_what_a_server_says_does_not_act_on_the_terminal(path, tmp_path):
    with refusing(400, f"no{ACTING}") as server:
        found = run(path, server.base_url, tmp_path / "run")
    assert_no_acting(found.stderr)
    assert r"no\x1b]0;owned\x07\x1b[2J\x9b31m\u202e" in found.stderr


def test_what_a_model_is_called_does_not_act_on_the_terminal(path, tmp_path):
    class Named(ScriptedServer):
        def _completed(self, body, fault):
            return {**super()._completed(body, fault), "model": f"m{ACTING}"}

    with in_thread(Named(scripted_answer)) as server:
        assert_no_acting(run(path, server.base_url, tmp_path / "run").stderr)
    for command in (("journal", tmp_path / "run"), ("transcript", tmp_path / "run", "kbc", 0)):
        found = invoke(*command)
        assert r"m\x1b]0;owned" in found.stdout
        assert_no_acting(found.stdout + found.stderr)
    assert_no_acting(invoke("report", tmp_path / "run").stdout)


def assert_no_acting(shown):
    assert not set(ACTING) & set("\x1b\x07\x9b\u202e") & set(shown)


@pytest.mark.parametrize(
    "url",
    ["http://me:very-secret@[host/v1", "http//me:very-secret@host", "me:very-secret@host:80", "ftp://me:very-secret@h"],
)
@pytest.mark.parametrize("seat", [False, True])
def test_a_password_in_an_address_is_not_printed(path, tmp_path, url, seat):
    given = ("--policy", f"llm:m {{base_url: '{url}'}}") if seat else ("--policy", "llm:m", "--base-url", url)
    found = invoke("run", path, *given, "-o", tmp_path / "run")
    assert_sentence(found, "base_url")
    assert "very-secret" not in found.stderr + found.stdout
    assert not list(tmp_path.glob("run/*"))


def test_the_option_is_kept_for_the_record(path, tmp_path):
    with answering() as server:
        assert run(path, server.base_url, tmp_path / "run", "--wait", 60).exit_code == 0
    (session,) = json.loads((tmp_path / "run" / "run.json").read_text())["sessions"]
    assert session["asking"]["endpoints"][0]["wait"] == 60
