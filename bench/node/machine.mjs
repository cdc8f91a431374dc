// What the machine and the database say about a run.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import pg from "pg";

// cpu is what this process has used so far, in seconds.
export function cpu() {
  const used = process.cpuUsage();
  return (used.user + used.system) / 1e6;
}

// resident is what this process has in memory now, in MB; peak is the most it had since forgetPeak.
export const resident = () => status("VmRSS:");
export const peak = () => status("VmHWM:");

export function forgetPeak() {
  try {
    writeFileSync("/proc/self/clear_refs", "5");
  } catch {
    // Not Linux: the peak is not known there anyway.
  }
}

function status(field) {
  const rest = read("/proc/self/status").split(field)[1] ?? "0";
  return parseInt(rest, 10) / 1024;
}

// How many units of CPU time a second has in what the kernel tells.
const ticks = 100;

// serverCpu is what a database server has used so far: its first process, the children that ended, and those that run. A child
// that ends while the others are looked at would be missed, so then everything is looked at again.
export function serverCpu(pid) {
  if (pid === 0) return 0;
  for (;;) {
    const { own, ended } = spent(pid);
    const sum = own + ended + running(pid);
    if (spent(pid).ended === ended) return sum / ticks;
  }
}

function running(parent) {
  const all = entries("/proc").filter((name) => /^\d+$/.test(name)).map(spent);
  return all.filter((p) => p.parent === parent).reduce((sum, p) => sum + p.own + p.ended, 0);
}

function spent(pid) {
  const text = read(`/proc/${pid}/stat`);
  const f = text.slice(text.lastIndexOf(")") + 2).split(" ").map(Number);
  if (f.length < 15) return { own: 0, ended: 0, parent: 0 };
  return { own: f[11] + f[12], ended: f[13] + f[14], parent: f[1] };
}

function read(file) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

function entries(dir) {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}

// A Log is the database's write-ahead log.
export class Log {
  static async open(url) {
    const log = new Log();
    log.client = new pg.Client({ connectionString: url });
    await log.client.connect();
    return log;
  }

  // position is how far the log has come, in bytes.
  async position() {
    const { rows } = await this.client.query("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn AS bytes");
    return Number(rows[0].bytes);
  }

  close() {
    return this.client.end();
  }
}
