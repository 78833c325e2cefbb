import json
import signal
import socket
import subprocess
import sys
import urllib.request

from invoking import assert_sentence, invoke
from llm_tools import ENVIRONMENT


def test_it_serves_until_it_is_told_to_stop():
    command = [sys.executable, "-m", "llm_coop_envs", "serve-scripted"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as process:
        url = process.stdout.readline().strip()
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Who are you?"}]}).encode()
        with urllib.request.urlopen(urllib.request.Request(f"{url}/chat/completions", body)) as answer:
            said = json.load(answer)["choices"][0]["message"]["content"]
        process.send_signal(signal.SIGINT)
        _, notes = process.communicate(timeout=30)
    assert "no language model" in said
    assert process.returncode == 0
    assert f"llm-coop run team_up --policy llm --model scripted --base-url {url}" in notes
    assert notes.rstrip().endswith("Stopped after 1 answers to 1 requests.")
    assert "Traceback" not in notes


def test_a_port_in_use_and_unknown_faults_are_sentences():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert_sentence(invoke("serve-scripted", "--port", port), str(port), "in use", "--port")
    assert_sentence(invoke("serve-scripted", "--latency", "inf"), "--latency inf: must be a finite number")
    assert_sentence(invoke("serve-scripted", "--faults", 0.1, "--kind", "nonsense"), "nonsense", "rate_limit")
