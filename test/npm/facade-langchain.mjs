// LangChain.js against agentd's face.
import assert from 'node:assert/strict';
import { HumanMessage, SystemMessage, ToolMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI } from '@langchain/openai';
import { z } from 'zod';
import { check, ending, recorder, rejected, run, toolEvents, url } from './checks.mjs';

const wire = recorder();
const make = (more = {}) =>
  new ChatOpenAI({ model: 'facade', apiKey: 'none', maxRetries: 0, configuration: { baseURL: `${url}/v1`, fetch: wire.fetch }, ...more });
const weather = tool(async ({ city }) => (city === 'Oslo' ? 'hail' : 'none'), {
  name: 'weather',
  description: 'The weather in a city.',
  schema: z.object({ city: z.string() }),
});
const collect = async (stream) => {
  let all;
  for await (const chunk of stream) all = all ? all.concat(chunk) : chunk;
  return all;
};

check('invoke', async () => {
  const got = await make().invoke([new SystemMessage('Be kind.'), new HumanMessage('Hello')]);
  assert.equal(got.text, 'You said: Hello');
  assert.ok(got.usage_metadata.total_tokens > 0);
});

check('stream', async () => {
  const got = await collect(await make().stream('Hello'));
  assert.equal(got.text, 'You said: Hello');
  assert.ok(got.usage_metadata.total_tokens > 0);
});

check('tools of the server', async () => {
  const got = await collect(await make().stream('Please list the files.'));
  assert.match(got.text, /There is present\.txt\./);
  assert.equal(got.tool_calls.length, 0);
  const calls = await toolEvents(wire.last().headers.get('x-agentd-run-id'));
  assert.ok(calls.some((e) => e.type === 'tool_completed' && e.data.name === 'glob'));
});

for (const streamed of [false, true]) {
  check(`tools of the client, ${streamed ? 'streamed' : 'whole'}`, async () => {
    const bound = make().bindTools([weather]);
    const ask = async (messages) => (streamed ? collect(await bound.stream(messages)) : bound.invoke(messages));
    const messages = [new HumanMessage('List the files and tell me the weather.')];
    const first = await ask(messages);
    assert.deepEqual(first.tool_calls.map((c) => [c.name, c.args]), [['weather', { city: 'Oslo' }]]);
    const result = await weather.invoke(first.tool_calls[0]);
    assert.ok(result instanceof ToolMessage);
    const second = await ask([...messages, first, result]);
    assert.equal(second.text, 'In Oslo there is hail.');
  });
}

check('an answer in JSON', async () => {
  const got = await make().withStructuredOutput(z.object({ ok: z.boolean() }), { method: 'jsonSchema' }).invoke('Answer in JSON.');
  assert.deepEqual(got, { ok: true });
});

check('errors', async () => {
  assert.equal((await rejected(make({ model: 'nobody' }).invoke('x'))).status, 404);
  assert.equal((await rejected(make({ temperature: 9 }).invoke('x'))).status, 400);
});

check('hanging up cancels the run', async () => {
  const hangUp = new AbortController();
  let heard = false;
  const e = await rejected(
    (async () => {
      for await (const chunk of await make().stream('Take your time.', { signal: hangUp.signal })) {
        if (chunk.text) {
          heard = true;
          hangUp.abort();
        }
      }
    })(),
  );
  assert.ok(heard, String(e));
  assert.equal(await ending(wire.last().headers.get('x-agentd-run-id')), 'run_cancelled');
});

await run();
