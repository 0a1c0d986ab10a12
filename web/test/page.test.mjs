// The page in a real browser, against the real binary: the conversation.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { beamSearch } from './beam.mjs';
import { answerWith, ask, browse, complaints, divert, ended, fake, fitsItsWidth, lastAnswer, open, page, panel, phone, reload, shot } from './browser.mjs';
import { startScripted } from './scripted.mjs';
import { startServer } from './server.mjs';

const long = 'Tell me about '.repeat(40);

let server, keyed, stream;

browse(async () => {
  [server, keyed, stream] = await Promise.all([startServer(), startServer('--api-key', 'river'), startScripted(beamSearch)]);
  return [server.stop, keyed.stop, stream.stop];
});

test('an example is answered word by word, and stays after a reload', async () => {
  await open(server);
  assert.deepEqual(await page.locator('#model option').allInnerTexts(), ['lutra-tiny-l', 'lutra-tiny-s'], 'models that chat');
  await shot('welcome-light');
  await page.locator('#examples button').first().click();
  await ended();
  assert.match(await lastAnswer(), /220\/5=44[^]*Answer: 73$/);
  assert.match(await page.locator('.meta').innerText(), /\d+ tokens · [\d,.]+ tokens\/s/);
  assert.match(await page.locator('#announce').textContent(), /Answer: 73/, 'screen readers hear the answer');
  await reload();
  assert.match(await lastAnswer(), /Answer: 73$/);
  await shot('answer-light');
  await page.locator('#new').click();
  assert.equal(await page.locator('.exchange').count(), 0);
  assert.ok(await page.locator('#welcome').isVisible());
});

test('an answer can be stopped, and the server stops with it', async () => {
  await open(server);
  await panel();
  await page.locator('[name=temperature]').fill('2');
  await page.locator('[name=temperature]').dispatchEvent('change');
  // The real stream, held open: the browser has the headers and no text yet.
  let aborted;
  const gone = new Promise((resolve) => { aborted = resolve; });
  page.on('requestfailed', (r) => r.url().endsWith('/chat/completions') && aborted(r.failure().errorText));
  await divert(stream);
  await ask('What is 12 * 7?');
  await page.locator('#stop').click();
  await ended();
  assert.match(await gone, /ABORTED/);
  assert.match(await page.locator('.meta').innerText(), /stopped/);
  assert.ok(await page.locator('#send').isVisible());
});

test('everything can be done from the keyboard alone', async () => {
  await open(server);
  assert.equal(await page.evaluate(() => document.activeElement.id), 'question', 'the question has the focus');
  await page.keyboard.type('What is 12 * 7?');
  await page.keyboard.press('Shift+Enter');
  assert.equal(await page.locator('#question').inputValue(), 'What is 12 * 7?\n');
  await page.keyboard.press('Enter');
  await ended();
  assert.match(await lastAnswer(), /Answer: 84$/);
  const reached = [];
  await page.evaluate(() => document.body.focus());
  for (let i = 0; i < 32; i++) {
    await page.keyboard.press('Tab');
    reached.push(await page.evaluate(() => document.activeElement.id || document.activeElement.name || document.activeElement.textContent.trim().split(' ')[0]));
  }
  for (const part of ['model', 'new', 'show-engine', 'show-panels', 'Edit', 'Ask', 'question', 'send', 'method']) {
    assert.ok(reached.includes(part), `Tab reaches ${part}: ${reached}`);
  }
  const unlabelled = await page.evaluate(() => [...document.querySelectorAll('input, select, textarea, button')]
    .filter((c) => !c.labels?.length && !c.textContent.trim() && !c.getAttribute('aria-label')).map((c) => c.outerHTML));
  assert.deepEqual(unlabelled, [], 'every control has a label');
});

test('Escape stops', async () => {
  await open(server);
  await divert(stream);
  await page.keyboard.type('Wait');
  await page.keyboard.press('Enter');
  await page.locator('#stop').waitFor();
  await page.keyboard.press('Escape');
  await ended();
  assert.match(await page.locator('.meta').innerText(), /stopped/);
});

test('a server that wants a key is given one', async () => {
  await page.goto(keyed.url);
  await page.locator('#key-form').waitFor();
  assert.match(await page.locator('#key-reason').innerText(), /^This server answers those who have a key/, 'who typed nothing has made no mistake');
  assert.ok(await page.locator('#composer').evaluate((composer) => composer.inert), 'nothing can be asked yet');
  assert.ok(await page.locator('#model').isHidden(), 'no model is known');
  await shot('key');
  await page.locator('#key').fill('lake');
  await page.keyboard.press('Enter');
  await page.locator('#key-reason', { hasText: 'Incorrect or missing API key' }).waitFor(); // the server's words
  complaints.length = 0; // the browser reports each refusal it sees
  await page.locator('#key').fill('river');
  await page.keyboard.press('Enter');
  await page.locator('#model:enabled').waitFor();
  await fake('**/v1/chat/completions', 401, { error: { message: 'Incorrect or missing API key.' } }); // it has been withdrawn
  await ask('What is 12 * 7?');
  await ended();
  assert.match(await page.locator('.meta').innerText(), /waiting for an API key/);
  assert.ok(await page.locator('#composer').evaluate((composer) => composer.inert));
  await page.unroute('**/v1/chat/completions');
  await page.locator('#key').fill('river');
  await page.keyboard.press('Enter');
  await page.locator('.text .result').waitFor();
  assert.match(await lastAnswer(), /Answer: 84$/, 'the question is asked again by itself');
  complaints.length = 0;
});

test('a refusal is shown as the server words it', async () => {
  await open(server);
  await panel();
  await page.locator('[name=system]').fill('word '.repeat(3000));
  await page.locator('[name=system]').dispatchEvent('change');
  await ask('What is 12 * 7?');
  await ended();
  assert.match(await page.locator('.exchange .error').innerText(), /maximum context length is 1024 tokens/);
  complaints.length = 0;
});

test('it follows the system between light and dark, and fits a phone', async () => {
  await page.emulateMedia({ colorScheme: 'light' });
  await open(server);
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await background();
  await page.emulateMedia({ colorScheme: 'dark' });
  assert.notEqual(await background(), light);
  await shot('welcome-dark');
  await page.setViewportSize(phone);
  await fitsItsWidth();
  await shot('welcome-phone-dark');
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' });
  await page.locator('#examples button').nth(2).click();
  await ended();
  await fitsItsWidth();
  await shot('answer-phone-light');
  assert.equal(await page.evaluate(() => getComputedStyle(document.querySelector('.lanes i')).transitionDuration), '0s');
});

test('the engine panel shows what the engine has done', async () => {
  await open(server);
  await page.locator('#engine-brief', { hasText: 'idle' }).waitFor();
  assert.ok(await page.locator('#engine-body').isHidden(), 'a line is enough while nothing runs');
  await page.locator('#show-engine').click();
  await page.locator('#examples button').nth(2).click();
  await page.locator('#engine-brief', { hasText: 'tokens/s' }).waitFor();
  await page.locator('.lanes .on').first().waitFor();
  await shot('engine');
});

test('a stream is read whatever pieces it comes in', async () => {
  await open(server);
  const read = await page.evaluate(async () => {
    const { events } = await import('/web/js/sse.js');
    const bytes = new TextEncoder().encode(': hello\r\ndata: {"a":\r\ndata: "é"}\r\n\r\nevent: x\rdata:2\r\rid: 7\n\ndata: [DONE]');
    const all = [];
    for (const size of [1, 2, 3, 5, 1000]) {
      const body = new ReadableStream({
        start(c) {
          for (let i = 0; i < bytes.length; i += size) c.enqueue(bytes.slice(i, i + size));
          c.close();
        },
      });
      const got = [];
      for await (const data of events(body)) got.push(data);
      all.push(got);
    }
    return all;
  });
  for (const got of read) assert.deepEqual(got, ['{"a":\n"é"}', '2', '[DONE]']);
});

test('metrics are read as rates, whatever else the text holds', async () => {
  await open(server);
  const { idle, busy } = await page.evaluate(async () => {
    const { parse, reading } = await import('/web/js/metrics.js');
    const text = (running, tokens, lanes) => `# HELP x y\nlutra_num_requests_running{model_name="a"} ${running}\nlutra_num_requests_running{model_name="b {}"} 1\n`
      + `lutra_engine_tokens_total{model_name="a"} ${tokens}\nlutra_engine_lanes_total{model_name="a"} ${lanes}\nlutra_generation_tokens_total ${tokens}e0\nodd{le="+Inf"} +Inf\nnonsense`;
    return {
      idle: reading(parse(text(0, 5, 32)), parse(text(0, 5, 32)), 1),
      busy: reading(parse(text(3, 53, 96)), parse(text(0, 5, 32)), 2),
    };
  });
  assert.deepEqual([idle.fill, idle.tokens, idle.hits], [null, 0, null]);
  assert.deepEqual([busy.fill, busy.tokens, busy.running], [0.75, 24, 4]);
});

test('what a model writes stays text', async () => {
  await open(server);
  await answerWith('<img src=x onerror="document.title=1"> **bold** `code`\n```html\n<script>document.title=2</script>\n```\n- one\n- two');
  await ask(long);
  await ended();
  assert.equal(await page.locator('.text img, .text script').count(), 0);
  assert.equal(await page.locator('.text strong').innerText(), 'bold');
  assert.equal(await page.locator('.text pre').innerText(), '<script>document.title=2</script>');
  assert.equal(await page.locator('.text li').count(), 2);
  assert.equal(await page.title(), 'Lutra');
  await shot('markdown');
});
