#!/usr/bin/env python3
"""serve_fairness ADDRESS PID SCORED CLIENTS: a JSON line of seconds and megabytes of the server with this process number.

alone, prompt, prompts, scored: the longest time between two events of a stream, alone and while another client asks for one token
after a prompt that fills the window, while eight such clients do, and while one asks for the log-probabilities of SCORED ids.
before, peak, after: resident memory before, during and after CLIENTS clients at once that send 4 MB of empty prompts."""
import http.client
import json
import sys
import threading
import time

address, pid, scored, clients = sys.argv[1], *map(int, sys.argv[2:])
host = address.removeprefix("http://").rstrip("/")


def post(body, path="/v1/completions"):
    connection = http.client.HTTPConnection(host, timeout=3600)
    connection.request("POST", path, body if isinstance(body, bytes) else json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.read()


def window():
    connection = http.client.HTTPConnection(host, timeout=60)
    connection.request("GET", "/tokenizer_info")
    return json.loads(connection.getresponse().read())["model_max_length"]


class Stream:
    """The times of the events of a stream."""

    def __init__(self):
        connection = http.client.HTTPConnection(host, timeout=3600)
        connection.request("POST", "/v1/completions", json.dumps({"prompt": [5, 6, 7], "max_tokens": 900000, "stream": True, "logprobs": 0}))
        self.answer, self.times, self.left = connection.getresponse(), [], False
        self.connection = connection
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        try:
            for line in self.answer:
                if line.startswith(b"data: {"):
                    self.times.append(time.perf_counter())
        except (OSError, ValueError, http.client.HTTPException):
            pass

    def longest(self, begin, end):
        while not self.times or self.times[-1] < end:
            time.sleep(0.05)
        times = [begin] + [t for t in self.times if begin <= t <= end] + [end]
        return max(b - a for a, b in zip(times, times[1:]))


def during(stream, work):
    begin = time.perf_counter()
    work()
    return stream.longest(begin, time.perf_counter())


def together(bodies):
    told = []
    threads = [threading.Thread(target=lambda body=body: told.append(post(body))) for body in bodies]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return told


def memory(key="VmRSS"):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(key)) / 1000


full = window()
post({"prompt": [1], "max_tokens": 4})
figures = {}
stream = Stream()
time.sleep(1)
figures["alone"] = during(stream, lambda: time.sleep(10))
ids = [9 + i % 200 for i in range(max(full, scored))]
prompt = {"prompt": ids[:full - 1], "max_tokens": 1}
figures["prompt"] = during(stream, lambda: post(prompt))
figures["prompts"] = during(stream, lambda: together([{"prompt": [i] + ids[:full - 2], "max_tokens": 1} for i in range(8)]))
figures["scored"] = during(stream, lambda: post({"prompt": ids[:scored], "max_tokens": 0, "echo": True, "logprobs": 1}))
stream.connection.sock.close()
time.sleep(1)
figures["before"] = memory()
body = b'{"prompt":[' + b",".join([b'""'] * ((4 << 20) // 3 - 8)) + b"]}"
codes = [status for status, _ in together([body] * clients)]
if not set(codes) <= {400, 503}:
    sys.exit(f"serve_fairness: {sorted(set(codes))}")
for _ in range(100):
    figures["after"] = memory()
    if figures["after"] < figures["before"] + 200:
        break
    time.sleep(0.2)
figures["peak"] = memory("VmHWM")
print(json.dumps(figures))
