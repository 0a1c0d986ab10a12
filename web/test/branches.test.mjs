// What can be done with an exchange: edit, ask again, continue, copy, promote, replay.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { beamSearch } from './beam.mjs';
import { answerWith, ask, browse, divert, ended, fitsItsWidth, lastAnswer, open, page, panel, phone, reload, shot } from './browser.mjs';
import { delta, startScripted } from './scripted.mjs';
import { startServer } from './server.mjs';
import { vote } from './vote.mjs';

let server, beam, votes;

browse(async () => {
  [server, beam, votes] = await Promise.all([startServer(), startScripted(beamSearch), startScripted(vote)]);
  return [server.stop, beam.stop, votes.stop];
});

const answers = () => page.locator('section.own > .text').allInnerTexts();

test('edited and repeated questions are branches, and nothing is lost', async () => {
  await open(server);
  let requests = await answerWith('One.');
  await ask('First?');
  await ended();
  await ask('Then?');
  await ended();
  requests = await answerWith('Two.');
  await page.locator('.exchange:first-child .again').click();
  await ended();
  assert.deepEqual(await answers(), ['Two.'], 'the branch ends here');
  assert.equal(await page.locator('.place').innerText(), '2/2');
  requests = await answerWith('Three.');
  await page.locator('.edit').click();
  assert.equal(await page.locator('.editing textarea').inputValue(), 'First?');
  await page.locator('.editing textarea').fill('Else?');
  await shot('editing');
  await page.keyboard.press('Enter');
  await page.locator('.place', { hasText: '3/3' }).waitFor();
  await ended();
  assert.deepEqual(requests[0].messages, [{ role: 'user', content: 'Else?' }], 'the edited question stands in place of the first');
  assert.deepEqual(await answers(), ['Three.']);
  await shot('branches');
  await page.locator('button[aria-label="Earlier version"]').press('Enter');
  assert.deepEqual(await answers(), ['Two.']);
  await page.keyboard.press('Enter');
  assert.deepEqual(await answers(), ['One.', 'One.'], 'with what follows there');
  await reload();
  assert.deepEqual(await answers(), ['One.', 'One.'], 'the branch that was read is read again');
  assert.equal(await page.locator('.place:visible').innerText(), '1/3');
  await page.locator('.exchange:last-child .edit').click();
  await page.keyboard.press('Escape');
  assert.ok(await page.locator('.exchange:last-child .question').isVisible(), 'Escape leaves the question as it was');
  await page.setViewportSize(phone);
  await fitsItsWidth();
  await shot('branches-phone');
});

test('an answer that was cut goes on where it ended', async () => {
  await open(server);
  await panel();
  await page.locator('[name=max_tokens]').fill('4');
  await ask('What is 12 * 7?');
  await page.locator('.meta', { hasText: 'cut at the token limit' }).waitFor();
  await ended();
  assert.equal(await lastAnswer(), '12*7');
  await page.locator('[name=max_tokens]').fill('40');
  await page.locator('button', { hasText: 'Continue' }).click();
  await page.locator('.text .result').waitFor();
  await ended();
  assert.equal((await lastAnswer()).replace(/\s+/g, ' '), '12*7=84. Answer: 84');
  assert.equal(await page.locator('button', { hasText: 'Continue' }).count(), await page.locator('button:has-text("Continue")[hidden]').count(), 'it is complete');
  assert.equal(await page.locator('.place:visible').count(), 0, 'it is the same answer');
});

test('an answer that repeated itself says so, and can go on', async () => {
  await open(server);
  await page.route('**/v1/chat/completions', (route) => route.fulfill({ contentType: 'text/event-stream', body: `data: ${JSON.stringify(delta({ content: 'la la la' }, { finish_reason: 'repetition' }))}\n\ndata: [DONE]\n\n` }));
  await ask('Sing');
  await page.locator('.meta', { hasText: 'ended: it repeated itself' }).waitFor();
  assert.ok(await page.locator('button', { hasText: 'Continue' }).isVisible());
});

test('the buttons of a message are there for who points at it, moves to it by keyboard, or touches', async () => {
  await open(server);
  await answerWith('Yes.');
  await ask('Is it?');
  await ended();
  const seen = () => page.locator('.copy, .again, .edit').evaluateAll((all) => all.map((b) => getComputedStyle(b).opacity));
  await page.mouse.move(0, 0);
  assert.deepEqual(await seen(), ['0', '0', '0']);
  await page.locator('.exchange').hover();
  assert.deepEqual(await seen(), ['1', '1', '1']);
  await page.mouse.move(0, 0);
  await page.locator('#question').focus();
  for (let i = 0; i < 3; i++) await page.keyboard.press('Shift+Tab'); // out of the composer, into the answer
  while (await page.evaluate(() => !document.activeElement.closest('.exchange'))) await page.keyboard.press('Shift+Tab');
  assert.deepEqual(await seen(), ['1', '1', '1']);
  const touched = await page.context().browser().newContext({ hasTouch: true, isMobile: true, viewport: phone });
  const other = await touched.newPage();
  await other.goto(server.url);
  await other.route('**/v1/chat/completions', (route) => route.fulfill({ contentType: 'text/event-stream', body: `data: ${JSON.stringify(delta({ content: 'Yes.' }, { finish_reason: 'stop' }))}\n\ndata: [DONE]\n\n` }));
  await other.locator('#model:enabled').waitFor();
  await other.locator('#question').fill('Is it?');
  await other.locator('#send').click();
  await other.locator('.copy').waitFor();
  assert.deepEqual(await other.locator('.copy, .again, .edit').evaluateAll((all) => all.map((b) => getComputedStyle(b).opacity)), ['1', '1', '1']);
  await touched.close();
});

for (const [where, plain] of [['over https', false], ['over plain http', true]]) {
  test(`an answer is copied ${where}`, async () => {
    // Browsers leave navigator.clipboard out on pages of other machines over plain http.
    if (plain) await page.addInitScript(() => Object.defineProperty(navigator, 'clipboard', { value: undefined }));
    else await page.context().grantPermissions(['clipboard-write', 'clipboard-read']);
    await open(server);
    await answerWith(`Copy **me** ${where}.`);
    await ask('Text?');
    await ended();
    await page.locator('.copy').click();
    await page.locator('.copy', { hasText: 'Copied' }).waitFor();
    await page.locator('#question').focus();
    await page.keyboard.press('Control+v');
    assert.equal(await page.locator('#question').inputValue(), `Copy **me** ${where}.`);
    assert.equal(await page.locator('.copy').innerText(), 'Copy');
  });
}

test('any candidate can be read in full, and made the answer', async () => {
  await open(server);
  await page.locator('#method').selectOption('self_consistency');
  await page.locator('#n').selectOption('8');
  await divert(votes);
  await ask('When do they meet?');
  votes.next(100);
  await ended();
  await page.locator('[aria-label="Read candidate 2"]').click();
  const reader = page.locator('#reader');
  assert.match(await reader.locator('h2').innerText(), /^Candidate 2 of 8: 3.125$/);
  assert.match(await reader.locator('.text').innerText(), /^The first train[^]*Answer: 3.125$/);
  await shot('reader');
  await reader.locator('button', { hasText: 'Previous' }).click();
  assert.ok(await reader.locator('button', { hasText: 'Use as the answer' }).isDisabled(), 'it is the answer already');
  await reader.locator('button', { hasText: 'Next' }).click();
  await page.setViewportSize(phone);
  await fitsItsWidth();
  await shot('reader-phone');
  await page.setViewportSize({ width: 1280, height: 800 });
  await reader.locator('button', { hasText: 'Use as the answer' }).click();
  assert.match(await lastAnswer(), /Answer: 3.125$/);
  assert.equal(await page.locator('.place').innerText(), '2/2', 'the other answer is not lost');
  assert.match(await page.locator('.meta').innerText(), /candidate 2, chosen by you/);
  assert.match(await page.locator('.card.chosen').innerText(), /3.125 · chosen/);
  const requests = await answerWith('Fine.');
  await ask('Sure?');
  await ended();
  assert.match(requests[0].messages[1].content, /Answer: 3.125$/, 'the conversation goes on from it');
  await reload();
  assert.match((await answers())[0], /Answer: 3.125$/);
});

test('a search is replayed from a file, and the server computes nothing', async () => {
  await open(server);
  await page.locator('#method').selectOption('beam_search');
  await divert(beam);
  await ask('How many cups?');
  beam.next(100);
  await ended();
  const content = await page.evaluate(async () => {
    const library = await import('/web/js/library.js');
    const { write } = await import('/web/js/transfer.js');
    const [{ id }] = await library.heads();
    const text = write([await library.read(id)]);
    await library.forget(id);
    return text;
  });
  const asked = [];
  page.on('request', (r) => r.method() === 'POST' && asked.push(r.url()));
  await page.locator('#new').click();
  await page.locator('#import-file').setInputFiles({ name: 'shared.json', mimeType: 'application/json', buffer: Buffer.from(content) });
  await page.locator('.tree g.chosen').first().waitFor();
  const whole = await page.locator('.tree g.step').count();
  await page.locator('.replay').click();
  await page.locator('.replaying button', { hasText: 'Pause' }).click();
  const range = page.locator('.replaying input');
  assert.equal(await range.getAttribute('max'), '5', 'a moment a step');
  await range.fill('2');
  assert.equal(await page.locator('.tree g.chosen').count(), 0, 'nothing is chosen yet');
  const early = await page.locator('.tree g.step').count();
  assert.ok(early > 0 && early < whole, `${early} of ${whole} steps`);
  await shot('replay');
  await range.fill('5');
  assert.equal(await page.locator('.tree g.step').count(), whole);
  assert.equal(await page.locator('.tree g.chosen').count(), 5);
  await page.locator('.replay').click();
  assert.ok(await page.locator('.replaying').isHidden());
  assert.deepEqual(asked, []);
});

test('whole answers are replayed as they were written', async () => {
  await open(server);
  const told = await page.evaluate(async () => {
    const { moment, moments } = await import('/web/js/replay.js');
    const candidate = (index, length) => ({ index, parent: -1, text: 'x'.repeat(length), tokens: 9, logprob: null, score: 1, answer: 'x', state: 'complete', chosen: index === 0 });
    const search = { done: true, method: 'self_consistency', candidates: [candidate(0, 100), candidate(1, 40)], steps: [], votes: [{}], usage: {} };
    const half = moment(search, moments(search) / 2);
    return [moments(search), half.candidates.map((c) => [c.text.length, c.state, c.chosen]), half.votes.length, moment(search, moments(search)) === search, moments({ ...search, candidates: [] })];
  });
  assert.deepEqual(told, [20, [[50, 'writing', false], [40, 'complete', false]], 0, true, 0]);
});
