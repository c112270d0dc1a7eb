"""Serves the answers that `generate.py` wrote, and prints its address.

    serve.py FOLDER SIZE

One thread per keep-alive connection. `sendfile` copies from the page cache to the socket, so that the service takes little
processor time from the tools. The key is ignored, and parameters may come in any order.
"""

import os
import socket
import sys
import threading
from pathlib import Path

import work

NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 22\r\n\r\n" + b'{"detail":"Not Found"}'


def name_of(target):
    path, _, parameters = target.partition("?")
    return path, frozenset(pair for pair in parameters.split("&") if pair and not pair.startswith("api_key="))


def open_answers(folder, size):
    answers = {}
    for target in [*work.histories(size), *map(work.articles, work.TICKERS)]:
        file = os.open(work.file_of(folder, target), os.O_RDONLY)
        # So that the first request does not wait for the disk.
        length = len(os.pread(file, os.fstat(file).st_size, 0))
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        answers[name_of(target)] = head.encode(), file, length
    return answers


def answer(connection, request, answers):
    target = request.split(b" ", 2)[1].decode()
    found = answers.get(name_of(target))
    if found is None:
        connection.sendall(NOT_FOUND)
        return
    head, file, length = found
    connection.sendall(head, socket.MSG_MORE)
    sent = 0
    while sent < length:
        sent += os.sendfile(connection.fileno(), file, sent, length - sent)


def converse(connection, answers):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    unread = b""
    try:
        while received := connection.recv(65536):
            unread += received
            while b"\r\n\r\n" in unread:
                request, _, unread = unread.partition(b"\r\n\r\n")
                answer(connection, request, answers)
    except ConnectionError:
        pass  # The client disconnected.
    finally:
        connection.close()


def main(folder, size):
    answers = open_answers(folder, size)
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=converse, args=(connection, answers), daemon=True).start()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
