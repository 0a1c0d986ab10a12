// OpenAI's Node client: a chat, a stream, a structured answer, tools, vectors, responses.
import assert from 'node:assert/strict';
import OpenAI from 'openai';

const model = process.env.LUTRA_MODEL ?? 'default';
const client = new OpenAI({
  baseURL: `${process.env.LUTRA_URL ?? 'http://127.0.0.1:8080'}/v1`,
  apiKey: process.env.LUTRA_API_KEY ?? 'none',
});
const question = { role: 'user', content: 'A box holds 12 eggs. Ann buys 7 boxes. How many eggs does she have?' };
const request = { model, messages: [question], temperature: 0, max_tokens: 200 };

const answer = await client.chat.completions.create(request);
assert.ok(answer.choices[0].message.content);
assert.equal(answer.choices[0].finish_reason, 'stop');
console.log('chat:', answer.choices[0].message.content);

let text = '';
for await (const chunk of await client.chat.completions.create({ ...request, stream: true })) {
  text += chunk.choices[0]?.delta?.content ?? '';
}
assert.equal(text, answer.choices[0].message.content);
console.log('stream: the same');

const schema = {
  type: 'object',
  properties: { eggs: { type: 'integer', minimum: 0, maximum: 999 }, sure: { type: 'boolean' } },
  required: ['eggs', 'sure'],
  additionalProperties: false,
};
const structured = await client.chat.completions.create({
  ...request,
  response_format: { type: 'json_schema', json_schema: { name: 'estimate', strict: true, schema } },
});
const estimate = JSON.parse(structured.choices[0].message.content);
assert.deepEqual(Object.keys(estimate), ['eggs', 'sure']);
console.log('structured:', estimate);

const number = { type: 'integer', minimum: 0, maximum: 999 };
const multiply = {
  type: 'function',
  function: {
    name: 'multiply',
    description: 'The product of two whole numbers.',
    parameters: { type: 'object', properties: { a: number, b: number }, required: ['a', 'b'], additionalProperties: false },
    parse: JSON.parse,
    function: ({ a, b }) => String(a * b),
  },
};
// The embedded models have never seen a tool, so the first answer is made a call, and the client's
// helper runs the function. Models that know tools decide by themselves: without tool_choice the
// helper goes on until there is an answer.
const runner = client.chat.completions.runTools({
  ...request,
  tools: [multiply],
  tool_choice: { type: 'function', function: { name: 'multiply' } },
});
const result = await runner.finalFunctionToolCallResult();
assert.ok(Number.isInteger(Number(result)));
const last = await client.chat.completions.create({ ...request, messages: runner.messages, tools: [multiply], tool_choice: 'none' });
assert.ok(last.choices[0].message.content);
console.log('tools: multiply gave', result);

const cards = await client.models.list();
const embedder = cards.data.find((card) => card.task === 'embed');
if (embedder) {
  const { data } = await client.embeddings.create({ model: embedder.id, input: ['a hen', 'an egg'] });
  assert.equal(data.length, 2);
  console.log('embeddings:', data.length, 'vectors of', data[0].embedding.length);
} else {
  console.log('embeddings: this server has no model for them');
}

const first = await client.responses.create({ model, input: question.content, temperature: 0 });
const second = await client.responses.create({ model, input: 'What is 9 * 8?', previous_response_id: first.id, temperature: 0 });
assert.equal(second.status, 'completed');
assert.ok(second.usage.input_tokens > first.usage.input_tokens, 'the second has read the first');
console.log('responses:', second.output_text);

await assert.rejects(client.chat.completions.create({ ...request, temperature: 9 }), (err) => {
  assert.ok(err instanceof OpenAI.BadRequestError);
  assert.equal(err.param, 'temperature');
  console.log('errors:', err.message);
  return true;
});
