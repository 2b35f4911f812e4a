// OpenAI's own client against agentd's face.
import assert from 'node:assert/strict';
import OpenAI from 'openai';
import { check, ending, recorder, rejected, run, toolEvents, url } from './checks.mjs';

const wire = recorder();
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0, fetch: wire.fetch });
const ask = (content, more = {}) => ({ model: 'facade', messages: [{ role: 'user', content }], ...more });
const weather = {
  type: 'function',
  function: {
    name: 'weather',
    description: 'The weather in a city.',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
};

check('models', async () => {
  const ids = [];
  for await (const m of client.models.list()) ids.push(m.id);
  assert.ok(ids.includes('facade'), String(ids));
  const one = await client.models.retrieve('facade');
  assert.equal(one.id, 'facade');
  assert.equal(one.object, 'model');
});

check('chat', async () => {
  const got = await client.chat.completions.create(ask('Hello, 世界'));
  assert.equal(got.choices.length, 1);
  assert.equal(got.choices[0].message.content, 'You said: Hello, 世界');
  assert.equal(got.choices[0].finish_reason, 'stop');
  assert.ok(got.usage.prompt_tokens > 0 && got.usage.completion_tokens > 0);
  assert.equal(got.usage.total_tokens, got.usage.prompt_tokens + got.usage.completion_tokens);
});

check('conversation', async () => {
  const got = await client.chat.completions.create({
    model: 'facade@1.2.3',
    messages: [
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: 'One.' },
      { role: 'assistant', content: 'You said: One.' },
      { role: 'user', content: [{ type: 'text', text: 'Two.' }] },
    ],
  });
  assert.equal(got.choices[0].message.content, 'You said: Two.');
});

for (const usage of [true, false]) {
  check(usage ? 'stream with usage' : 'stream without usage', async () => {
    const stream = await client.chat.completions.create(
      ask('Hello', { stream: true, ...(usage ? { stream_options: { include_usage: true } } : {}) }),
    );
    let text = '';
    let finish = [];
    let counted = [];
    let first = true;
    for await (const chunk of stream) {
      assert.equal(chunk.object, 'chat.completion.chunk');
      if (chunk.usage) {
        counted.push(chunk.usage);
        assert.deepEqual(chunk.choices, []);
        continue;
      }
      const [choice] = chunk.choices;
      if (first) assert.equal(choice.delta.role, 'assistant');
      first = false;
      text += choice.delta.content ?? '';
      if (choice.finish_reason) finish.push(choice.finish_reason);
    }
    assert.equal(text, 'You said: Hello');
    assert.deepEqual(finish, ['stop']);
    assert.equal(counted.length, usage ? 1 : 0);
    if (usage) assert.ok(counted[0].total_tokens > 0);
    assert.ok((await wire.last().body).endsWith('data: [DONE]\n\n'));
  });
}

check('the helper of the streams', async () => {
  const stream = client.chat.completions.stream(ask('Hello'));
  const got = await stream.finalChatCompletion();
  assert.equal(got.choices[0].message.content, 'You said: Hello');
});

for (const stream of [true, false]) {
  check(`tools of the server, ${stream ? 'streamed' : 'whole'}`, async () => {
    let text = '';
    if (stream) {
      const chunks = await client.chat.completions.create(ask('Please list the files.', { stream }));
      for await (const c of chunks) {
        assert.equal(c.choices[0]?.delta.tool_calls, undefined);
        text += c.choices[0]?.delta.content ?? '';
      }
    } else {
      const got = await client.chat.completions.create(ask('Please list the files.'));
      assert.equal(got.choices[0].message.tool_calls, undefined);
      assert.equal(got.choices[0].finish_reason, 'stop');
      text = got.choices[0].message.content;
    }
    assert.match(text, /I will look\.[^]*There is present\.txt\./);
    const calls = await toolEvents(wire.last().headers.get('x-agentd-run-id'));
    assert.ok(calls.some((e) => e.type === 'tool_completed' && e.data.name === 'glob'), JSON.stringify(calls));
  });

  check(`tools of the client, ${stream ? 'streamed' : 'whole'}`, async () => {
    const turn = async (messages) => {
      const body = { model: 'facade', messages, tools: [weather] };
      if (!stream) return (await client.chat.completions.create(body)).choices[0];
      return (await client.chat.completions.stream(body).finalChatCompletion()).choices[0];
    };
    // The server's own tool comes first, unseen.
    const messages = [{ role: 'user', content: 'List the files and tell me the weather.' }];
    const first = await turn(messages);
    assert.equal(first.finish_reason, 'tool_calls');
    assert.equal(first.message.tool_calls.length, 1);
    const [call] = first.message.tool_calls;
    assert.equal(call.type, 'function');
    assert.equal(call.function.name, 'weather');
    assert.deepEqual(JSON.parse(call.function.arguments), { city: 'Oslo' });
    messages.push(first.message, { role: 'tool', tool_call_id: call.id, content: 'snow' });
    const second = await turn(messages);
    assert.equal(second.finish_reason, 'stop');
    assert.equal(second.message.content, 'In Oslo there is snow.');
  });
}

check('the helper that runs tools', async () => {
  const runner = client.chat.completions.runTools({
    model: 'facade',
    messages: [{ role: 'user', content: 'Tell me the weather.' }],
    tools: [
      {
        type: 'function',
        function: { ...weather.function, parse: JSON.parse, function: ({ city }) => (city === 'Oslo' ? 'rain' : 'none') },
      },
    ],
  });
  assert.equal(await runner.finalContent(), 'In Oslo there is rain.');
});

check('an answer in JSON', async () => {
  const got = await client.chat.completions.parse(
    ask('Answer in JSON.', {
      response_format: {
        type: 'json_schema',
        json_schema: {
          name: 'answer',
          strict: true,
          schema: { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'], additionalProperties: false },
        },
      },
    }),
  );
  assert.deepEqual(got.choices[0].message.parsed, { ok: true });
});

check('an unknown model', async () => {
  const e = await rejected(client.chat.completions.create({ ...ask('x'), model: 'nobody' }));
  assert.ok(e instanceof OpenAI.NotFoundError, String(e));
  assert.equal(e.code, 'model_not_found');
  assert.ok((await rejected(client.models.retrieve('nobody'))) instanceof OpenAI.NotFoundError);
});

check('bad requests', async () => {
  for (const [body, param] of [
    [ask('x', { n: 2 }), 'n'],
    [ask('x', { temperature: 9 }), 'temperature'],
    [{ model: 'facade', messages: [] }, 'messages'],
  ]) {
    const e = await rejected(client.chat.completions.create(body));
    assert.ok(e instanceof OpenAI.BadRequestError, String(e));
    assert.equal(e.param, param);
    assert.equal(e.type, 'invalid_request_error');
  }
});

check('a model that fails', async () => {
  const e = await rejected(client.chat.completions.create(ask('Break.')));
  assert.ok(e instanceof OpenAI.APIError && e.status >= 500, String(e));
});

for (const stream of [true, false]) {
  check(`hanging up cancels the run, ${stream ? 'streamed' : 'whole'}`, async () => {
    const hangUp = new AbortController();
    let id;
    if (stream) {
      const { data, response } = await client.chat.completions
        .create(ask('Take your time.', { stream }), { signal: hangUp.signal })
        .withResponse();
      id = response.headers.get('x-agentd-run-id');
      for await (const c of data) if (c.choices[0]?.delta.content) hangUp.abort();
    } else {
      const answer = rejected(client.chat.completions.create(ask('Take your time.'), { signal: hangUp.signal }));
      for (;;) {
        // The run that is there is this one: all others have ended.
        const { runs } = await (await fetch(`${url}/runs?status=running`)).json();
        if (runs.length === 1) {
          id = runs[0].run_id;
          break;
        }
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      hangUp.abort();
      assert.ok((await answer) instanceof OpenAI.APIUserAbortError);
    }
    assert.equal(await ending(id), 'run_cancelled');
  });
}

await run();
