// Tools that a model calls, and what the person allows and answers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ask, browse, call, ended, lastAnswer, open, page, panel, press, reload, restored, script, shot } from './browser.mjs';
import { calculate } from '../js/calculator.js';
import { startServer } from './server.mjs';

let server;
browse(async () => {
  server = await startServer();
  return [server.stop];
});

const calculator = call('calculator', '{"expression":"12*7"}');
async function offer(tools = '') {
  await panel();
  await page.locator('[name=builtin]').selectOption('on');
  await page.locator('[name=tools]').fill(tools);
  await page.locator('[name=tools]').blur();
}

test('a call runs once it is allowed, and goes back to the model', async () => {
  await open(server);
  await offer();
  const requests = await script([{ content: 'Let me see.' }, ...calculator], [{ content: 'It is 84.' }]);
  await ask('What is 12 * 7?');
  await page.locator('.calls', { hasText: 'waits for you' }).waitFor();
  assert.equal(requests.length, 1, 'nothing runs unasked');
  await shot('tools');
  await press('Run once');
  await ended();
  assert.equal(await lastAnswer(), 'It is 84.');
  assert.deepEqual(requests[0].tools.map((t) => t.function.name), ['calculator', 'current_date']);
  const exchanged = [
    { role: 'user', content: 'What is 12 * 7?' },
    { role: 'assistant', content: 'Let me see.', tool_calls: [{ id: 'c1', type: 'function', function: { name: 'calculator', arguments: '{"expression":"12*7"}' } }] },
    { role: 'tool', tool_call_id: 'c1', content: '84' },
  ];
  assert.deepEqual(requests[1].messages, exchanged);
  await reload();
  await restored();
  await page.locator('.calls', { hasText: 'answered' }).waitFor();
  assert.equal(await page.locator('.calls pre').nth(1).textContent(), '84', 'the call is kept');
  await script([{ content: 'Yes.' }]).then(async (later) => {
    await ask('Sure?');
    await ended();
    assert.deepEqual(later[0].messages.slice(0, 4), [...exchanged, { role: 'assistant', content: 'It is 84.' }]);
  });
});

test('a tool that is always allowed is not asked for again, and at most 16 rounds run', async () => {
  await open(server);
  await offer();
  const requests = await script(calculator);
  await ask('Again and again?');
  await press('Always in this conversation');
  await ended();
  assert.equal(requests.length, 17);
  assert.match(await page.locator('.error').innerText(), /16 rounds/);
});

test('calls of the person\'s own tools are answered by hand, refused, or stopped', async () => {
  await open(server);
  await offer(JSON.stringify([{ type: 'function', function: { name: 'weather', parameters: { type: 'object' } } }]));
  const both = [...call('weather', '{"at":"Rome"}', 'a'), ...call('calculator', '{"expression":"1/0"}', 'b', 1)];
  const requests = await script(both, [{ content: 'Done.' }]);
  await ask('Weather?');
  await page.locator('[aria-label="Result of weather"]').fill('<b>sun</b>');
  await press('Send the result');
  await press('Refuse');
  await ended();
  assert.deepEqual(requests[1].messages.slice(2).map((m) => m.content), ['<b>sun</b>', 'The person has refused this call.']);
  assert.equal(await page.locator('.calls b').count(), 0, 'a result is text');
  await script(call('unknown', '{}    '), both);
  await ask('And now?');
  await page.locator('.exchange:last-child .by-hand').waitFor();
  assert.match(await page.locator('.exchange:last-child .calls pre').nth(1).textContent(), /There is no tool unknown/);
  await press('Stop');
  await ended();
  assert.match(await page.locator('.exchange:last-child .meta').innerText(), /stopped/);
  assert.equal(await page.locator('.by-hand').count(), 0);
});

test('what is wrong with a list of tools is said by name', async () => {
  await open(server);
  for (const [tools, fault] of [['{', /not JSON/], ['[{"type":"mcp"}]', /tools\[0\]\.type/], ['[{"type":"function","function":{"name":"a b"}}]', /tools\[0\]\.function\.name/],
    ['[{"type":"function","function":{"name":"calculator"}}]', /there twice/]]) {
    if (await page.locator('[name=tools]').isVisible() === false) await panel();
    await page.locator('[name=tools]').fill(tools);
    assert.match(await page.locator('#tools-fault').innerText(), fault);
  }
});

test('the calculator computes, and refuses what is no arithmetic', () => {
  for (const [written, value] of [['12*7', 84], ['2+3*4', 14], ['-2^2', -4], ['2^3^2', 512], ['(1+2)*3', 9], ['0.1+0.2', 0.3], ['2**-1', 0.5], ['7%4', 3], ['1e3', 1000]]) assert.equal(calculate(written), value, written);
  for (const written of ['', '1+', '(1', 'alert(1)', '1/0', '1 2', '.', '-'.repeat(200) + '1', '1'.repeat(1001)]) assert.throws(() => calculate(written), Error, written);
});
