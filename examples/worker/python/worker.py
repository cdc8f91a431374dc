"""A Holdfast worker in Python. It needs only the standard library.

    HOLDFAST_SERVER=http://127.0.0.1:4747 HOLDFAST_KEY=hf_... python3 worker.py
"""
import json, os, threading, time, traceback, urllib.error, urllib.request

URL, KEY = os.environ.get("HOLDFAST_SERVER", "http://127.0.0.1:4747"), os.environ.get("HOLDFAST_KEY")
WORKER = "python-%d-%d" % (os.getpid(), time.time())


def ask(path, body):
    request = urllib.request.Request(URL + "/v1" + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    if KEY:
        request.add_header("Authorization", "Bearer " + KEY)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def work(job):  # your code: return the job's result, or raise
    if job["kind"] == "greet":
        return {"greeting": "Hello, %s!" % job["args"]["name"]}
    raise ValueError("unknown kind " + job["kind"])


def run(job):
    lease, ended = {"batch": job["batch"], "job": job["id"], "token": job["token"]}, threading.Event()
    def renew():
        while not ended.wait(10):  # every third of the lease
            try:
                ask("/claims/renew", {"renewals": [{"batch": job["batch"], "running": [job["id"]]}], "lease": "30s"})
            except OSError as e:
                print("renewal failed, will retry:", e)
    threading.Thread(target=renew, daemon=True).start()
    started = time.monotonic()
    try:
        outcome = {"outcome": "complete", "result": work(job)}
    except Exception as e:
        outcome = {"outcome": "failed", "message": "%s: %s" % (type(e).__name__, e), "detail": traceback.format_exc()}
    ended.set()
    ask("/claims/outcomes", {"outcomes": [{**lease, **outcome, "took": "%.3fs" % (time.monotonic() - started)}]})


while True:
    try:
        jobs = ask("/claims", {"worker": WORKER, "queues": ["default"], "lease": "30s"})["leases"]
        for job in jobs:
            run(job)
        if not jobs:
            ask("/wakes", {"queues": ["default"], "patience": "30s"})
    except (urllib.error.URLError, OSError) as e:
        print("request failed, will retry:", e)
        time.sleep(1)
