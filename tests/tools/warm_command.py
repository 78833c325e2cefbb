"""`llm-coop` for many short calls: each is forked from one process that has imported what commands import.

A call has its own arguments, environment, folder, standard streams and exit code, and gets the signals that are sent to
it, as a process of its own would. What depends on how the interpreter is started needs a process of its own.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

LIBRARIES = ("aiohttp", "docx", "matplotlib.backends.backend_agg", "pandas", "pyarrow.parquet", "scipy.stats")
_servers = []
#: What few commands need, or what runs when it is imported.
LEFT_OUT = (".__main__", ".baselines", ".benchmarks")

# Started without `site`, which takes longer than the rest of it.
STUB = """\
#!{python} -ES
import array, json, os, signal, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
streams = array.array("i", [0, 1, 2])
call = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
server.sendmsg([len(call).to_bytes(8, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
server.sendall(call)
answers = server.makefile("r")
process = int(answers.readline())
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: os.kill(process, number))
code = int(answers.readline())
sys.exit(code if code >= 0 else 128 - code)
"""


@functools.cache
def warm_folder():
    """The folder of the command; who serves it ends with this process."""
    folder = tempfile.mkdtemp(prefix="llm-coop-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    server = subprocess.Popen(
        [sys.executable, __file__, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdout.readline() == "ready\n"
    _servers.append(server)
    return folder


def serve(listening):
    """Answer calls until the standard input ends; returns, in a process that was forked for one, with its arguments."""
    while True:
        if sys.stdin in select.select([listening, sys.stdin], [], [])[0]:
            sys.exit()
        with contextlib.suppress(ChildProcessError):  # there are none
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        connection, _ = listening.accept()
        if os.fork() == 0:
            break
        connection.close()
    listening.close()
    size, streams, _, _ = socket.recv_fds(connection, 8, 3)
    with connection.makefile("rb") as asked:
        arguments, folder, environment = json.loads(asked.read(int.from_bytes(size, "big")))
    if process := os.fork():
        connection.sendall(f"{process}\n".encode())
        _, status = os.waitpid(process, 0)
        connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
        os._exit(0)
    connection.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    return arguments


def main(folder):
    """Import, then serve."""
    import llm_coop_envs
    from llm_coop_envs.cli.main import app, main
    from llm_coop_envs.errors import MissingExtra

    modules = (found.name for found in pkgutil.walk_packages(llm_coop_envs.__path__, "llm_coop_envs."))
    for name in (*LIBRARIES, *(name for name in modules if not any(part in name for part in LEFT_OUT))):
        with contextlib.suppress(ImportError, MissingExtra):
            importlib.import_module(name)
    with contextlib.redirect_stdout(None):
        app(["--version"], standalone_mode=False)  # imports what reads command lines
    assert threading.active_count() == 1, "other threads would not be there after a fork"
    address, stub = (os.path.join(folder, name) for name in ("socket", "llm-coop"))
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        with open(stub, "w") as file:
            file.write(STUB.format(python=sys.executable, address=address))
        os.chmod(stub, 0o755)
        print("ready", flush=True)
        gc.freeze()
        sys.argv = [stub, *serve(listening)]
    try:
        main()
    except SystemExit as ended:  # at once: taking down all that was imported would take longer than most commands
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ended.code or 0)


if __name__ == "__main__":
    del sys.path[0]  # this folder
    main(sys.argv[1])
