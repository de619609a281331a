"""A real S3 server on this machine, with one bucket, which fails on request."""

import threading
from contextlib import contextmanager

BUCKET = "bucket"


class ObjectStore:
    """The server.

    Attributes:
        url: URL of its bucket.
        requests: (method, path) of every request.
        broken: for each request to come, in order, what goes wrong: "503", "cut" (the connection ends in the middle of
            the answer), "short" (the answer is half as long, and says so), or "" for nothing.
        only: end of the path of the requests that may go wrong.
        method: method of the requests that may go wrong; "" for any.
    """

    url = f"s3://{BUCKET}"

    def __init__(self):
        from moto.server import DomainDispatcherApplication, create_backend_app

        self._app = DomainDispatcherApplication(create_backend_app)
        self.forget()

    def forget(self):
        self.requests, self.broken, self.only, self.method = [], [], "", ""

    def __call__(self, environ, start):
        path, method = environ["PATH_INFO"], environ["REQUEST_METHOD"]
        self.requests.append((method, path))
        fault = self.broken.pop(0) if self.broken and path.endswith(self.only) and self.method in ("", method) else ""
        if fault == "503":
            start("503 Service Unavailable", [("Content-Length", "0")])
            return [b""]
        if fault not in ("cut", "short") or method != "GET":
            return self._app(environ, start)
        answer = {}
        body = b"".join(self._app(environ, lambda status, headers, info=None: answer.update(at=(status, headers))))
        status, headers = answer["at"]
        half = body[: len(body) // 2]
        length = len(body) if fault == "cut" else len(half)
        kept = [(name, value) for name, value in headers if name.lower() != "content-length"]
        if fault == "short":
            kept = [(name, value) for name, value in kept if "checksum" not in name.lower()]
        start(status, [*kept, ("Content-Length", str(length))])
        return [half]


@contextmanager
def served(store):
    """Serve it, and yield the address."""
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        def log(self, *_):
            pass

    server = make_server("127.0.0.1", 0, store, threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
