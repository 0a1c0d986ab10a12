// A dialog beside the conversation where there is room for it, and over the page where there is not.

import { byId } from './dom.js';
import { keep, kept } from './store.js';

export class Drawer {
  #dialog;
  #button;
  #room;

  /** @param {string} id of the dialog; its buttons are show-ID and close-ID @param {string} room the media in which it is a column */
  constructor(id, room) {
    this.#dialog = byId(id);
    this.#button = byId(`show-${id}`);
    this.#room = matchMedia(room);
    const close = () => this.#choose(false);
    this.#button.addEventListener('click', () => this.toggle());
    byId(`close-${id}`).addEventListener('click', close);
    this.#dialog.addEventListener('close', () => this.#button.setAttribute('aria-expanded', 'false'));
    this.#dialog.addEventListener('click', (/** @type {MouseEvent} */ event) => { if (event.target === this.#dialog && !this.column) close(); });
    this.#room.addEventListener('change', () => this.settle(false));
  }

  get open() { return this.#dialog.open; }
  /** It lies beside the conversation. */
  get column() { return this.#room.matches; }

  toggle() { this.#choose(!this.open); }
  show() { if (!this.open) this.#choose(true); }
  /** Gives way to the conversation, where it lies over it. */
  yield() { if (!this.column) this.#place(false); }
  /** As the person has last chosen for a column. @param {boolean} otherwise */
  settle(otherwise) { this.#place(this.column && kept(`drawer.${this.#dialog.id}`, otherwise)); }

  /** @param {boolean} shows */
  #choose(shows) {
    if (this.column) keep(`drawer.${this.#dialog.id}`, shows);
    this.#place(shows);
  }

  /** @param {boolean} shows */
  #place(shows) {
    if (this.#dialog.open) this.#dialog.close();
    if (shows && this.column) this.#dialog.open = true; // without taking the focus
    else if (shows) this.#dialog.showModal();
    this.#button.setAttribute('aria-expanded', String(shows));
  }
}
