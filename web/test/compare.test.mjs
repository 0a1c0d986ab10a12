// The page in a real browser: methods side by side, what they spent, and what they reach.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answerWith, ask, browse, card, cards, closePanels, ended, fake, fitsItsWidth, lastAnswer, open, page, panel, phone, reload, shot } from './browser.mjs';
import { startServer } from './server.mjs';

const question = 'Susan owns 241 beads. Next, the number of beads doubles. She sells half of them. Later she doubles the number of beads. Susan wants to have 595 beads. How many more does she need?';

let server;

browse(async () => {
  server = await startServer();
  return [server.stop];
});

const set = async (name, value) => {
  await panel();
  await page.locator(`[name=${name}]`).fill(value);
  await page.locator(`[name=${name}]`).dispatchEvent('change');
  await closePanels();
};

test('two methods answer one question side by side', async () => {
  await open(server);
  await set('seed', '1');
  await page.locator('#method').selectOption('self_consistency');
  await page.locator('#compare').press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'method', 'the other method is chosen next');
  await page.locator('#method').selectOption('none');
  await page.locator('#compare').press('Enter');
  await page.locator('#method').selectOption('beam_search');
  const asked = [];
  page.on('request', (r) => r.url().endsWith('/chat/completions') && asked.push(r.postDataJSON().test_time_scaling.method));
  await ask(question);
  await ended();
  assert.deepEqual(asked, ['self_consistency', 'none', 'beam_search']);
  assert.deepEqual(await page.locator('.answers h3').allInnerTexts(), ['Vote of 8', 'Single answer', 'Beam search 8 × 4']);
  assert.equal(await page.locator('.answers .text .result').count(), 3, 'each has an answer');
  for (const i of [0, 1, 2]) {
    assert.match(await page.locator('.answers .took').nth(i).innerText(), i ? /^\d+ tokens · [\d.]+ m?s$/ : /tokens · [\d.]+ m?s · \d+ % agree$/);
    assert.equal(await page.locator('.answers section').nth(i).locator('.votes .chosen').count(), i === 1 ? 0 : 1, 'votes of searches');
  }
  assert.equal(await page.locator('.search > .votes:visible').count(), 0, 'the votes are shown once');
  assert.match(await page.locator('.spent').innerText(), /^Spent [\d,]+ tokens: [\d,]+ for the answer, [\d,]+ for others.*the verifier read [\d,]+\. These candidates share their first steps, so it says little that they agree\.$/);
  await shot('compare');
  await reload();
  assert.equal(await page.locator('.answers h3').count(), 3, 'all are there after a reload');
  const first = await page.locator('.answers section').first().locator('.text').innerText();
  await page.locator('.rival .take').first().click();
  await page.locator('.branches .place', { hasText: '2/2' }).waitFor();
  assert.equal(await lastAnswer(), first, 'a column has become the answer');
  assert.match(await page.locator('.meta').innerText(), /Vote of 8, chosen by you/);
  assert.equal(await page.locator('.answers h3').count(), 0);
  await page.locator('[aria-label="Read candidate 1"]').waitFor();
  await reload();
  const sent = await answerWith('Yes.');
  await ask('Sure?');
  await ended();
  assert.equal(sent[0].messages[1].content.trim(), (await page.evaluate(async () => { // what is sent is the column's
    const { read, heads } = await import('/web/js/library.js');
    return (await read((await heads())[0].id)).exchanges.find((e) => e.picked).answer;
  })).trim());
  await page.locator('[aria-label="Earlier version"]').first().click();
  assert.equal(await page.locator('.answers h3').count(), 3, 'the comparison is beside it');
  await page.setViewportSize(phone);
  await fitsItsWidth();
  await shot('compare-phone');
  await page.locator('#show-plan').click();
  await page.locator('#rivals button').first().click();
  await page.keyboard.press('Shift+Tab');
  assert.equal(await page.locator('#rivals button').count(), 1, 'a method is taken away');
  await page.locator('#rivals button').first().click();
  assert.ok(await page.locator('#rivals').isHidden());
});

test('where candidates disagree, the question looks hard', async () => {
  await open(server);
  const words = await page.evaluate(async () => {
    const { difficulty, spentWords } = await import('/web/js/spent.js');
    const search = (answers, agreement = null) => ({ agreement, usage: null, votes: [{ answer: answers[0] }], candidates: answers.map((answer) => ({ answer, state: 'complete' })) });
    return [difficulty(search(['1', '1', '1', '1', '1', '1', '2'])).level, difficulty(search(['1', '2', '1', '3'])).level, difficulty(search(['1', '2', '3', '4', '1'], 0.4)).level,
      difficulty(search(['1'])), spentWords({ ...search(['1']), usage: { chosen: 1200, discarded: 0, cancelled: 0, verifier: 0 } }), spentWords(search(['1', '2', '3', '4', '1'], 0.4))];
  });
  assert.deepEqual(words, ['easy', 'moderate', 'hard', null, 'Spent 1,200 tokens: 1,200 for the answer.', 'The question looks hard: 40 % agree, of the first 4 answers 1.']);
});

test('beams that agree do not make a question easy', async () => {
  await open(server);
  const [beams, votes] = await page.evaluate(async () => {
    const { difficulty, spentWords } = await import('/web/js/spent.js');
    const { Votes } = await import('/web/js/votes.js');
    const search = (method) => ({ method, select: 'weighted_vote', agreement: 1, usage: null, votes: [{ answer: '12', votes: 16, weight: 13.1, judged: true, chosen: true }], candidates: Array(16).fill({ answer: '12', state: 'complete' }) });
    return ['beam_search', 'self_consistency'].map((method) => {
      const list = new Votes();
      list.update(search(method));
      return [difficulty(search(method))?.level, spentWords(search(method)), list.element.textContent];
    });
  });
  assert.deepEqual(beams, [undefined, 'These candidates share their first steps, so it says little that they agree.', '1216 beams, weight 13.10']);
  assert.deepEqual(votes, ['easy', 'The question looks easy: 100 % agree, of the first 4 answers all.', '1216 votes, weight 13.10']);
});

test('what a verifier gives is a score, and what the model is sure of a certainty', async () => {
  await fake('**/v1/models', 200, cards(card('sea', { methods: ['none', 'best_of_n'], verifiers: ['self', 'logprob'] }), card('lake', { methods: ['none', 'best_of_n'], verifiers: ['judge', 'self'] })));
  await open(server);
  await page.locator('#method').selectOption('best_of_n');
  const told = (more) => answerWith('4', { test_time_scaling: { method: 'best_of_n', n: 2, select: 'max', stop_reason: 'complete', ...more, candidates: [{ candidate: 0, text: '4', answer: '4', finish_reason: 'stop', score: 0.31 }] } });
  const words = async (model, more) => {
    await told(more);
    await page.locator('#model').selectOption(model);
    await ask('2 + 2?');
    await ended();
    return [await page.locator('.exchange:last-child .card .facts').last().innerText(), await page.locator('.exchange:last-child .tally').innerText()];
  };
  assert.deepEqual(await words('sea'), ['certainty 0.31', '1 vote, best certainty 0.31']);
  assert.deepEqual(await words('lake'), ['score 0.31', '1 vote, best score 0.31']);
  assert.deepEqual(await words('sea', { verifier: 'judge' }), ['score 0.31', '1 vote, best score 0.31'], 'what the server says goes before what is expected');
});

test('an answer that was cut is marked in its column too', async () => {
  await open(server);
  await page.locator('#compare').click();
  await page.locator('#method').selectOption('best_of_n');
  await set('max_tokens', '9');
  await ask(question);
  await ended();
  assert.match(await page.locator('.rival .took').innerText(), /^cut at the token limit · 9 tokens/);
});

test('plans are said in words', async () => {
  await open(server);
  const words = await page.evaluate(async () => {
    const { wordsOf } = await import('/web/js/plans.js');
    return ['best_of_n;adaptive=true;n=16', 'single;temperature=0', 'abon16', 'cert8', 'beam16x4', 'beam_search;n=16;width=4', 'pf16', 'deepconf16', 'none', 'sc8;early_stop.consensus=0.95', 'q95', 'my own', '__proto__=1', 'toString8'].map(wordsOf);
  });
  assert.deepEqual(words, ['Best of 16, stops early', 'Single answer, the likeliest words', 'Best of 16, stops early', 'Vote of 8, by certainty', 'Beam search 16 × 4', 'Beam search 16 × 4', '16 particles', 'Confident vote of 16', 'Single answer', 'Vote of 8, stops when 95 % sure', 'q95', 'my own', '__proto__=1', 'toString8']);
});

test('the profile is a picture whose plans can be chosen', async () => {
  await open(server);
  await page.locator('#show-panels').press('Enter');
  await page.locator('#pareto summary').press('Enter');
  await page.locator('.pareto .best').first().waitFor();
  const n = await page.locator('.pareto circle').count();
  assert.ok(n >= 5, `${n} plans`);
  assert.match(await page.locator('.frontier li').last().innerText(), /\d+\.\d % · [\d.]+ m?s · [\d,]+ tokens/);
  const qualities = (await page.locator('.frontier .facts').allInnerTexts()).map(parseFloat);
  assert.deepEqual(qualities, [...qualities].sort((a, b) => a - b), 'what costs more is better');
  await shot('pareto');
  await page.locator('#pareto .tabs button', { hasText: 'Tokens' }).press('Enter');
  assert.equal(await page.locator('#pareto .tabs [aria-pressed=true]').innerText(), 'Tokens');
  const choice = page.locator('.frontier button', { hasText: /Best of|Vote of|Beam/ }).first();
  const name = await choice.locator('.name').innerText();
  await choice.press('Enter');
  assert.equal(name, await page.evaluate(async () => { const { nameOf, way } = await import('/web/js/settings.js'); return nameOf(way()); }));
  await page.setViewportSize(phone);
  await fitsItsWidth();
  await shot('pareto-phone');
});

test('what a profile says is never markup, and one that is wrong is left out', async () => {
  const points = [{ plan: '<img src=x onerror=alert(1)>;n=2', quality: 0.5, ci_low: 0.4, ci_high: 0.6, tokens: 9, expected_ms: 3 }, { plan: 'single', quality: 'x' }, null, { plan: 'auto;n=4', quality: 0.6, tokens: -1, expected_ms: 2 }];
  await fake('**/v1/profiles', 200, { data: [null, { model: 'lutra-tiny-l', points }] });
  await open(server);
  await panel('pareto');
  await page.locator('.pareto circle').waitFor();
  assert.equal(await page.locator('#pareto img').count(), 0);
  assert.match(await page.locator('.frontier').innerText(), /<img src=x/);
  await fake('**/v1/profiles', 200, { data: [] });
  await reload();
  await panel('pareto');
  await page.locator('#pareto .hint', { hasText: 'was not profiled' }).waitFor();
});

test('particles fork where they are drawn again, and end where they are not', async () => {
  await open(server);
  await set('temperature', '1.5');
  await set('seed', '3');
  await page.locator('#method').selectOption('particle_filtering');
  await page.locator('#n').selectOption('16');
  await ask(question);
  await ended();
  await page.locator('.tree text.count', { hasText: '→' }).first().waitFor();
  await page.locator('.outline').locator('xpath=..').locator('summary').click();
  await page.locator('.outline li').first().waitFor();
  const list = await page.locator('.outline').innerText();
  assert.match(list, /drawn \d+ times/);
  assert.match(list, /not drawn\)/);
  await shot('particles');
});
