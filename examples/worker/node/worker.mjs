// A Holdfast worker in Node.js (18 or newer). It needs no packages.
//
//     HOLDFAST_SERVER=http://127.0.0.1:4747 HOLDFAST_KEY=hf_... node worker.mjs
const url = process.env.HOLDFAST_SERVER ?? "http://127.0.0.1:4747", key = process.env.HOLDFAST_KEY;
const worker = `node-${process.pid}-${Date.now()}`;

async function ask(path, body) {
  const headers = { "Content-Type": "application/json", ...(key && { Authorization: `Bearer ${key}` }) };
  const answer = await fetch(`${url}/v1${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

async function work(job) { // your code: return the job's result, or throw
  if (job.kind === "greet") return { greeting: `Hello, ${job.args.name}!` };
  throw new Error(`unknown kind ${job.kind}`);
}

async function run(job) {
  const renew = () => ask("/claims/renew", { renewals: [{ batch: job.batch, running: [job.id] }], lease: "30s" }).catch(console.error);
  const timer = setInterval(renew, 10_000), started = performance.now(); // every third of the lease
  let outcome;
  try {
    outcome = { outcome: "complete", result: await work(job) };
  } catch (e) {
    outcome = { outcome: "failed", message: String(e), detail: e.stack };
  }
  clearInterval(timer);
  const took = `${((performance.now() - started) / 1000).toFixed(3)}s`;
  await ask("/claims/outcomes", { outcomes: [{ batch: job.batch, job: job.id, token: job.token, took, ...outcome }] });
}

for (;;) {
  try {
    const { leases } = await ask("/claims", { worker, queues: ["default"], lease: "30s" });
    for (const job of leases) await run(job);
    if (leases.length === 0) await ask("/wakes", { queues: ["default"], patience: "30s" });
  } catch (e) {
    console.error(e.message);
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}
