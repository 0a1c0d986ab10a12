// The page: connects the conversation, the composer and the panels.

import { ApiError, models } from './js/api.js';
import { openKey } from './js/apikey.js';
import { openAttachments } from './js/attach.js';
import { Chats } from './js/chats.js';
import { compared, openCompare } from './js/compare.js';
import { byId } from './js/dom.js';
import { openEngine } from './js/engine.js';
import { notice, openHistory, refresh, searchHistory, toggleHistory } from './js/history.js';
import { offers } from './js/offer.js';
import { keepOffline } from './js/offline.js';
import { hidePanels } from './js/panels.js';
import { Server } from './js/server.js';
import { choose, current, judge, nameOf, openSettings, plan, several, showModels, singly, valid, way } from './js/settings.js';
import { openShortcuts } from './js/shortcuts.js';
import { showStatus } from './js/status.js';
import { welcome } from './js/welcome.js';
import { t, translate } from './js/words.js';

translate();

/** @type {HTMLTextAreaElement} */ const question = byId('question');
/** @type {HTMLButtonElement} */ const send = byId('send');
/** @type {HTMLButtonElement} */ const stop = byId('stop');
/** @type {HTMLElement} */ const scroll = byId('scroll');
const touch = matchMedia('(pointer: coarse)').matches;

/** The view follows the answer unless the person has scrolled away from it. */
let following = true;
scroll.addEventListener('scroll', () => {
  following = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 80;
});

/** The models are known, so that the welcome can be shown. */
let known = false;

const chats = new Chats(byId('conversation'), {
  plan,
  way,
  nameOf,
  judge,
  model: () => (several() ? current().id : undefined),
  whyLimited(read) {
    const { maxTurns } = current();
    const why = maxTurns && read >= maxTurns
      ? maxTurns === 1 ? t`This model reads the last question of a conversation.` : t`This model reads the last ${maxTurns} questions of a conversation.`
      : t`The conversation no longer fits into the model's context.`;
    return [why, t`What is above is left out.`].join(' ');
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
  needKey: (reason) => askForKey(reason),
  comesBack: async () => ['loading', 'lost'].includes((await server.check()).name),
  renew,
  saved(kept) {
    chats.kept();
    if (!kept && chats.current.last?.state !== 'asking') notice(t`This conversation could not be kept: the browser has no room, or keeps nothing.`);
  },
}, () => {
  following = true;
  greet();
  refresh();
  scroll.scrollTop = chats.current.empty ? 0 : scroll.scrollHeight;
});

/** An empty conversation is the first screen: the question in the middle. */
function greet() {
  const { empty } = chats.current;
  byId('stage').classList.toggle('fresh', empty);
  byId('welcome').hidden = byId('examples').hidden = !known || !empty;
}

greet();

function renew() {
  chats.renew();
  question.focus();
}

/** @param {string} text @param {import('./js/settings.js').Way[]} rivals that it is asked in too */
function ask(text, rivals) {
  following = true;
  hidePanels();
  chats.current.ask(text, rivals).then(look);
  look();
}

/** @param {import('./js/welcome.js').Example} example */
function show(example) {
  choose(example);
  if (valid()) ask(example.text, example.compare ? [singly] : compared());
}

// The composer.
const attached = openAttachments();
byId('composer').addEventListener('submit', (/** @type {Event} */ event) => {
  event.preventDefault();
  const text = question.value.trim();
  const { busy, waiting } = chats.current;
  if (!text && !attached.any() || busy || waiting || !valid()) return;
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
  question.style.blockSize = '';
  if (question.value) question.style.blockSize = `${question.scrollHeight}px`;
}
stop.addEventListener('click', () => chats.current.stop());
document.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || event.defaultPrevented || document.querySelector('dialog:modal')) return;
  if (chats.current.busy) chats.current.stop();
});
byId('new').addEventListener('click', renew);
byId('show-plan').addEventListener('click', () => {
  const shows = byId('plan').classList.toggle('shown');
  byId('show-plan').setAttribute('aria-expanded', String(shows));
  if (shows) byId('method').focus();
});

/** Presses a button of the last exchange. @param {string} which */
const press = (which) => /** @type {HTMLElement | null} */ (byId('conversation').querySelector(`.exchange:last-child ${which}:not([hidden])`))?.click();
openShortcuts([
  { key: 'Enter', words: t`Send the question; with Shift a new line` },
  { key: 'Escape', words: t`Stop the answer` },
  { key: 'o', control: true, shift: true, words: t`New conversation`, run: renew },
  { key: 'k', control: true, words: t`Search conversations`, run: searchHistory },
  { key: 's', control: true, shift: true, words: t`Show or hide conversations`, run: toggleHistory },
  { key: 'n', words: t`New conversation`, run: renew },
  { key: '/', words: t`Write a question`, run: () => question.focus() },
  { key: 'e', words: t`Edit the last question`, run: () => press('.edit') },
  { key: 'r', words: t`Ask it again`, run: () => press('.again') },
  { key: 'c', words: t`Copy the last answer`, run: () => press('.copy') },
]);

const askForKey = openKey(async () => {
  if (!await loadModels()) return;
  question.focus();
  if (chats.current.failed) chats.current.again();
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

/** Looks where the models are: those that are asked are loaded, and others leave. */
async function look() {
  try {
    showModels(offers(await models()));
  } catch {
    return; // the server is watched elsewhere
  }
  clearTimeout(looking);
  if (chats.current.busy && current().state !== 'loaded' || current().state === 'loading') looking = setTimeout(look, 1000);
}
/** @type {number | undefined} */
let looking;
byId('model').addEventListener('focus', look);

openSettings(() => {
  welcome(current(), show);
  showPareto();
});
openCompare();
/** What the model reaches, once somebody looks. */
async function showPareto() {
  if (byId('pareto').open) (await import('./js/pareto.js')).show(current().id, choose);
}
byId('pareto').addEventListener('toggle', showPareto);
openHistory(chats);
chats.restore();
const server = new Server(async (now, before) => {
  showStatus(now);
  // A server may answer for some models while it loads others, or when one has failed.
  const loaded = now.loading.length !== before.loading.length;
  if (now.name === before.name && !loaded || now.name === 'lost') return;
  if (await loadModels()) chats.resume();
});
openEngine(() => server.check());
if (!touch) question.focus();
keepOffline();
