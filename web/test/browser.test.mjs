// The page in a real browser, against the real binary.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { chromium } from 'playwright-core';
import { answer, startSearchStream } from './search-stream.mjs';
import { startServer } from './server.mjs';

const shots = process.env.LUTRA_SHOTS ?? mkdtempSync(join(tmpdir(), 'lutra-shots-'));
const profile = mkdtempSync(join(tmpdir(), 'lutra-chromium-'));
const desktop = { width: 1280, height: 800 };
const phone = { width: 360, height: 720 };
const long = 'Tell me about '.repeat(40);

let server, keyed, stream, context, page, complaints;

before(async () => {
  [server, keyed, stream] = await Promise.all([startServer(), startServer('--api-key', 'river'), startSearchStream()]);
  context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    viewport: desktop,
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
      '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
  context.setDefaultTimeout(15_000);
});

after(async () => {
  await context?.close();
  await Promise.all([server?.stop(), keyed?.stop(), stream?.stop()]);
  rmSync(profile, { recursive: true, force: true });
  console.log(`screenshots: ${shots}`);
});

beforeEach(async () => {
  page = await context.newPage();
  complaints = [];
  page.on('console', (m) => m.type() === 'error' && complaints.push(m.text()));
  page.on('pageerror', (err) => complaints.push(String(err)));
});

afterEach(async () => {
  const heard = complaints;
  await page.close();
  assert.deepEqual(heard, [], 'the browser complained');
});

/** Opens the page and waits until it can be used. */
async function open(at = server) {
  await page.goto(at.url);
  await page.locator('#model:enabled').waitFor();
}

const shot = (name) => page.screenshot({ path: join(shots, `${name}.png`), animations: 'disabled' });
const ended = () => page.locator('.turn:last-child [aria-busy=false]').waitFor();
const lastAnswer = () => page.locator('.turn:last-child .text').innerText();

async function fitsItsWidth() {
  const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.equal(over, 0, 'the page is wider than the screen');
}

test('an example is answered word by word, and stays after a reload', async () => {
  await open();
  assert.deepEqual(await page.locator('#model option').allInnerTexts(), ['lutra-tiny-l', 'lutra-tiny-s'], 'models that chat');
  await shot('welcome-light');
  await page.locator('#examples button').first().click();
  await ended();
  assert.match(await lastAnswer(), /220\/5=44[^]*Answer: 73$/);
  assert.match(await page.locator('.meta').innerText(), /\d+ tokens · \d+ tokens\/s/);
  assert.match(await page.locator('#announce').textContent(), /Answer: 73/, 'screen readers hear the answer');
  await page.reload();
  assert.match(await lastAnswer(), /Answer: 73$/);
  await shot('answer-light');
  await page.locator('#new').click();
  assert.equal(await page.locator('.turn').count(), 0);
  assert.ok(await page.locator('#welcome').isVisible());
});

test('an answer can be stopped, and the server stops with it', async () => {
  await open();
  await page.locator('#settings summary').click();
  await page.locator('[name=temperature]').fill('2');
  await page.locator('[name=temperature]').dispatchEvent('change');
  // The real stream, held open: the browser has the headers and no text yet.
  let aborted;
  const gone = new Promise((resolve) => { aborted = resolve; });
  page.on('requestfailed', (r) => r.url().endsWith('/chat/completions') && aborted(r.failure().errorText));
  await page.route('**/v1/chat/completions', (route) => route.continue({ url: `${stream.url}/v1/chat/completions` }));
  await page.locator('#question').fill('What is 12 * 7?');
  await page.locator('#question').press('Enter');
  await page.locator('#stop').click();
  await ended();
  assert.match(await gone, /ABORTED/);
  assert.match(await page.locator('.meta').innerText(), /stopped/);
  assert.ok(await page.locator('#send').isVisible());
});

test('everything can be done from the keyboard alone', async () => {
  await open();
  assert.equal(await page.evaluate(() => document.activeElement.id), 'question', 'the question has the focus');
  await page.keyboard.type('What is 12 * 7?');
  await page.keyboard.press('Shift+Enter');
  assert.equal(await page.locator('#question').inputValue(), 'What is 12 * 7?\n');
  await page.keyboard.press('Enter');
  await ended();
  assert.match(await lastAnswer(), /Answer: 84$/);
  const reached = [];
  await page.evaluate(() => document.body.focus());
  for (let i = 0; i < 24; i++) {
    await page.keyboard.press('Tab');
    reached.push(await page.evaluate(() => document.activeElement.id || document.activeElement.name || document.activeElement.textContent.trim().split(' ')[0]));
  }
  for (const part of ['model', 'new', 'Engine', 'Settings', 'Ask', 'question', 'send', 'method']) {
    assert.ok(reached.includes(part), `Tab reaches ${part}: ${reached}`);
  }
  const unlabelled = await page.evaluate(() => [...document.querySelectorAll('input, select, textarea, button')]
    .filter((c) => !c.labels?.length && !c.textContent.trim() && !c.getAttribute('aria-label')).map((c) => c.outerHTML));
  assert.deepEqual(unlabelled, [], 'every control has a label');
});

test('Escape stops', async () => {
  await open();
  await page.route('**/v1/chat/completions', (route) => route.continue({ url: `${stream.url}/v1/chat/completions` }));
  await page.keyboard.type('Wait');
  await page.keyboard.press('Enter');
  await page.locator('#stop').waitFor();
  await page.keyboard.press('Escape');
  await ended();
  assert.match(await page.locator('.meta').innerText(), /stopped/);
});

test('a search is drawn while it runs, with what was pruned and what was chosen', async () => {
  await open();
  await page.locator('#method').selectOption('beam_search');
  await page.locator('#n').selectOption('8');
  await page.route('**/v1/chat/completions', (route) => route.continue({ url: `${stream.url}/v1/chat/completions` }));
  await page.locator('#question').fill("There are 256 cups in Adam's room. Then he throws away 250 cups. Later he gets 6 boxes of 19 cups. Next, he finds 288 more cups. How many cups does he have in the end?");
  await page.locator('#question').press('Enter');
  stream.next(2);
  await page.locator('figcaption', { hasText: '2 steps · 8 in the making' }).waitFor();
  assert.ok(await page.locator('.tree g.pruned').count() >= 4, 'what was pruned is drawn');
  assert.equal(await page.locator('.tree g.chosen').count(), 0, 'nothing is chosen yet');
  await shot('search-running');
  stream.next(4);
  await page.locator('.reasoning[open] .thoughts', { hasText: 'Chosen: candidate 1.' }).waitFor();
  assert.match(await page.locator('.thoughts').innerText(), /^Step 1, 8 tried:\n {2}<b>first<\/b>\n/, 'reasoning is text');
  stream.next(100);
  await ended();
  assert.equal(await page.locator('.reasoning[open]').count(), 0, 'reasoning is folded when the answer is there');
  assert.ok(await page.locator('.reasoning summary').isVisible());
  assert.equal(await lastAnswer(), answer);
  assert.equal(await page.locator('.tree g.chosen').count(), 5, 'the chosen path has its five steps');
  assert.equal(await page.locator('.tree g.chosen .count').first().textContent(), '×3', 'equal steps are one node');
  assert.match(await page.locator('.votes .chosen').innerText(), /408\s+2 votes, weight 1.98/);
  assert.match(await page.locator('figcaption').innerText(), /beam search · n = 8 · 5 steps .* every candidate came to its end/);
  const asked = stream.requests.at(-1);
  assert.deepEqual(asked.test_time_scaling, { method: 'beam_search', n: 8, width: 4, include: ['candidates', 'steps', 'tree'] });
  assert.ok(!('temperature' in asked), 'the search keeps its own temperature');
  await shot('search-light');
  await page.emulateMedia({ colorScheme: 'dark' });
  await shot('search-dark');
  await page.locator('.tree-view summary').click();
  assert.ok(await page.locator('.outline li li li li li.chosen').isVisible(), 'the nested list tells the same');
  await page.setViewportSize(phone);
  await fitsItsWidth();
  await shot('search-phone-dark');
  await page.locator('.tree-view summary').click();
  await page.locator('.zoom button', { hasText: '+' }).click();
  await page.emulateMedia({ colorScheme: 'light' });
  await shot('search-phone-light');
});

test('a search finds the answer that the likeliest one misses', async () => {
  await open();
  await page.locator('#settings summary').click();
  await page.locator('[name=seed]').fill('1');
  await page.locator('#settings summary').click();
  const hard = page.locator('#examples button').last();
  await hard.click();
  await ended();
  assert.doesNotMatch(await lastAnswer(), /Answer: 113$/, 'the example is a hard one');
  for (const method of ['self_consistency', 'best_of_n', 'dvts', 'auto', 'beam_search']) {
    await page.locator('#method').selectOption(method);
    await page.locator('#n').selectOption('16');
    await page.locator('.again').click();
    await ended();
    assert.equal(await page.locator('.error:visible').count(), 0, method);
    assert.ok(await page.locator('.tree g.chosen').count() >= 3, `${method}: a path is chosen`);
    assert.ok(await page.locator('.votes .chosen').count() === 1, `${method}: one answer has won`);
    await shot(`search-${method}`);
  }
  assert.match(await lastAnswer(), /595-482=113[^]*Answer: 113$/);
  assert.ok(await page.locator('.tree g.pruned').count() >= 1, 'something was pruned');
  await page.setViewportSize(phone);
  await fitsItsWidth();
  await shot('search-beam-phone');
});

test('a server that wants a key is given one', async () => {
  await page.goto(keyed.url);
  await page.locator('#key-form').waitFor();
  complaints.length = 0; // the browser reports each refusal it sees
  await page.locator('#question').fill('What is 12 * 7?');
  await page.locator('#question').press('Enter');
  await ended();
  await shot('key');
  const words = await page.locator('#key-reason').innerText();
  assert.match(words, /Incorrect or missing API key/, "the server's words");
  assert.match(await page.locator('.meta').innerText(), /waiting for an API key/);
  await page.locator('#key').fill('river');
  await page.keyboard.press('Enter');
  await page.locator('.text .result').waitFor();
  assert.match(await lastAnswer(), /Answer: 84$/, 'the question is asked again by itself');
  complaints.length = 0;
});

test('a refusal is shown as the server words it', async () => {
  await open();
  await page.locator('#settings summary').click();
  await page.locator('[name=system]').fill('word '.repeat(3000));
  await page.locator('[name=system]').dispatchEvent('change');
  await page.locator('#question').fill('What is 12 * 7?');
  await page.locator('#question').press('Enter');
  await ended();
  assert.match(await page.locator('.error').innerText(), /maximum context length is 1024 tokens/);
  complaints.length = 0;
});

test('it follows the system between light and dark, and fits a phone', async () => {
  await page.emulateMedia({ colorScheme: 'light' });
  await open();
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
  await open();
  await page.locator('#examples button').nth(2).click();
  await page.locator('#engine-brief', { hasText: 'tokens/s' }).waitFor();
  await page.locator('.lanes .on').first().waitFor();
  await shot('engine');
});

test('a stream is read whatever pieces it comes in', async () => {
  await open();
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

test('whatever a server tells of a search, it is read or left out', async () => {
  await open();
  const { hostile, votes, sampled, idle, busy } = await page.evaluate(async () => {
    const { absorb } = await import('/web/js/search.js');
    const { layout } = await import('/web/js/layout.js');
    const { parse, reading } = await import('/web/js/metrics.js');
    const chunk = (told, choice) => ({ test_time_scaling: told, choices: choice ? [{ index: 0, test_time_scaling: choice }] : [] });
    const hostile = [
      {}, { tree: 7 }, { tree: [null, 1, 'x', {}] }, { tree: [{ parent: 0, text: 'its own parent' }] },
      { tree: [{ parent: 5, text: 'of nobody' }, { parent: -7, text: 4, score: NaN }] }, { candidates: [{ text: null, answer: 3 }], n: 'many', agreement: null },
      { tree: Array.from({ length: 20_000 }, (_, i) => ({ parent: i - 1, text: `step ${i}`, score: 2 })) },
    ].map((told) => {
      const search = absorb(null, chunk(told));
      const { boxes, width, height } = layout(search.steps);
      return [search.steps.length, boxes.every((b) => Number.isFinite(b.x + b.y)) && Number.isFinite(width + height)];
    });
    const texts = ['1+1=2.\nAnswer: 2', '1+1=3.\nAnswer: 3', '1+1=2.\nAnswer: 2'];
    const candidates = texts.map((text, candidate) => ({ candidate, text, answer: text.at(-1), score: 0.5 }));
    const sampled = absorb(absorb(null, chunk({ method: 'self_consistency', step: 1, live: 3 })), chunk({ stop_reason: 'decided', candidates }, { candidate: 0, answer: '2' }));
    const text = (running, tokens, lanes) => `# HELP x y\nlutra_num_requests_running{model_name="a"} ${running}\nlutra_num_requests_running{model_name="b {}"} 1\n`
      + `lutra_engine_tokens_total{model_name="a"} ${tokens}\nlutra_engine_lanes_total{model_name="a"} ${lanes}\nlutra_generation_tokens_total ${tokens}e0\nodd{le="+Inf"} +Inf\nnonsense`;
    return {
      hostile, sampled, votes: sampled.votes,
      idle: reading(parse(text(0, 5, 32)), parse(text(0, 5, 32)), 1),
      busy: reading(parse(text(3, 53, 96)), parse(text(0, 5, 32)), 2),
    };
  });
  assert.deepEqual(hostile.map(([steps]) => steps), [0, 0, 0, 0, 0, 0, 4000]);
  assert.ok(hostile.every(([, finite]) => finite));
  assert.deepEqual(votes.map((v) => [v.answer, v.votes, v.chosen]), [['2', 2, true], ['3', 1, false]]);
  assert.deepEqual(sampled.steps.map((s) => [s.text, s.fate, s.count]),
    [['1+1=2.', 'chosen', 2], ['Answer: 2', 'chosen', 2], ['1+1=3.', 'pruned', 1], ['Answer: 3', 'pruned', 1]]);
  assert.deepEqual([idle.fill, idle.tokens, idle.hits], [null, 0, null]);
  assert.deepEqual([busy.fill, busy.tokens, busy.running], [0.75, 24, 4]);
});

test('what a model writes stays text', async () => {
  await open();
  const hostile = '<img src=x onerror="document.title=1"> **bold** `code`\n```html\n<script>document.title=2</script>\n```\n- one\n- two';
  await page.route('**/v1/chat/completions', (route) => route.fulfill({
    contentType: 'text/event-stream',
    body: `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: hostile }, finish_reason: 'stop' }] })}\n\ndata: [DONE]\n\n`,
  }));
  await page.locator('#question').fill(long);
  await page.locator('#question').press('Enter');
  await ended();
  assert.equal(await page.locator('.text img, .text script').count(), 0);
  assert.equal(await page.locator('.text strong').innerText(), 'bold');
  assert.equal(await page.locator('.text pre').innerText(), '<script>document.title=2</script>');
  assert.equal(await page.locator('.text li').count(), 2);
  assert.equal(await page.title(), 'Lutra');
  await shot('markdown');
});
