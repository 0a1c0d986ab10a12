// The welcome of an empty conversation: words and example questions that suit the
// model.

import { byId, el } from './dom.js';

/** @typedef {import('./offer.js').Offer} Offer */

// Questions of the kind that the embedded models were trained for, from the set that
// was held out. The default model answers each of them correctly, alone and by every
// search.
const demo = {
  headline: 'A small model that checks its\u00a0work.',
  words: 'Ask a short arithmetic story. The model writes its solution step by step. With a search method it writes many, all decoded in one batch, and keeps the best.',
  placeholder: 'Ask an arithmetic story',
  examples: [
    {
      label: 'Three steps',
      text: 'There are 163 big seeds and 57 small seeds. They are shared equally among 5 children. Each of them already had 29 seeds. How many seeds does each of the children have now?',
    },
    {
      label: 'Four steps',
      text: 'Ben owns 277 photos. Next, he picks up 229 photos. Ben has 16 cousins. Next, he gets 9 jars of 38 photos. A jar holds 4 photos. How many jars does he need?',
    },
    {
      label: 'Five steps',
      text: 'Lena reads 10 pages every day. She reads for 7 days and then 4 more days. After that 40 pages are gone. There were already 297 pages before that. Then 296 pages are taken away. How many pages is that in total?',
    },
    {
      label: 'A hard one: try a beam search',
      text: 'Susan owns 241 beads. Next, the number of beads doubles. She sells half of them. Later she doubles the number of beads. Susan wants to have 595 beads. How many more does she need?',
    },
  ],
};

const generic = {
  placeholder: 'Ask anything',
  examples: [
    { label: 'Explain', text: 'Why is the sky blue at noon and red in the evening? Explain it in three sentences.' },
    { label: 'Reason', text: 'A bat and a ball cost 1.10 euros together. The bat costs one euro more than the ball. What does the ball cost? Think step by step.' },
    { label: 'Write', text: 'Write a short poem about an otter that learns to count.' },
    { label: 'Program', text: 'Write a function in Python that tells whether a word is a palindrome, and explain it in one sentence.' },
  ],
};

/** What the question field suggests. @param {Offer} model */
export const placeholder = (model) => (model.demo ? demo : generic).placeholder;

/**
 * Shows the welcome for a model.
 * @param {Offer} model
 * @param {(question: string) => void} ask
 */
export function welcome(model, ask) {
  byId('headline').textContent = model.demo ? demo.headline : 'What would you like to\u00a0know?';
  byId('words').textContent = model.demo ? demo.words : genericWords(model);
  byId('examples').replaceChildren(...(model.demo ? demo : generic).examples.map(({ label, text }) =>
    el('li', {}, el('button', { type: 'button', on: { click: () => ask(text) } }, el('small', {}, label), text))));
}

/** @param {Offer} model */
function genericWords({ id, context, methods }) {
  const size = context === null ? '' : `, and reads up to ${context.toLocaleString('en')} tokens at once`;
  const search = methods.length ? ' With a search method it writes many answers, all decoded in one batch, and keeps the best.' : '';
  return `${id} runs on this server's processor${size}.${search}`;
}
