// Questions to the database that have nothing to do with a peer.
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

// versions are those of Node and of the server, and how durable its commits are.
export async function versions(url) {
  const row = await ask(url, "SELECT current_setting('server_version') AS version, current_setting('synchronous_commit') AS sync");
  return `Node ${process.versions.node}, PostgreSQL ${row.version.split(" ")[0]}, synchronous_commit ${row.sync}`;
}
