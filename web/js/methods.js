// The methods by which an answer can be found, in the order of the menu. The
// first leaves the choice to the server.

/** @type {Record<string, { name: string, hint: string }>} */
export const methods = {
  '': { name: 'As the server does', hint: '' },
  none: { name: 'Single answer', hint: 'One answer, token by token.' },
  self_consistency: { name: 'Self-consistency', hint: 'n answers; the one that most of them give.' },
  best_of_n: { name: 'Best of n', hint: 'n answers; the one that is scored best.' },
  beam_search: { name: 'Beam search', hint: 'n beginnings; only the best-scored go on, each in several ways.' },
  dvts: { name: 'DVTS', hint: 'n/width searches that do not compete with each other.' },
  auto: { name: 'Auto', hint: 'A few answers; a search when they disagree.' },
};
