// Figures of the machine and the database for a run.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import pg from "pg";

// cpu returns the CPU time of this process so far, in seconds.
export function cpu() {
  const used = process.cpuUsage();
  return (used.user + used.system) / 1e6;
}

// resident returns the memory of this process, in MB; peak returns its maximum since forgetPeak.
export const resident = () => status("VmRSS:");
export const peak = () => status("VmHWM:");

export function forgetPeak() {
  try {
    writeFileSync("/proc/self/clear_refs", "5");
  } catch {
    // Not Linux: the peak is not available there.
  }
}

function status(field) {
  const rest = read("/proc/self/status").split(field)[1] ?? "0";
  return parseInt(rest, 10) / 1024;
}

// Units of CPU time per second in /proc.
const ticks = 100;

// serverCpu returns the CPU time of a database server so far: of its first process, of ended children and of running ones. A
// child that ends during the count would be missed, so then the count is repeated.
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

  // position returns the position of the log, in bytes.
  async position() {
    const { rows } = await this.client.query("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn AS bytes");
    return Number(rows[0].bytes);
  }

  close() {
    return this.client.end();
  }
}
