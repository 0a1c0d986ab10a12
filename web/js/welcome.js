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
  placeholder: t`Ask a counting story`,
  /** @type {Example[]} */
  examples: [
    {
      label: t`Three steps, one answer`,
      text: 'There are 163 big seeds and 57 small seeds. They are shared equally among 5 children. Each of them already had 29 seeds. How many seeds does each of the children have now?',
      method: 'none',
    },
    {
      label: t`Four steps, best of 8`,
      text: "There are 256 cups in Adam's room. Then he throws away 250 cups. Later he gets 6 boxes of 19 cups. Next, he finds 288 more cups. Adam likes the color blue. How many cups does he have in the end?",
      method: 'best_of_n', n: 8, compare: true,
    },
    {
      label: t`Three steps, beam search`,
      text: "James collects 22 candles. Paul collects half as many candles as James. Ada collects three times as many candles as Paul. Lily collects 46 more candles than Ada. How many candles are Lily's?",
      method: 'beam_search', n: 16, width: 4, compare: true,
    },
    {
      label: t`Five steps, beam search`,
      text: 'Diego starts with 368 seeds. He uses 81 seeds. Priya takes 116 of the seeds. He throws away 80 seeds. He sells 9 bags of 7 seeds. What is the number of seeds Diego has now?',
      method: 'beam_search', n: 16, width: 4, compare: true,
    },
  ],
};

const generic = {
  headline: t`What would you like to\u00a0know?`,
  placeholder: t`Ask anything`,
  /** @type {Example[]} */
  examples: [
    { label: t`Explain`, text: t`Why is the sky blue at noon and red in the evening? Explain it in three sentences.` },
    { label: t`Reason`, text: t`A bat and a ball cost 1.10 euros together. The bat costs one euro more than the ball. What does the ball cost? Think step by step.` },
    { label: t`Write`, text: t`Write a short poem about an otter that learns to count.` },
    { label: t`Plan`, text: t`Plan a day in a city that I have never seen, for two people and little money.` },
  ],
};

const code = {
  headline: t`What shall we\u00a0build?`,
  placeholder: t`Ask for code, or paste some`,
  /** @type {Example[]} */
  examples: [
    { label: t`Write`, text: t`Write a function in Python that tells whether a word is a palindrome, and explain it in one sentence.` },
    { label: t`Test`, text: t`Write unit tests in JavaScript for a function that parses dates like 2026-11-28.` },
    { label: t`Find the fault`, text: t`What is wrong here? for i in range(len(a)): if a[i] == 0: del a[i]` },
    { label: t`Query`, text: t`Write an SQL query for the three customers with the largest sum of orders in each country.` },
  ],
};

/** What suits a model. @param {Offer} model */
const kind = ({ demo: embedded, id }) => (embedded ? demo : /(?<![a-z])cod(e|er|ing)(?![a-z])|codellama|starcoder|codestral|devstral/i.test(id) ? code : generic);

/** What the question field suggests. @param {Offer} model */
export const placeholder = (model) => kind(model).placeholder;

/**
 * Shows the welcome for a model.
 * @param {Offer} model
 * @param {(example: Example) => void} ask
 */
export function welcome(model, ask) {
  const { headline, examples } = kind(model);
  byId('headline').textContent = headline;
  byId('words').textContent = model.demo ? demoWords(model) : genericWords(model);
  byId('examples').replaceChildren(...examples.map((example) =>
    el('li', {}, el('button', { type: 'button', title: example.text, on: { click: () => ask(example) } }, el('small', {}, example.label), el('span', {}, example.text)))));
}

/** @param {Offer} model */
const demoWords = ({ id }) => t`${id} solves short counting stories, step by step. Let it search, and it writes many solutions at once and keeps the best. Other stories it often gets wrong.`;

/** @param {Offer} model */
const genericWords = ({ id, methods }) => [t`${id} runs on this server's processor.`, methods.length ? t`Let it search, and it writes many answers at once and keeps the best.` : ''].join(' ').trim();
