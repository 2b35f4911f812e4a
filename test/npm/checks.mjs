// What the scripts of this folder share: named checks whose results go to
// stdout as lines of JSON, where the tests in test/interop read them.
import dns from 'node:dns';

// Some packages look for things on the network. Here there is none.
dns.lookup = (name, options, callback) => {
  const done = callback ?? options;
  process.nextTick(done, Object.assign(new Error(`${name} is not looked up in tests`), { code: 'ENOTFOUND' }));
};

const checks = [];

/** Adds a check; it fails if fn throws. */
export function check(name, fn) {
  checks.push([name, fn]);
}

/** Runs all checks, one after the other. A check may take 30 seconds. */
export async function run() {
  for (const [name, fn] of checks) {
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error('it takes more than 30 seconds')), 30_000);
    });
    let error = '';
    try {
      await Promise.race([fn(), late]);
    } catch (e) {
      error = (e && e.stack) || String(e);
    }
    clearTimeout(timer);
    console.log(JSON.stringify({ check: name, error }));
  }
  console.log(JSON.stringify({ done: checks.length }));
  process.exit(0);
}

/** The address under test. */
export const url = process.env.AGENTD_URL;
if (!/^http:\/\/127\.0\.0\.1:\d+$/.test(url ?? '')) throw new Error('AGENTD_URL is missing');

/** A fetch that remembers what was asked and answered. */
export function recorder() {
  const seen = [];
  const recording = async (input, init) => {
    const response = await fetch(input, init);
    const entry = { url: String(input.url ?? input), status: response.status, headers: response.headers };
    entry.body = response.clone().text().catch(() => '');
    seen.push(entry);
    return response;
  };
  return { seen, fetch: recording, last: () => seen[seen.length - 1] };
}

/** How a run ended, once it has: the type of its last event. */
export async function ending(runId) {
  const response = await fetch(`${url}/runs/${runId}/events`);
  if (response.status !== 200) throw new Error(`events of ${runId}: ${response.status}`);
  const types = [...(await response.text()).matchAll(/^event: (\S+)$/gm)].map((m) => m[1]);
  return types[types.length - 1];
}

/** The tool events of a run, by type. */
export async function toolEvents(runId) {
  const response = await fetch(`${url}/runs/${runId}/events`);
  const text = await response.text();
  return [...text.matchAll(/^data: (.*)$/gm)].map((m) => JSON.parse(m[1])).filter((e) => e.type.startsWith('tool_'));
}

/** The types of errors that a broken-off call ends with differ; all that counts is that it ends. */
export async function rejected(promise) {
  try {
    await promise;
  } catch (e) {
    return e;
  }
  throw new Error('it did not fail');
}
