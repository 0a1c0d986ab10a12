// The page: connects the conversation, the composer and the panels.

import { ApiError, models, setKey } from './js/api.js';
import { Chat } from './js/chat.js';
import { byId, el } from './js/dom.js';
import { openEngine } from './js/engine.js';
import { examples } from './js/examples.js';
import { openSettings, plan, showModels } from './js/settings.js';

/** @type {HTMLTextAreaElement} */ const question = byId('question');
/** @type {HTMLButtonElement} */ const send = byId('send');
/** @type {HTMLButtonElement} */ const stop = byId('stop');
/** @type {HTMLElement} */ const scroll = byId('scroll');
/** @type {HTMLFormElement} */ const keyForm = byId('key-form');
const touch = matchMedia('(pointer: coarse)').matches;

/** The view follows the answer unless the person has scrolled away from it. */
let following = true;
scroll.addEventListener('scroll', () => {
  following = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 80;
});

const chat = new Chat(byId('conversation'), {
  plan,
  busy(busy) {
    const focused = document.activeElement === stop || document.activeElement === send;
    send.hidden = busy;
    stop.hidden = !busy;
    if (focused) (busy ? stop : question).focus();
  },
  changed() {
    byId('welcome').hidden = !chat.empty;
    if (following) requestAnimationFrame(() => requestAnimationFrame(() => { scroll.scrollTop = scroll.scrollHeight; }));
  },
  announce(text) { byId('announce').textContent = text; },
  needKey: askForKey,
});
chat.restore();
byId('welcome').hidden = !chat.empty;

/** @param {string} text */
function ask(text) {
  following = true;
  chat.ask(text);
}

// The composer.
byId('composer').addEventListener('submit', (/** @type {Event} */ event) => {
  event.preventDefault();
  const text = question.value.trim();
  if (!text || chat.busy) return;
  question.value = '';
  grow();
  ask(text);
});
question.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  byId('composer').requestSubmit();
});
question.addEventListener('input', grow);
function grow() {
  question.style.blockSize = 'auto';
  question.style.blockSize = `${question.scrollHeight}px`;
}
stop.addEventListener('click', () => chat.stop());
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && chat.busy) chat.stop();
});
byId('new').addEventListener('click', () => {
  chat.clear();
  byId('welcome').hidden = false;
  question.focus();
});
byId('examples').append(...examples.map(({ label, text }) =>
  el('li', {}, el('button', { type: 'button', on: { click: () => ask(text) } }, el('small', {}, label), text))));

// Keys.
/** @param {string} reason in the server's words */
function askForKey(reason) {
  byId('key-reason').textContent = reason;
  keyForm.hidden = false;
  byId('key').focus();
}
keyForm.addEventListener('submit', async (event) => {
  event.preventDefault();
  setKey(byId('key').value);
  byId('key').value = '';
  keyForm.hidden = true;
  if (await loadModels()) {
    question.focus();
    if (chat.failed) chat.again();
  }
});

/** Fills the model menu; while the server loads them, tries again. @returns {Promise<boolean>} whether it is filled */
async function loadModels() {
  try {
    showModels(await models());
    return true;
  } catch (err) {
    if (err instanceof ApiError && err.status === 401) askForKey(err.message);
    else setTimeout(loadModels, 2000);
    return false;
  }
}

openSettings();
openEngine();
loadModels();
if (!touch) question.focus();
