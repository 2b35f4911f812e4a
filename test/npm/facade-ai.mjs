// The Vercel AI SDK against agentd's face.
import assert from 'node:assert/strict';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { APICallError, generateText, Output, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';
import { check, ending, recorder, rejected, run, toolEvents, url } from './checks.mjs';

const wire = recorder();
const provider = createOpenAICompatible({ name: 'agentd', baseURL: `${url}/v1`, apiKey: 'none', includeUsage: true, fetch: wire.fetch });
const model = provider('facade');
const weather = tool({
  description: 'The weather in a city.',
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => (city === 'Oslo' ? 'fog' : 'none'),
});

check('text', async () => {
  const got = await generateText({ model, prompt: 'Hello', maxRetries: 0 });
  assert.equal(got.text, 'You said: Hello');
  assert.equal(got.finishReason, 'stop');
  assert.ok(got.usage.totalTokens > 0);
});

check('stream', async () => {
  const got = streamText({ model, prompt: 'Hello', maxRetries: 0 });
  let text = '';
  for await (const piece of got.textStream) text += piece;
  assert.equal(text, 'You said: Hello');
  assert.equal(await got.finishReason, 'stop');
  assert.ok((await got.usage).totalTokens > 0);
});

check('tools of the server', async () => {
  const got = streamText({ model, prompt: 'Please list the files.', maxRetries: 0 });
  const types = new Set();
  for await (const part of got.fullStream) types.add(part.type);
  assert.ok(![...types].some((t) => t.startsWith('tool')), [...types].join());
  assert.match(await got.text, /There is present\.txt\./);
  const calls = await toolEvents(wire.last().headers.get('x-agentd-run-id'));
  assert.ok(calls.some((e) => e.type === 'tool_completed' && e.data.name === 'glob'));
});

check('tools of the client', async () => {
  const got = await generateText({
    model,
    prompt: 'List the files and tell me the weather.',
    tools: { weather },
    stopWhen: stepCountIs(4),
    maxRetries: 0,
  });
  assert.equal(got.text, 'In Oslo there is fog.');
  assert.equal(got.steps.length, 2);
  assert.deepEqual(got.steps[0].toolCalls.map((c) => [c.toolName, c.input]), [['weather', { city: 'Oslo' }]]);
  const streamed = streamText({ model, prompt: 'Tell me the weather.', tools: { weather }, stopWhen: stepCountIs(4), maxRetries: 0 });
  assert.equal(await streamed.text, 'In Oslo there is fog.');
});

check('an answer in JSON', async () => {
  const got = await generateText({ model, prompt: 'Answer in JSON.', output: Output.object({ schema: z.object({ ok: z.boolean() }) }), maxRetries: 0 });
  assert.deepEqual(got.output, { ok: true });
});

check('errors', async () => {
  const missing = await rejected(generateText({ model: provider('nobody'), prompt: 'x', maxRetries: 0 }));
  assert.ok(APICallError.isInstance(missing), String(missing));
  assert.equal(missing.statusCode, 404);
  assert.match(missing.message, /nobody/);
  const bad = await rejected(generateText({ model, prompt: 'x', temperature: 9, maxRetries: 0 }));
  assert.equal(bad.statusCode, 400);
  assert.equal(bad.isRetryable, false);
});

check('hanging up cancels the run', async () => {
  const hangUp = new AbortController();
  const got = streamText({ model, prompt: 'Take your time.', abortSignal: hangUp.signal, maxRetries: 0, onError: () => {} });
  const types = [];
  for await (const part of got.fullStream) {
    types.push(part.type);
    if (part.type === 'text-delta') hangUp.abort();
  }
  assert.ok(types.includes('abort'), types.join());
  assert.equal(await ending(wire.last().headers.get('x-agentd-run-id')), 'run_cancelled');
});

await run();
