// graphile-worker on PostgreSQL as a contender.
import { createRequire } from "node:module";
import { Logger, makeWorkerUtils, run as start } from "graphile-worker";
import { args, chunk, main } from "./harness.mjs";
import { count, versions } from "./postgres.mjs";

const require = createRequire(import.meta.url);

const kind = "noop";
const localQueue = 500;
const pollInterval = 20;
const maxPoolSize = 20;

// The delay after a failure is fixed: about e to the power of the attempt, in seconds.
const backoff = "retry after e^attempt s (fixed)";

async function open({ store, slots }) {
  const worker = {
    connectionString: store,
    concurrentJobs: slots,
    localQueue: { size: Math.max(localQueue, slots) },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
    maxPoolSize,
    pollInterval,
    logger: new Logger(() => () => {}),
  };
  const preset = { worker };
  const utils = await makeWorkerUtils({ preset });
  await utils.migrate();
  return {
    settings: [
      `graphile-worker ${require("graphile-worker/package.json").version}, concurrentJobs ${slots}, localQueue ${worker.localQueue.size}`,
      `completeJobBatchDelay 0, failJobBatchDelay 0, pollInterval ${pollInterval} ms, ${backoff}`,
      `bulk by addJobs of ${chunk}, pool of ${maxPoolSize}, ${await versions(store)}`,
    ].join(", "),
    async add(jobs) {
      for (; jobs > 0; jobs -= chunk) {
        await utils.addJobs(Array.from({ length: Math.min(jobs, chunk) }, () => ({ identifier: kind, payload: args })));
      }
    },
    addOne: () => utils.addJob(kind, args),
    async work(end, run) {
      const taskList = { [kind]: async (_, helpers) => run(helpers.job.attempts) };
      const runner = await start({ preset, taskList, noHandleSignals: true });
      await end;
      await runner.stop();
    },
    // It deletes complete jobs, so the remaining jobs are counted.
    complete: async () => -(await count(store, "SELECT count(*) FROM graphile_worker.jobs")),
    close: () => utils.release(),
  };
}

await main(open);
