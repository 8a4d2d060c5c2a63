// Uses the management API by Google's own SDK; only base URL and key are changed.

import assert from "node:assert/strict";
import { GoogleGenAI } from "@google/genai";

const [baseUrl, apiKey] = process.argv.slice(2);
const client = new GoogleGenAI({ apiKey, httpOptions: { baseUrl } });

async function refused(status, call) {
  try {
    await call();
  } catch (error) {
    const code = error.status ?? error.statusCode;
    assert.equal(code, status, `${error.constructor.name} ${error}`);
    return;
  }
  assert.fail(`${status} was due`);
}

const { credentials, environments } = client;
const made = await credentials.create({ id: "token", type: "bearer_token", token: "secret-value" });
assert.deepEqual([made.id, made.type, made.status], ["token", "bearer_token", "active"]);
await credentials.create({ id: "variable", type: "environment_variable", value: "secret-value",
  injection_location: "header" });
assert.equal((await credentials.get("token")).id, "token");
await credentials.update("token", { type: "bearer_token", token: "other", update_mask: "token" });
const first = await credentials.list({ page_size: 1 });
assert.deepEqual(first.credentials.map((one) => one.id), ["token"]);
const rest = await credentials.list({ page_size: 1, page_token: first.next_page_token });
assert.deepEqual(rest.credentials.map((one) => one.id), ["variable"]);
await refused(409, () => credentials.create({ id: "token", type: "bearer_token", token: "x" }));
await refused(400, () => credentials.create({ id: "bad", type: "bearer_token", token: "x\n" }));
await refused(404, () => credentials.get("absent"));
await credentials.delete("token");
await refused(404, () => credentials.delete("token"));

const environment = await environments.create({ network: { allowlist: [
  { domain: "api.example.com", transform: [{ Authorization: "secret-value" }] },
] } });
assert.equal(environment.status, "active");
const got = await environments.get(environment.id);
assert.equal(got.network.allowlist[0].domain, "api.example.com");
assert.ok(!JSON.stringify(got).includes("secret-value"));
assert.deepEqual((await environments.list()).environments.map((one) => one.id), [environment.id]);
await environments.delete(environment.id);
await refused(404, () => environments.get(environment.id));

const other = new GoogleGenAI({ apiKey: "wrong", httpOptions: { baseUrl } });
await refused(401, () => other.credentials.get("variable"));
console.log("all of it worked");
