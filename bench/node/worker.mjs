// A worker process, and its parent's view of it. They exchange lines: a worker prints ready and waits for go; while it works it
// prints how many jobs have ended, or when a handler started; when its input ends it stops and prints stopped.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { cpu, forgetPeak, peak, resident } from "./machine.mjs";

// How often a worker prints how many jobs have ended, in ms. A run is stopped at most this much later than its last job.
const beat = 2;

// work runs a worker process. When its parent process ends, its input ends and the worker stops.
export async function work(peer, run) {
  const idle = resident();
  const { go, end } = orders();
  say("ready", 0);
  await go;
  forgetPeak();
  const before = cpu();
  await (run.workload === "pickup" ? tellStarts(peer, end) : tellEnds(peer, end, run.workload === "failure"));
  say("stopped", { cpu: cpu() - before, idle, peak: peak() });
  await peer.close();
}

function say(word, value) {
  process.stdout.write(`${word} ${JSON.stringify(value)}\n`);
}

function orders() {
  const lines = createInterface({ input: process.stdin });
  return {
    go: new Promise((kept) => lines.once("line", kept)),
    end: new Promise((kept) => lines.once("close", kept)),
  };
}

function tellStarts(peer, end) {
  return peer.work(end, () => say("started", String(process.hrtime.bigint())));
}

async function tellEnds(peer, end, failing) {
  let ended = 0;
  let last = 0;
  const tell = setInterval(() => {
    if (ended !== last) say("ended", (last = ended));
  }, beat);
  await peer.work(end, (attempt) => {
    if (failing && attempt === 1) throw new Error("the other side was busy, try again");
    ended++;
  });
  clearInterval(tell);
}

// A Child is this program once more, as a worker.
export class Child {
  ended = 0;
  onEnded = () => {};
  onStarted = () => {};

  constructor(run) {
    const words = [process.argv[1], "-worker", "-workload", run.workload, "-store", run.store, "-slots", String(run.slots)];
    this.process = spawn(process.execPath, words, { stdio: ["pipe", "pipe", "inherit"] });
    this.ready = new Promise((kept, broken) => this.#listen("ready", kept, broken));
    this.stopped = new Promise((kept, broken) => this.#listen("stopped", kept, broken));
    this.stopped.catch(() => {}); // the promise of ready is rejected too
    createInterface({ input: this.process.stdout }).on("line", (line) => this.#hear(line));
  }

  #waiting = {};

  #listen(word, kept, broken) {
    this.#waiting[word] = kept;
    this.process.once("close", () => broken(new Error("a worker process ended unexpectedly")));
  }

  #hear(line) {
    const cut = line.indexOf(" ");
    const word = line.slice(0, cut);
    const value = JSON.parse(line.slice(cut + 1));
    if (word === "ended") {
      this.ended = value;
      this.onEnded();
    } else if (word === "started") {
      this.onStarted(BigInt(value));
    } else {
      this.#waiting[word]?.(value);
    }
  }

  go() {
    this.process.stdin.write("go\n");
  }

  // stop closes the child's input, which makes it stop.
  stop() {
    this.process.stdin.end();
  }
}
