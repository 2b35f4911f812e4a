// Anthropic's own client against the simulator.
import assert from 'node:assert/strict';
import Anthropic from '@anthropic-ai/sdk';
import { check, recorder, rejected, run, url } from './checks.mjs';

const wire = recorder();
const make = (more = {}) => new Anthropic({ baseURL: url, apiKey: 'none', maxRetries: 0, fetch: wire.fetch, ...more });
const client = make();
const ask = (content, more = {}) => ({ model: 'sim', max_tokens: 1000, messages: [{ role: 'user', content }], ...more });
const tools = [{ name: 'add', input_schema: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } } }];
const fault = (text) => ({ headers: { 'X-Sim-Fault': text } });
const text = (message) => message.content.filter((b) => b.type === 'text').map((b) => b.text).join('');

check('models', async () => {
  const ids = [];
  for await (const m of client.models.list()) ids.push(m.id);
  assert.deepEqual(ids, ['sim']);
});

check('text', async () => {
  const got = await client.messages.create(ask('Hello'));
  assert.equal(got.type, 'message');
  assert.equal(text(got), 'You said: Hello');
  assert.equal(got.stop_reason, 'end_turn');
  assert.ok(got.usage.input_tokens > 0 && got.usage.output_tokens > 0);
  assert.ok(got._request_id);
});

check('stream', async () => {
  const stream = client.messages.stream(ask('Hello'));
  let heard = '';
  stream.on('text', (piece) => (heard += piece));
  const got = await stream.finalMessage();
  assert.equal(heard, 'You said: Hello');
  assert.equal(text(got), heard);
  assert.equal(got.stop_reason, 'end_turn');
});

check('count tokens', async () => {
  assert.ok((await client.messages.countTokens({ model: 'sim', messages: [{ role: 'user', content: 'Hello' }] })).input_tokens > 0);
});

check('tools', async () => {
  for (const streamed of [false, true]) {
    const turn = (messages) => {
      const body = { model: 'sim', max_tokens: 1000, messages, tools };
      return streamed ? client.messages.stream(body).finalMessage() : client.messages.create(body);
    };
    const messages = [{ role: 'user', content: 'Please add.' }];
    const first = await turn(messages);
    assert.equal(first.stop_reason, 'tool_use');
    const uses = first.content.filter((b) => b.type === 'tool_use');
    assert.deepEqual(uses.map((u) => [u.name, u.input]), [
      ['add', { a: 1, b: 2 }],
      ['add', { a: 3, b: 4 }],
    ]);
    messages.push(
      { role: 'assistant', content: first.content },
      { role: 'user', content: uses.map((u) => ({ type: 'tool_result', tool_use_id: u.id, content: 'done' })) },
    );
    assert.equal(text(await turn(messages)), 'Added: done');
  }
});

check('thinking', async () => {
  const thinking = { type: 'enabled', budget_tokens: 1024 };
  for (const streamed of [false, true]) {
    const body = ask('Think.', { thinking, max_tokens: 2000 });
    const got = streamed ? await client.messages.stream(body).finalMessage() : await client.messages.create(body);
    assert.deepEqual(got.content.map((b) => b.type), ['thinking', 'text']);
    assert.equal(got.content[0].thinking, 'Let me see.');
    assert.ok(got.content[0].signature);
    // What was thought goes back as it came; changed, it is refused.
    const next = (content) => ({ ...body, messages: [...body.messages, { role: 'assistant', content }, { role: 'user', content: 'On.' }] });
    assert.equal(text(await client.messages.create(next(got.content))), 'You said: On.');
    const changed = got.content.map((b) => (b.type === 'thinking' ? { ...b, thinking: 'Something else.' } : b));
    assert.ok((await rejected(client.messages.create(next(changed)))) instanceof Anthropic.BadRequestError);
  }
});

check('limits of the request', async () => {
  const cut = await client.messages.create(ask('Hello, this is a long text for a small limit', { max_tokens: 3 }));
  assert.equal(cut.stop_reason, 'max_tokens');
  const stopped = await client.messages.create(ask('Hello STOP there', { stop_sequences: ['STOP'] }));
  assert.equal(stopped.stop_reason, 'stop_sequence');
  assert.equal(stopped.stop_sequence, 'STOP');
});

check('errors', async () => {
  for (const [kind, type, status] of [
    ['rate_limited', Anthropic.RateLimitError, 429],
    ['auth', Anthropic.AuthenticationError, 401],
    ['overflow', Anthropic.BadRequestError, 400],
    ['server', Anthropic.InternalServerError, 500],
    ['overloaded', Anthropic.InternalServerError, 529],
  ]) {
    const e = await rejected(client.messages.create(ask('x'), fault(kind)));
    assert.ok(e instanceof type, `${kind}: ${e}`);
    assert.equal(e.status, status);
    assert.equal(e.error.type, 'error');
    assert.ok(e.error.error.message && e.requestID, `${kind}: ${JSON.stringify(e.error)}`);
  }
  assert.ok((await rejected(client.messages.create({ ...ask('x'), model: 'nobody' }))) instanceof Anthropic.NotFoundError);
});

check('Retry-After is honoured', async () => {
  const before = wire.seen.length;
  const begun = performance.now();
  const got = await make({ maxRetries: 2 }).messages.create(ask('Fail once.'));
  const took = performance.now() - begun;
  assert.equal(text(got), 'Now it works.');
  const calls = wire.seen.slice(before);
  assert.deepEqual(calls.map((c) => c.status), [429, 200]);
  assert.equal(calls[0].headers.get('retry-after'), '1');
  assert.ok(took >= 1000, `${took} ms`); // by itself the client waits for half a second
});

check('broken streams', async () => {
  for (const kind of ['cut, after=3', 'overloaded, after=3', 'malformed, after=3', 'truncated, after=3']) {
    assert.ok((await rejected(client.messages.stream(ask('Hello, a text of some length'), fault(kind)).finalMessage())) instanceof Error, kind);
  }
});

await run();
