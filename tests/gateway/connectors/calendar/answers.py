"""Web servers that answer what a test says."""

import http.server
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Answers(http.server.BaseHTTPRequestHandler):
    """Serves what the test has put into `answer`."""

    answer: Callable[["Answers"], None]

    def do_GET(self) -> None:
        type(self).answer(self)

    def log_message(self, *_arguments: object) -> None:
        return

    def say(self, content: bytes, status: int = 200, length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content) if length is None else length))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def serving(answer: Callable[[Answers], None]) -> Iterator[str]:
    handler = type("Handler", (Answers,), {"answer": answer})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/c.ics"
        server.shutdown()
        thread.join(5)
