// OpenAI's own client against the real binary: what it parses, other clients do.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';
import { startServer } from './server.mjs';

const messages = [{ role: 'user', content: 'What is 12 * 7?' }];
const model = 'lutra-tiny-l';

let server, keyed, client;

before(async () => {
  [server, keyed] = await Promise.all([startServer(), startServer('--api-key', 'river')]);
  client = connect(server);
});
after(() => Promise.all([server?.stop(), keyed?.stop()]));

const connect = (to, apiKey = 'none') => new OpenAI({ baseURL: `${to.url}/v1`, apiKey, maxRetries: 0 });

test('models are listed and retrieved', async () => {
  const ids = [];
  for await (const card of client.models.list()) ids.push(card.id);
  assert.ok(ids.includes(model) && ids.includes('lutra-tiny-s'), `listed: ${ids}`);
  assert.equal((await client.models.retrieve(model)).id, model);
});

test('a chat completion has a message, a finish reason and its usage', async () => {
  const { data, response } = await client.chat.completions.create({ model, messages, temperature: 0 }).withResponse();
  assert.equal(data.object, 'chat.completion');
  assert.equal(data.choices[0].message.role, 'assistant');
  assert.equal(data.choices[0].message.content, '12*7=84.\nAnswer: 84');
  assert.equal(data.choices[0].finish_reason, 'stop');
  assert.equal(data.usage.total_tokens, data.usage.prompt_tokens + data.usage.completion_tokens);
  assert.ok(response.headers.get('x-request-id'));
});

test('a stream adds up to the same text and ends with its usage', async () => {
  let text = '';
  let finish, usage;
  const stream = await client.chat.completions.create({ model, messages, temperature: 0, stream: true, stream_options: { include_usage: true } });
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta.content ?? '';
    finish = chunk.choices[0]?.finish_reason ?? finish;
    usage = chunk.usage ?? usage;
  }
  assert.equal(text, '12*7=84.\nAnswer: 84');
  assert.equal(finish, 'stop');
  assert.ok(usage.completion_tokens > 0);
});

test("the client's stream helper puts the same message together", async () => {
  const helper = client.chat.completions.stream({ model, messages, temperature: 0 });
  assert.equal(await helper.finalContent(), '12*7=84.\nAnswer: 84');
  assert.equal((await helper.finalChatCompletion()).choices[0].finish_reason, 'stop');
});

test('a stream can be left in the middle', async () => {
  const stream = await client.chat.completions.create({ model, messages, stream: true });
  for await (const chunk of stream) {
    if (chunk.choices[0]?.delta.content) break;
  }
  assert.ok(stream.controller.signal.aborted);
  assert.ok((await client.models.list()).data.length > 0, 'the server goes on');
});

test('n, seed, stop, max_tokens and logprobs do what they say', async () => {
  const ask = (more) => client.chat.completions.create({ model, messages, ...more });
  const [one, two] = await Promise.all([1, 2].map(() => ask({ n: 4, seed: 7, temperature: 1.5 })));
  assert.equal(one.choices.length, 4);
  assert.deepEqual(one.choices, two.choices, 'the same seed, the same choices');
  assert.equal((await ask({ stop: '=', temperature: 0 })).choices[0].message.content, '12*7');
  const cut = await ask({ max_tokens: 2, temperature: 0, logprobs: true, top_logprobs: 3 });
  assert.equal(cut.choices[0].finish_reason, 'length');
  assert.equal(cut.choices[0].logprobs.content.length, 2);
  assert.equal(cut.choices[0].logprobs.content[0].top_logprobs.length, 3);
  assert.ok(cut.choices[0].logprobs.content[0].logprob <= 0);
});

test('text completions answer and stream', async () => {
  const request = { model, prompt: 'He has 2 fewer: 9-2=', max_tokens: 1, temperature: 0 };
  const whole = await client.completions.create({ ...request, echo: true, logprobs: 1 });
  assert.equal(whole.object, 'text_completion');
  assert.ok(whole.choices[0].text.startsWith(request.prompt));
  assert.ok(whole.choices[0].logprobs.tokens.length > 1);
  let text = '';
  for await (const chunk of await client.completions.create({ ...request, stream: true })) text += chunk.choices[0]?.text ?? '';
  assert.equal(text, whole.choices[0].text.slice(request.prompt.length));
});

test("refusals arrive as the client's own error classes", async () => {
  const refused = (promise, kind, status, code) => assert.rejects(promise, (err) => {
    assert.ok(err instanceof kind, `${err} is a ${kind.name}`);
    assert.equal(err.status, status);
    assert.equal(err.code, code);
    return true;
  });
  const ask = (request, from = client) => from.chat.completions.create({ model, messages, ...request });
  await refused(ask({ model: 'absent' }), OpenAI.NotFoundError, 404, 'model_not_found');
  await refused(client.models.retrieve('absent'), OpenAI.NotFoundError, 404, 'model_not_found');
  await refused(ask({ messages: [] }), OpenAI.BadRequestError, 400, 'missing_required_parameter');
  await refused(ask({ temperature: 9 }), OpenAI.BadRequestError, 400, 'invalid_value');
  await refused(ask({ messages: [{ role: 'user', content: 'word '.repeat(3000) }] }), OpenAI.BadRequestError, 400, 'context_length_exceeded');
  await refused(ask({}, connect(keyed, 'lake')), OpenAI.AuthenticationError, 401, 'invalid_api_key');
  assert.equal((await ask({ temperature: 0 }, connect(keyed, 'river'))).choices[0].finish_reason, 'stop');
});
