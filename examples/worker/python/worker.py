"""A Holdfast worker in Python: the standard library and nothing else.

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


def work(job):  # your code: return what the job's result is, or raise
    if job["kind"] == "greet":
        return {"greeting": "Hello, %s!" % job["args"]["name"]}
    raise ValueError("no idea what to do with a " + job["kind"])


def run(job):
    lease, over = {"batch": job["batch"], "job": job["id"], "token": job["token"]}, threading.Event()
    def renew():
        while not over.wait(10):  # a third of the lease
            try:
                ask("/claims/renew", {"renewals": [{"batch": job["batch"], "running": [job["id"]]}], "lease": "30s"})
            except OSError as e:
                print("not renewed this time:", e)
    threading.Thread(target=renew, daemon=True).start()
    begun = time.monotonic()
    try:
        said = {"outcome": "complete", "result": work(job)}
    except Exception as e:
        said = {"outcome": "failed", "message": "%s: %s" % (type(e).__name__, e), "detail": traceback.format_exc()}
    over.set()
    ask("/claims/outcomes", {"outcomes": [{**lease, **said, "took": "%.3fs" % (time.monotonic() - begun)}]})


while True:
    try:
        jobs = ask("/claims", {"worker": WORKER, "queues": ["default"], "lease": "30s"})["leases"]
        for job in jobs:
            run(job)
        if not jobs:
            ask("/wakes", {"queues": ["default"], "patience": "30s"})
    except (urllib.error.URLError, OSError) as e:
        print("the server cannot be asked:", e)
        time.sleep(1)
