"""Receives webhooks of Holdfast. It needs only the standard library.

    HOLDFAST_SECRET_SHOP=whsec_... python3 receiver.py 127.0.0.1:8097
"""
import base64, hashlib, hmac, os, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOLERANCE = 5 * 60  # seconds


def verify(secret, headers, body):
    """Raises ValueError unless the request was signed with the secret within the last minutes."""
    key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    sent = headers.get("webhook-timestamp", "")
    if not key or not sent.isdigit() or abs(time.time() - int(sent)) > TOLERANCE:
        raise ValueError("the timestamp is missing, too old or in the future")
    signed = b"%s.%s.%s" % (headers.get("webhook-id", "").encode(), sent.encode(), body)
    expected = b"v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256))
    signatures = headers.get("webhook-signature", "").encode().split()  # several while a secret is exchanged
    if not any(hmac.compare_digest(s, expected) for s in signatures):
        raise ValueError("no signature is made with this secret")


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(min(int(self.headers.get("content-length", 0)), 1 << 20))
        try:
            verify(os.environ["HOLDFAST_SECRET_SHOP"], self.headers, body)
        except ValueError as e:
            self.send_error(401, str(e))
            return
        # Your code. A delivery may come again with the same webhook-id: store the id with what you do.
        print(self.headers["webhook-id"], body.decode(), flush=True)
        self.send_response(204)
        self.end_headers()


host, _, port = sys.argv[1].rpartition(":")
ThreadingHTTPServer((host, int(port)), Receiver).serve_forever()
