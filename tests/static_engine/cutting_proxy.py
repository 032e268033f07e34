"""A connection to a server that is cut in the middle of an answer."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class CuttingProxy:
    """Passes connections on to a server.

    Attributes:
        port: Of the server, on loopback.
        left: Bytes that it still lets through to clients, then it cuts; None: it never does.
        is_away: Whether it cuts whoever connects.
    """

    port: int
    left: int | None = None
    is_away: bool = False
    cuts: int = 0
    _listener: socket.socket = field(init=False)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))

    @property
    def own_port(self) -> int:
        """The port to connect to."""
        return int(self._listener.getsockname()[1])

    def serve(self) -> None:
        """Pass on until the listener is closed."""
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.is_away:
                self._cut(client)
                continue
            server = socket.create_connection(("127.0.0.1", self.port))
            threading.Thread(target=self._serve_one, args=(client, server), daemon=True).start()

    def _serve_one(self, client: socket.socket, server: socket.socket) -> None:
        back = threading.Thread(target=self._pump, args=(server, client, True), daemon=True)
        back.start()
        self._pump(client, server, False)
        back.join()
        # Not before both directions have ended: closing with bytes unread would cut the other.
        client.close()
        server.close()

    def _pump(self, source: socket.socket, sink: socket.socket, counts: bool) -> None:
        how = socket.SHUT_WR
        with contextlib.suppress(OSError):
            while data := source.recv(8_192):
                if counts and self._is_over(len(data)):
                    how = socket.SHUT_RDWR
                    break
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(how)
        if how == socket.SHUT_RDWR:
            with contextlib.suppress(OSError):
                source.shutdown(how)

    def _is_over(self, size: int) -> bool:
        with self._lock:
            if self.left is None:
                return False
            self.left -= size
            self.cuts += self.left < 0
            return self.left < 0

    def _cut(self, client: socket.socket) -> None:
        self.cuts += 1
        client.close()

    def close(self) -> None:
        """End."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@contextlib.contextmanager
def cutting_proxy(port: int) -> Iterator[CuttingProxy]:
    """Run a proxy to a port on loopback."""
    proxy = CuttingProxy(port)
    thread = threading.Thread(target=proxy.serve, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.close()
        thread.join(10)
