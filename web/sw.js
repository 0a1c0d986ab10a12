// Keeps the page's files, so that it opens without the server, and then says that there is
// none. The server puts `version` and `files` before this text, so a new binary has a new
// worker. The server's API is never kept: this worker does not even see its answers.

const cacheName = `lutra ${registration.scope} ${version}`;
const pageAddress = registration.scope;

addEventListener('install', (event) => {
  event.waitUntil((async () => {
    const cache = await caches.open(cacheName);
    await Promise.all([
      cache.add(new Request(pageAddress, { cache: 'no-cache' })),
      cache.addAll(files.map((name) => new URL(name, location.href).href)), // of this version: the browser may have them
    ]);
    await skipWaiting(); // a page that is open has other addresses, which this version leaves alone
  })());
});

addEventListener('activate', (event) => {
  event.waitUntil((async () => {
    const others = (await caches.keys()).filter((name) => name.startsWith(`lutra ${registration.scope} `) && name !== cacheName);
    await Promise.all(others.map((name) => caches.delete(name)));
    await clients.claim();
  })());
});

addEventListener('fetch', (event) => {
  const { request } = event;
  if (request.method !== 'GET') return;
  if (request.mode === 'navigate') {
    if (request.url.split(/[?#]/)[0] === pageAddress) event.respondWith(page(request));
  } else if (request.url.startsWith(new URL(`${version}/`, location.href).href)) {
    event.respondWith(kept(request));
  }
});

/** The page as the server has it now; as it was where there is no server, or only its proxy. */
async function page(request) {
  try {
    const answer = await fetch(request);
    if (answer.status < 500) return answer;
  } catch { /* there is none */ }
  return (await (await caches.open(cacheName)).match(pageAddress)) ?? Response.error();
}

async function kept(request) {
  return (await (await caches.open(cacheName)).match(request.url)) ?? fetch(request);
}
