"""Reads the first dead letter of FetchBox from JetStream and prints it as JSON.

usage: consumer.py nats://HOST:PORT DESCRIPTORS

It speaks the NATS protocol over a socket and decodes the message with Google's protobuf runtime. DESCRIPTORS is a FileDescriptorSet, as
`protoc --descriptor_set_out` writes it.
"""

import base64
import json
import socket
import sys
from urllib.parse import urlparse

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory


def read_message(lines):
    """Returns the payload of the next MSG or HMSG."""
    while True:
        line = lines.readline().decode().strip()
        if line == "PING":
            lines.write(b"PONG\r\n")
            lines.flush()
        elif line.startswith("MSG "):
            size = int(line.split()[-1])
            body = lines.read(size + 2)[:-2]
            return body
        elif line.startswith("-ERR"):
            raise SystemExit(line)


def main(url, descriptors):
    at = urlparse(url)
    with socket.create_connection((at.hostname, at.port), timeout=30) as connection:
        lines = connection.makefile("rwb")
        lines.readline()  # INFO
        request = json.dumps({"seq": 1}).encode()
        lines.write(b'CONNECT {"verbose":false,"pedantic":false,"lang":"python","version":"1"}\r\n')
        lines.write(b"SUB _INBOX.consumer 1\r\n")
        lines.write(b"PUB $JS.API.STREAM.MSG.GET.FETCHBOX_DLQ _INBOX.consumer %d\r\n%s\r\n" % (len(request), request))
        lines.flush()
        answer = json.loads(read_message(lines))
    if "error" in answer:
        raise SystemExit(answer["error"])

    files = descriptor_pb2.FileDescriptorSet()
    with open(descriptors, "rb") as f:
        files.ParseFromString(f.read())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    descriptor = pool.FindMessageTypeByName("fetchbox.v1.DeadLetterTask")
    if hasattr(message_factory, "GetMessageClass"):
        kind = message_factory.GetMessageClass(descriptor)
    else:  # before protobuf 4.22
        kind = message_factory.MessageFactory(pool).GetPrototype(descriptor)
    letter = kind.FromString(base64.b64decode(answer["message"]["data"]))
    print(json.dumps({
        "sequence": answer["message"]["seq"], "failure_code": letter.failure_code, "failure_message": letter.failure_message,
        "attempts": letter.attempts, "failed_at_ms": letter.failed_at_ms, "metadata": dict(letter.metadata), "task_id": letter.task_id,
    }))


main(*sys.argv[1:])
