// The command line, the same as the Go contenders have.
const known = {
  workload: "drain",
  store: "",
  jobs: 1000,
  goroutines: 16,
  slots: 100,
  processes: 1,
  scheduled: 0,
  held: 0,
  retained: 0,
  snapshot: false,
  same: false,
  defaults: false,
  server: 0,
  profile: "",
  worker: false,
};

const workloads = ["enqueue", "bulk", "drain", "failure", "pickup"];

// Flags that only contenders in Go support.
const refused = ["scheduled", "held", "retained", "snapshot", "defaults", "profile"];

export function flags(words) {
  const run = { ...known };
  while (words.length > 0) {
    const word = words.shift();
    const [, name, given] = /^--?([a-z]+)(?:=(.*))?$/s.exec(word) ?? [];
    if (!(name in known)) throw new Error(`unknown flag ${word}`);
    run[name] = typeof known[name] === "boolean" ? (given ?? "true") === "true" : value(name, given ?? words.shift());
  }
  check(run);
  return run;
}

function value(name, text) {
  if (typeof known[name] === "string") return text ?? "";
  const number = Number(text);
  if (text === undefined || !Number.isInteger(number) || number < 0) throw new Error(`-${name} must be a whole number`);
  return number;
}

function check(run) {
  if (!workloads.includes(run.workload)) {
    throw new Error(`unknown workload "${run.workload}": use ${workloads.join(", ")}`);
  }
  for (const name of refused) {
    if (run[name]) throw new Error(`this contender does not support -${name}: leave it out, or measure another contender`);
  }
  if (!run.store.startsWith("postgres")) throw new Error("pass the URL of a PostgreSQL database as -store");
}
