// Shared by the Node contenders: the command line, the workloads and the line of JSON with the result, as package measure
// does for Go. A peer is an object with
//   add(n)          jobs in bulk, due now
//   addOne()        one job, due now, durable when it returns
//   work(end, run)  runs handlers until the promise end is resolved, then stops cleanly; run(attempt) throws when a job must fail
//   complete()      number of complete jobs in the store; minus the remaining jobs if it deletes complete ones
//   settings        a text with versions and settings
//   close()
import { setTimeout as pause } from "node:timers/promises";
import { flags } from "./flags.mjs";
import { cpu, Log, serverCpu } from "./machine.mjs";
import { Child, work } from "./worker.mjs";

// Number of jobs in one bulk call.
export const chunk = 5000;

// The arguments of every job, about 200 bytes of JSON.
export const args = { text: "holdfast ".repeat(20) };

// Number of jobs before the first pick-up that counts.
const warmup = 10;

const longest = 30_000;
const patience = 20 * 60_000;

// main runs one workload of one peer and prints its result.
export async function main(open) {
  try {
    const run = flags(process.argv.slice(2));
    const late = setTimeout(() => fail(new Error("the run took too long and was aborted")), patience);
    if (run.worker) {
      await work(await open(run), run);
    } else {
      console.log(JSON.stringify(await measure(run, open)));
    }
    clearTimeout(late);
  } catch (error) {
    fail(error);
  }
}

function fail(error) {
  console.error(error);
  process.exit(1);
}

async function measure(run, open) {
  const peer = await open(run);
  const log = await Log.open(run.store);
  try {
    const result = await workloads[run.workload]({ run, peer, log });
    return { ...result, settings: peer.settings };
  } finally {
    await peer.close();
    await log.close();
  }
}

const workloads = {
  enqueue: (s) => timed(s, () => together(s)),
  bulk: (s) => timed(s, () => s.peer.add(s.run.jobs)),
  drain,
  failure: drain,
  pickup,
};

// timed measures work in this process.
async function timed(session, action) {
  const before = cpu();
  return clocked(session, async () => {
    await action();
    return { cpu_seconds: cpu() - before };
  });
}

// clocked measures the time, the database server's CPU time and its log during an action, and adds the action's result.
async function clocked({ run, log }, action) {
  const wal = await log.position();
  const server = serverCpu(run.server);
  const begin = process.hrtime.bigint();
  const figures = await action();
  const seconds = Number(process.hrtime.bigint() - begin) / 1e9;
  const used = serverCpu(run.server) - server;
  const result = { jobs: run.jobs, seconds, ...figures, wal_bytes: (await log.position()) - wal };
  return used > 0 ? { ...result, server_cpu_seconds: used } : result;
}

// together adds single jobs, several concurrently.
async function together({ run, peer }) {
  let left = run.jobs;
  const one = async () => {
    while (left-- > 0) await peer.addOne();
  };
  await Promise.all(Array.from({ length: run.goroutines }, one));
}

// drain adds jobs and runs worker processes until all jobs have ended. The time runs from "go" until all workers have stopped
// cleanly, so that all counted jobs are settled.
async function drain(session) {
  const { run, peer } = session;
  await peer.add(run.jobs);
  const before = await peer.complete();
  const crew = Array.from({ length: run.processes }, () => new Child(run));
  await Promise.all(crew.map((child) => child.ready));
  const result = await clocked(session, () => untilAllEnded(crew, run.jobs));
  const grown = (await peer.complete()) - before;
  if (grown !== run.jobs) {
    throw new Error(`${run.jobs} jobs were handled but the store contains ${grown} more complete ones: this run does not count`);
  }
  return result;
}

async function untilAllEnded(crew, jobs) {
  for (const child of crew) {
    child.onEnded = () => {
      if (crew.reduce((sum, c) => sum + c.ended, 0) >= jobs) crew.forEach((c) => c.stop());
    };
    child.go();
  }
  const said = await Promise.all(crew.map((child) => child.stopped));
  return {
    cpu_seconds: said.reduce((sum, s) => sum + s.cpu, 0),
    rss_idle_mb: Math.max(...said.map((s) => s.idle)),
    rss_peak_mb: Math.max(...said.map((s) => s.peak)),
  };
}

// pickup adds single jobs while a worker is idle and measures the time until their handlers start.
async function pickup({ run, peer }) {
  const { started, stop } = run.same ? inside(peer) : await outside(run);
  const begin = process.hrtime.bigint();
  const took = [];
  for (let i = 0; i < warmup + run.jobs; i++) {
    const added = process.hrtime.bigint();
    const at = started();
    await peer.addOne();
    const ms = Number((await soon(at)) - added) / 1e6;
    if (i >= warmup) took.push(ms);
    await pause(10 + Math.random() * 20);
  }
  const seconds = Number(process.hrtime.bigint() - begin) / 1e9;
  await stop();
  took.sort((a, b) => a - b);
  return { jobs: run.jobs, seconds, p50_ms: percentile(took, 50), p95_ms: percentile(took, 95), p99_ms: percentile(took, 99) };
}

// outside starts an idle worker in a separate process. hrtime uses the same clock in all processes.
async function outside(run) {
  const child = new Child(run);
  await child.ready;
  child.go();
  const started = () => new Promise((kept) => (child.onStarted = kept));
  return { started, stop: () => (child.stop(), child.stopped) };
}

// inside starts an idle worker in this process.
function inside(peer) {
  let tell, end;
  const over = peer.work(new Promise((kept) => (end = kept)), () => tell(process.hrtime.bigint()));
  return { started: () => new Promise((kept) => (tell = kept)), stop: () => (end(), over) };
}

async function soon(at) {
  const late = new AbortController();
  const never = pause(longest, undefined, { signal: late.signal }).then(() => {
    throw new Error(`a job was not picked up within ${longest / 1000} s`);
  });
  try {
    return await Promise.race([at, never]);
  } finally {
    never.catch(() => {});
    late.abort();
  }
}

// percentile returns the smallest value of a sorted list that the given percentage of values does not exceed.
function percentile(sorted, percent) {
  return sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)];
}
