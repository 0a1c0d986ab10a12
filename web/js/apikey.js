// The form that asks for an API key when the server wants one.

import { key, setKey } from './api.js';
import { byId } from './dom.js';
import { kept } from './store.js';
import { t } from './words.js';

/**
 * Prepares the form, and the button of the settings that forgets the key.
 * @param {() => void} used is called with every new key
 * @returns {(refusal: string) => void} asks for a key; `refusal`: why, as the server words it
 */
export function openKey(used) {
  const form = byId('key-form');
  const reason = byId('key-reason');
  const forget = byId('forget-key');
  const show = () => { forget.hidden = !key(); };
  /** Nothing can be asked before. @param {boolean} asks */
  const ask = (asks) => {
    form.hidden = !asks;
    byId('composer').inert = asks;
  };
  form.addEventListener('submit', (/** @type {Event} */ event) => {
    event.preventDefault();
    setKey(byId('key').value, byId('keep-key').checked);
    byId('key').value = '';
    ask(false);
    show();
    used();
  });
  forget.addEventListener('click', () => {
    setKey('');
    show();
    used();
  });
  byId('keep-key').checked = Boolean(kept('key', ''));
  show();
  return (refusal) => {
    // Who has given no key has made no mistake.
    const mistaken = Boolean(key());
    form.classList.toggle('wrong', mistaken);
    reason.textContent = mistaken ? refusal : t`This server answers those who have a key. Whoever runs it gives them out.`;
    ask(true);
    byId('key').focus();
  };
}
