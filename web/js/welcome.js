// The welcome of an empty conversation: words and example questions that suit the
// model.

import { byId, el } from './dom.js';
import { t } from './words.js';

/** @typedef {import('./offer.js').Offer} Offer */

/**
 * An example: its button sets the method, and asks. `compare` asks for a single answer beside the search.
 * @typedef {{ label: string, text: string, method?: string, n?: number, width?: number, compare?: boolean }} Example
 */

// Questions of the kind that the embedded models were trained for, from the set that
// was held out. The default model answers the first alone; the likeliest single answer
// to the others is wrong, and the method of the button finds the right one: with 2971, 2988
// and 2993 of 3000 seeds (tools/train/shows.py finds such questions).
const demo = {
  headline: t`A small model that checks its\u00a0work.`,
  words: t`Ask a short arithmetic story. The model writes its solution step by step. With a search method it writes many, all decoded in one batch, and keeps the best. It knows stories like these; others it often gets wrong.`,
  placeholder: t`Ask an arithmetic story`,
  /** @type {Example[]} */
  examples: [
    {
      label: t`Three steps, a single answer`,
      text: 'There are 163 big seeds and 57 small seeds. They are shared equally among 5 children. Each of them already had 29 seeds. How many seeds does each of the children have now?',
      method: 'none',
    },
    {
      label: t`Four steps: best of 8 against a single answer`,
      text: "There are 256 cups in Adam's room. Then he throws away 250 cups. Later he gets 6 boxes of 19 cups. Next, he finds 288 more cups. Adam likes the color blue. How many cups does he have in the end?",
      method: 'best_of_n', n: 8, compare: true,
    },
    {
      label: t`Three steps: beam search against a single answer`,
      text: "James collects 22 candles. Paul collects half as many candles as James. Ada collects three times as many candles as Paul. Lily collects 46 more candles than Ada. How many candles are Lily's?",
      method: 'beam_search', n: 16, width: 4, compare: true,
    },
    {
      label: t`Five steps: beam search against a single answer`,
      text: 'Diego starts with 368 seeds. He uses 81 seeds. Priya takes 116 of the seeds. He throws away 80 seeds. He sells 9 bags of 7 seeds. What is the number of seeds Diego has now?',
      method: 'beam_search', n: 16, width: 4, compare: true,
    },
  ],
};

const generic = {
  placeholder: t`Ask anything`,
  /** @type {Example[]} */
  examples: [
    { label: t`Explain`, text: t`Why is the sky blue at noon and red in the evening? Explain it in three sentences.` },
    { label: t`Reason`, text: t`A bat and a ball cost 1.10 euros together. The bat costs one euro more than the ball. What does the ball cost? Think step by step.` },
    { label: t`Write`, text: t`Write a short poem about an otter that learns to count.` },
    { label: t`Program`, text: t`Write a function in Python that tells whether a word is a palindrome, and explain it in one sentence.` },
  ],
};

/** What the question field suggests. @param {Offer} model */
export const placeholder = (model) => (model.demo ? demo : generic).placeholder;

/**
 * Shows the welcome for a model.
 * @param {Offer} model
 * @param {(example: Example) => void} ask
 */
export function welcome(model, ask) {
  byId('headline').textContent = model.demo ? demo.headline : t`What would you like to\u00a0know?`;
  byId('words').textContent = model.demo ? demo.words : genericWords(model);
  byId('examples').replaceChildren(...(model.demo ? demo : generic).examples.map((example) =>
    el('li', {}, el('button', { type: 'button', on: { click: () => ask(example) } }, el('small', {}, example.label), example.text))));
}

/** @param {Offer} model */
function genericWords({ id, context, methods }) {
  const size = context?.toLocaleString('en');
  const runs = size ? t`${id} runs on this server's processor, and reads up to ${size} tokens at once.` : t`${id} runs on this server's processor.`;
  return methods.length ? [runs, t`With a search method it writes many answers, all decoded in one batch, and keeps the best.`].join(' ') : runs;
}
