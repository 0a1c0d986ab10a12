// What a person sets: sampling, named settings, the key, the model, shortcuts.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answerWith, ask, browse, card, cards, closePanels, complaints, context, ended, fake, fitsItsWidth, lastAnswer, open, page, panel, phone, reload, shot } from './browser.mjs';
import { startServer } from './server.mjs';

let server, keyed;

browse(async () => {
  [server, keyed] = await Promise.all([startServer(), startServer('--api-key', 'river')]);
  return [server.stop, keyed.stop];
});

const models = '**/v1/models';
const field = (name) => page.locator(`[name=${name}]`);
const named = (id, part) => page.locator(`#${id} ${part}`);
const openSettings = () => panel();

test('what the server would refuse is refused at once, and is not sent', async () => {
  await open(server);
  const requests = await answerWith('Yes.');
  await openSettings();
  for (const [name, wrong, words, right] of [
    ['temperature', '7', 'Temperature is a number from 0 to 2.', '0.75'],
    ['top_p', '1.5', 'Top p is a number from 0 to 1.', '0.9'],
    ['top_k', '2.5', 'Top k is a whole number.', '40'],
    ['min_p', '-1', 'Min p is a number from 0 to 1.', '0.05'],
    ['max_tokens', '0', 'Maximum tokens is at least 1.', '99'],
    ['seed', '-3', 'Seed is at least 0.', '3'],
    ['stop', Array(17).fill('x').join('\n'), 'There may be 16 stop strings.', 'Answer\n\\n\\n'],
  ]) {
    await field(name).fill(wrong);
    assert.equal(await page.locator(`#${name}-fault`).innerText(), words);
    if (name === 'temperature') await shot('settings-wrong');
    await closePanels();
    await ask('Is it?');
    assert.equal(await page.evaluate(() => document.activeElement.name), name, 'the field is shown');
    assert.equal(await page.locator('#question').inputValue(), 'Is it?', 'the question is still there');
    await field(name).fill(right);
    assert.equal(await page.locator('.fault').count(), 0);
  }
  assert.equal(requests.length, 0);
  await page.locator('#question').press('Enter');
  await ended();
  const { temperature, top_p, top_k, min_p, max_tokens, seed, stop } = requests[0];
  assert.deepEqual({ temperature, top_p, top_k, min_p, max_tokens, seed, stop }, { temperature: 0.75, top_p: 0.9, top_k: 40, min_p: 0.05, max_tokens: 99, seed: 3, stop: ['Answer', '\n\n'] });
  await page.locator('#method').selectOption('best_of_n');
  await field('temperature').fill('0');
  assert.match(await page.locator('#temperature-fault').innerText(), /A search needs candidates that differ/);
});

test('the real server takes what the settings send', async () => {
  await open(server);
  await openSettings();
  for (const [name, value] of [['temperature', '0.5'], ['top_p', '0'], ['top_k', '-1'], ['min_p', '1'], ['stop', 'Answer'], ['seed', '9007199254740991']]) await field(name).fill(value);
  await ask('What is 12 * 7?');
  await ended();
  assert.equal(await lastAnswer(), '12*7=84.');
});

test('thinking and the fields beyond OpenAI\'s are there where the model has them', async () => {
  await fake(models, 200, cards(card('thinker', { thinking: true, methods: ['none'] }), card('plain', undefined)));
  await open(server);
  const requests = await answerWith('Yes.');
  await openSettings();
  await field('thinking').selectOption('off');
  await field('top_k').fill('5');
  await ask('Is it?');
  await ended();
  assert.deepEqual([requests[0].chat_template_kwargs, requests[0].top_k], [{ enable_thinking: false }, 5]);
  await page.locator('#model').selectOption('plain');
  assert.ok(await field('thinking').isHidden());
  assert.ok(await field('top_k').isHidden());
  await ask('And now?');
  await ended();
  assert.deepEqual([requests[1].chat_template_kwargs, requests[1].top_k], [undefined, undefined]);
});

test('prompts and sampling are kept by name', async () => {
  await open(server);
  await openSettings();
  await field('system').fill('You are an otter.');
  await named('prompts', 'input').fill('Otter');
  await named('prompts', 'input').press('Enter');
  await field('temperature').fill('1.5');
  await field('top_p').fill('0.8');
  await named('samplings', 'input').fill('Wild <b>');
  await named('samplings', 'button:has-text("Save")').click();
  await shot('settings');
  await field('system').fill('');
  await field('temperature').fill('');
  const other = await context.newPage();
  await other.goto(server.url);
  await panel('settings', other);
  assert.deepEqual(await other.locator('#samplings option').allInnerTexts(), ['none', 'Wild <b>'], 'another tab has them');
  await other.close();
  await reload();
  await openSettings();
  await named('prompts', 'select').selectOption('Otter');
  await named('samplings', 'select').selectOption('Wild <b>');
  const requests = await answerWith('Yes.');
  await ask('Is it?');
  await ended();
  assert.equal(requests[0].messages[0].content, 'You are an otter.');
  assert.deepEqual([requests[0].temperature, requests[0].top_p], [1.5, 0.8]);
  await named('prompts', 'button:has-text("Delete")').click();
  assert.deepEqual(await named('prompts', 'option').allInnerTexts(), ['none yet']);
  assert.equal(await page.evaluate(() => localStorage.getItem('lutra.prompts')), null);
  await page.evaluate(() => localStorage.setItem('lutra.samplings', '[["a",{"temperature":7}],["b",{"temperature":"1"}],4]'));
  await reload();
  assert.deepEqual(await named('samplings', 'option').evaluateAll((all) => all.map((o) => o.value)), ['', 'b'], 'what does not fit is left out');
});

test('on a phone the settings close', async () => {
  await page.setViewportSize(phone);
  await open(server);
  await answerWith('Yes.');
  await openSettings();
  await fitsItsWidth();
  await shot('settings-phone');
  for (const close of [closePanels, () => page.keyboard.press('Escape'), () => page.mouse.click(8, 300)]) {
    await openSettings();
    await page.locator('#panels:modal').waitFor();
    await close();
    await page.locator('#panels').waitFor({ state: 'hidden' });
  }
});

test('a few settings are basic, the others are behind Advanced, and all show what holds without them', async () => {
  await fake(models, 200, cards(card('sea', { methods: ['none', 'best_of_n'], presets: ['abon16', 'calm'], verifiers: ['self', 'logprob'], defaults: { temperature: 0.6, top_p: 0.95, top_k: 20, max_tokens: null, scaling: 'sc8' } }, { max_model_len: 32768 })));
  await open(server);
  await page.locator('#show-panels').click();
  await page.locator('#settings > summary').click();
  const visible = () => page.locator('#settings-form [name]').evaluateAll((all) => all.filter((f) => f.checkVisibility()).map((f) => f.name));
  assert.deepEqual(await visible(), ['system', 'temperature', 'max_tokens']);
  await page.locator('#advanced summary').click();
  assert.ok((await visible()).length > 8);
  const shown = () => page.locator('#settings-form').evaluate((form) => ['temperature', 'top_p', 'top_k', 'min_p', 'max_tokens'].map((name) => form[name].placeholder));
  await page.locator('#method').selectOption('none');
  assert.deepEqual(await shown(), ['0.6', '0.95', '20', '0', '1,024']);
  await page.locator('#method').selectOption('best_of_n');
  assert.equal((await shown())[0], '0.8', 'of a search');
  assert.deepEqual(await page.locator('#method option').allInnerTexts(), ['Server default: Vote of 8', 'Single answer', 'Best of n', 'Best of 16, stops early', 'calm'], 'plans in words');
  await page.locator('#advanced summary').click();
  await field('seed').evaluate((f) => { f.value = '-1'; });
  await closePanels();
  await ask('Is it?');
  assert.equal(await page.evaluate(() => document.activeElement.name), 'seed', 'what is wrong is shown, wherever it is');
});

test('an answer has at most 1,024 tokens, unless the person, the server or a preset says otherwise', async () => {
  const lutra = { methods: ['none', 'best_of_n'], presets: ['sc8'], verifiers: [] };
  await fake(models, 200, cards(card('sea', lutra, { max_model_len: 32768 }), card('lake', { ...lutra, defaults: { max_tokens: 300 } }), card('pond', lutra, { max_model_len: 1024 }), card('old', undefined)));
  await open(server);
  const requests = await answerWith('Yes.');
  const bound = async (model, method, said = '') => {
    await page.locator('#model').selectOption(model);
    await page.locator('#method').selectOption(method);
    await panel();
    await field('max_tokens').fill(said);
    await closePanels();
    await ask('Is it?');
    await ended();
    return requests.at(-1).max_tokens;
  };
  const got = [];
  for (const [model, method, said] of [['sea', 'none'], ['sea', 'best_of_n'], ['sea', '+sc8'], ['sea', 'none', '5000'], ['lake', 'none'], ['pond', 'none'], ['old', 'none']]) got.push(await bound(model, method, said));
  assert.deepEqual(got, [1024, 1024, undefined, 5000, undefined, undefined, 1024]);
  assert.deepEqual(requests.map((r) => r.repetition_detection?.max_pattern_size), [64, 64, 64, 64, 64, 64, undefined], 'what repeats itself is ended, where the server knows how');
});

test('a key is remembered where that is wanted, and forgotten', async () => {
  await page.goto(keyed.url);
  const form = page.locator('#key-form');
  await form.waitFor();
  await page.locator('#key').fill('river');
  await page.keyboard.press('Enter');
  await page.locator('#model:enabled').waitFor();
  const other = await context.newPage();
  await other.goto(keyed.url);
  await other.locator('#key-form').waitFor(); // it is the tab's alone
  await other.locator('#key').fill('river');
  await other.locator('#keep-key').check();
  await other.locator('#key-form button').click();
  await other.locator('#model:enabled').waitFor();
  const third = await context.newPage();
  await third.goto(keyed.url);
  await third.locator('#model:enabled').waitFor(); // it is the device's
  await panel('settings', third);
  await third.locator('#forget-key').click();
  await third.locator('#key-form').waitFor();
  assert.deepEqual(await third.evaluate(() => [localStorage.getItem('lutra.key'), sessionStorage.getItem('lutra.key')]), [null, null]);
  complaints.length = 0; // the browser reports each refusal it sees
});

test('the menu tells where models are', async () => {
  const state = (value, failed) => ({ status: { value, failed } });
  await fake(models, 200, cards(card('near', {}, state('loaded')), card('far', {}, state('unloaded')), card('soon', {}, state('loading')), card('broken', {}, state('unloaded', true))));
  await open(server);
  const names = () => page.locator('#model option').allInnerTexts();
  assert.deepEqual(await names(), ['near', 'far · on disk', 'soon · loading', 'broken · failed']);
  await page.locator('#model').selectOption('far');
  await answerWith('Here.');
  await fake(models, 200, cards(card('near', {}, state('unloaded')), card('far', {}, state('loaded')), card('soon', {}, state('loaded')), card('broken', {}, state('unloaded'))));
  await ask('Are you there?');
  await page.locator('#model option', { hasText: /^far$/ }).waitFor({ state: 'attached' }); // the question has loaded it
  assert.deepEqual(await names(), ['near · on disk', 'far', 'soon', 'broken · on disk']);
  assert.equal(await page.locator('#model').inputValue(), 'far');
});

test('a limit is told once', async () => {
  await open(server);
  const refuse = (message) => page.route('**/v1/chat/completions', (route) => route.fulfill({ status: 429, headers: { 'Retry-After': '3' }, json: { error: { message, code: 'rate_limit_exceeded' } } }));
  await refuse('Rate limit reached: requests of this key is 2. Please try again in 2.5s.');
  await ask('One');
  assert.equal(await page.locator('.error:visible').innerText(), 'Rate limit reached: requests of this key is 2. Please try again in 2.5s.');
  await refuse('The server is full.');
  await ask('Two');
  await page.locator('.exchange:nth-of-type(2) .error', { hasText: 'The server is full. (Try again in 3 s.)' }).waitFor();
  complaints.length = 0;
});

test('shortcuts are listed by ?, and do what it says', async () => {
  await open(server);
  await answerWith('Yes.');
  await ask('Is it?');
  await ended();
  await page.locator('#scroll').focus();
  await page.keyboard.press('?');
  await page.locator('#help[open]').waitFor();
  await shot('help');
  await page.locator('#help input').uncheck();
  await page.keyboard.press('Escape');
  await page.locator('#help').waitFor({ state: 'hidden' });
  await page.locator('#scroll').focus();
  await page.keyboard.press('n');
  assert.equal(await page.locator('.exchange').count(), 1, 'keys alone can be turned off');
  await page.keyboard.press('Control+/');
  await page.locator('#help input').check();
  await page.keyboard.press('Escape');
  await page.locator('#help').waitFor({ state: 'hidden' });
  await page.locator('#scroll').focus();
  await page.keyboard.press('e');
  await page.locator('.editing').waitFor();
  await page.keyboard.press('Escape');
  await page.locator('#scroll').focus();
  await page.keyboard.press('/');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'question');
  await page.keyboard.type('?n');
  assert.equal(await page.locator('#question').inputValue(), '?n', 'in a field keys are letters');
  await page.keyboard.press('Control+Shift+S');
  assert.ok(await page.locator('#history').isHidden());
  await page.keyboard.press('Control+k');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'find');
  await page.keyboard.press('Control+Shift+O');
  assert.equal(await page.locator('.exchange').count(), 0);
});
