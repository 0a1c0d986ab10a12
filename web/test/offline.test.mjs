// The page as an application: what it loads at first, and that it opens without the server.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { test } from 'node:test';
import { ask, complaints, browse, ended, lastAnswer, open, page, shot } from './browser.mjs';
import { startServer } from './server.mjs';

/** What the first load may take, compressed. */
const mostBytes = 150 * 1024, mostRequests = 80;

let server;

browse(async () => {
  server = await startServer();
  return [server.stop];
}, { offline: true });

/** A proxy that serves a server below a path, as long as it is there. It may change what the server answers. */
async function startProxy(prefix, to, change = (path, body) => body) {
  let there = true;
  const seen = [];
  const proxy = createServer((req, res) => {
    if (!there) return void res.destroy();
    seen.push(req.url);
    if (!req.url.startsWith(prefix)) return void res.writeHead(404).end();
    const path = req.url.slice(prefix.length - 1);
    const { 'accept-encoding': _, ...headers } = req.headers;
    const ask = request(to.url + path, { method: req.method, headers: { ...headers, host: new URL(to.url).host } }, async (answer) => {
      const pieces = [];
      for await (const piece of answer) pieces.push(piece);
      const body = change(path, Buffer.concat(pieces));
      const { 'content-length': __, etag: ___, ...kept } = answer.headers;
      res.writeHead(answer.statusCode, kept).end(body);
    });
    req.pipe(ask);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  return {
    url: `http://127.0.0.1:${proxy.address().port}${prefix}`,
    seen,
    change: (now) => { change = now; },
    there: (now) => { there = now; proxy.closeAllConnections(); },
    async stop() { proxy.closeAllConnections(); await new Promise((done) => proxy.close(done)); },
  };
}

const controlled = () => page.evaluate(() => navigator.serviceWorker.ready.then(() => navigator.serviceWorker.controller
  || new Promise((done) => navigator.serviceWorker.addEventListener('controllerchange', done, { once: true }))).then(() => true));
const caches = () => page.evaluate(async () => Object.fromEntries(await Promise.all((await window.caches.keys()).map(async (name) => [name, (await (await window.caches.open(name)).keys()).map((r) => new URL(r.url).pathname)]))));

test('the first load is small', async () => {
  const session = await page.context().newCDPSession(page);
  await session.send('Network.enable');
  const loaded = new Map();
  session.on('Network.responseReceived', ({ requestId, response }) => loaded.set(requestId, { url: response.url, bytes: 0, encoding: response.headers['Content-Encoding'] }));
  session.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => { if (loaded.has(requestId)) loaded.get(requestId).bytes = encodedDataLength; });
  await page.addInitScript(() => { delete Navigator.prototype.serviceWorker; }); // which fetches the rest later
  await open(server);
  const files = [...loaded.values()].filter(({ url }) => url === `${server.url}/` || url.includes('/web/'));
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  console.log(`first load: ${bytes} bytes in ${files.length} requests`);
  assert.ok(bytes > 20_000 && bytes < mostBytes, `${bytes} bytes`);
  assert.ok(files.length > 20 && files.length < mostRequests, `${files.length} requests`);
  assert.ok(files.every(({ url }) => !/temml|highlight/.test(url)), 'what few answers need comes with them');
  assert.deepEqual(files.filter(({ url, encoding, bytes }) => encoding !== 'gzip' && bytes > 2500).map(({ url }) => url), [], 'compressed');
});

test('a browser asks for a file once, and for the page again', async () => {
  await page.addInitScript(() => { delete Navigator.prototype.serviceWorker; });
  await open(server);
  await page.goto('about:blank');
  await open(server);
  const fetched = await page.evaluate(() => performance.getEntriesByType('resource').filter((e) => /\/web\/[0-9a-f]{16}\//.test(e.name) && e.transferSize > 0).map((e) => e.name));
  assert.deepEqual(fetched, []);
});

test('it opens without the server below a path, shows the conversation, and says that there is none', async () => {
  const proxy = await startProxy('/some/where/', server);
  try {
    await open(proxy);
    await controlled();
    await ask('What is 12 * 7?');
    await ended();
    assert.match(await lastAnswer(), /Answer: 84$/);
    const kept = await caches();
    assert.equal(Object.keys(kept).length, 1);
    assert.deepEqual(Object.values(kept).flat().filter((path) => path !== '/some/where/' && !/^\/some\/where\/web\/[0-9a-f]{16}\//.test(path)), [], 'no answer of the API');
    assert.ok(Object.values(kept).flat().some((path) => path.endsWith('temml.min.js')));
    proxy.there(false);
    await page.locator('#status.lost').waitFor();
    await page.reload();
    await page.locator('#status.lost', { hasText: 'cannot be reached' }).waitFor();
    assert.match(await lastAnswer(), /Answer: 84$/, 'the conversation is there');
    await shot('offline');
    // What the page loads late is there as well.
    assert.equal(await page.evaluate(async () => {
      const element = document.createElement('div');
      document.querySelector('main').append(element);
      const { Markdown } = await import(new URL('js/markdown.js', document.querySelector('script[type=module]').src).href);
      new Markdown(element).update('$x^2$');
      while (!element.querySelector('math')) await new Promise(requestAnimationFrame);
      return element.querySelectorAll('msup').length;
    }), 1);
    proxy.there(true);
    await page.locator('#status').waitFor({ state: 'hidden' });
    await page.locator('#model:enabled').waitFor();
  } finally {
    await page.close(); // which would go on asking
    await proxy.stop();
  }
  assert.ok(complaints.every((c) => /Failed to load|ERR_/.test(c)), complaints.join('\n'));
  complaints.length = 0;
});

test('a new version replaces the old one, and a page that is open goes on', async () => {
  const proxy = await startProxy('/', server);
  try {
    await open(proxy);
    await controlled();
    const old = Object.keys(await caches());
    // The same server with another version in all that it says of itself.
    const version = /([0-9a-f]{16})$/.exec(old[0])[1], next = version.replace(/./g, (c) => (c === 'f' ? '0' : 'f'));
    proxy.change((path, body) => (/^\/$|sw\.js$/.test(path) ? Buffer.from(String(body).replaceAll(version, next)) : body));
    await page.evaluate(async () => { await (await navigator.serviceWorker.ready).update(); });
    await page.waitForFunction(async (old) => { const names = await caches.keys(); return names.length === 1 && names[0] !== old; }, old[0]);
    // The page of the old version may still load a part of it.
    assert.equal(await page.evaluate(async (version) => typeof (await import(`/web/${version}/js/clipboard.js`)).copy, version), 'function');
    await page.reload();
    await page.locator('#model:enabled').waitFor();
    assert.ok((await page.locator('script[type=module]').getAttribute('src')).includes(next));
  } finally {
    await page.close();
    await proxy.stop();
  }
  complaints.length = 0;
});

test('it can be installed', async () => {
  await open(server);
  const session = await page.context().newCDPSession(page);
  const { url, errors, data } = await session.send('Page.getAppManifest');
  assert.equal(url, `${server.url}/web/manifest.webmanifest`);
  assert.deepEqual(errors, []);
  const manifest = JSON.parse(data);
  for (const key of ['start_url', 'scope']) assert.equal(new URL(manifest[key], url).href, `${server.url}/`);
  for (const { src, sizes } of manifest.icons) {
    const size = await page.evaluate((src) => new Promise((done, failed) => {
      const image = new Image();
      image.onload = () => done(`${image.naturalWidth}x${image.naturalHeight}`);
      image.onerror = failed;
      image.src = src;
    }), new URL(src, url).href);
    if (sizes !== 'any') assert.equal(size, sizes, src);
  }
  const { installabilityErrors } = await session.send('Page.getInstallabilityErrors');
  assert.deepEqual(installabilityErrors.filter(({ errorId }) => errorId !== 'in-incognito'), []);
});
