// The locks of redlock for Node, version 4 and 5, as a program would use them, with ioredis.
//
// node redlock.js MODULES PORT CA TOKEN, where MODULES is a directory of installed packages.

"use strict";

const assert = require("assert");
const fs = require("fs");

const [modules, port, ca, token] = process.argv.slice(2);
const Redis = require(`${modules}/ioredis`);
const { version } = require(`${modules}/redlock/package.json`);
const module_ = require(`${modules}/redlock`);
const Redlock = module_.default || module_;
const newer = !/^v?4/.test(version);

function connect() {
  return new Redis({
    host: "127.0.0.1",
    port: Number(port),
    username: "all",
    password: token,
    tls: { ca: fs.readFileSync(ca) },
  });
}

const client = connect();
const impatient = new Redlock([client], { retryCount: 0 });
const patient = new Redlock([client], { retryCount: 400, retryDelay: 10, retryJitter: 5 });

// Version 4 takes one name or several, version 5 always several.
const acquire = (redlock, names, ttl) =>
  newer ? redlock.acquire(names, ttl) : redlock.lock(names.length === 1 ? names[0] : names, ttl);
const release = (lock) => (newer ? lock.release() : lock.unlock());

async function main() {
  const lock = await acquire(impatient, ["report"], 1000);
  const { value } = lock;
  assert.strictEqual(await client.get("report"), value);
  await assert.rejects(acquire(impatient, ["report"], 1000));
  const longer = await lock.extend(1900);
  const left = await client.pttl("report");
  assert(left > 1000 && left <= 1900, `extended: ${left}`);
  assert(BigInt(await client.call("DOORWAY.FENCE", "report", value)) > 0n);
  await release(longer);
  assert.strictEqual(await client.get("report"), null);

  // Several keys are taken all or none.
  const both = await acquire(impatient, ["a", "b"], 1000);
  await assert.rejects(acquire(impatient, ["b", "c"], 1000));
  assert.strictEqual(await client.exists("c"), 0);
  await release(both);
  assert.strictEqual(await client.exists("a", "b"), 0);

  // A lease that has ended is noticed.
  const lost = await acquire(impatient, ["report"], 1000);
  await client.del("report");
  await assert.rejects(release(lost));

  // One after the other.
  let inside = 0;
  let entries = 0;
  async function work() {
    for (let turn = 0; turn < 5; turn++) {
      const held = await acquire(patient, ["counter"], 1900);
      assert.strictEqual(++inside, 1);
      await new Promise((done) => setTimeout(done, 2));
      entries++;
      inside--;
      await release(held);
    }
  }
  await Promise.all([1, 2, 3, 4].map(work));
  assert.strictEqual(entries, 20);
  console.log(`all is well with ${version}`);
}

main().then(
  () => client.disconnect(),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
