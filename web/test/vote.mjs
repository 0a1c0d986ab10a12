// A vote of a slow model as the API streams it: all of its candidates can be
// read long before the first is complete, and two are cancelled in the end.
import { delta } from './scripted.mjs';

const right = 'First I look at the trains: they drive towards each other at 80 and 120 kilometres an hour, so together they come 200 kilometres nearer each hour.\n\nThe distance is 500 kilometres. 500 divided by 200 is 2.5, so they meet after two and a half hours.\n\nAnswer: 2.5';
const wrong = 'The first train drives at 80 kilometres an hour and needs 500 divided by 80 hours for the whole way, which is 6.25.\n\nSo they meet after half of that.\n\nAnswer: 3.125';
const odd = 'Two trains, 500 kilometres. The faster one needs 4.2 hours. I am not sure what was asked, but it could be the difference of the two times, which is about two hours.';
const texts = [right, wrong, right, right.replace('First I', 'Let me'), wrong.replace('So they', 'Therefore they'), right, odd, right];
export const answer = right;

const progress = (tokens, more) => ({
  ...delta({ content: '' }),
  test_time_scaling: { method: 'self_consistency', select: 'weighted_vote', step: 1, live: 8, finished: 0, tokens, best: 0, leader: null, agreement: 0, ...more },
});
/** The candidates gain the text between two shares of the whole. */
const gain = (tokens, from, to) => progress(tokens, {
  partial: texts.map((text, index) => ({
    index, parent: -1, text: text.slice(Math.floor(from * text.length), Math.floor(to * text.length)), tokens: Math.ceil(tokens / 8), logprob: -0.2 - index / 40,
  })),
});
const whole = (index) => ({
  candidate: index, text: texts[index], finish_reason: 'stop', score: [0.97, 0.41, 0.93, 0.95, 0.38, 0.9, 0.2, 0.9][index], logprob: -0.2 - index / 40,
  answer: /Answer: (.*)/.exec(texts[index])?.[1] ?? null, votes: 1, step_scores: [],
});
const ended = (index) => {
  const { finish_reason, score, logprob, answer } = whole(index);
  return { index, parent: -1, text: '', tokens: 90, finish_reason, score, logprob, ...(answer ? { answer } : {}) };
};

export const vote = [
  delta({ role: 'assistant', content: '' }),
  gain(16, 0, 0.08), gain(160, 0.08, 0.4), gain(320, 0.4, 0.8),
  progress(560, { partial: [0, 1, 2, 4, 6].map((i) => ({ ...ended(i), text: texts[i].slice(Math.floor(0.8 * texts[i].length)) })) }),
  progress(600, { finished: 3, live: 5, leader: '2.5', agreement: 0.67, partial: [] }),
  delta({ content: right }),
  {
    ...delta({}, { finish_reason: 'stop', test_time_scaling: { candidate: 0, score: 0.97, answer: '2.5', votes: 3 } }),
    test_time_scaling: {
      method: 'self_consistency', n: 8, steps: 1, stop_reason: 'decided', select: 'weighted_vote', agreement: 0.5,
      candidates: [0, 2, 3, 1, 4, 6].map(whole),
    },
  },
  { ...delta({}), choices: [], usage: { prompt_tokens: 60, completion_tokens: 540, total_tokens: 600, test_time_scaling: { cancelled_tokens: 100 } } },
];
