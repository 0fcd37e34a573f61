"""One process that has imported what the scripts import, and forks for each job, which then has nothing to import.

`start` is called when a run begins. A script that snakemake starts calls `run_elsewhere` before it imports anything
that takes long: the server forks, and the fork runs the same script file with the arguments, in the folder, with the
environment and with the output that the script was started with. So what `main` does is the same in both, and so is
its log. A script that finds no server of its own run, as by hand, on another machine or in another environment, runs
where it is; so do all if `TOKENTRAIL_FORKSERVER` is 0.

Nothing outlives a run, however it ends: the server ends with the process that started it, a fork with the server and
with the script that it runs for. The socket's name is an abstract one, so there is no file to remove. Linux only.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import pickle
import pkgutil
import runpy
import secrets
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

SWITCH = "TOKENTRAIL_FORKSERVER"
ADDRESS = "TOKENTRAIL_FORKSERVER_AT"  # the socket's name, and where the server's modules are installed
PACKAGE = "tokentrail"
IN_EVERY_SCRIPT = ("snakemake.script", "snakemake.logging", "snakemake.iocontainers")
"""What snakemake imports at the head of a script."""

# Threads that polars starts when it is imported. They sleep until a table is spilled to disk, or memory is given back
# in the background; jemalloc takes care of a fork itself.
ASLEEP = {"jemalloc_bg_thd", "polars-ooc-clea"}

STANDARD = (0, 1, 2)
LENGTH = struct.Struct("=Q")  # bytes of the request that follows
PEER = struct.Struct("=iII")  # process, user and group, of SO_PEERCRED
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)

_started: list[subprocess.Popen] = []


def start() -> None:
    """Start a server for the scripts of this process, for as long as this process lives."""
    if sys.platform != "linux" or os.environ.get(SWITCH) == "0":
        return
    name = f"{PACKAGE}-{secrets.token_hex(8)}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{name}")
        listener.listen(128)
        # OpenBLAS starts its threads when it is loaded, and they would be lost in a fork.
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-P", "-m", __name__, str(listener.fileno())]
        # Nothing is written to the pipe: it closes with this process, killed or not.
        server = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, pass_fds=[listener.fileno()])
    _started.append(server)
    os.environ[ADDRESS] = f"{name} {sys.prefix}"


def forget() -> None:
    """Know of no server: that of another run, in which this process may be a job, is for that run's scripts alone."""
    os.environ.pop(ADDRESS, None)


def run_elsewhere() -> int | None:
    """Run this process's script in a fork of the server; its exit status, or minus the signal that ended it.

    None if there is no server, and then nothing was run. A fork whose server is killed is killed as well.
    """
    name, _, prefix = os.environ.get(ADDRESS, "").partition(" ")
    if not name or prefix != sys.prefix:
        return None
    request = pickle.dumps((sys.argv, str(Path.cwd()), dict(os.environ)))
    with socket.socket(socket.AF_UNIX) as server, interrupted_in_silence():
        try:
            server.connect(f"\0{name}")
            if not is_ours(server):
                return None
            socket.send_fds(server, [LENGTH.pack(len(request))], STANDARD)
            server.sendall(request)
            accepted = server.recv(1)
        except OSError:
            return None
        if not accepted:
            return None
        status = b""
        with suppress(ConnectionError):
            while part := server.recv(16):
                status += part
    return int(status) if status else -signal.SIGKILL


@contextmanager
def interrupted_in_silence() -> Iterator[None]:
    """End at an interrupt without a traceback: the fork is interrupted as well, and its traceback says where."""
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGINT, before)


def is_ours(connection: socket.socket) -> bool:
    """Whether the process at the other end is of the same user."""
    _, user, _ = PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER.size))
    return user == os.getuid()


def main() -> None:
    """The server: import, fork for each connection, and end when standard input is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # its run is interrupted too, and ends it
    listener = socket.socket(fileno=int(sys.argv[1]))
    with suppress(ImportError):  # an environment that only some of the scripts can run in
        import_everything()
        if threads() <= ASLEEP:
            gc.freeze()  # a fork's collector copies none of the pages that it shares
            connection = serve(listener)
            if connection is not None:
                run_script(connection)


def import_everything() -> None:
    """Import the whole library, and with it what it imports."""
    for name in IN_EVERY_SCRIPT:
        importlib.import_module(name)
    package = importlib.import_module(PACKAGE)
    for module in pkgutil.walk_packages(package.__path__, f"{PACKAGE}."):
        importlib.import_module(module.name)


def threads() -> set[str]:
    """Names of this process's threads but the first."""
    others = [task for task in Path("/proc/self/task").iterdir() if task.name != str(os.getpid())]
    return {(task / "comm").read_text().strip() for task in others}


@dataclass(frozen=True)
class Fork:
    """A fork that runs a script, and the connection to the process that was started to run it."""

    process: int
    """Its process as a file, which is ready to be read when it has ended."""
    connection: socket.socket

    def kill(self) -> None:
        signal.pidfd_send_signal(self.process, signal.SIGKILL)

    def report(self) -> None:
        """Tell how it ended, in the words of `subprocess`: the exit status, or minus the signal."""
        ended = os.waitid(os.P_PIDFD, self.process, os.WEXITED)
        with suppress(OSError):
            self.connection.send(str(ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status).encode())
        self.connection.close()
        os.close(self.process)


def serve(listener: socket.socket) -> socket.socket | None:
    """Fork for each connection, and report to it how the fork ended. Returns in a fork, with its connection.

    Returns None when standard input is closed, and then the forks end with this process.
    """
    server = os.getpid()
    forks: dict[int, Fork] = {}  # by the file of the process, and by that of the connection
    poll = select.poll()
    poll.register(STANDARD[0], 0)
    poll.register(listener, select.POLLIN)
    while True:
        # One at a time: what is done about it may close files whose numbers are then given out again.
        ready, _ = poll.poll()[0]
        if ready == STANDARD[0]:
            return None
        if ready == listener.fileno():
            connection, _ = listener.accept()
            if not is_ours(connection):
                connection.close()
                continue
            child = os.fork()
            if child == 0:
                die_with(server)
                listener.close()
                for fork in set(forks.values()):
                    fork.connection.close()
                return connection
            fork = Fork(os.pidfd_open(child), connection)
            for file, event in ((fork.process, select.POLLIN), (connection.fileno(), select.POLLRDHUP)):
                forks[file] = fork
                poll.register(file, event)
        elif ready == forks[ready].process:
            fork = forks[ready]
            for file in [file for file, each in forks.items() if each is fork]:
                del forks[file]
                poll.unregister(file)
            fork.report()
        else:  # nobody waits for it any more
            poll.unregister(ready)
            forks.pop(ready).kill()


def die_with(parent: int) -> None:
    """End this process when `parent` does, however that ends."""
    ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def run_script(connection: socket.socket) -> None:
    """Run the script that the connection asks for as this process's own, from its arguments to its interrupts."""
    start, files, _, _ = socket.recv_fds(connection, LENGTH.size, len(STANDARD))
    connection.send(b"\0")
    for received, standard in zip(files, STANDARD, strict=True):
        os.dup2(received, standard)
        os.close(received)
    with connection.makefile("rb") as stream:
        arguments, folder, environment = pickle.loads(stream.read(*LENGTH.unpack(start)))
    connection.detach()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    forget()
    sys.argv[:] = arguments
    signal.signal(signal.SIGINT, signal.default_int_handler)
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()
