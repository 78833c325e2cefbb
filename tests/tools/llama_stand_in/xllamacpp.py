"""A stand-in for xllamacpp: the same few names, a real HTTP server, and scripted answers; no model."""

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace


class CommonParams(SimpleNamespace):
    def __init__(self):
        super().__init__(model=SimpleNamespace(path=""), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace())
        self.cache_ram_mib = 8192


class Server:
    def __init__(self, parameters):
        if b"will not load" in Path(parameters.model.path).read_bytes():
            raise RuntimeError("failed to load the model")
        (name,) = parameters.model_alias

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if "DIE" in body["messages"][-1]["content"]:
                    os._exit(3)
                answer = {
                    "id": "1",
                    "object": "chat.completion",
                    "created": 0,
                    "model": name,
                    "kept_mib": parameters.cache_ram_mib,
                    "choices": [
                        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "7"}}
                    ],
                    "usage": {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10},
                }
                data = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", parameters.port), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.listening_address = f"http://127.0.0.1:{self._server.server_port}"
