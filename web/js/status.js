// The notice above the conversation when the server is not ready.

import { byId, el } from './dom.js';
import { t } from './words.js';

/** @param {import('./server.js').State} state */
export function showStatus({ name, message, loading }) {
  const box = byId('status');
  box.hidden = name === 'ready' || name === 'unknown';
  box.className = `status ${name}`;
  if (name === 'loading' && loading.length) {
    // The bars stay in place while they grow.
    if (box.querySelectorAll('progress').length !== loading.length) {
      box.replaceChildren(el('p', {}, loading.length === 1 ? t`The server is loading its model.` : t`The server is loading ${loading.length} models.`),
        el('ul', { 'aria-live': 'off' }, ...loading.map(() => el('li', {}, el('span', { class: 'name' }), el('progress', { max: 1 }), el('span', { class: 'share' })))),
        el('p', { class: 'hint' }, t`The page continues by itself when the server is ready.`));
    }
    box.querySelectorAll('li').forEach((/** @type {HTMLElement} */ row, /** @type {number} */ i) => {
      const { model, progress } = loading[i];
      const [label, bar, share] = /** @type {any} */ (row.children);
      label.textContent = model;
      bar.setAttribute('aria-label', t`Loading ${model}`);
      if (progress === null) bar.removeAttribute('value');
      else bar.value = progress;
      share.textContent = progress === null ? '' : `${Math.floor(100 * progress)} %`;
    });
  } else if (name === 'trouble' || name === 'loading') {
    box.replaceChildren(el('p', {}, message || t`The server is not ready.`));
  } else if (name === 'lost') {
    box.replaceChildren(el('p', {}, t`The server cannot be reached. Trying again …`));
  }
}
