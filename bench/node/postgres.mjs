// Queries to the database that do not depend on the contender.
import pg from "pg";

async function ask(url, text) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text)).rows[0];
  } finally {
    await client.end();
  }
}

export async function count(url, text) {
  return Number((await ask(url, text)).count);
}

// versions returns the versions of Node and the server, and the server's setting for durability.
export async function versions(url) {
  const row = await ask(url, "SELECT current_setting('server_version') AS version, current_setting('synchronous_commit') AS sync");
  return `Node ${process.versions.node}, PostgreSQL ${row.version.split(" ")[0]}, synchronous_commit ${row.sync}`;
}
