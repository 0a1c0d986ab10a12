// One conversation: its exchanges, the requests to the server, and the answers that stream
// back. It goes on while another one is shown.

import { ApiError, chat, droppedMessages } from './api.js';
import { mostExchanges, newId, newestBelow, now, pathTo, promoted, siblings, taken, titleOf } from './conversation.js';
import { leaving } from './leaving.js';
import * as library from './library.js';
import { receiver } from './receive.js';
import { question, rest } from './request.js';
import { Thread } from './thread.js';
import { t } from './words.js';

/** @typedef {import('./conversation.js').Head} Head */
/** @typedef {import('./exchange.js').Exchange} Exchange */
/** @typedef {import('./settings.js').Way} Way */

/**
 * What the page does for the conversation that is shown. Only `plan`, `way`, `nameOf`, `judge`, `model`, `whyLimited` and
 * `comesBack` are asked of one that is not.
 * @typedef {object} Hooks
 * @property {(way: Way) => Omit<import('./api.js').ChatRequest, 'messages'> & { system: string }} plan what the person has set, answered in a way
 * @property {() => Way} way that is set
 * @property {(way: Way) => string} nameOf
 * @property {(way: Way) => string} judge of a way's candidates
 * @property {() => string | undefined} model that answers, where there are several
 * @property {(read: number) => string} whyLimited says why the model reads no more than so many questions, this one included
 * @property {(busy: boolean) => void} busy
 * @property {(whole?: HTMLElement) => void} changed the page has grown; `whole`: a complete answer, to be seen from its beginning
 * @property {(text: string) => void} announce to screen readers
 * @property {(reason: string) => void} needKey the server wants another key
 * @property {() => Promise<boolean>} comesBack the server does not answer now; true: it will
 * @property {() => void} renew the person wants a new conversation
 * @property {(kept: boolean) => void} saved the conversation, or there is no room for it
 */

/** An answer is continued without a search. @type {Way} */
const single = { method: 'none', n: 1, width: 1, verifier: '' };
/** Milliseconds between two times that an unfinished answer is kept. */
const pace = 1000;

export class Chat {
  /** @type {Exchange[]} in order of their beginning */
  #all;
  /** @type {Exchange[]} that are shown */
  #path = [];
  /** @type {AbortController | null} */
  #running = null;
  /** What is being answered. @type {Exchange | null} */
  #answering = null;
  #hooks;
  #kept = 0;
  #discarded = false;
  /** Tools whose calls the person has allowed in this conversation. @type {Set<string>} */
  #allowed = new Set();
  #thread;

  /** @param {Head} head @param {Exchange[]} exchanges @param {Hooks} hooks */
  constructor(head, exchanges, hooks) {
    this.head = head;
    this.#all = exchanges;
    this.#path = pathTo(exchanges, head.at);
    this.#hooks = hooks;
    this.#thread = new Thread(this, hooks.renew);
  }

  get empty() { return this.#path.length === 0; }
  get busy() { return this.#running !== null; }
  get failed() { return this.last?.state === 'failed'; }
  /** A question waits for the server. */
  get waiting() { return this.last?.state === 'waiting'; }
  get last() { return this.#path.at(-1); }

  /** Shows the conversation in a list, or nowhere. @param {HTMLElement | null} list */
  show(list) {
    this.#thread.list = list;
    this.#draw();
    this.#seen(({ busy }) => busy(this.busy));
  }

  /** @param {(hooks: Hooks) => void} tell the page, if it shows this conversation */
  #seen(tell) {
    if (this.#thread.list) tell(this.#hooks);
  }

  /** Takes over what other tabs have changed. @param {Head} head @param {Exchange[]} exchanges */
  refresh(head, exchanges) {
    for (const fresh of exchanges) {
      const known = this.#all.find((e) => e.id === fresh.id);
      if (known && known === this.#answering) continue;
      if (!known) this.#all.push(fresh);
      else if (known.state !== fresh.state || known.answer.length !== fresh.answer.length) Object.assign(known, fresh);
      else continue;
      this.#thread.view(fresh.id)?.render();
    }
    this.#all.sort((a, b) => a.created - b.created);
    const theirs = pathTo(this.#all, head.at);
    const follows = !this.last || theirs.includes(this.last); // else the other tab is in another branch
    if (follows) this.#path = theirs;
    this.head = { ...head, at: follows ? head.at : this.head.at };
    this.#draw();
  }

  /** @param {string} question @param {Way[]} [ways] in which it is answered too, for comparison @param {string | null} [parent] the exchange that it follows; otherwise the last */
  async ask(question, ways = [], parent = this.last?.id ?? null) {
    if (this.busy || this.#full()) return;
    const rivals = ways.map((way) => ({ name: this.#hooks.nameOf(way), way, answer: '' }));
    await this.#run(this.#add({ id: newId(), conversation: this.head.id, parent, created: now(), question, answer: '', state: 'asking', rivals }));
  }

  /** Asks a question again, as things are set now: beside the answer that there is. @param {Exchange} [exchange] */
  async again(exchange = this.last) {
    if (!exchange || this.busy) return;
    if (exchange.answer || exchange.reasoning || exchange.search || exchange.rounds?.length || exchange !== this.last) {
      await this.ask(exchange.question, exchange.rivals?.map(({ way }) => way), exchange.parent);
      return;
    }
    const fresh = { answer: '', reasoning: '', finish: undefined, search: null, stats: undefined, rounds: undefined };
    Object.assign(exchange, fresh, { state: 'asking', needsKey: false, error: undefined, unread: undefined });
    exchange.rivals = exchange.rivals?.map((rival) => ({ ...rival, ...fresh }));
    await this.#run(exchange);
  }

  /** Goes on with an answer that has ended too early. @param {Exchange} exchange */
  async resume(exchange) {
    if (this.busy) return;
    Object.assign(exchange, { state: 'asking', error: undefined, finish: undefined, needsKey: false });
    await this.#run(exchange, true);
  }

  /** Makes a candidate the answer: one more branch. @param {Exchange} exchange @param {import('./search.js').Candidate} candidate */
  promote(exchange, candidate) {
    this.#choose(promoted(exchange, candidate), t`Candidate ${candidate.index + 1} is the answer.`);
  }

  /** Makes the answer of a column the conversation's: one more branch. @param {Exchange} exchange @param {import('./exchange.js').Rival} rival */
  take(exchange, rival) {
    this.#choose(taken(exchange, rival), t`The answer is that of ${rival.name}.`);
  }

  /** @param {Exchange} branch @param {string} words that say so */
  #choose(branch, words) {
    if (this.busy || this.#full()) return;
    this.#hooks.announce(words);
    this.#keep(this.#add(branch));
  }

  /** Shows the branch beside an exchange. @param {Exchange} exchange @param {number} by -1: the one before */
  turn(exchange, by) {
    const beside = siblings(this.#all, exchange);
    const to = beside[beside.indexOf(exchange) + by];
    if (!to || this.busy) return;
    this.head.at = newestBelow(this.#all, to).id;
    this.#path = pathTo(this.#all, this.head.at);
    this.#draw();
    this.#thread.view(to.id)?.focusBranch(by);
    this.#keep();
  }

  stop() {
    this.#running?.abort();
  }

  /** Ends it: it has been deleted. */
  discard() {
    this.#discarded = true;
    this.stop();
  }

  #full() {
    if (this.#all.length < mostExchanges) return false;
    this.#seen(({ announce }) => announce(t`This conversation is full. Begin a new one.`));
    return true;
  }

  /** @param {Exchange} exchange */
  #add(exchange) {
    this.head.title ||= titleOf(exchange.question);
    this.head.at = exchange.id;
    this.#all.push(exchange);
    this.#path = pathTo(this.#all, exchange.id);
    this.#draw();
    this.#seen(({ changed }) => changed());
    return exchange;
  }

  /** @param {Exchange} exchange */
  #pathTo(exchange) { return pathTo(this.#all, exchange.id); }

  #draw() {
    this.#thread.draw(this.#path, this.#all, this.busy);
  }

  /** Answers an exchange, or goes on with its answer. @param {Exchange} exchange @param {boolean} [goesOn] */
  async #run(exchange, goesOn = false) {
    const running = (this.#running = new AbortController());
    this.#answering = exchange;
    this.#draw();
    this.#seen(({ busy, announce }) => { busy(true); announce(t`Answering.`); });
    if (!goesOn) {
      exchange.model = this.#hooks.model();
      exchange.name = this.#hooks.nameOf(this.#hooks.way());
    }
    this.#keep(exchange);
    try {
      const plan = this.#hooks.plan(goesOn ? single : this.#hooks.way());
      if (!goesOn) exchange.schema = plan.response_format && JSON.stringify(plan.response_format.json_schema.schema);
      // One after the other, so that none takes another's time.
      if (!goesOn) for (const rival of exchange.rivals ?? []) await this.#receiveRival(rival, exchange, running.signal);
      if (plan.test_time_scaling?.method !== 'none') await import('./searchview.js').catch(() => {}); // a search is drawn from its first chunk on
      const before = exchange.rounds?.length ?? 0;
      await this.#receive(exchange, (goesOn ? rest : question)(this.#pathTo(exchange), plan), running.signal);
      if ((exchange.rounds?.length ?? 0) > before) {
        const { useTools } = await import('./toolrun.js');
        await useTools(exchange, plan.tools ?? [], this.#allowed, running.signal, () => this.#grown(exchange), () => this.#receive(exchange, question(this.#pathTo(exchange), plan), running.signal));
      }
      exchange.state = 'done';
      this.#seen(({ announce }) => announce(exchange.answer));
    } catch (err) {
      await this.#fail(exchange, err, running.signal);
    } finally {
      this.#running = this.#answering = null;
    }
    this.#thread.view(exchange.id)?.render();
    this.#draw();
    this.#keep(exchange);
    this.#seen(({ busy, changed }) => {
      busy(false);
      changed(exchange.search && exchange.answer ? this.#thread.view(exchange.id)?.element : undefined); // the answer is above its search
    });
  }

  /** @param {Exchange} exchange @param {{ request: import('./api.js').ChatRequest, answered: number[], left: number }} asked @param {AbortSignal} signal */
  async #receive(exchange, { request, answered, left }, signal) {
    const take = receiver(exchange, this.#hooks.judge(this.#hooks.way()));
    this.#thread.view(exchange.id)?.render();
    for await (const chunk of chat(request, signal)) {
      take(chunk);
      const dropped = droppedMessages(chunk);
      if (dropped !== null || exchange.unread === undefined) {
        const unread = left + Math.ceil((dropped ?? 0) / 2);
        exchange.unread = unread && (answered[unread] ?? this.#pathTo(exchange).length - 1);
        exchange.limit = this.#hooks.whyLimited(answered.length - unread + 1);
        this.#draw();
      }
      this.#grown(exchange);
    }
  }

  /** Answers in a way that the answer is compared with. @param {import('./exchange.js').Rival} rival @param {Exchange} exchange @param {AbortSignal} signal */
  async #receiveRival(rival, exchange, signal) {
    const take = receiver(rival, this.#hooks.judge(rival.way));
    const { tools, ...plan } = this.#hooks.plan(rival.way); // calls are of the answer alone
    for await (const chunk of chat(question(this.#pathTo(exchange), plan).request, signal)) {
      take(chunk);
      this.#grown(exchange);
    }
  }

  /** @param {Exchange} exchange */
  #grown(exchange) {
    this.#thread.view(exchange.id)?.update();
    this.#seen(({ changed }) => changed());
    if (performance.now() - this.#kept > pace) this.#keep(exchange);
  }

  /** @param {Exchange} exchange @param {unknown} err @param {AbortSignal} signal that the person has stopped it */
  async #fail(exchange, err, signal) {
    // A question without any answer yet can wait for the server.
    const wait = err instanceof ApiError && err.unavailable && !exchange.stats && await this.#hooks.comesBack();
    if (signal.aborted || leaving()) {
      exchange.state = 'stopped';
      this.#seen(({ announce }) => announce(t`Stopped.`));
      return;
    }
    exchange.state = 'failed';
    if (!(err instanceof ApiError)) {
      console.error(err); // a fault of this page
      exchange.error = t`The page could not read the answer: ${err}`;
      return;
    }
    exchange.needsKey = err.status === 401;
    if (exchange.needsKey) this.#seen(({ needKey }) => needKey(err.message));
    else if (wait) exchange.state = 'waiting';
    else exchange.error = err.message + (err.retryAfter && !/again in/i.test(err.message) ? t` (Try again in ${err.retryAfter} s.)` : '');
  }

  /** Keeps the conversation, with the exchange that has changed. @param {...Exchange} exchanges */
  async #keep(...exchanges) {
    if (this.#discarded) return;
    this.#kept = performance.now();
    for (const exchange of exchanges) exchange.beat = Date.now();
    if (exchanges.length) this.head.updated = now();
    const kept = await library.write({ ...this.head }, ...exchanges);
    this.#seen(({ saved }) => saved(kept));
  }
}
