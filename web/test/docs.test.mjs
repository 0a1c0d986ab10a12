// The documents in a real browser: the search, the contents, a phone, the dark.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { browse, fitsItsWidth, page, phone, shot } from './browser.mjs';
import { startServer } from './server.mjs';

let server;

browse(async () => {
  server = await startServer();
  return [server.stop];
});

test('the page leads to the documents, whose search leads to a section', async () => {
  await page.goto(`${server.url}/`);
  await page.locator('#show-panels').click();
  await page.getByRole('link', { name: 'Documentation' }).click();
  await page.waitForURL('**/docs/');
  await page.keyboard.press('/');
  await page.keyboard.type('--api-keys-file');
  await page.locator('#site-results a').first().waitFor();
  assert.match(await page.locator('#site-count').textContent(), /^\d+ sections$/);
  assert.equal(await page.locator('#site-results mark').first().textContent(), '--api-keys-file');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.waitForURL(/docs\/\w+.*\.html/);
  await page.locator('#site-query').fill('xyzzy plugh');
  await page.locator('#site-results', { hasText: 'Nothing found' }).waitFor();
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('#site-results').isVisible(), false);
});

test('what people ask leads where it is answered', async () => {
  await page.goto(`${server.url}/docs/`);
  for (const [query, ...found] of [
    ['how do I set a default temperature?', 'sampling', 'temperature'], ['temperature', 'Request fields'], ['windows', 'Installing'], ['max_tokens', 'Request fields'],
    ['--api-keys-file', 'serv', 'command'], ['uninstall', 'Uninstalling'], ['upgrade', 'Upgrading'], ['gpu', 'Installing'], ['best of n', 'test-time'],
  ]) {
    await page.locator('#site-query').fill(query);
    await page.locator('#site-results a').first().waitFor();
    const first = (await page.locator('#site-results li').allTextContents()).slice(0, 3).join('\n');
    assert.ok(found.some((name) => first.toLowerCase().includes(name.toLowerCase())), `${query} finds ${first}`);
  }
});

test('documents fit a phone, and the contents are one tap away', async () => {
  await page.setViewportSize(phone);
  await page.emulateMedia({ colorScheme: 'dark' });
  for (const name of ['', 'api.html', 'performance/kernels.html', 'adr/']) {
    await page.goto(`${server.url}/docs/${name}`);
    await fitsItsWidth();
  }
  await shot('docs-phone');
  await page.getByRole('link', { name: 'Contents' }).click();
  await page.locator('#site-contents').getByRole('link', { name: 'Serving others' }).click();
  await page.waitForURL('**/docs/serving.html');
});
