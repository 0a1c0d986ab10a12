// The page: connects the conversation, the composer and the panels.

import { ApiError, models, setKey } from './js/api.js';
import { openAttachments } from './js/attach.js';
import { Chat } from './js/chat.js';
import { compared, openCompare } from './js/compare.js';
import { byId } from './js/dom.js';
import { openEngine } from './js/engine.js';
import { offers } from './js/offer.js';
import { keepOffline } from './js/offline.js';
import { openPareto } from './js/pareto.js';
import { Server } from './js/server.js';
import { choose, current, nameOf, openSettings, plan, several, showModels, singly, way } from './js/settings.js';
import { showStatus } from './js/status.js';
import { welcome } from './js/welcome.js';

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

/** The models are known, so that the welcome can be shown. */
let known = false;

const chat = new Chat(byId('conversation'), {
  plan,
  way,
  nameOf,
  model: () => (several() ? current().id : undefined),
  whyLimited(read) {
    const { maxTurns } = current();
    const why = maxTurns && read >= maxTurns
      ? `This model reads the last ${maxTurns === 1 ? 'question' : `${maxTurns} questions`} of a conversation.`
      : 'The conversation no longer fits into the model\'s context.';
    return `${why} What is above is left out.`;
  },
  busy(busy) {
    const focused = document.activeElement === stop || document.activeElement === send;
    send.hidden = busy;
    stop.hidden = !busy;
    if (focused) (busy ? stop : question).focus();
  },
  changed(whole) {
    greet();
    if (!following) return;
    requestAnimationFrame(() => requestAnimationFrame(() => {
      scroll.scrollTop = whole ? whole.offsetTop - scroll.offsetTop - 12 : scroll.scrollHeight;
    }));
  },
  announce(text) { byId('announce').textContent = text; },
  needKey: askForKey,
  comesBack: async () => ['loading', 'lost'].includes((await server.check()).name),
  renew,
});

function greet() {
  byId('welcome').hidden = !known || !chat.empty;
}

function renew() {
  chat.clear();
  greet();
  question.focus();
}

/** @param {string} text @param {import('./js/settings.js').Way[]} rivals that it is asked in too */
function ask(text, rivals) {
  following = true;
  chat.ask(text, rivals);
}

/** @param {import('./js/welcome.js').Example} example */
function show(example) {
  choose(example);
  ask(example.text, example.compare ? [singly] : compared());
}

// The composer.
const attached = openAttachments();
byId('composer').addEventListener('submit', (/** @type {Event} */ event) => {
  event.preventDefault();
  const text = question.value.trim();
  if (!text && !attached.any() || chat.busy || chat.waiting) return;
  question.value = '';
  grow();
  ask(attached.with(text), compared());
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
byId('new').addEventListener('click', renew);

// Keys.
/** @param {string} reason as the server words it */
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

/** Fills the model menu. @returns {Promise<boolean>} whether it could */
async function loadModels() {
  try {
    showModels(offers(await models()));
    known = true;
    welcome(current(), show);
    showPareto();
    greet();
    return true;
  } catch (err) {
    if (err instanceof ApiError && err.status === 401) askForKey(err.message);
    else if (server.ready) setTimeout(loadModels, 2000);
    return false;
  }
}

openSettings(() => {
  welcome(current(), show);
  showPareto();
});
openCompare();
const showPareto = openPareto(() => current().id, choose);
chat.restore();
const server = new Server(async (now, before) => {
  showStatus(now);
  // A server may answer for some models while it loads others, or when one has failed.
  const loaded = now.loading.length !== before.loading.length;
  if (now.name === before.name && !loaded || now.name === 'lost') return;
  if (await loadModels() && chat.waiting) chat.again();
});
openEngine(() => server.check());
if (!touch) question.focus();
keepOffline();
