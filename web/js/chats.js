// The conversations that are open in this tab: the one that is shown, and those whose answers
// are still being written.

import { Chat } from './chat.js';
import { newHead } from './conversation.js';
import * as library from './library.js';
import { recall, remember } from './store.js';

export class Chats {
  /** @type {Chat} */
  current;
  #list;
  #hooks;
  #shown;
  /** @type {Map<string, Chat>} */
  #open = new Map();
  /** The conversation that is being read. */
  #wanted = '';

  /** @param {HTMLElement} list where it is shown @param {import('./chat.js').Hooks} hooks @param {() => void} shown is called when another is shown */
  constructor(list, hooks, shown) {
    this.#list = list;
    this.#hooks = hooks;
    this.#shown = shown;
    this.current = new Chat(newHead(), [], hooks);
    this.current.show(list);
    library.listen((change, mine) => { if (!mine) this.#changed(change); });
  }

  /** Shows the conversation that this tab had before it was loaded again. */
  async restore() {
    await library.recover();
    const id = recall('open', '');
    if (typeof id === 'string' && id && this.current.empty) await this.open(id);
    this.#list.removeAttribute('aria-busy');
  }

  /** Shows a conversation. @param {string} id @returns {Promise<boolean>} whether there is one */
  async open(id) {
    this.#wanted = id;
    const known = this.#open.get(id) ?? await this.#read(id);
    if (known && this.#wanted === id) this.#show(known);
    return known !== null;
  }

  /** @param {string} id @returns {Promise<Chat | null>} */
  async #read(id) {
    const kept = await library.read(id);
    if (!kept || kept.head.gone) return null;
    if (kept.exchanges.some((e) => e.state === 'asking')) setTimeout(() => this.#changed({ id }), 6000); // the other tab may have gone
    return new Chat(kept.head, kept.exchanges, this.#hooks);
  }

  /** Shows an empty conversation. */
  renew() {
    this.#wanted = '';
    if (!this.current.empty || this.current.busy) this.#show(new Chat(newHead(), [], this.#hooks));
  }

  /** @param {Chat} chat */
  #show(chat) {
    if (chat === this.current) return;
    this.current.show(null);
    if (!this.current.busy && !this.current.waiting) this.#open.delete(this.current.head.id);
    else this.#open.set(this.current.head.id, this.current);
    this.current = chat;
    this.#open.set(chat.head.id, chat);
    this.kept();
    chat.show(this.#list);
    this.#shown();
  }

  /** Remembers what this tab shows. */
  kept() {
    remember('open', this.current.empty ? null : this.current.head.id);
  }

  /** Asks again what waits for the server, shown or not. */
  resume() {
    for (const chat of new Set([this.current, ...this.#open.values()])) if (chat.waiting) chat.again();
  }

  /** Takes a new title over. @param {string} id @param {string} title */
  rename(id, title) {
    for (const chat of [this.current, this.#open.get(id)]) if (chat?.head.id === id) chat.head.title = title;
  }

  /** Ends a conversation that has been deleted. @param {string} id */
  discard(id) {
    this.#open.get(id)?.discard();
    this.#open.delete(id);
    if (this.current.head.id !== id) return;
    this.current.discard();
    this.#show(new Chat(newHead(), [], this.#hooks));
  }

  /** Another tab has changed a conversation. @param {import('./library.js').Change} change */
  async #changed({ id, gone }) {
    const open = this.current.head.id === id ? this.current : this.#open.get(id);
    if (!open) return;
    const kept = gone ? null : await library.read(id);
    if (kept && !kept.head.gone) open.refresh(kept.head, kept.exchanges);
    else if (!open.busy) this.discard(id);
  }
}
