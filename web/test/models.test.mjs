// What the page offers for each model, and what it does while the server has
// none, or is gone.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { answerWith, ask, browse, card, cards, complaints, ended, fake, fitsItsWidth, lastAnswer, open, page, panel, phone, reload, shot } from './browser.mjs';
import { startServer } from './server.mjs';

let demo, own;

browse(async () => {
  // A model of random weights: it knows no end of its answers, and no verifier reads it.
  const folder = mkdtempSync(join(tmpdir(), 'lutra-model-'));
  const model = join(folder, 'noise.gguf');
  const made = spawnSync(process.env.LUTRA_BIN + '-lab', ['bench', 'model', '--shape', 'tiny', '--out', model]);
  assert.equal(made.status, 0, String(made.stderr));
  [demo, own] = await Promise.all([startServer(), startServer('--model', model)]);
  return [demo.stop, own.stop, async () => rmSync(folder, { recursive: true })];
});

const options = (id) => page.locator(`${id} option`).evaluateAll((all) => all.map((o) => o.value));
const models = '**/v1/models';
const ready = '**/readyz';

test('the demo is welcomed as the demo', async () => {
  await open(demo);
  assert.match(await page.locator('#headline').innerText(), /checks its\swork/);
  assert.equal(await page.locator('#question').getAttribute('placeholder'), 'Ask a counting story');
  assert.ok((await options('#method')).includes('beam_search'));
});

test("one's own model gets words, questions and methods that suit it", async () => {
  await open(own);
  assert.match(await page.locator('#words').innerText(), /^noise runs on this server's processor\. Let it search/);
  assert.equal(await page.locator('#question').getAttribute('placeholder'), 'Ask anything');
  assert.doesNotMatch(await page.locator('#welcome').innerText(), /counting|small model/);
  await shot('welcome-own');
  assert.ok((await options('#method')).includes('beam_search'), 'steps are judged by their probability');
  const requests = await answerWith('Hello.');
  await ask('Hi');
  await ended();
  assert.ok(!('temperature' in requests[0]) && !('max_tokens' in requests[0]), "the server's defaults hold");
});

test('a vote of a model without a verifier has a card a candidate', async () => {
  await open(own);
  await panel();
  await page.locator('[name=max_tokens]').fill('400');
  await page.locator('#method').selectOption('self_consistency');
  await page.locator('#n').selectOption('64');
  await ask('Say something');
  await ended();
  assert.match(await page.locator('.meta').innerText(), /tokens\/s/);
  // A vote ends when no candidate still writing could change it, which may be before they have a card.
  const cards = await page.locator('.card').count();
  assert.ok(cards > 32 && cards <= 64, `${cards} cards of 64 candidates`);
  assert.equal(await page.locator('.error:visible').count(), 0);
});

test('what is offered changes with the model', async () => {
  await fake(models, 200, cards(
    card('river', { demo: true, methods: ['none', 'self_consistency', 'best_of_n', 'beam_search', 'dvts', 'auto'], verifiers: ['judge', 'logprob'], presets: [], max_turns: 6, defaults: { temperature: 1, max_tokens: null, scaling: '' } }),
    card('sea', { demo: false, methods: ['none', 'self_consistency'], verifiers: [], presets: ['think'], defaults: { temperature: 0.7, top_p: 0.9, top_k: 20, min_p: 0.05, max_tokens: 512, scaling: 'sc8' } }, { max_model_len: 32768 }),
    card('sea+think', {}, { root: 'sea' }),
    card('judge', {}, { task: 'reward' }),
    card('vectors', {}, { task: 'embed' }),
  ));
  await open(demo);
  const requests = await answerWith('Yes.');
  const asked = async () => {
    await ask('Is it?');
    await ended();
    return requests.at(-1);
  };
  assert.deepEqual(await options('#model'), ['river', 'sea']);
  assert.deepEqual(await options('#method'), ['none', 'self_consistency', 'best_of_n', 'beam_search', 'dvts', 'auto']);
  assert.match(await page.locator('#headline').innerText(), /checks its\swork/);
  await panel();
  await page.locator('#verifier').selectOption('judge');
  await page.locator('#method').selectOption('beam_search');
  const searched = await asked();
  assert.equal(searched.model, 'river');
  assert.equal(searched.test_time_scaling.verifier, 'judge');
  assert.equal(searched.truncation, 'auto');
  assert.match(await page.locator('.meta').innerText(), /^river/, 'it is told which model has answered');
  await page.locator('#method').selectOption('none');
  assert.equal((await asked()).temperature, 0, "arithmetic's likeliest answer");
  const shown = () => page.locator('#settings').evaluate((form) => ['temperature', 'top_p', 'top_k', 'min_p'].map((name) => form.querySelector(`[name=${name}]`).placeholder));
  assert.deepEqual(await shown(), ['0', '1', 'all', '0']);

  await page.locator('#new').click();
  await page.locator('#model').selectOption('sea');
  assert.deepEqual(await options('#method'), ['', 'none', 'self_consistency', '+think']);
  assert.equal(await page.locator('#method').inputValue(), 'none', 'what was chosen stays, where it is offered');
  assert.match(await page.locator('#words').innerText(), /^sea runs on this server's processor/);
  assert.deepEqual(await shown(), ['0.7', '0.9', '20', '0.05']);
  assert.equal(await page.locator('[name=max_tokens]').getAttribute('placeholder'), '512');
  assert.ok(await page.locator('#verifier').isHidden());
  await shot('welcome-sea');
  const single = await asked();
  assert.deepEqual([single.model, single.temperature, single.test_time_scaling], ['sea', undefined, { method: 'none' }]);
  await page.locator('#method').selectOption('');
  const include = ['candidates', 'steps', 'tree', 'partial'];
  assert.deepEqual((await asked()).test_time_scaling, { include });
  await page.locator('#method').selectOption('+think');
  const preset = await asked();
  assert.deepEqual([preset.model, preset.test_time_scaling], ['sea+think', { include }]);
  await page.locator('#model').selectOption('river');
  assert.equal(await page.locator('#method').inputValue(), 'none', 'what is not offered is not chosen');
  assert.equal((await asked()).model, 'river');
});

test("a preset's search is drawn as any other", async () => {
  await open(demo);
  await page.locator('#method').selectOption('+bon8');
  await ask('Ben owns 277 photos. Next, he picks up 229 photos. Ben has 16 cousins. Next, he gets 9 jars of 38 photos. A jar holds 4 photos. How many jars does he need?');
  await ended();
  assert.match(await page.locator('figcaption').innerText(), /^Best of 8 ·/);
  assert.ok(await page.locator('.card').count() >= 5, 'as many as it takes to decide');
  assert.equal(await page.locator('.card.chosen').count(), 1);
});

test('five questions in one conversation are answered rightly', async () => {
  await open(demo);
  for (const [i, [a, b]] of [[12, 7], [9, 8], [15, 4], [6, 9], [11, 5]].entries()) {
    await ask(`What is ${a} * ${b}?`);
    await page.locator(`.exchange:nth-of-type(${i + 1}) [aria-busy=false] .result`).waitFor();
    assert.match(await lastAnswer(), new RegExp(`Answer: ${a * b}$`));
  }
  assert.equal(await page.locator('.error:visible').count(), 0);
});

test('turns that the model no longer reads are marked, and a new conversation is offered', async () => {
  await fake(models, 200, cards(card('river', { demo: true, methods: ['none'], max_turns: 2 }), card('sea', { methods: ['none'] })));
  await open(demo);
  const requests = await answerWith('Yes.');
  for (const question of ['One?', 'Two?', 'Three?']) {
    await ask(question);
    await ended();
  }
  assert.equal(await page.locator('.limit').count(), 0);
  await answerWith('Yes.', { truncation: { dropped_messages: 4 } });
  await ask('Four?');
  await page.locator('.limit').waitFor();
  await ended();
  assert.equal(requests[2].messages.length, 5, 'the whole conversation is sent');
  assert.deepEqual(await page.locator('.conversation > li').evaluateAll((all) => all.map((li) => li.className)), ['exchange unread', 'exchange unread', 'limit', 'exchange', 'exchange']);
  assert.match(await page.locator('.limit').innerText(), /reads the last 2 questions of a conversation. What is above is left out\./);
  await shot('limit');
  await page.setViewportSize(phone);
  await fitsItsWidth();
  await shot('limit-phone');
  await reload();
  assert.equal(await page.locator('.exchange.unread').count(), 2, 'and after a reload');
  assert.match(await page.locator('.limit').innerText(), /the last 2 questions/);
  await page.locator('#model:enabled').selectOption('sea');
  await answerWith('Yes.', { truncation: { dropped_messages: 2 } });
  await ask('Five?');
  await ended();
  await page.locator('.limit', { hasText: "no longer fits into the model's context. What is above is left out." }).waitFor();
  assert.equal(await page.locator('.exchange.unread').count(), 1);
  await answerWith('Yes.', { truncation: { dropped_messages: 0 } });
  await ask('Six?');
  await ended();
  await page.locator('.limit').waitFor({ state: 'detached' });
  await answerWith('Yes.', { truncation: { dropped_messages: 10 } });
  await ask('Seven?');
  await ended();
  await page.locator('.limit button').click();
  assert.equal(await page.locator('.exchange').count(), 0);
  assert.ok(await page.locator('#welcome').isVisible());
});

test('a conversation longer than the context goes on', async () => {
  await open(own);
  await panel();
  await page.locator('[name=max_tokens]').fill('200');
  for (let i = 0; i < 4; i++) {
    await ask(`Question ${i}: ${'word '.repeat(60)}`);
    await ended();
    assert.equal(await page.locator('.error:visible').count(), 0, `question ${i}`);
  }
  assert.match(await page.locator('.limit').innerText(), /no longer fits into the model's context/);
});

test('while the model loads the page says so, and continues by itself', async () => {
  const unavailable = { error: { message: 'The model is being loaded.', type: 'server_error', param: null, code: 'unavailable' } };
  const loading = (progress) => ({ ...unavailable, loading: [{ model: 'falcon3-7b-instruct', progress }, { model: 'draft', progress: null }] });
  await fake(models, 503, unavailable);
  await fake(ready, 503, unavailable);
  await page.goto(demo.url);
  await page.locator('.status.loading', { hasText: 'The model is being loaded.' }).waitFor(); // no file is open yet
  await fake(ready, 503, loading(0.42));
  const row = page.locator('.status li').first();
  await row.waitFor();
  assert.match(await page.locator('.status').innerText(), /The server is loading 2 models[^]*falcon3-7b-instruct\s*42 %[^]*continues by itself/);
  assert.ok(await page.locator('#welcome').isHidden());
  await shot('loading');
  // A question may be asked meanwhile.
  await page.route('**/v1/chat/completions', (route) => route.fulfill({ status: 503, headers: { 'Retry-After': '1' }, json: unavailable }));
  await ask('What is 12 * 7?');
  await page.locator('.meta', { hasText: 'waiting for the server' }).waitFor();
  await fake(ready, 503, loading(0.87));
  await row.locator('.share', { hasText: '87 %' }).waitFor();
  await page.setViewportSize(phone);
  await fitsItsWidth();
  await shot('loading-phone');
  for (const path of ['**/v1/chat/completions', models, ready]) await page.unroute(path);
  await page.locator('.text .result').waitFor();
  assert.match(await lastAnswer(), /Answer: 84$/, 'it is answered as soon as there is a model');
  assert.ok(await page.locator('.status').isHidden());
  assert.ok(await page.locator('#model').isEnabled());
  complaints.length = 0; // the browser reports each refusal it sees
});

test('a model that has failed is named, and the others can be used', async () => {
  await fake(ready, 503, { error: { message: "The model 'sea' has failed: its file was changed while it was served.", type: 'server_error', param: null, code: 'model_failed' } });
  await open(demo);
  await page.locator('.status.trouble', { hasText: "'sea' has failed" }).waitFor();
  await ask('What is 12 * 7?');
  await page.locator('.text .result').waitFor();
  await shot('failed-model');
  await page.route('**/v1/chat/completions', (route) => route.fulfill({ status: 503, json: { error: { message: "The model 'sea' has failed.", code: 'model_failed' } } }));
  await ask('And now?');
  await page.locator('.exchange:last-child .error', { hasText: "'sea' has failed" }).waitFor();
  for (const path of ['**/v1/chat/completions', ready]) await page.unroute(path);
  await page.locator('.status').waitFor({ state: 'hidden' }); // no other refusal is under way
  complaints.length = 0;
});

test('a connection that was lost is shown, and found again', async () => {
  const mortal = await startServer();
  await open(mortal);
  await ask('What is 12 * 7?');
  await page.locator('.text .result').waitFor();
  await mortal.stop();
  await page.locator('.status.lost').waitFor();
  await shot('lost');
  await ask('What is 9 * 8?');
  await page.locator('.exchange:last-child .meta', { hasText: 'waiting for the server' }).waitFor();
  const again = await startServer('--addr', new URL(mortal.url).host);
  try {
    await page.locator('.exchange:last-child .text .result').waitFor();
    assert.ok(await page.locator('.status').isHidden());
    assert.match(await lastAnswer(), /Answer: 72$/);
  } finally {
    await page.close(); // which would go on asking
    await again.stop();
  }
  complaints.length = 0;
});
