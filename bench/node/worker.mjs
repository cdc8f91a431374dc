// A worker process, seen from inside and from the process that started it. They exchange lines: a worker says ready and waits
// for go; while it works it says how many jobs have ended, or when a handler started; when its input ends it stops and says
// stopped.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { cpu, forgetPeak, peak, resident } from "./machine.mjs";

// How often a worker says how many jobs have ended, in ms. It bounds how much later than the last job a run is stopped.
const beat = 2;

// work is the whole life of a worker process. When the process that started it goes away, its input ends and so does it.
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
    this.stopped.catch(() => {}); // whoever waits for ready hears of it too
    createInterface({ input: this.process.stdout }).on("line", (line) => this.#hear(line));
  }

  #waiting = {};

  #listen(word, kept, broken) {
    this.#waiting[word] = kept;
    this.process.once("close", () => broken(new Error("a worker process ended on its own")));
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

  // stop lets the child's input end, which tells it to stop.
  stop() {
    this.process.stdin.end();
  }
}
