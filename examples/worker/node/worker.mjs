// A Holdfast worker in Node (18 or newer): nothing to install.
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

async function work(job) { // your code: return what the job's result is, or throw
  if (job.kind === "greet") return { greeting: `Hello, ${job.args.name}!` };
  throw new Error(`no idea what to do with a ${job.kind}`);
}

async function run(job) {
  const renew = () => ask("/claims/renew", { renewals: [{ batch: job.batch, running: [job.id] }], lease: "30s" }).catch(console.error);
  const timer = setInterval(renew, 10_000), begun = performance.now(); // a third of the lease
  let said;
  try {
    said = { outcome: "complete", result: await work(job) };
  } catch (e) {
    said = { outcome: "failed", message: String(e), detail: e.stack };
  }
  clearInterval(timer);
  const took = `${((performance.now() - begun) / 1000).toFixed(3)}s`;
  await ask("/claims/outcomes", { outcomes: [{ batch: job.batch, job: job.id, token: job.token, took, ...said }] });
}

for (;;) {
  try {
    const { leases } = await ask("/claims", { worker, queues: ["default"], lease: "30s" });
    for (const job of leases) await run(job);
    if (leases.length === 0) await ask("/wakes", { queues: ["default"], patience: "30s" });
  } catch (e) {
    console.error(e.message);
    await new Promise((again) => setTimeout(again, 1000));
  }
}
