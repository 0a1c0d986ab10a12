// Conversations that the browser keeps: a list, other tabs, files.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { answerWith, ask, browse, complaints, context, divert, ended, fitsItsWidth, lastAnswer, open, page, phone, reload, restored, shot } from './browser.mjs';
import { delta, startScripted } from './scripted.mjs';
import { startServer } from './server.mjs';

const slow = [delta({ role: 'assistant', content: '' }), delta({ content: 'The first half, ' }), delta({ content: 'and the second.' }), delta({}, { finish_reason: 'stop' })];

let server, stream;

browse(async () => {
  [server, stream] = await Promise.all([startServer(), startScripted(slow)]);
  return [server.stop, stream.stop];
});

const titles = (at = page) => at.locator('#conversations .title').allInnerTexts();
const listed = (title, at = page) => at.locator('#conversations .title', { hasText: title }).waitFor();
const more = async (title, action) => {
  const row = page.locator('#conversations li', { hasText: title });
  await row.locator('summary').click();
  await row.locator('button', { hasText: action }).click();
};
/** Opens a file as if the person had chosen it. */
const choose = (content, name = 'file.json') => page.locator('#import-file').setInputFiles({ name, mimeType: 'application/json', buffer: Buffer.from(content) });
const notice = (words) => page.locator('#history-notice', { hasText: words }).waitFor();
const download = async (press) => {
  const [file] = await Promise.all([page.waitForEvent('download'), press()]);
  return { name: file.suggestedFilename(), text: readFileSync(await file.path(), 'utf8') };
};

/** Two conversations, the second shown. */
async function two() {
  await open(server);
  await answerWith('Rivers flow to the sea.');
  await ask('Where do rivers flow?');
  await ended();
  await listed('Where do rivers flow?');
  await page.locator('#new').click();
  await answerWith('Otters eat fish.');
  await ask('What do otters eat?');
  await ended();
  await listed('What do otters eat?');
}

test('conversations are listed, opened, renamed and found by their words', async () => {
  await two();
  assert.deepEqual(await titles(), ['What do otters eat?', 'Where do rivers flow?'], 'the latest first');
  await shot('conversations');
  await page.locator('#conversations .open', { hasText: 'rivers' }).click();
  await page.locator('.text', { hasText: 'to the sea' }).waitFor();
  assert.equal(await page.locator('.exchange').count(), 1);
  await more('rivers', 'Rename');
  await page.locator('.renaming input').fill('Geography');
  await page.keyboard.press('Enter');
  await listed('Geography');
  await reload();
  assert.equal(await lastAnswer(), 'Rivers flow to the sea.', 'the tab has its conversation again');
  assert.deepEqual((await titles()).toSorted(), ['Geography', 'What do otters eat?']);
  await page.keyboard.press('Control+k');
  await page.keyboard.type('EAT FISH');
  await page.locator('#conversations small', { hasText: 'Otters eat fish.' }).waitFor();
  assert.deepEqual(await titles(), ['What do otters eat?'], 'what is in the texts is found');
  await page.locator('#find').fill('nowhere');
  await page.locator('#no-conversations', { hasText: 'Nothing is found.' }).waitFor();
});

test('what was deleted comes back when that is undone, and else is gone', async () => {
  await two();
  await more('otters', 'Delete');
  await notice('“What do otters eat?” is deleted.');
  assert.equal(await page.locator('.exchange').count(), 0, 'it is no longer shown');
  await page.locator('#history-notice button', { hasText: 'Undo' }).click();
  await listed('What do otters eat?');
  assert.equal(await lastAnswer(), 'Otters eat fish.');
  await more('otters', 'Delete');
  await page.locator('#history-notice button', { hasText: 'Close' }).click();
  await page.locator('#history-notice span').waitFor({ state: 'detached' });
  await reload();
  await listed('Where do rivers flow?');
  assert.deepEqual(await titles(), ['Where do rivers flow?']);
  const left = await page.evaluate(async () => (await import('/web/js/library.js')).find('otters', () => true).then((found) => found.size));
  assert.equal(left, 0, 'nothing of it is left');
});

test('a reload during an answer keeps what had come', async () => {
  await open(server);
  await divert(stream);
  await ask('Tell me slowly');
  stream.next();
  await page.locator('.text', { hasText: 'The first half,' }).waitFor();
  await reload();
  assert.equal(await lastAnswer(), 'The first half,');
  assert.match(await page.locator('.meta').innerText(), /stopped/);
  assert.equal(await page.locator('.error:visible').count(), 0, 'no connection is said to have broken');
  const requests = await answerWith('and the rest.');
  await page.locator('button', { hasText: 'Continue' }).click();
  await page.locator('.text', { hasText: 'The first half, and the rest.' }).waitFor();
  assert.equal(requests[0].continue_final_message, true);
  assert.deepEqual(requests[0].messages.at(-1), { role: 'assistant', content: 'The first half, ' });
});

test('an answer goes on while another conversation is read', async () => {
  await two();
  await divert(stream);
  await ask('Tell me slowly');
  stream.next();
  await page.locator('.text', { hasText: 'The first half,' }).waitFor();
  await page.locator('#conversations .open', { hasText: 'rivers' }).click();
  await page.locator('.text', { hasText: 'to the sea' }).waitFor();
  assert.ok(await page.locator('#send').isVisible(), 'and others may be asked');
  await page.locator('#conversations li', { hasText: 'rivers' }).locator('summary').click();
  stream.next(10);
  await page.waitForFunction(async () => (await (await import('/web/js/library.js')).find('and the second', () => true)).size === 1);
  assert.equal(await page.locator('#conversations details[open]').count(), 1, 'a menu stays open when the list has nothing new');
  await page.locator('#conversations .open', { hasText: 'otters' }).click();
  await page.locator('.text', { hasText: 'and the second.' }).waitFor();
  await ended();
});

test('a second tab has the same conversations, and follows', async () => {
  await two();
  const other = await context.newPage();
  await other.goto(server.url);
  await restored(other);
  await listed('rivers', other);
  await other.locator('#conversations .open', { hasText: 'otters' }).click();
  await other.locator('.text', { hasText: 'Otters eat fish.' }).waitFor();
  await answerWith('And crabs.');
  await ask('What else?');
  await other.locator('.exchange:nth-of-type(2) .text', { hasText: 'And crabs.' }).waitFor();
  await more('rivers', 'Delete');
  await other.locator('#conversations .title', { hasText: 'rivers' }).waitFor({ state: 'detached' });
});

test('an exported conversation is the same where it is imported', async () => {
  await two();
  await page.locator('#conversations .open', { hasText: 'rivers' }).click();
  await page.locator('.text', { hasText: 'to the sea' }).waitFor();
  await page.locator('.edit').click();
  await page.locator('.editing textarea').fill('Where do springs flow?');
  await page.keyboard.press('Enter');
  await page.locator('.branches:visible').waitFor();
  await ended();
  const row = page.locator('#conversations li', { hasText: 'rivers' });
  await row.locator('summary').click();
  const one = await download(() => row.locator('button', { hasText: 'Export' }).click());
  assert.equal(one.name, 'Where-do-rivers-flow.lutra.json');
  const all = await download(() => page.locator('#export').click());
  assert.equal(JSON.parse(all.text).conversations.length, 2);
  await choose(one.text);
  await notice('was added');
  assert.equal((await titles()).length, 2, 'what is there already is not there twice');
  for (const title of ['Where do rivers flow?', 'What do otters eat?']) {
    await more(title, 'Delete');
    await notice(`“${title}” is deleted.`);
    await page.locator('#history-notice button', { hasText: 'Close' }).click();
    await page.locator('#history-notice span').waitFor({ state: 'detached' });
  }
  await page.locator('#no-conversations', { hasText: 'kept here' }).waitFor();
  await choose(one.text);
  await notice('“Where do rivers flow?” was added.');
  assert.equal(await lastAnswer(), 'Otters eat fish.', 'of the branch that was shown');
  assert.equal(await page.locator('.place').innerText(), '2/2');
  await choose(all.text);
  await notice('2 conversations were added.');
  await listed('otters');
  assert.equal((await titles()).length, 2);
});

test('a file that anyone may have written is refused by the name of its place, and never markup', async () => {
  await open(server);
  await page.locator('#history').evaluate((list) => { list.open = true; });
  const id = (n) => String(n).padStart(24, '0');
  const exchange = (more = {}) => ({ id: id(1), parent: null, created: 1, question: '<img src=x onerror="document.title=1">', answer: '<script>document.title=2</script>', state: 'asking', ...more });
  const file = (conversation = {}, more = {}) => JSON.stringify({ format: 'lutra.conversations', version: 1, conversations: [{ id: id(7), title: '<b>bold</b>', created: 1, updated: 1, at: id(1), exchanges: [exchange()], ...conversation }], ...more });
  const search = (more) => ({ done: true, method: 'beam_search', select: '', n: 1, width: 1, stepsTaken: 1, live: 0, finished: 1, tokens: 1, leader: '', agreement: 1, reason: '', degraded: false, score: 1, candidates: [], beams: [], steps: [], votes: [], usage: null, ...more });
  const step = (parent, depth) => ({ parent, depth, text: 'x', score: 1, fate: 'kept', count: 1 });
  for (const [content, words] of [
    ['{', 'The file is not JSON.'],
    ['[]', 'The file has no conversation with a question.'],
    ['{"format":"other"}', 'The file has no conversations of this page, of ChatGPT or of Open WebUI.'],
    [file({}, { version: 2 }), 'version is not a whole number from 1 to 1.'],
    [file({ id: '../x' }), 'conversations[0].id is not a name'],
    [file({ title: 'x'.repeat(81) }), 'conversations[0].title is not a text of at most 80 characters.'],
    [file({ exchanges: [] }), 'conversations[0].exchanges is empty.'],
    [file({ exchanges: Array.from({ length: 1001 }, exchange) }), 'conversations[0].exchanges is not a list of at most 1,000.'],
    [file({ exchanges: [exchange(), exchange()] }), 'exchanges[1].id is there twice.'],
    [file({ exchanges: [exchange({ parent: id(1) })] }), 'exchanges[0].parent is no exchange before it.'],
    [file({ exchanges: [exchange({ question: 7 })] }), 'exchanges[0].question is not a text'],
    [file({ exchanges: [exchange({ state: 'ready' })] }), 'exchanges[0].state is not one of'],
    [file({ exchanges: [exchange({ search: search({ steps: [step(0, 1)] }) })] }), 'search.steps[0].parent is no step'],
    [file({ exchanges: [exchange({ search: search({ steps: [step(-1, 4000)] }) })] }), 'search.steps[0].parent is no step'],
    [file({ exchanges: [exchange({ search: search({ candidates: Array(513) }) })] }), 'search.candidates is not a list of at most 512.'],
  ]) {
    await choose(content);
    await notice(words);
  }
  assert.deepEqual(await titles(), [], 'nothing of them is added');
  await choose(file({ __proto__: null, exchanges: [{ ...exchange(), conversation: 'other', constructor: 1, extra: { x: 1 } }] }).replace('"extra"', '"__proto__"'));
  await notice('“<b>bold</b>” was added.');
  assert.equal(await page.locator('.question').innerText(), '<img src=x onerror="document.title=1">');
  assert.equal(await page.locator('.exchange img, .exchange script, #conversations b').count(), 0);
  assert.match(await page.locator('.meta').innerText(), /stopped/, 'nobody answers it any more');
  assert.equal(await page.title(), 'Lutra');
  assert.equal(complaints.length, 0);
});

test('what is kept has a bound, and the oldest make room', async () => {
  await open(server);
  const [count, oldest, long] = await page.evaluate(async () => {
    const library = await import('/web/js/library.js');
    const { newHead, newId, titleOf } = await import('/web/js/conversation.js');
    for (let i = 0; i < library.mostConversations + 3; i++) await library.write({ ...newHead(), title: `number ${i}`, at: newId(), updated: i });
    await library.makeRoom();
    const heads = await library.heads();
    return [heads.length, heads.at(-1).title, titleOf('word '.repeat(100)).length];
  });
  assert.deepEqual([count, oldest, long], [500, 'number 3', 80]);
});

test('on a phone the list is a drawer', async () => {
  await two();
  await page.setViewportSize(phone);
  await page.locator('#history').waitFor({ state: 'hidden' });
  await fitsItsWidth();
  await page.locator('#show-history').click();
  await page.locator('#history').waitFor();
  await fitsItsWidth();
  await shot('conversations-phone');
  await page.keyboard.press('Escape');
  await page.locator('#history').waitFor({ state: 'hidden' });
  await page.locator('#show-history').click();
  await page.emulateMedia({ colorScheme: 'dark' });
  await shot('conversations-phone-dark');
  await page.locator('#conversations .open', { hasText: 'rivers' }).click();
  await page.locator('.text', { hasText: 'to the sea' }).waitFor();
  assert.ok(await page.locator('#history').isHidden(), 'it gives way to what was chosen');
});
