#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server on loopback that speaks as a language model's: language_model.py FOLDER MODE

Writes its port to FOLDER/port, and to FOLDER/log a line of JSON for every request: what came, and what became of it. It answers with the
label of the first example. MODE: `good` answers everything; `bad` does to each request, told by its text, one of eight things first, and
answers from then on; `slow` answers after 0.15 s; anything else is a status for every request."""
import http.server
import json
import pathlib
import sys
import threading
import time
import zlib

TROUBLES = ["none", "429", "500", "half", "no json", "closed", "stall", "other json"]
folder, mode = pathlib.Path(sys.argv[1]), sys.argv[2]
lock, seen = threading.Lock(), {}


class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def send(self, status, body, length=None, headers=()):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def note(self, prompt, fate):
        with lock, open(folder / "log", "a") as log:
            log.write(json.dumps({"prompt": prompt, "fate": fate, "key": self.headers.get("Authorization", ""), "path": self.path,
                                  "time": time.time()}) + "\n")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = body["messages"][0]["content"]
        with lock:
            first = prompt not in seen
            seen[prompt] = True
        fate = "none"
        if mode == "bad" and first:
            fate = TROUBLES[zlib.crc32(prompt.encode()) % len(TROUBLES)]
        if mode.isdigit():
            self.note(prompt, mode)
            # A careless server shows what it was shown.
            error = {"error": {"message": f"no: {self.headers.get('Authorization', 'nothing')}"}}
            return self.send(int(mode), json.dumps(error).encode())
        label = next(line for line in prompt.splitlines() if line.startswith("label: "))[len("label: "):]
        answer = json.dumps({"model": body["model"], "temperature": body["temperature"],
                             "choices": [{"index": 0, "message": {"role": "assistant", "content": f" {label}\n"}}]}).encode()
        if mode == "slow":
            time.sleep(0.15)
        self.note(prompt, fate)
        if fate == "429":
            self.send(429, b'{"error": {"message": "too many"}}', headers=[("Retry-After", "1")])
        elif fate == "500":
            self.send(500, b"<html>oh dear</html>")
        elif fate == "half":
            self.send(200, answer[:len(answer) // 2], length=len(answer))
            self.close_connection = True
        elif fate == "no json":
            self.send(200, answer[:len(answer) // 2])
        elif fate == "other json":
            self.send(200, b'{"status": "still loading"}')
        elif fate == "closed":
            self.close_connection = True
        elif fate == "stall":
            time.sleep(10)
            self.close_connection = True
        else:
            self.send(200, answer)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):  # a client that is gone
        pass


server = Server(("127.0.0.1", 0), Model)
(folder / "port.tmp").write_text(str(server.server_address[1]))
(folder / "port.tmp").rename(folder / "port")
server.serve_forever()
