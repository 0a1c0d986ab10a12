// Every view by axe-core's rules for WCAG 2.2 AA, on screens of four widths, light and dark.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { beamSearch } from './beam.mjs';
import { answerWith, ask, browse, call, card, cards, complaints, context, divert, ended, fake, fitsItsWidth, open, page, panel, script, shot } from './browser.mjs';
import { startScripted } from './scripted.mjs';
import { startServer } from './server.mjs';
import { vote } from './vote.mjs';

const sizes = { desktop: { width: 1280, height: 800 }, tablet: { width: 820, height: 1180 }, phone: { width: 390, height: 844 }, narrow: { width: 320, height: 640 } };
/** In the dark only colours differ. */
const colours = ['color-contrast', 'link-in-text-block'];
const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];

/** axe-core's source; the page's policy lets no other script in, but the tests' own evaluation. */
const axe = (() => {
  try {
    return readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  } catch {
    return '';
  }
})();
const without = axe ? false : 'there is no npm package axe-core; npm ci in web/test';

let server, keyed;

browse(async () => {
  [server, keyed] = await Promise.all([startServer(), startServer('--api-key', 'river')]);
  return [server.stop, keyed.stop];
});

/** Finds no fault in what is shown, on some screens or all. */
async function accessible(view, screens = Object.keys(sizes)) {
  await page.evaluate(`(() => { ${axe} })()`);
  const faults = [];
  for (const name of screens) {
    await page.setViewportSize(sizes[name]);
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      await fitsItsWidth();
      const found = await page.evaluate((runOnly) => axe.run(document, { runOnly, resultTypes: ['violations'] }), colorScheme === 'light' ? tags : { type: 'rule', values: colours });
      for (const { id, nodes } of found.violations) {
        for (const { target, failureSummary } of nodes.slice(0, 3)) faults.push(`${name} ${colorScheme}: ${id} ${target}: ${failureSummary}`);
      }
      assert.equal(found.testEngine.name, 'axe-core');
      await shot(`access-${view}-${name}-${colorScheme}`);
    }
  }
  assert.deepEqual(faults, [], view);
}

/** Answers with the chunks of a search. */
async function search(chunks) {
  const stream = await startScripted(chunks);
  await divert(stream);
  await ask('What is 12 * 7?');
  stream.next(chunks.length);
  await ended();
  await stream.stop();
}

test('the welcome, with all panels open', { skip: without }, async () => {
  await open(server);
  await accessible('welcome');
  for (const screens of [['desktop'], ['phone', 'narrow']]) {
    await page.setViewportSize(sizes[screens[0]]);
    for (const name of ['engine', 'pareto', 'settings']) await panel(name);
    await accessible(`panels-${screens[0]}`, screens);
  }
});

test('what a model writes', { skip: without }, async () => {
  await open(server);
  await answerWith(readFileSync(new URL('writing.txt', import.meta.url), 'utf8'));
  await ask('Show me all of it');
  await ended();
  await page.locator('.text math').nth(8).waitFor();
  await page.locator('.hl-keyword').first().waitFor();
  await accessible('writing');
});

test('an answer as a form, a call and Chinese', { skip: without }, async () => {
  await context.addInitScript(() => Object.defineProperty(navigator, 'languages', { get: () => ['zh-CN'] }));
  await open(server);
  await panel();
  await page.locator('[name=schema]').fill('{"type": "object"}');
  await answerWith('{"name": "Ada", "home": {"street": "Main"}, "visits": [{"city": "Rome"}, {"city": "Paris"}], "tags": ["a"]}');
  await ask('Who?');
  await page.locator('.form table').waitFor();
  await page.locator('[name=schema]').fill('');
  await page.locator('[name=builtin]').selectOption('on');
  await script(call('calculator', '{"expression": "1+1"}'));
  await ask('Sum');
  await page.locator('.calls [role=group]').waitFor();
  await accessible('form', ['desktop', 'narrow']);
  assert.equal(await page.locator('html').getAttribute('lang'), 'zh-Hans');
});

test('a beam search', { skip: without }, async () => {
  await open(server);
  await search(beamSearch);
  await page.locator('.tree-view summary').click();
  await accessible('beams');
});

test('a vote', { skip: without }, async () => {
  await open(server);
  await search(vote);
  await accessible('vote');
});

test('a server that wants a key, and one that cannot be reached', { skip: without }, async () => {
  await page.goto(keyed.url);
  await page.locator('#key-form').waitFor();
  await accessible('key');
  await page.route('**/readyz', (route) => route.abort());
  await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
  await page.locator('#status.lost').waitFor();
  await accessible('lost');
  await page.goto('about:blank'); // it asks no more
  complaints.length = 0;
});

test('models that load, and an answer that failed', { skip: without }, async () => {
  await fake('**/readyz', 503, { error: { code: 'unavailable', message: 'Loading.' }, loading: [{ model: 'large', progress: 0.4 }, { model: 'small', progress: null }] });
  await fake('**/v1/models', 200, cards(card('lutra-tiny-l', {})));
  await fake('**/v1/chat/completions', 400, { error: { message: 'This is not possible.' } });
  await open(server);
  await page.locator('#status progress').first().waitFor();
  await ask('What is 12 * 7?');
  await ended();
  await accessible('failed');
  await page.goto('about:blank'); // it asks no more
  complaints.length = 0;
});

test('conversations, a candidate and the shortcuts', { skip: without }, async () => {
  await open(server);
  await search(vote);
  await page.locator('#conversations .shown').waitFor();
  await page.evaluate(() => document.querySelector('#conversations details').open = true);
  await page.locator('.edit').click();
  await accessible('conversations');
  await page.setViewportSize(sizes.phone);
  await page.locator('#show-history').click();
  await page.locator('#history:modal').waitFor();
  await accessible('drawer', ['phone', 'narrow']);
  await page.locator('#close-history').click();
  await page.locator('[aria-label="Read candidate 2"]').click();
  await accessible('candidate');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Control+/');
  await accessible('shortcuts');
});
