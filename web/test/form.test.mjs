// Answers that are held to a JSON schema, as forms.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answerWith, ask, browse, ended, fitsItsWidth, open, page, panel, phone, reload, restored, shot } from './browser.mjs';
import { readSchema } from '../js/schema.js';
import { startServer } from './server.mjs';

let server;
browse(async () => {
  server = await startServer();
  return [server.stop];
});

const schema = {
  type: 'object',
  properties: {
    name: { type: 'string', title: 'Full name' }, sure: { type: 'boolean' }, age: { type: 'integer' }, home: { $ref: '#/$defs/place' }, note: { type: ['string', 'null'] },
    visits: { type: 'array', items: { type: 'object', properties: { city: { title: 'City', type: 'string' }, year: { type: 'integer' } } } }, tags: { type: 'array', items: { type: 'string' } },
  },
  required: ['name'], $defs: { place: { type: 'object', properties: { street: { type: 'string', title: 'Street' } } } },
};
const answer = {
  name: '<b>Ada</b>', sure: true, age: 36, home: { street: 'Main *street*' }, note: null, visits: [{ city: 'Rome', year: 1840 }, { city: 'Paris', more: false }], tags: ['one', 'two'], __proto__x: {},
};

async function hold(text) {
  await panel();
  await page.locator('[name=schema]').fill(text);
  await page.locator('[name=schema]').blur();
}

test('an answer in JSON is shown as labelled fields, and as JSON', async () => {
  await open(server);
  await hold(JSON.stringify(schema));
  const written = JSON.stringify(answer).replace('36', '12345678901234567890');
  const requests = await answerWith(written);
  await ask('Who?');
  await page.locator('.form dl').first().waitFor();
  assert.deepEqual(requests[0].response_format, { type: 'json_schema', json_schema: { name: 'answer', schema } });
  assert.deepEqual(await page.locator('.form > dl > div > dt').allInnerTexts(), ['Full name', 'sure', 'age', 'home', 'note', 'visits', 'tags', '__proto__x']);
  assert.deepEqual(await page.locator('.form > dl > div:not(.wide) > dd').allInnerTexts(), ['<b>Ada</b>', 'yes', '12345678901234567890', '–']);
  assert.equal(await page.locator('.form .wide dt', { hasText: 'Street' }).count(), 1, 'a reference is followed');
  assert.deepEqual(await page.locator('.form th').allInnerTexts(), ['City', 'year', 'more']);
  assert.deepEqual(await page.locator('.form td').allInnerTexts(), ['Rome', '1840', '', 'Paris', '', 'no']);
  assert.equal(await page.locator('.form b, .form em').count(), 0, 'values are text');
  await shot('form');
  await page.locator('.form button', { hasText: 'JSON' }).first().click();
  assert.equal((await page.locator('.form code').textContent()).trim(), written);
  assert.ok(await page.locator('.form dl').first().isHidden());
  await page.setViewportSize(phone);
  await page.locator('.form button', { hasText: 'JSON' }).last().click();
  await fitsItsWidth();
  await shot('form-phone');
  await reload();
  await restored();
  await page.locator('.form dl').first().waitFor();
});

test('what is no form stays as it is, and the server holds an answer to a schema', async () => {
  await open(server);
  await hold('{"type": "object", "properties": {"sum": {"type": "integer", "title": "Sum"}}, "required": ["sum"]}');
  await ask('What is 12 * 7?');
  await page.locator('.form dt', { hasText: 'Sum' }).waitFor();
  assert.match(await page.locator('.form dd').innerText(), /^-?\d+$/);
  for (const text of ['{"sum": 1', '['.repeat(500) + ']'.repeat(500), JSON.stringify(Array.from({ length: 3000 }, () => 1))]) {
    await answerWith(text);
    await ask('Again');
    await ended();
    assert.equal((await page.locator('.exchange:last-child .text code').textContent()).trim(), text);
    assert.equal(await page.locator('.exchange:last-child .form').count(), 0);
  }
});

test('a schema that is none is refused at once, and one with tools', async () => {
  await open(server);
  for (const [text, fault] of [['{', /not JSON/], ['[]', /schema is no JSON schema/], ['{"type": "text"}', /schema\.type/], ['{"properties": {"a": 1}}', /schema\.properties\.a is no JSON schema/],
    ['{"required": [1]}', /schema\.required\[0\]/], ['{"items": {"anyOf": {}}}', /schema\.items\.anyOf/]]) {
    if (await page.locator('[name=schema]').isVisible() === false) await panel();
    await page.locator('[name=schema]').fill(text);
    assert.match(await page.locator('#schema-fault').innerText(), fault, text);
    assert.throws(() => readSchema(text));
  }
  await page.locator('[name=schema]').fill('{"type": "object"}');
  await page.locator('#schema-fault').waitFor({ state: 'detached' });
  await page.locator('[name=builtin]').selectOption('on');
  assert.match(await page.locator('#schema-fault').innerText(), /no tools/);
  assert.throws(() => readSchema(`${'{"not":'.repeat(70)}{}${'}'.repeat(70)}`));
});
