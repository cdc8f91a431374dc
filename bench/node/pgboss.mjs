// pg-boss on PostgreSQL as a contender. Its worker, work(), polls at most twice a second and is measured for pick-up; drains use
// fetch() and complete() in batches, which is its fastest way.
import { createRequire } from "node:module";
import { setTimeout as pause } from "node:timers/promises";
import PgBoss from "pg-boss";
import { args, chunk, main } from "./harness.mjs";
import { count, versions } from "./postgres.mjs";

const require = createRequire(import.meta.url);

const queue = "noop";
const max = 20;
const size = 1000; // each fetch sorts all waiting jobs, so large batches are cheaper
const pollingIntervalSeconds = 0.5; // the shortest it allows

async function open({ store, slots, workload, worker }) {
  const boss = new PgBoss({ connectionString: store, max, schedule: false, supervise: worker });
  boss.on("error", (error) => console.error(error));
  await boss.start();
  if (!worker && !(await boss.getQueue(queue))) await boss.createQueue(queue, { retryLimit: 25, retryDelay: 0 });
  const peer = { boss, slots, failing: workload === "failure" };
  return {
    settings: [
      `pg-boss ${require("pg-boss/package.json").version}, ${way(workload, slots)}, retryDelay 0`,
      `bulk by insert of ${chunk}, pool of ${max}, ${await versions(store)}`,
    ].join(", "),
    async add(jobs) {
      for (; jobs > 0; jobs -= chunk) {
        await boss.insert(Array.from({ length: Math.min(jobs, chunk) }, () => ({ name: queue, data: args })));
      }
    },
    addOne: () => boss.send(queue, args),
    work: (end, run) => (workload === "pickup" ? poll(peer, end, run) : drain(peer, end, run)),
    complete: () => count(store, "SELECT count(*) FROM pgboss.job WHERE state = 'completed'"),
    close: () => boss.stop({ graceful: false }),
  };
}

function way(workload, slots) {
  if (workload === "pickup") return `work() every ${pollingIntervalSeconds} s (its shortest), batchSize ${slots}`;
  return `fetch() and complete() in batches of ${size}`;
}

async function poll({ boss, slots }, end, run) {
  await boss.work(queue, { pollingIntervalSeconds, batchSize: slots }, async (jobs) => jobs.forEach(() => run(1)));
  await end;
  await boss.stop({ close: false });
}

async function drain(peer, end, run) {
  let working = true;
  end.then(() => (working = false));
  while (working) {
    if (!(await batch(peer, run))) await pause(5);
  }
}

// batch runs and settles the jobs of one fetch. It returns whether there were any.
async function batch({ boss, failing }, run) {
  const jobs = await boss.fetch(queue, { batchSize: size, includeMetadata: failing });
  const complete = [];
  const failed = [];
  let reason;
  for (const job of jobs) {
    try {
      run(failing ? job.retryCount + 1 : 1);
      complete.push(job.id);
    } catch (error) {
      failed.push(job.id);
      reason = error;
    }
  }
  if (complete.length > 0) await boss.complete(queue, complete);
  if (failed.length > 0) await boss.fail(queue, failed, reason);
  return jobs.length > 0;
}

await main(open);
