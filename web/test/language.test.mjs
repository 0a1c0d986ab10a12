// The page in the person's language.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answerWith, ask, browse, context, ended, fitsItsWidth, open, page, panel, phone, shot } from './browser.mjs';
import { startServer } from './server.mjs';

let server;
browse(async () => {
  server = await startServer();
  return [server.stop];
});

const lang = () => page.locator('html').getAttribute('lang');
/** The browser says that its person reads some languages. */
const reads = (...tags) => context.addInitScript((tags) => Object.defineProperty(navigator, 'languages', { get: () => tags }), tags);

test('the page speaks Chinese where the browser does, and another language where that is set', async () => {
  await reads('fr', 'zh-CN', 'en');
  await open(server);
  assert.equal(await lang(), 'zh-Hans');
  assert.equal(await page.locator('#send').innerText(), '发送');
  assert.equal(await page.locator('#question').getAttribute('placeholder'), '提一道数数的应用题（英语）');
  assert.equal(await page.locator('#method option').first().innerText(), '单个回答');
  await panel();
  assert.equal(await page.locator('[name=system]').getAttribute('placeholder'), '无');
  await page.locator('[name=top_p]').fill('2');
  assert.equal(await page.locator('#top_p-fault').innerText(), 'Top p 须为 0 到 1 之间的数字。');
  await page.locator('[name=top_p]').fill('');
  await page.locator('#method').selectOption('self_consistency');
  await ask('What is 12 * 7?');
  await ended();
  await page.locator('.search figcaption', { hasText: '票投票' }).waitFor();
  assert.match(await page.locator('.spent').innerText(), /^共用 [\d,]+ 个词元：/);
  // What is English yet is the model's, a name or a unit.
  const left = await page.evaluate(() => [...document.querySelectorAll('button, label > span, summary, legend, .hint, h2, figcaption, .meta')].filter((e) => e.checkVisibility()).map((e) => e.textContent.trim())
    .filter((text) => /[a-z]{4,}/.test(text.replace(/lutra[\w-]*|GitHub|JSON|tokens\/s/g, '')) && !/\p{Script=Han}/u.test(text)));
  assert.deepEqual(left, []);
  await shot('chinese');
  await page.setViewportSize(phone);
  await fitsItsWidth();
  await shot('chinese-phone');

  await panel();
  await page.locator('#language').selectOption('en');
  await page.locator('#send', { hasText: 'Send' }).waitFor();
  assert.equal(await lang(), 'en');
  await page.locator('.spent', { hasText: 'Spent' }).waitFor();
});

test('what is said in no table stays English, and Chinese is loaded for those who read it alone', async () => {
  const loaded = [];
  page.on('request', (r) => loaded.push(r.url()));
  await reads('fr', 'de');
  await open(server);
  await answerWith('Oui.');
  await ask('Bonjour ?');
  await ended();
  assert.equal(await lang(), 'en');
  assert.ok(loaded.length > 10 && !loaded.some((url) => url.includes('chinese')));
});
