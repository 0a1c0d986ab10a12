// Vercel's AI SDK over chats, completions, responses and Anthropic's API.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { APICallError, Output, ToolLoopAgent, embed, embedMany, generateObject, generateText, isStepCount, streamText, tool } from 'ai';
import { z } from 'zod';

const url = process.env.LUTRA_URL ?? 'http://127.0.0.1:8080';
const guarded = process.env.LUTRA_GUARDED_URL;
const name = 'lutra-tiny-l';
const prompt = 'A box holds 12 eggs. Ann buys 7 boxes. How many eggs does she have?';
const long = 'A box holds 12 eggs. '.repeat(300);
const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const number = z.number().int().min(0).max(999);
const order = z.object({ unit: z.enum(['eggs', 'boxes']), sure: z.boolean() });
const refused = (status) => (err) => APICallError.isInstance(err) && err.statusCode === status;

const compatible = createOpenAICompatible({ name: 'lutra', baseURL: `${url}/v1`, apiKey: 'none', includeUsage: true, supportsStructuredOutputs: true });
const openai = createOpenAI({ baseURL: `${url}/v1`, apiKey: 'none' });
const anthropic = createAnthropic({ baseURL: `${url}/v1`, apiKey: 'none' });
const apis = {
  'openai-compatible': (id) => compatible(id),
  'openai chat': (id) => openai.chat(id),
  'openai responses': (id) => openai.responses(id),
  anthropic: (id) => anthropic(id),
};

for (const [api, model] of Object.entries(apis)) {
  describe(api, () => {
    const ask = { model: model(name), temperature: 0, maxOutputTokens: 300, maxRetries: 0 };
    let multiplied;
    const multiply = tool({
      description: 'The product of two numbers.',
      inputSchema: z.object({ a: number, b: number }),
      execute: async ({ a, b }) => (multiplied = a * b),
    });

    test('text', async () => {
      const { text, finishReason, usage } = await generateText({ ...ask, prompt });
      assert.ok(text);
      assert.equal(finishReason, 'stop');
      assert.ok(usage.inputTokens > 0 && usage.outputTokens > 0);
    });

    test('a stream', async () => {
      const result = streamText({ ...ask, prompt });
      let text = '';
      for await (const piece of result.textStream) text += piece;
      assert.equal(text, (await generateText({ ...ask, prompt })).text);
      assert.equal(await result.finishReason, 'stop');
      assert.ok((await result.usage).outputTokens > 0);
    });

    test('several turns', async () => {
      const messages = [{ role: 'user', content: prompt }, { role: 'assistant', content: '84' }, { role: 'user', content: 'And 3 more?' }];
      assert.ok((await generateText({ ...ask, instructions: 'Be brief.', messages })).text);
    });

    test('length', async () => {
      assert.equal((await generateText({ ...ask, maxOutputTokens: 3, prompt })).finishReason, 'length');
    });

    test('an object', async () => {
      const { output } = await generateText({ ...ask, prompt, output: Output.object({ schema: order }) });
      assert.deepEqual(order.parse(output), output);
    });

    test('an object by its former function', async () => {
      const { object } = await generateObject({ ...ask, prompt, schema: order });
      assert.deepEqual(order.parse(object), object);
    });

    test('an object streamed', async () => {
      const result = streamText({ ...ask, prompt, output: Output.object({ schema: order }) });
      let last;
      for await (last of result.partialOutputStream);
      assert.deepEqual(order.parse(last), last);
    });

    test('a choice', async () => {
      const { output } = await generateText({ ...ask, prompt, output: Output.choice({ options: ['eggs', 'boxes'] }) });
      assert.ok(['eggs', 'boxes'].includes(output));
    });

    test('a tool that is called', async () => {
      multiplied = undefined;
      const result = await generateText({ ...ask, prompt, tools: { multiply }, toolChoice: 'required' });
      assert.equal(result.finishReason, 'tool-calls');
      assert.equal(result.toolCalls[0].toolName, 'multiply');
      assert.equal(typeof multiplied, 'number');
      const more = await generateText({ ...ask, tools: { multiply }, toolChoice: 'none', messages: [{ role: 'user', content: prompt }, ...result.response.messages] });
      assert.ok(more.text);
    });

    test('a tool that is called in a stream', async () => {
      const result = streamText({ ...ask, prompt, tools: { multiply }, toolChoice: { type: 'tool', toolName: 'multiply' } });
      const kinds = new Set();
      for await (const part of result.fullStream) kinds.add(part.type);
      for (const kind of ['tool-input-start', 'tool-input-delta', 'tool-call', 'tool-result']) assert.ok(kinds.has(kind), kind);
      assert.ok(!kinds.has('error'));
    });

    test('steps', async () => {
      const { steps, text } = await generateText({
        ...ask, prompt, tools: { multiply }, stopWhen: isStepCount(3),
        prepareStep: ({ stepNumber }) => ({ toolChoice: stepNumber === 0 ? 'required' : 'none' }),
      });
      assert.equal(steps.length, 2);
      assert.ok(steps[0].toolResults.length > 0 && text);
    });

    test('an agent', async () => {
      const agent = new ToolLoopAgent({ ...ask, instructions: 'Be brief.', tools: { multiply }, toolChoice: 'required', stopWhen: isStepCount(2) });
      assert.equal((await agent.generate({ prompt })).steps.length, 2);
    });

    test('a search, by name', async () => {
      assert.ok((await generateText({ ...ask, model: model(`${name}+bon8`), temperature: 0.8, prompt })).text);
    });

    test('refusals', async () => {
      await assert.rejects(generateText({ ...ask, model: model('absent'), prompt }), refused(404));
      await assert.rejects(generateText({ ...ask, prompt: long }), refused(400));
      const image = { role: 'user', content: [{ type: 'file', data: pixel, mediaType: 'image/png' }] };
      await assert.rejects(generateText({ ...ask, messages: [image] }), refused(400));
    });

    test('an abort', async () => {
      const abort = new AbortController();
      const result = streamText({ ...ask, temperature: 1, maxOutputTokens: 900, prompt, abortSignal: abort.signal, onError() {} });
      for await (const part of result.fullStream) {
        if (part.type === 'text-delta') abort.abort();
        if (part.type === 'abort') return;
      }
      assert.fail('the stream did not end as aborted');
    });
  });
}

test('completions', async () => {
  const { text } = await generateText({ model: compatible.completionModel(name), prompt: '12 * 7 =', maxOutputTokens: 10, maxRetries: 0 });
  assert.ok(text);
});

test('fields of the server\'s own', async () => {
  const { response } = await generateText({
    model: compatible(name), temperature: 0.8, maxOutputTokens: 100, maxRetries: 0, prompt, include: { responseBody: true },
    providerOptions: { lutra: { test_time_scaling: { method: 'best_of_n', n: 4 } } },
  });
  assert.equal(response.body.test_time_scaling.method, 'best_of_n');
});

test('a response that follows another', async () => {
  const ask = { model: openai.responses(name), temperature: 0, maxRetries: 0 };
  const first = await generateText({ ...ask, prompt });
  const second = await generateText({ ...ask, prompt: 'And 3 more?', providerOptions: { openai: { previousResponseId: first.finalStep.providerMetadata.openai.responseId } } });
  assert.ok(second.text && second.usage.inputTokens > first.usage.inputTokens);
});

for (const [api, model] of [['openai-compatible', compatible.embeddingModel('bert')], ['openai', openai.embedding('bert')]]) {
  test(`vectors, ${api}`, async () => {
    const { embedding } = await embed({ model, value: 'a hen', maxRetries: 0 });
    const { embeddings } = await embedMany({ model, values: ['a hen', 'an egg'], maxRetries: 0 });
    assert.deepEqual(embeddings[0], embedding);
    assert.ok(Math.abs(Math.hypot(...embedding) - 1) < 1e-4);
  });
}

test('keys and rates', { skip: !guarded && 'LUTRA_GUARDED_URL names no server that wants keys' }, async () => {
  const ask = (apiKey) => generateText({ model: createOpenAICompatible({ name: 'lutra', baseURL: `${guarded}/v1`, apiKey })('default'), prompt, maxOutputTokens: 1, maxRetries: 0 });
  await assert.rejects(ask('wrong'), refused(401));
  await assert.rejects(async () => { for (let i = 0; i < 9; i++) await ask('aisdk-1'); }, refused(429));
});
