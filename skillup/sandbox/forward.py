"""Inside of a box: a port of its loopback that leads to a socket outside, then the program.

    python3 -I -S forward.py PORT SOCKET PROGRAM [ARGUMENT …]

It runs wherever a Python is, without skillup, and starts fast.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # imported when the program has started
    from socket import socket


def main() -> None:
    """Begins to listen, then becomes the program."""
    import _socket  # `socket` takes longer than all else here

    port, path, program = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    listener.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(64)
    _apart(listener.detach(), path)
    try:
        os.execvp(program[0], program)
    except OSError as error:
        sys.stderr.write(f"{program[0]}: {error.strerror}\n")
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


def _apart(listening: int, path: str) -> None:
    """Serves in a process that is no child of the program: it would not know of it."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        os.close(listening)
        return
    if os.fork():
        os._exit(0)
    import signal
    import socket
    from _thread import start_new_thread

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the program may still have something to say
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    listener = socket.socket(fileno=listening)
    while True:
        near, _ = listener.accept()
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        far = socket.socket(socket.AF_UNIX)
        try:
            far.connect(path)
        except OSError:
            near.close()
            continue
        start_new_thread(_copy, (near, far))
        start_new_thread(_copy, (far, near))


def _copy(source: "socket", target: "socket") -> None:
    """Until one side ends; the other is told."""
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
    except OSError:
        pass
    try:
        target.shutdown(1)
    except OSError:
        pass


if __name__ == "__main__":
    main()
