// Conversations of other programs, and their list by date.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answerWith, ask, browse, ended, lastAnswer, open, page, press, reload, shot } from './browser.mjs';
import { startServer } from './server.mjs';

let server;
browse(async () => {
  server = await startServer();
  return [server.stop];
});

/** Opens a file as if the person had chosen it. */
const choose = (content) => page.locator('#import-file').setInputFiles({ name: 'conversations.json', mimeType: 'application/json', buffer: Buffer.from(typeof content === 'string' ? content : JSON.stringify(content)) });
const notice = (words) => page.locator('#history-notice', { hasText: words }).waitFor();
const showList = () => page.locator('#history').evaluate((list) => { list.open = true; });
const titles = () => page.locator('#conversations .title').allInnerTexts();
const shown = () => page.locator('.exchange').evaluateAll((all) => all.map((e) => [e.querySelector('.question').textContent, e.querySelector('section.own > .text').textContent.trim()]));

/** A node of ChatGPT's mapping. */
const node = (id, parent, role, parts, more = {}, content = {}) => ({ [id]: { id, parent, children: [], message: role && { id, author: { role }, create_time: 1_700_000_000.5, content: { content_type: 'text', parts, ...content }, ...more } } });
const chatgpt = (more = {}) => ({
  title: 'Rivers', create_time: 1_700_000_000.1, update_time: 1_700_000_500.9, conversation_id: 'abc', current_node: 'a2b',
  mapping: {
    ...node('root', null, null), ...node('sys', 'root', 'system', ['']),
    ...node('u1', 'sys', 'user', ['Where do rivers **flow**?']),
    ...node('t1', 'u1', 'assistant', undefined, {}, { content_type: 'thoughts', thoughts: [{ summary: 's', content: 'Water falls.' }] }),
    ...node('a1', 't1', 'assistant', ['To the sea.'], { metadata: { model_slug: 'gpt-4o' } }),
    ...node('hidden', 'a1', 'user', ['secret'], { metadata: { is_visually_hidden_from_conversation: true } }),
    ...node('u2', 'hidden', 'user', [{ content_type: 'image_asset_pointer', asset_pointer: 'x' }, 'And then?']),
    ...node('tool', 'u2', 'assistant', undefined, { recipient: 'python' }, { content_type: 'code', text: '1+1' }),
    ...node('out', 'tool', 'tool', ['2']),
    ...node('a2', 'out', 'assistant', ['They evaporate.']), ...node('a2b', 'out', 'assistant', ['It rains.']),
  },
  ...more,
});
const openwebui = (more = {}) => ({
  id: 'w1', title: 'Otters', created_at: 1_700_100_000, updated_at: 1_700_100_100,
  chat: {
    title: 'Otters', models: ['llama3'], history: {
      currentId: '2', messages: {
        1: { id: '1', parentId: null, childrenIds: ['2'], role: 'user', content: 'What do otters eat?', timestamp: 1_700_100_000 },
        2: { id: '2', parentId: '1', childrenIds: [], role: 'assistant', model: 'llama3', content: '<details type="reasoning" done="true" duration="3">\n<summary>Thought for 3 seconds</summary>\n> They swim.\n</details>\nFish.', timestamp: 1_700_100_010 },
      },
    }, ...more,
  },
});

test("ChatGPT's export is read with its branches, thoughts and model", async () => {
  await open(server);
  await showList();
  await choose([chatgpt()]);
  await notice('“Rivers” was added.');
  assert.deepEqual(await shown(), [['Where do rivers **flow**?', 'To the sea.'], ['And then?', 'It rains.']], 'the branch that was read last');
  assert.equal(await page.locator('.place:visible').innerText(), '2/2');
  assert.match(await page.locator('.meta').first().innerText(), /gpt-4o/);
  assert.match(await page.locator('.thoughts').first().textContent(), /Water falls/);
  await page.locator('.exchange:last-child [aria-label="Earlier version"]').click();
  assert.deepEqual((await shown()).at(-1), ['And then?', 'They evaporate.']);
  await choose([chatgpt()]);
  await notice('was added');
  assert.deepEqual(await titles(), ['Rivers'], 'what is there already is not there twice');
  assert.deepEqual(await page.locator('#conversations h2').allInnerTexts(), ['November 2023'], 'it keeps its own date');
  const requests = await answerWith('Again.');
  await ask('And now?');
  await ended();
  assert.deepEqual(requests[0].messages.map((m) => m.content), ['Where do rivers **flow**?', 'To the sea.', 'And then?', 'They evaporate.', 'And now?'], 'it goes on here');
});

test("Open WebUI's export is read, as trees and as lists", async () => {
  await open(server);
  await showList();
  await choose([openwebui()]);
  await notice('“Otters” was added.');
  assert.deepEqual(await shown(), [['What do otters eat?', 'Fish.']]);
  assert.match(await page.locator('.thoughts').textContent(), /^They swim\.\s*$/);
  await choose({ ...openwebui({ history: undefined, messages: [{ role: 'system', content: 'x' }, { role: 'user', content: 'One?' }, { role: 'assistant', content: 'Two.' }, { role: 'user', content: 'Three?' }] }), id: 'w2', title: 'List' });
  await notice('“List” was added.');
  assert.deepEqual(await shown(), [['One?', 'Two.'], ['Three?', '']]);
  await reload();
  assert.deepEqual(await shown(), [['One?', 'Two.'], ['Three?', '']]);
});

test('a file of another program that anyone may have written is refused by the name of its place, or read as text', async () => {
  await open(server);
  await showList();
  const chain = (n, role = () => 'user') => Object.assign({}, ...Array.from({ length: n }, (_, i) => node(`n${i}`, i ? `n${i - 1}` : null, role(i), [`${i}`])));
  for (const [content, words] of [
    ['PK\u0003\u0004', 'The file is an archive: unpack it'],
    ['7', 'The file has no conversations of this page, of ChatGPT or of Open WebUI.'],
    ['null', 'The file has no conversations of this page'],
    [[], 'The file has no conversation with a question.'],
    [[chatgpt(), 5], '[1] is no conversation of ChatGPT or Open WebUI.'],
    [[{ mapping: [] }], '[0] is no conversation'],
    [[{ chat: { history: { messages: 4 } } }], '[0] is no conversation'],
    [[{ mapping: {} }], 'The file has no conversation with a question.'],
    [[{ mapping: { a: null, b: { message: { author: 5, content: 7 } }, c: { parent: 'c', message: { author: { role: 'user' }, content: { parts: 'x' } } } } }], 'no conversation with a question'],
    [[{ mapping: { ...node('x', 'y', 'user', ['?']), ...node('y', 'x', 'assistant', ['!']) } }], 'no conversation with a question'], // a ring
    [[chatgpt({ mapping: chain(20_001) })], '[0] has more than 20,000 messages.'],
    [[chatgpt({ mapping: node('n', null, 'user', ['x'.repeat(2_097_153)]) })], 'conversations[0].exchanges[0].question is not a text of at most 2,097,152 characters.'],
    [[chatgpt({ mapping: { ...chain(2000, (i) => (i ? 'assistant' : 'user')), ...Object.assign({}, ...Array.from({ length: 900 }, (_, i) => node(`z${i}`, 'n1999', 'assistant', ['y'.repeat(40_000)]))) } })], 'Rivers is longer than the page keeps.'],
  ]) {
    await choose(content);
    await notice(words);
  }
  assert.deepEqual(await titles(), [], 'nothing of them is added');
  await choose([chatgpt({ mapping: chain(1001) }), chatgpt({ conversation_id: 'b', title: '<b>bold</b>', current_node: 7, update_time: 'x', mapping: { ...node('__proto__', null, 'user', ['<img src=x onerror="document.title=1">']), ...node('a', '__proto__', 'assistant', ['<script>document.title=2</script>']) } })]);
  await notice('“<b>bold</b>” was added. 1 are left out: the latest 500 are kept, of at most 1000 questions each.');
  assert.equal(await page.locator('.exchange img, .exchange script, #conversations b').count(), 0);
  assert.equal(await page.title(), 'Lutra');
});

test('of many conversations of another program the latest are read', async () => {
  await open(server);
  const many = Array.from({ length: 520 }, (_, i) => chatgpt({ conversation_id: `c${i}`, title: `number ${i}`, update_time: 1_600_000_000 + i }));
  const { left, count, first, last } = await page.evaluate(async (many) => {
    const { conversations, left } = await (await import('/web/js/transfer.js')).read(JSON.stringify(many));
    return { left, count: new Set(conversations.map(({ head }) => head.id)).size, first: conversations[0].head.title, last: conversations.at(-1).head.title };
  }, many);
  assert.deepEqual([left, count, first, last], [20, 500, 'number 519', 'number 20']);
});

test('a hand-made file needs to say little', async () => {
  await open(server);
  const id = '1'.repeat(24);
  await choose({ format: 'lutra.conversations', version: 1, conversations: [{ id, title: 'By hand', created: 1, updated: 1, at: id, exchanges: [{ id, parent: null, created: 1, question: 'Q?', answer: 'A.' }] }] });
  await notice('“By hand” was added.');
  assert.equal(await lastAnswer(), 'A.');
  assert.doesNotMatch(await page.locator('.meta').innerText(), /stopped/);
});

test('conversations are listed by date, with titles of two lines', async () => {
  await open(server);
  const groups = await page.evaluate(async () => {
    const { byDate } = await import('/web/js/dates.js');
    const now = new Date(2026, 2, 1, 0, 30); // shortly after midnight, on the first of March
    const at = (...when) => ({ updated: new Date(...when).getTime() });
    const heads = [at(2027, 0, 1), at(2026, 2, 1, 0, 1), at(2026, 1, 28, 23, 59), at(2026, 1, 28), at(2026, 1, 22), at(2026, 1, 21), at(2026, 0, 30), at(2026, 0, 29), at(2025, 0, 5), { updated: -8e15 }];
    return byDate(heads, now).map(({ name, heads }) => [name, heads.length]);
  });
  assert.deepEqual(groups, [['Today', 2], ['Yesterday', 2], ['Previous 7 days', 1], ['Previous 30 days', 2], ['January 2026', 1], ['January 2025', 1], ['January 1970', 1]]);
  await answerWith('Yes.');
  assert.ok(await page.locator('#history').isHidden(), 'who has no conversation yet has the page for the question');
  await ask('How far is the spring from the sea, on foot?');
  await ended();
  const title = page.locator('#conversations .title');
  await title.waitFor();
  assert.deepEqual(await page.locator('#conversations h2').allInnerTexts(), ['Today']);
  const { whole, lines } = await title.evaluate((e) => ({ whole: e.scrollHeight <= e.clientHeight + 1, lines: Math.round(e.clientHeight / parseFloat(getComputedStyle(e).lineHeight)) }));
  assert.deepEqual([whole, lines], [true, 2], 'forty letters are there to be read');
  await shot('list-by-date');
  await press('Close'); // of the column, which stays closed
  await reload();
  assert.ok(await page.locator('#history').isHidden());
});
