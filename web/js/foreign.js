// Exports of ChatGPT (conversations.json) and of Open WebUI, in the form of the page's own files,
// whose reader then checks them. Both keep a conversation as a tree of messages by their ids.

import { mostExchanges, mostTitle, titleOf } from './conversation.js';
import { mostConversations } from './library.js';
import { list, number, objects, string } from './read.js';
import { ShapeError } from './shape.js';
import { t } from './words.js';

/** Messages of a conversation that are looked at, and characters of all its answers. */
const mostMessages = 20_000, mostSize = 1 << 25;

/** @typedef {{ id: string, parent: string, role: 'user' | 'assistant' | '', text: string, thought: string, time: number, model: string }} Message `role` empty: not shown */
/** @typedef {{ id: string, title: string, created: number, updated: number, at: string, messages: Message[] }} Talk */

/**
 * Reads what another program has written.
 * @param {any} parsed
 * @returns {{ conversations: any[], left: number }} the latest, and how many are left out
 */
export function read(parsed) {
  const all = (Array.isArray(parsed) ? parsed : [parsed]).map((one, i) => talk(one, Array.isArray(parsed) ? `[${i}]` : ''));
  const made = all.sort((a, b) => b.updated - a.updated).map(conversation).filter((c) => c.exchanges.length);
  const fit = made.filter((c) => c.exchanges.length <= mostExchanges).slice(0, mostConversations);
  if (!made.length) throw new ShapeError(t`The file has no conversation with a question.`);
  return { conversations: fit, left: made.length - fit.length };
}

/** @param {any} one @param {string} at @returns {Talk} */
function talk(one, at) {
  const own = (/** @type {any} */ v) => (v && typeof v === 'object' && !Array.isArray(v) ? v : null);
  const chatgpt = own(one?.mapping), chat = own(one?.chat);
  const webui = own(chat?.history?.messages) ?? (Array.isArray(chat?.messages) ? chat.messages : null);
  const nodes = Object.entries(chatgpt ?? webui ?? {});
  if (!chatgpt && !webui) throw new ShapeError(at ? t`${at} is no conversation of ChatGPT or Open WebUI.` : t`The file has no conversations of this page, of ChatGPT or of Open WebUI.`);
  if (nodes.length > mostMessages) throw new ShapeError(t`${at || 'mapping'} has more than ${mostMessages.toLocaleString('en')} messages.`);
  const messages = nodes.map(([id, node], i) => (chatgpt ? ofChatGPT(id, node) : ofOpenWebUI(webui === chat?.messages ? String(i) : id, node, webui === chat?.messages && i ? String(i - 1) : '')));
  const title = string(one.title) || string(chat?.title) || titleOf(messages.find(({ role }) => role === 'user')?.text ?? '');
  const created = milliseconds(one.create_time ?? one.created_at);
  return {
    id: string(one.conversation_id) || string(one.id) || `${title}\n${created}`, title: title.slice(0, mostTitle),
    created, updated: milliseconds(one.update_time ?? one.updated_at) || created, at: string(one.current_node ?? chat?.history?.currentId), messages,
  };
}

/** Times are seconds, in fields of a browser milliseconds. @param {any} v */
const milliseconds = (v) => {
  const n = number(v) ?? 0;
  return n > 0 && n < 8e15 ? Math.floor(n < 1e11 ? 1000 * n : n) : 0;
};

/** @param {string} id @param {any} node @returns {Message} */
function ofChatGPT(id, node) {
  const { author, content, create_time, metadata } = node?.message ?? {};
  const thoughts = objects(content?.thoughts).map((thought) => string(thought.content)).join('\n\n');
  const parts = list(content?.parts).map((part) => string(part?.text ?? part)).filter(Boolean).join('\n\n');
  const shown = ['user', 'assistant'].includes(author?.role) && metadata?.is_visually_hidden_from_conversation !== true && (author.role === 'user' || ['all', undefined].includes(node.message.recipient));
  const kind = string(content?.content_type);
  const text = ['text', 'multimodal_text'].includes(kind) ? parts : kind === 'code' ? `\`\`\`\n${string(content.text)}\n\`\`\`` : '';
  return { id, parent: string(node?.parent), role: shown && (text || thoughts) ? author.role : '', text, thought: thoughts, time: milliseconds(create_time), model: string(metadata?.model_slug) };
}

/** @param {string} id @param {any} node @param {string} before the message before it, where it does not say @returns {Message} */
function ofOpenWebUI(id, node, before) {
  const role = ['user', 'assistant'].includes(node?.role) ? node.role : '';
  const [thought, text] = role === 'assistant' ? parted(string(node.content)) : ['', string(node?.content)];
  return { id, parent: string(node?.parentId) || before, role, text, thought, time: milliseconds(node?.timestamp), model: string(node?.model) };
}

/** Thoughts stand before an answer as what can be folded. @param {string} text @returns {[string, string]} */
function parted(text) {
  const end = text.lastIndexOf('</details>');
  if (end < 0 || !text.trimStart().startsWith('<details type="reasoning"')) return ['', text];
  const thought = text.slice(text.indexOf('>') + 1, end).replaceAll(/<summary>[^<]*<\/summary>|<\/?details[^<>]*>/g, '').replaceAll(/^> ?/gm, '');
  return [thought.trim(), text.slice(end + '</details>'.length).trim()];
}

/**
 * The exchanges of a conversation: a question, and what was answered until the next. Where a question has several
 * answers, each is a branch.
 * @param {Talk} talk
 */
function conversation({ id, title, created, updated, at, messages }) {
  const byId = new Map(messages.map((m) => [m.id, m]));
  /** @type {Map<string, string>} */
  const known = new Map();
  /** The message that is shown there, or above it. @param {string} place */
  const shown = (place) => {
    const passed = [];
    let m = byId.get(place);
    for (; m && !m.role && !known.has(m.id) && passed.length < messages.length; m = byId.get(m.parent)) passed.push(m.id);
    const found = m?.role ? m.id : known.get(m?.id ?? '') ?? '';
    for (const one of passed) known.set(one, found);
    return found;
  };
  /** @type {Map<string, Message[]>} */
  const below = new Map();
  for (const m of messages) if (m.role && !below.get(shown(m.parent))?.push(m)) below.set(shown(m.parent), [m]);

  const exchanges = [];
  let read = '', size = 0;
  /** @type {{ message: Message, open: any, above: string | null }[]} the exchange that goes on there, and the one before */
  const left = (below.get('') ?? []).map((message) => ({ message, open: null, above: null })).reverse();
  for (let next = left.pop(); next && exchanges.length <= mostExchanges; next = left.pop()) {
    const { id: place, role, text, thought, time, model } = next.message;
    let { open, above } = next;
    if (role === 'user') open = { parent: above, created: Math.max(created, time), question: text, answer: '', reasoning: '' };
    else if (open) open = { ...open, answer: join(open.answer, text), reasoning: join(open.reasoning, thought), ...(model ? { model } : {}) };
    const following = below.get(place) ?? [];
    if (open && (!following.length || following.some((m) => m.role === 'user'))) {
      above = nameFor(`${id}\n${place}`);
      exchanges.push({ ...open, id: above, state: open.answer ? 'done' : 'stopped' });
      if (place === shown(at)) read = above;
      if ((size += open.answer.length + open.reasoning.length) > mostSize) throw new ShapeError(t`${title} is longer than the page keeps.`);
    }
    for (const message of following.toReversed()) left.push({ message, open: message.role === 'user' ? null : open, above });
  }
  return { id: nameFor(id), title: title || t`Untitled`, created, updated, at: read || exchanges.at(-1)?.id, exchanges };
}

/** @param {string} a @param {string} b */
const join = (a, b) => (a && b ? `${a}\n\n${b}` : a + b);

/** The page's name for what another program calls otherwise: the same each time, so that nothing is added twice. @param {string} id */
const nameFor = (id) => [1, 2, 3].map((seed) => {
  let h = seed * 0x9e3779b1;
  for (let i = 0; i < id.length; i++) h = Math.imul(h ^ id.charCodeAt(i), 0x85ebca6b) ^ (h >>> 13);
  return ((h ^ (h >>> 16)) >>> 0).toString(16).padStart(8, '0');
}).join('');
