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

// Questions, and what stands in one of the first three places; the first place alone where `first` says so.
const questions = [
  ['how do I set a default temperature?', 'models.html#sampling'], ['uninstall', 'install.html#uninstalling', 'first'],
  ['how do I use Claude Code', 'clients.html#claude-code', 'first'], ['change the port', 'serving.html'], ['windows', 'install.html'],
  ['how much memory do I need', 'models.html#memory', 'first'], ['limit requests per minute', 'serving.html#keys', 'first'],
  ['how do I download a model', 'models.html#downloads'], ['json schema', 'api.html#schemas'], ['structured output', 'api.html#structured-answers'],
  ['tools function calling', 'api.html#tools', 'first'], ['run behind nginx', 'serving.html#behind-a-proxy'], ['docker', 'serving.html#docker', 'first'],
  ['prometheus metrics', 'metrics.html', 'first'], ['lora adapters', 'models.html#adapters', 'first'], ['quantize a model', 'models.html#quantising'],
  ['api key', 'serving.html#keys'], ['embeddings', 'clients.html#vectors-and-rankings'], ['how do I stop the server', 'serving.html#stopping'],
  ['update lutra', 'install.html#upgrading', 'first'], ['ollama client', 'clients.html#ollama'], ['thinking off', 'api.html#reasoning'],
  ['best of n', 'test-time-scaling'], ['gpu', 'install.html'], ['max_tokens', 'api.html#request-fields'], ['--api-keys-file', 'serving.html#keys', 'first'],
];

test('what people ask leads where it is answered', async () => {
  await page.goto(`${server.url}/docs/`);
  for (const [query, found, place] of questions) {
    await page.locator('#site-query').fill(query);
    await page.locator('#site-results a').first().waitFor();
    const links = await page.locator('#site-results a').evaluateAll((all) => all.map((link) => link.getAttribute('href')));
    assert.ok(links.slice(0, place === 'first' ? 1 : 3).some((link) => link.includes(found)), `${query} finds ${links.slice(0, 3)}`);
  }
});

test('documents fit a phone, and the contents are one tap away', async () => {
  await page.setViewportSize(phone);
  await page.emulateMedia({ colorScheme: 'dark' });
  for (const name of ['', 'api.html', 'performance.html', 'adr/']) {
    await page.goto(`${server.url}/docs/${name}`);
    await fitsItsWidth();
  }
  await shot('docs-phone');
  await page.getByRole('link', { name: 'Contents' }).click();
  await page.locator('#site-contents').getByRole('link', { name: 'Serving others' }).click();
  await page.waitForURL('**/docs/serving.html');
});
