// Receives webhooks of Holdfast, in Node.js (18 or newer). It needs no packages.
//
//     HOLDFAST_SECRET_SHOP=whsec_... node receiver.mjs 127.0.0.1:8097
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const tolerance = 5 * 60; // seconds

// verify throws unless the request was signed with the secret within the last minutes.
function verify(secret, headers, body) {
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64"), sent = headers["webhook-timestamp"] ?? "";
  if (key.length === 0 || !/^\d+$/.test(sent) || Math.abs(Date.now() / 1000 - Number(sent)) > tolerance) {
    throw new Error("the timestamp is missing, too old or in the future");
  }
  const mac = createHmac("sha256", key).update(`${headers["webhook-id"]}.${sent}.`).update(body).digest("base64");
  const expected = Buffer.from(`v1,${mac}`);
  const signatures = (headers["webhook-signature"] ?? "").split(" ").map((s) => Buffer.from(s)); // several while a secret is exchanged
  if (!signatures.some((s) => s.length === expected.length && timingSafeEqual(s, expected))) {
    throw new Error("no signature is made with this secret");
  }
}

const server = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  try {
    verify(process.env.HOLDFAST_SECRET_SHOP ?? "", request.headers, body);
  } catch (e) {
    response.writeHead(401).end(e.message);
    return;
  }
  // Your code. A delivery may come again with the same webhook-id: store the id with what you do.
  console.log(request.headers["webhook-id"], body.toString());
  response.writeHead(204).end();
});

const [, host, port] = process.argv[2].match(/^(.*):(\d+)$/);
server.listen(Number(port), host);
