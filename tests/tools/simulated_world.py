"""Simulated machines: processes, a clock, and a shared folder with faults; one seed decides everything.

Each process is a greenlet: it hands over at its calls of the file system and when it sleeps, to whom a generator draws.
Files, time and processes are simulated; the code that uses them is the real one.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import heapq
import io
import random
from asyncio import events, tasks

from greenlet import getcurrent, greenlet

from llm_coop_envs.storage.files import cannot_write
from llm_coop_envs.storage.machine import Machine

OP_SECONDS = (0.002, 0.002, 0.3)  # an operation of the file system takes up to so long, by world
FOREVER = 1e9


class KilledError(BaseException):
    """The process was killed."""


class Place(str):
    """A path that is only named, never on a disk: what code does with a `Path`, in a fraction of its time."""

    @functools.cache  # noqa: B019  # there are few of them
    def __truediv__(self, name):
        return Place(f"{self}/{name}")

    @functools.cached_property
    def parent(self):
        return Place(self.rpartition("/")[0])

    @functools.cached_property
    def name(self):
        return self.rpartition("/")[2]

    @functools.cache  # noqa: B019
    def with_suffix(self, suffix):
        return Place(f"{self.rpartition('.')[0]}{suffix}")

    @functools.cache  # noqa: B019
    def with_name(self, name):
        return Place(f"{self.rpartition('/')[0]}/{name}")

    @functools.cache  # noqa: B019
    def relative_to(self, folder):
        return Place(self.removeprefix(f"{folder}/"))


class File:
    """A file: what processes see of it, and what survives a power cut."""

    __slots__ = ("content", "durable", "mtime", "writers")

    def __init__(self):
        self.content = bytearray()
        self.durable = b""
        self.writers = set()
        self.mtime = 0.0


# Makes another task the current one of a loop. Before Python 3.12 each loop has its own, which nobody else changes.
_swap_task = getattr(tasks, "_swap_current_task", None)


class Process:
    """A simulated process; `run` is its program."""

    def __init__(self, world, name, host, namespace, run):
        self.world, self.name, self.host, self.namespace = world, name, host, namespace
        self.number = namespace * 1000 + len(world.processes) + 1
        self.started = f"{world.now:.6f}"
        self.wake = world.now
        self.frozen = 0.0
        self.idle = 0.0  # seconds for which it waited with nothing to do
        self.killed = self.over = False
        self.failure = None
        self.run = run
        self.greenlet = greenlet(self._live, world.greenlet)
        world.processes.append(self)

    def due(self):
        return self.wake if self.killed or self.wake > self.frozen else self.frozen

    def _live(self):
        try:
            if not self.killed:
                self.run(self)
        except KilledError:
            pass
        except BaseException as error:
            self.failure = error
        self.over = True
        self.world.unlock_all(self)


class World:
    """Everything that processes share.

    Args:
        seed: decides all that happens.

    Attributes:
        history: what happened, as (seconds, process, what).
    """

    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.tokens = random.Random(seed)  # apart, so that names of files decide nothing
        draw = self.draw.random
        self.now = 1000.0
        self.processes = []
        self.events, self.planned = [], 0  # a heap of (time, number, callback)
        self.history = []
        self.files: dict[str, File] = {}
        self.folders = {}  # folder: {name of a file in it: None}
        self.shown = {}  # path: (created at, host)
        self.ghosts = {}  # path: (removed at, host)
        self.renames = []
        self.locks = {}
        self.opened = {}
        self.descriptors = self.tasks = 0
        self.full = False
        self.late = self.draw.choice((0.0, 0.0, 3.0, 25.0))
        self.has_locks = draw() < 0.7
        self.skew = {host: self.draw.choice((0.0, 0.0, 600.0, -600.0)) for host in "xyz"}
        self.stamps_of_clients = draw() < 0.3
        self.op_seconds = self.draw.choice(OP_SECONDS)
        self.restless = self.draw.choice((0.02, 0.1, 0.3))
        self.greenlet = getcurrent()
        # Else those of killed processes in other worlds, which have the same hashes, are compared with each new one.
        for register in ("_all_tasks", "_scheduled_tasks"):  # before Python 3.12, and after
            getattr(tasks, register, set()).clear()

    def note(self, process, what, *more):
        self.history.append((self.now, getattr(process, "name", process), what, *more))

    def at(self, seconds, act):
        self.planned += 1
        heapq.heappush(self.events, (self.now + seconds, self.planned, act))

    def put(self, path, file):
        self.files[path] = file
        self.folders.setdefault(path.parent, {})[path.name] = None

    def drop(self, path):
        del self.files[path], self.folders[path.parent][path.name]

    # Who runs

    def start(self):
        """Run until every process is over."""
        while (following := self.next_process()) is not None:
            following.greenlet.switch()  # back when a process is over

    def next_process(self):
        """Whose turn it is; time passes if nobody is ready."""
        while True:
            while self.events and self.events[0][0] <= self.now:
                heapq.heappop(self.events)[2]()
            ready, first = [], self.events[0][0] if self.events else FOREVER
            for one in self.processes:
                if not one.over:
                    due = one.due()
                    if due <= self.now:
                        ready.append(one)
                    elif due < first:
                        first = due
            if ready:
                return ready[0] if len(ready) == 1 else self.draw.choice(ready)
            if first >= FOREVER:
                return None
            self.now = first

    def hand_over(self, current):
        """Let others run until it is the current process's turn again."""
        following = self.next_process()
        if following is current:
            return
        loop = events._get_running_loop()
        task = _swap_task(loop, None) if _swap_task and loop else None
        events._set_running_loop(None)  # of the thread, in which all processes are
        (self if following is None else following).greenlet.switch()
        events._set_running_loop(loop)
        if task is not None:
            _swap_task(loop, task)

    def step(self, process):
        """An operation: time passes, and somebody else may be next."""
        if process.killed:
            raise KilledError
        random = self.draw.random
        self.now += self.op_seconds * random()
        if random() < self.restless or process.frozen > self.now:
            self.hand_over_at(process, self.now)

    def hand_over_at(self, process, when):
        process.wake = when
        self.hand_over(process)
        if process.killed:
            raise KilledError

    # Faults

    def kill(self, process):
        if not process.over and not process.killed:
            self.note(process, "is killed")
            process.killed = True
            process.wake = self.now
            self.unlock_all(process)

    def stop(self, process, seconds):
        if not process.over:
            self.note(process, f"is stopped for {seconds:.0f} s")
            process.frozen = max(process.frozen, self.now + seconds)

    def cut_power(self, host):
        """All processes of a host end; what it wrote and did not sync is lost, or half of it is."""
        self.note(host, "has a power cut")
        for process in self.processes:
            if process.host == host:
                self.kill(process)
        for file in self.files.values():
            if host in file.writers:
                durable = file.durable
                cut = len(durable)
                if file.content.startswith(durable):
                    cut = self.draw.randint(cut, len(file.content))
                    file.content = file.content[:cut]
                else:
                    file.content = bytearray(durable)
                file.durable = bytes(file.content)
                file.writers.discard(host)
        for when, by, path, before in self.renames:
            if by == host and self.now - when < 5.0 and self.draw.random() < 0.5:
                self.note(host, "loses a rename", path)
                if before is not None:
                    self.put(path, before)
                elif path in self.files:
                    self.drop(path)
        self.renames.clear()

    def unlock_all(self, process):
        for path, owner in list(self.locks.items()):
            if owner is process:
                del self.locks[path]


class SimulatedMachine(Machine):
    """A machine as one simulated process sees it."""

    def __init__(self, world, process):
        super().__init__()
        self.world, self.me = world, process

    @property
    def host(self):
        return "box"  # all have the same host name

    @property
    def kernel(self):
        return f"box {self.me.host}"

    @property
    def name(self):
        return f"box {self.me.host} {self.me.namespace}"

    def now(self):
        return self.world.now

    def sleep(self, seconds):
        self.world.hand_over_at(self.me, self.world.now + seconds)

    @contextlib.contextmanager
    def repeat(self, act, seconds):
        """Send heartbeats by the event loop, not by a thread."""
        loop = asyncio.get_running_loop()

        def act_and_wait():
            nonlocal alarm
            act()
            alarm = loop.call_later(seconds, again)

        def again():  # a thread is late now and then
            nonlocal alarm
            alarm = loop.call_later(3.0 * self.world.draw.random() ** 2, act_and_wait)

        alarm = loop.call_later(seconds, again)
        try:
            yield
        finally:
            alarm.cancel()

    def process(self):
        return self.me.number

    def start_time(self, process):
        return self.me.started if process == self.me.number else None

    def runs(self, process, started):
        return any(
            one.number == process and one.started == started and one.host == self.me.host and not one.over
            and not one.killed and one.namespace == self.me.namespace
            for one in self.world.processes
        )  # fmt: skip

    # Files

    def _file(self, path):
        self.world.step(self.me)
        file = self.world.files.get(path)
        if file is None:
            raise FileNotFoundError(errno.ENOENT, "No such file", path)
        return file

    def _sees(self, path):
        if not self.world.late:
            return True
        made, host = self.world.shown.get(path, (0.0, self.me.host))
        return host == self.me.host or self.world.now - made >= self.world.late

    def _stamp(self, file):
        skew = self.world.skew[self.me.host] if self.world.stamps_of_clients else 0.0
        file.mtime = self.world.now + skew

    def _make(self, path):
        file = File()
        self.world.put(path, file)
        self.world.shown[path] = self.world.now, self.me.host
        self.world.ghosts.pop(path, None)
        self._stamp(file)
        return file

    def names(self, folder):
        world = self.world
        world.step(self.me)
        names = list(world.folders.get(folder, ()))
        if world.late:
            names = [name for name in names if self._sees(f"{folder}/{name}")]
            names += [
                path.name
                for path, (when, host) in world.ghosts.items()
                if path.parent == folder and host != self.me.host and world.now - when < world.late
            ]
        return names

    def read(self, path):
        return bytes(self._file(path).content)

    def read_own(self, path, longest):
        return self.read(path)

    def reader(self, path):
        return io.BytesIO(self.read(path))

    def is_there(self, path):
        self.world.step(self.me)
        return path in self.world.files and self._sees(path)

    def touched(self, path):
        return self._file(path).mtime

    def untouched_for(self, path):
        skew = self.world.skew[self.me.host] if self.world.stamps_of_clients else 0.0
        return self.world.now + skew - self._file(path).mtime

    def touch(self, path):
        self._stamp(self._file(path))

    def make_folder(self, path):
        pass

    def create(self, path):
        self.world.step(self.me)
        if path in self.world.files:
            raise FileExistsError(errno.EEXIST, "File exists", path)
        self._make(path)
        return self._opened(path)

    def open(self, path, flags=0):
        self.world.step(self.me)
        if path not in self.world.files:
            self._make(path)
        return self._opened(path)

    def _opened(self, path):
        self.world.descriptors += 1
        self.world.opened[self.world.descriptors] = path, self.world.files[path]
        return self.world.descriptors

    def write(self, descriptor, data):
        self.world.step(self.me)
        file = self.world.opened[descriptor][1]
        count = len(data)
        if self.world.full and data:
            count = self.world.draw.randint(0, len(data) - 1)
            if count == 0:
                raise OSError(errno.ENOSPC, "No space left on device")
        file.content += data[:count]
        file.writers.add(self.me.host)
        self._stamp(file)
        return count

    def write_at(self, descriptor, data, start):
        self.world.step(self.me)
        file = self.world.opened[descriptor][1]
        file.content[len(file.content) : start] = bytes(max(0, start - len(file.content)))
        file.content[start : start + len(data)] = data
        file.durable = bytes(file.content)  # giving up a lock sends it to the server
        return len(data)

    def read_open(self, descriptor):
        self.world.step(self.me)
        return bytes(self.world.opened[descriptor][1].content)

    def cut(self, descriptor, size):
        self.world.step(self.me)
        del self.world.opened[descriptor][1].content[size:]

    def sync(self, descriptor):
        self.world.step(self.me)
        file = self.world.opened[descriptor][1]
        file.durable = bytes(file.content)
        file.writers.discard(self.me.host)

    def sync_folder(self, folder):
        pass

    def close(self, descriptor):
        with contextlib.suppress(KilledError):
            self.world.step(self.me)

    def empty(self, path):
        file = self._file(path)
        file.content.clear()
        file.durable = b""
        self._stamp(file)

    def remove(self, path):
        self.world.step(self.me)
        if path in self.world.files:
            self.world.drop(path)
            self.world.ghosts[path] = self.world.now, self.me.host
            self.world.shown.pop(path, None)

    def move(self, path, target, replaces=True):
        file = self._file(path)
        world = self.world
        before = world.files.get(target)
        if before is not None and not replaces:
            raise FileExistsError(errno.EEXIST, "File exists", target)
        world.before_move(self.me, target)
        world.renames.append((world.now, self.me.host, target, before))
        if before is None:
            world.shown[target] = world.now, self.me.host
        world.put(target, file)
        world.drop(path)

    def write_whole(self, path, content, *, replaces=True):
        temporary = path.with_name(f".{path.name}.{self.world.draw.getrandbits(32):x}.partial")
        try:
            descriptor = self.create(temporary)
            for half in (content[: len(content) // 2], content[len(content) // 2 :]):
                if self.write(descriptor, half) < len(half):
                    raise OSError(errno.ENOSPC, "No space left on device")
            self.sync(descriptor)
            self.move(temporary, path, replaces)
        except FileExistsError:
            raise
        except OSError as error:
            raise cannot_write(path, error) from error

    def lock(self, descriptor, *, wait=False):
        if not self.world.has_locks:
            return None
        path = self.world.opened[descriptor][0]
        while True:
            self.world.step(self.me)
            if self.world.locks.get(path) is None:
                self.world.locks[path] = self.me
                return True
            if not wait:
                return False
            self.sleep(0.05)

    def unlock(self, descriptor):
        path = self.world.opened[descriptor][0]
        if self.world.locks.get(path) is self.me:
            del self.world.locks[path]


class SimulatedTask(asyncio.Task):
    """A task whose place in a set depends on the seed alone, not on its address in memory."""

    def __init__(self, *given, loop, **named):
        loop.world.tasks += 1
        self.number = loop.world.tasks
        super().__init__(*given, loop=loop, **named)

    def __hash__(self):
        return self.number


class Call:
    """A callback that is due, or will be: a handle of asyncio's, without what serves debugging."""

    __slots__ = ("act", "at", "context", "given", "is_cancelled")

    def __init__(self, act, given, context, at=0.0):
        self.act, self.given, self.at, self.is_cancelled = act, given, at, False
        self.context = context

    def cancel(self):
        self.is_cancelled = True

    def cancelled(self):
        return self.is_cancelled

    def when(self):
        return self.at

    def run(self):
        if not self.is_cancelled:
            try:
                if self.context is None:
                    self.act(*self.given)
                else:
                    self.context.run(self.act, *self.given)
            except BaseException:  # what is raised by callbacks of killed processes
                pass


class SimulatedLoop(asyncio.BaseEventLoop):
    """An event loop of one simulated process; what runs in threads elsewhere is a later callback here."""

    def __init__(self, world, process):
        super().__init__()
        self.world, self.me = world, process
        self.set_task_factory(lambda loop, coroutine, **named: SimulatedTask(coroutine, loop=loop, **named))
        self.set_exception_handler(lambda *_: None)

    def __del__(self):
        """Loops of killed processes are not closed."""

    def time(self):
        return self.world.now

    def call_soon(self, act, *given, context=None):
        call = Call(act, given, context)
        self._ready.append(call)
        return call

    call_soon_threadsafe = call_soon

    def call_later(self, seconds, act, *given, context=None):
        return self.call_at(self.world.now + seconds, act, *given, context=context)

    def call_at(self, at, act, *given, context=None):
        call = Call(act, given, context, at)
        self.world.planned += 1
        heapq.heappush(self._scheduled, (at, self.world.planned, call))
        return call

    def _run_once(self):
        """What the loops of asyncio do between two looks for what is ready."""
        ready, scheduled, world, me = self._ready, self._scheduled, self.world, self.me
        while scheduled and scheduled[0][2].is_cancelled:
            heapq.heappop(scheduled)
        if me.killed:
            raise KilledError
        if not ready and not self._stopping:
            until = scheduled[0][0] if scheduled else FOREVER
            if until > world.now:
                me.idle += until - world.now if scheduled else 0.0
                world.hand_over_at(me, until)
        while scheduled and scheduled[0][0] <= world.now:
            ready.append(heapq.heappop(scheduled)[2])
        for _ in range(len(ready)):
            ready.popleft().run()

    def _asyncgen_firstiter_hook(self, _):
        """The hook is the thread's, and the generator may be another process's."""

    def _asyncgen_finalizer_hook(self, _):
        """Generators of killed processes are not closed."""

    def _write_to_self(self):
        pass

    def run_in_executor(self, _, act, *given):
        future = self.create_future()

        def run():
            try:
                result = act(*given)
            except Exception as error:
                if not future.done():
                    future.set_exception(error)
            else:
                if not future.done():
                    future.set_result(result)

        self.call_later(0.01 * self.world.draw.random(), run)
        return future
