// The service worker that keeps the page's files. Browsers allow one by HTTPS and on the
// same machine only; elsewhere the page works without.

export function keepOffline() {
  if (!navigator.serviceWorker || !isSecureContext) return;
  const worker = new URL('web/sw.js', document.baseURI).href;
  // @ts-ignore not all browsers have Trusted Types
  const address = window.trustedTypes ? trustedTypes.createPolicy('worker', { createScriptURL: () => worker }).createScriptURL('') : worker;
  const register = () => navigator.serviceWorker.register(address, { scope: new URL('./', document.baseURI).pathname, updateViaCache: 'none' })
    .catch(() => { /* a private window, or a browser that is told not to */ });
  if (document.readyState === 'complete') register();
  else addEventListener('load', register, { once: true }); // what it fetches comes after what is seen
}
