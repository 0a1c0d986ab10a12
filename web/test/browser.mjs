// A headless Chromium for one test file, and what the tests have in common.
// Every test begins with a fresh page; one that makes the browser complain fails.
import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach } from 'node:test';
import { chromium } from 'playwright-core';

const shots = process.env.LUTRA_SHOTS ?? mkdtempSync(join(tmpdir(), 'lutra-shots-'));
export const desktop = { width: 1280, height: 800 };
export const phone = { width: 360, height: 720 };

/** The page of the test that runs. @type {import('playwright-core').Page} */
export let page;
/** Its browser's tabs and storage, which no other test sees. @type {import('playwright-core').BrowserContext} */
export let context;
/** What the browser has complained about; a test that expects it takes it away. @type {string[]} */
export let complaints = [];

/**
 * Launches the browser; `offline`: with service workers.
 * @returns {Promise<{ newContext: () => Promise<import('playwright-core').BrowserContext>, close: () => Promise<void> }>}
 */
export async function launch({ offline = false } = {}) {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
      '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
  const newContext = async () => {
    const made = await browser.newContext({
      viewport: desktop,
      serviceWorkers: offline ? 'allow' : 'block', // which would answer before routes of tests do
    });
    made.setDefaultTimeout(60_000);
    return made;
  };
  return { newContext, close: () => browser.close() };
}

/**
 * Gives the file's tests their pages.
 * @param {() => Promise<(() => Promise<void>)[]>} start what the tests need besides; it returns how to end that
 * @param {{ offline?: boolean }} [options] of launch
 */
export function browse(start, options) {
  let browser, ends = [];
  before(async () => {
    [browser, ends] = await Promise.all([launch(options), start()]);
  });
  after(async () => {
    await browser?.close();
    await Promise.all(ends.map((end) => end()));
    console.log(`screenshots: ${shots}`);
  });
  beforeEach(async () => {
    context = await browser.newContext();
    page = await context.newPage();
    complaints = [];
    const heard = complaints;
    context.on('console', (m) => m.type() === 'error' && heard.push(m.text()));
    context.on('weberror', (err) => heard.push(String(err.error())));
  });
  afterEach(async () => {
    const heard = complaints;
    await context.close();
    assert.deepEqual(heard, [], 'the browser complained');
  });
}

/** Loads the page again, and waits until its conversation is there. */
export async function reload() {
  await page.reload();
  await restored();
}
export const restored = (at = page) => at.locator('#conversation:not([aria-busy])').waitFor({ state: 'attached' });

/** Opens the page and waits until it can be used. */
export async function open(at) {
  await page.goto(at.url);
  await page.locator('#model:enabled').waitFor();
}

/** Asks, from the composer. */
export async function ask(question) {
  await page.locator('#question').fill(question);
  await page.locator('#question').press('Enter');
}

/** Answers requests of the API's chat with another server. */
export const divert = (to) => page.route('**/v1/chat/completions', (route) => route.continue({ url: `${to.url}/v1/chat/completions` }));

/** Answers a path with this JSON, from now on. */
export async function fake(path, status, body) {
  await page.unroute(path);
  await page.route(path, (route) => route.fulfill({ status, contentType: 'application/json', body: JSON.stringify(body) }));
}

/** Answers chats with one text; `chunk` has further fields of the first chunk. Returns the requests. */
export async function answerWith(text, chunk = {}) {
  const requests = [];
  await page.unroute('**/v1/chat/completions');
  await page.route('**/v1/chat/completions', (route) => {
    requests.push(route.request().postDataJSON());
    const first = { choices: [{ index: 0, delta: { role: 'assistant', content: '' } }], ...chunk };
    const second = { choices: [{ index: 0, delta: { content: text }, finish_reason: 'stop' }] };
    route.fulfill({ contentType: 'text/event-stream', body: `data: ${JSON.stringify(first)}\n\ndata: ${JSON.stringify(second)}\n\ndata: [DONE]\n\n` });
  });
  return requests;
}

/** Answers each request with the next of some lists of deltas. */
export async function script(...answers) {
  const requests = [];
  await page.unroute('**/v1/chat/completions');
  await page.route('**/v1/chat/completions', (route) => {
    const chunks = answers[Math.min(requests.length, answers.length - 1)];
    requests.push(route.request().postDataJSON());
    const lines = chunks.map((delta, i) => ({ choices: [{ index: 0, delta, finish_reason: i < chunks.length - 1 ? null : delta.tool_calls ? 'tool_calls' : 'stop' }] }));
    route.fulfill({ contentType: 'text/event-stream', body: [...lines.map((l) => JSON.stringify(l)), '[DONE]'].map((l) => `data: ${l}\n\n`).join('') });
  });
  return requests;
}
/** The deltas of a call of a tool. */
export const call = (name, given, id = 'c1', index = 0) => [
  { tool_calls: [{ index, id, type: 'function', function: { name, arguments: given.slice(0, 5) } }] },
  { tool_calls: [{ index, function: { arguments: given.slice(5) } }] },
];

/** Opens a panel of the drawer, with all its fields. */
export async function panel(name = 'settings', at = page) {
  if (!await at.locator('#panels').isVisible()) await at.locator('#show-panels').click();
  await at.locator('#panels').evaluate((_, name) => { for (const id of [name, 'advanced']) document.getElementById(id).open = true; }, name);
}
/** Closes the drawer of panels. */
export const closePanels = () => page.locator('#close-panels').click();

/** Presses a button. */
export const press = (name) => page.getByRole('button', { name, exact: true }).click();

/** A model's card as /v1/models lists it. */
export const card = (id, lutra, more = {}) => ({ id, object: 'model', created: 1, owned_by: 'lutra', root: id, max_model_len: 4096, task: 'generate', lutra, ...more });
export const cards = (...data) => ({ object: 'list', data });

export const shot = (name) => page.screenshot({ path: join(shots, `${name}.png`), animations: 'disabled' });
export const ended = () => page.locator('.exchange:last-child [aria-busy=false]').waitFor();
export const lastAnswer = () => page.locator('.exchange:last-child section.own > .text').innerText();
export const lastSingle = () => page.locator('.exchange:last-child .rival > .text').innerText();

export async function fitsItsWidth() {
  const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.equal(over, 0, 'the page is wider than the screen');
}
