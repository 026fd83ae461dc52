#!/usr/bin/env python3
"""serve_clients ADDRESS CLIENTS REQUESTS TOKENS

CLIENTS threads with a connection each ask REQUESTS questions one after the other of the server's /v1/completions, greedily,
TOKENS new tokens at most. All prompts begin with one text of about 100 tokens. Prints requests and tokens a second and the
median and the 99th percentile of the seconds to an answer; fails unless every request is answered."""
import http.client
import json
import sys
import threading
import time

address, clients, requests, tokens = sys.argv[1], *map(int, sys.argv[2:])
host = address.removeprefix("http://").rstrip("/")
BEFORE = ("The following is a conversation between a visitor and the guide of a museum of natural history. The guide knows "
          "every animal in the collection, where it was found, who brought it and what it ate. The guide is patient, answers "
          "in one or two plain sentences, never makes anything up, and says so when the collection holds nothing of the kind. "
          "The visitor asks one question at a time.\n\n")
ANIMALS = ["otter", "heron", "beetle", "whale", "falcon", "lizard", "salmon", "badger"]
took, made, failed, lock = [], [], [], threading.Lock()


def ask(connection, client, number):
    prompt = f"{BEFORE}Visitor {client}: Where does the {ANIMALS[(client + number) % 8]} of room {client * 7 + number} live?\nGuide:"
    body = json.dumps({"prompt": prompt, "max_tokens": tokens, "temperature": 0})
    start = time.perf_counter()
    connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{answer.status}: {text[:200]!r}")
    with lock:
        took.append(time.perf_counter() - start)
        made.append(json.loads(text)["usage"]["completion_tokens"])


def run(client):
    try:
        connection = http.client.HTTPConnection(host, timeout=600)
        for number in range(requests):
            ask(connection, client, number)
    except Exception as error:  # noqa: BLE001  # of any kind: the main thread tells it
        failed.append(error)


ask(http.client.HTTPConnection(host, timeout=600), 999, 0)
took.clear(), made.clear()
threads = [threading.Thread(target=run, args=(client,)) for client in range(clients)]
start = time.perf_counter()
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
seconds = time.perf_counter() - start
if failed:
    sys.exit(f"serve_clients: {len(failed)} of {clients} clients failed: {failed[0]}")
took.sort()
print(json.dumps({"requests_per_s": len(took) / seconds, "tokens_per_s": sum(made) / seconds, "p50": took[len(took) // 2],
                  "p99": took[min(len(took) - 1, len(took) * 99 // 100)], "seconds": seconds}))
