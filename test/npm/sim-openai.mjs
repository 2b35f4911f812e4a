// OpenAI's own client against the simulator.
import assert from 'node:assert/strict';
import OpenAI from 'openai';
import { check, recorder, rejected, run, url } from './checks.mjs';

const wire = recorder();
const make = (more = {}) => new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0, fetch: wire.fetch, ...more });
const client = make();
const ask = (content, more = {}) => ({ model: 'sim', messages: [{ role: 'user', content }], ...more });
const tools = [{ type: 'function', function: { name: 'add', parameters: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } } } }];
const fault = (text) => ({ headers: { 'X-Sim-Fault': text } });

check('models', async () => {
  const ids = [];
  for await (const m of client.models.list()) ids.push(m.id);
  assert.deepEqual(ids, ['sim']);
  assert.equal((await client.models.retrieve('sim')).id, 'sim');
});

check('text', async () => {
  const got = await client.chat.completions.create(ask('Hello'));
  assert.equal(got.choices[0].message.content, 'You said: Hello');
  assert.equal(got.choices[0].finish_reason, 'stop');
  assert.ok(got.usage.total_tokens > 0);
  assert.ok(got._request_id);
});

check('stream', async () => {
  const stream = client.chat.completions.stream(ask('Hello', { stream_options: { include_usage: true } }));
  let text = '';
  stream.on('content', (piece) => (text += piece));
  const got = await stream.finalChatCompletion();
  assert.equal(text, 'You said: Hello');
  assert.equal(got.choices[0].message.content, text);
  assert.ok((await stream.totalUsage()).total_tokens > 0);
});

check('tools', async () => {
  for (const streamed of [false, true]) {
    const turn = async (messages) => {
      const body = { model: 'sim', messages, tools };
      const got = streamed ? await client.chat.completions.stream(body).finalChatCompletion() : await client.chat.completions.create(body);
      return got.choices[0];
    };
    const messages = [{ role: 'user', content: 'Please add.' }];
    const first = await turn(messages);
    assert.equal(first.finish_reason, 'tool_calls');
    assert.deepEqual(first.message.tool_calls.map((c) => [c.function.name, JSON.parse(c.function.arguments)]), [
      ['add', { a: 1, b: 2 }],
      ['add', { a: 3, b: 4 }],
    ]);
    assert.notEqual(first.message.tool_calls[0].id, first.message.tool_calls[1].id);
    messages.push(first.message, ...first.message.tool_calls.map((c) => ({ role: 'tool', tool_call_id: c.id, content: 'done' })));
    assert.equal((await turn(messages)).message.content, 'Added: done');
  }
});

check('thinking', async () => {
  const got = await client.chat.completions.create(ask('Think.'));
  assert.equal(got.choices[0].message.reasoning_content, 'Let me see.');
  assert.equal(got.choices[0].message.content, 'Thought.');
});

check('limits of the request', async () => {
  const cut = await client.chat.completions.create(ask('Hello, this is a long text for a small limit', { max_completion_tokens: 3 }));
  assert.equal(cut.choices[0].finish_reason, 'length');
  const stopped = await client.chat.completions.create(ask('Hello STOP there', { stop: ['STOP'] }));
  assert.equal(stopped.choices[0].message.content, 'You said: Hello ');
});

check('errors', async () => {
  for (const [kind, type, status] of [
    ['rate_limited', OpenAI.RateLimitError, 429],
    ['auth', OpenAI.AuthenticationError, 401],
    ['overflow', OpenAI.BadRequestError, 400],
    ['server', OpenAI.InternalServerError, 500],
    ['overloaded', OpenAI.InternalServerError, 503],
  ]) {
    const e = await rejected(client.chat.completions.create(ask('x'), fault(kind)));
    assert.ok(e instanceof type, `${kind}: ${e}`);
    assert.equal(e.status, status);
    assert.ok(e.message.length > 5 && e.requestID, `${kind}: ${e.message}`);
  }
  assert.ok((await rejected(client.chat.completions.create({ ...ask('x'), model: 'nobody' }))) instanceof OpenAI.NotFoundError);
});

check('Retry-After is honoured', async () => {
  const before = wire.seen.length;
  const begun = performance.now();
  const got = await make({ maxRetries: 2 }).chat.completions.create(ask('Fail once.'));
  const took = performance.now() - begun;
  assert.equal(got.choices[0].message.content, 'Now it works.');
  const calls = wire.seen.slice(before);
  assert.deepEqual(calls.map((c) => c.status), [429, 200]);
  assert.equal(calls[0].headers.get('retry-after'), '1');
  assert.ok(took >= 1000, `${took} ms`); // by itself the client waits for half a second
});

check('broken streams', async () => {
  for (const kind of ['cut, after=3', 'server, after=3', 'malformed, after=3']) {
    const e = await rejected(
      (async () => {
        for await (const chunk of await client.chat.completions.create(ask('Hello, a text of some length', { stream: true }), fault(kind))) {
          assert.ok(chunk.choices.length <= 1);
        }
      })(),
    );
    assert.ok(e instanceof Error, kind);
  }
});

await run();
