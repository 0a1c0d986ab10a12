// Searches as the page draws them, from scripted streams and by the real binary.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answer, beamSearch } from './beam.mjs';
import { ask, browse, closePanels, divert, ended, fitsItsWidth, lastAnswer, lastSingle, open, page, panel, phone, reload, shot } from './browser.mjs';
import { startScripted } from './scripted.mjs';
import { startServer } from './server.mjs';
import { answer as voted, vote } from './vote.mjs';

let server, beam, votes;

browse(async () => {
  [server, beam, votes] = await Promise.all([startServer(), startScripted(beamSearch), startScripted(vote)]);
  return [server.stop, beam.stop, votes.stop];
});

test('a search is drawn while it runs, with what was pruned and what was chosen', async () => {
  await open(server);
  await page.locator('#method').selectOption('beam_search');
  await page.locator('#n').selectOption('8');
  await divert(beam);
  await ask("There are 256 cups in Adam's room. Then he throws away 250 cups. Later he gets 6 boxes of 19 cups. Next, he finds 288 more cups. How many cups does he have in the end?");
  beam.next();
  await page.locator('.tree g.live .words', { hasText: 'He has 25' }).first().waitFor();
  assert.equal(await page.locator('.tree g.live').count(), 8, 'each beam can be read while it is written');
  beam.next();
  await page.locator('.tree g.live .words', { hasText: '256-25' }).first().waitFor();
  beam.next(3);
  await page.locator('.tree g.live .words', { hasText: 'Now he has' }).first().waitFor();
  assert.match(await page.locator('figcaption').innerText(), /3 steps · 8 in progress · 360 tokens/);
  assert.ok(await page.locator('.tree g.pruned').count() >= 4, 'what was pruned is drawn');
  assert.equal(await page.locator('.tree g.chosen').count(), 0, 'nothing is chosen yet');
  await shot('beam-running');
  beam.next(4);
  await page.locator('.reasoning[open] .thoughts', { hasText: 'Chosen: candidate 1.' }).waitFor();
  assert.equal(await page.locator('.tree g.live').count(), 0, 'a step that has ended is in the tree');
  assert.match(await page.locator('.thoughts').innerText(), /^Step 1, 8 tried:\n {2}<b>first<\/b>\n/, 'reasoning is text');
  beam.next(100);
  await ended();
  assert.equal(await page.locator('.reasoning[open]').count(), 0, 'reasoning is folded when the answer is there');
  assert.ok(await page.locator('.reasoning summary').isVisible());
  assert.equal(await lastAnswer(), answer);
  assert.equal(await page.locator('.tree g.chosen').count(), 5, 'the chosen path has its five steps');
  assert.equal(await page.locator('.tree g.chosen .count').first().textContent(), '×3', 'equal steps are one node');
  assert.match(await page.locator('.votes .chosen').innerText(), /408\s+2 beams, weight 1.98/);
  assert.match(await page.locator('figcaption').innerText(), /Beam search 8 × 4 · 5 steps .* all candidates are complete/);
  assert.match(await page.locator('.meta').innerText(), /614 tokens/);
  const asked = beam.requests.at(-1);
  assert.deepEqual(asked.test_time_scaling, { method: 'beam_search', n: 8, width: 4, include: ['candidates', 'steps', 'tree', 'partial'] });
  assert.ok(!('temperature' in asked), 'the search keeps its own temperature');
  await shot('beam-light');
  await page.emulateMedia({ colorScheme: 'dark' });
  await shot('beam-dark');
  await page.locator('.tree-view summary').click();
  await page.locator('.outline li li li li li.chosen').waitFor(); // the nested list tells the same
  await page.setViewportSize(phone);
  await fitsItsWidth();
  await shot('beam-phone-dark');
  await page.locator('.tree-view summary').click();
  await page.locator('.zoom button', { hasText: '+' }).click();
  await page.emulateMedia({ colorScheme: 'light' });
  await shot('beam-phone-light');
});

test('a vote shows its candidates before any is complete', async () => {
  await open(server);
  await page.locator('#method').selectOption('self_consistency');
  await page.locator('#n').selectOption('8');
  await divert(votes);
  await ask('Two trains are 500 kilometres apart and drive towards each other at 80 and 120 kilometres an hour. When do they meet?');
  votes.next();
  await page.locator('.card .words', { hasText: 'First I' }).first().waitFor();
  assert.equal(await page.locator('.card.writing').count(), 8);
  assert.match(await page.locator('.card').first().innerText(), /^1\s+2 tokens\s+writing\s+First I look at[^]*logprob −0\.20\s+Read$/);
  assert.match(await page.locator('.meta').innerText(), /16 tokens · [\d.,]+ tokens\/s/, 'the throughput is that of all candidates');
  assert.equal(await page.locator('.votes li').count(), 0);
  votes.next(2);
  await page.locator('.card .words', { hasText: '200 kilometres nearer each hour' }).first().waitFor();
  await shot('vote-running');
  votes.next();
  await page.locator('.card.complete .label', { hasText: '3.125' }).first().waitFor();
  assert.equal(await page.locator('.card.writing').count(), 3);
  assert.match(await page.locator('.votes li').first().innerText(), /^2.5\s+2 votes, weight 1.90$/, 'the votes of those that are complete');
  assert.match(await page.locator('.meta').innerText(), /560 tokens/);
  await shot('vote-counting');
  await page.setViewportSize(phone);
  await fitsItsWidth();
  await shot('vote-counting-phone');
  await page.setViewportSize({ width: 1280, height: 800 });
  votes.next(100);
  await ended();
  assert.equal((await lastAnswer()).replaceAll(/\s+/g, ' '), voted.replaceAll(/\s+/g, ' '));
  assert.deepEqual(await page.locator('.card').evaluateAll((all) => all.map((c) => c.className.replace('card ', ''))),
    ['complete chosen', 'complete lost', 'complete', 'complete', 'complete lost', 'cancelled lost', 'complete lost', 'cancelled lost']);
  assert.match(await page.locator('.card').nth(0).innerText(), /2\.5 · chosen/);
  assert.match(await page.locator('.card').nth(6).innerText(), /no answer found/);
  const bars = await page.locator('.votes .bar').evaluateAll((all) => all.map((b) => Math.round(parseFloat(b.style.inlineSize))));
  assert.deepEqual(bars, [100, 28], 'the bars are as long as the weights, not the counts');
  assert.match(await page.locator('.meta').innerText(), /640 tokens/, 'the tokens of cancelled candidates were computed too');
  await shot('vote-light');
  await page.locator('.tabs button', { hasText: 'Tree' }).press('Enter');
  assert.ok(await page.locator('.tree g.chosen').count() >= 3);
  await shot('vote-tree');
  await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('Space');
  assert.equal(await page.locator('.tabs button', { hasText: 'Candidates' }).getAttribute('aria-pressed'), 'true', 'by the keyboard, too');
  await page.emulateMedia({ colorScheme: 'dark' });
  await shot('vote-dark');
  await reload();
  await page.locator('.card.chosen').waitFor();
  assert.equal(await page.locator('.card.chosen').count(), 1, 'it is there after a reload');
});

test('the candidates of a stopped vote are no longer being written', async () => {
  await open(server);
  await page.locator('#method').selectOption('self_consistency');
  await divert(votes);
  await ask('Wait');
  votes.next();
  await page.locator('.card.writing').first().waitFor();
  await page.keyboard.press('Escape');
  await ended();
  assert.equal(await page.locator('.card.writing').count(), 0);
  assert.equal(await page.locator('.card.cancelled').count(), 8);
});

test('the examples of a search show it beside a single answer that is wrong', async () => {
  await open(server);
  await panel();
  await page.locator('[name=seed]').fill('1'); // one in a hundred finds none
  await closePanels();
  const right = [73, 408, 79, 28];
  for (const [i, answer] of right.entries()) {
    await page.locator('#new').click();
    await page.locator('#examples button').nth(i).click();
    await ended();
    assert.match(await lastAnswer(), new RegExp(`Answer: ${answer}$`));
    assert.equal(await page.locator('.rival:visible').count(), i ? 1 : 0, 'the first is a single answer itself');
    assert.equal(await page.locator('#method').inputValue(), ['none', 'best_of_n', 'beam_search', 'beam_search'][i], 'the button sets the method');
    if (!i) continue;
    assert.match(await lastSingle(), /Answer: \d+$/);
    assert.doesNotMatch(await lastSingle(), new RegExp(`Answer: ${answer}$`));
    await shot(`example-${i + 1}`);
  }
  await reload();
  assert.match(await lastSingle(), /Answer: \d+$/, 'both are there after a reload');
  await page.setViewportSize(phone);
  await fitsItsWidth();
  await shot('example-phone');
});

test('a question is answered, alone and by every search', async () => {
  await open(server);
  await panel();
  await page.locator('[name=seed]').fill('1');
  await closePanels();
  await page.locator('#method').selectOption('none');
  await ask('Susan owns 241 beads. Next, the number of beads doubles. She sells half of them. Later she doubles the number of beads. Susan wants to have 595 beads. How many more does she need?');
  await ended();
  assert.match(await lastAnswer(), /Answer: 113$/, 'a single answer');
  for (const method of ['self_consistency', 'best_of_n', 'deepconf', 'dvts', 'particle_filtering', 'auto', 'beam_search']) {
    await page.locator('#method').selectOption(method);
    await page.locator('#n').selectOption('16');
    await page.locator('.again').click();
    await ended();
    assert.equal(await page.locator('.error:visible').count(), 0, method);
    const tree = page.locator('.tabs button', { hasText: 'Tree' });
    if (await tree.isVisible()) await tree.click();
    assert.ok(await page.locator('.tree g.chosen').count() >= 3, `${method}: a path is chosen`);
    assert.ok(await page.locator('.votes .chosen').count() === 1, `${method}: one answer has won`);
    assert.match(await lastAnswer(), /595-482=113[^]*Answer: 113$/, method);
    await shot(`search-${method}`);
  }
  await panel();
  await page.locator('[name=temperature]').fill('1.5'); // candidates that differ
  await closePanels();
  await page.locator('.again').click();
  await ended();
  assert.ok(await page.locator('.tree g.pruned').count() >= 1, 'something was pruned');
  await page.setViewportSize(phone);
  await fitsItsWidth();
  await shot('search-beam-phone');
});

test('whatever a server reports of a search, it is read or left out', async () => {
  await open(server);
  const { hostile, sampled, many, chosen, terse } = await page.evaluate(async () => {
    const { absorb } = await import('/web/js/search.js');
    const { layout } = await import('/web/js/layout.js');
    const chunk = (told, choice) => ({ test_time_scaling: told, choices: choice ? [{ index: 0, test_time_scaling: choice }] : [] });
    const hostile = [
      {}, { tree: 7 }, { tree: [null, 1, 'x', {}] }, { tree: [{ parent: 0, text: 'its own parent' }] },
      { tree: [{ parent: 5, text: 'of nobody' }, { parent: -7, text: 4, score: NaN }] }, { candidates: [{ text: null, answer: 3 }], n: 'many', agreement: null },
      { method: 'beam_search', partial: [null, 7, { text: 'of nobody' }, { index: -1, text: 'x' }, { index: 0, parent: 9, text: 'lost' }, { index: 1, text: 5, tokens: 'x' }] },
      { tree: Array.from({ length: 20_000 }, (_, i) => ({ parent: i - 1, text: `step ${i}`, score: 2 })) },
    ].map((told) => {
      const search = absorb(null, chunk(told));
      const { boxes, width, height } = layout(search.steps);
      return [search.steps.length, boxes.every((b) => Number.isFinite(b.x + b.y)) && Number.isFinite(width + height)];
    });
    const texts = ['1+1=2.\nAnswer: 2', '1+1=3.\nAnswer: 3', '1+1=2.\nAnswer: 2'];
    const candidates = texts.map((text, candidate) => ({ candidate, text, answer: text.at(-1), score: 0.5 }));
    const sampled = absorb(absorb(null, chunk({ method: 'self_consistency', step: 1, live: 3 })), chunk({ stop_reason: 'decided', candidates }, { candidate: 0, answer: '2' }));
    let many = null;
    for (let i = 0; i < 20; i++) {
      many = absorb(many, chunk({ partial: Array.from({ length: 1000 }, (_, index) => ({ index, text: 'x'.repeat(10_000) })) }));
    }
    const best = absorb(absorb(null, chunk({ method: 'best_of_n', select: 'max' })), chunk({ stop_reason: 'complete', candidates: [
      { candidate: 1, text: 'b', answer: 'b', score: 0.9 }, { candidate: 0, text: 'a', answer: 'a', score: 0.5 }, { candidate: 2, text: 'a', answer: 'a', score: 0.6 },
    ] }, { candidate: 1, answer: 'b' }));
    const terse = absorb(absorb(null, chunk({ method: 'best_of_n', live: 8 })), chunk({ stop_reason: 'complete' }, { candidate: 3, answer: '7', votes: 5 }));
    return { terse: [terse.candidates, terse.steps, terse.votes.map((v) => [v.answer, v.votes])], hostile, sampled, many: [many.candidates.length, many.candidates[0].text.length], chosen: best.votes };
  });
  assert.deepEqual(hostile.map(([steps]) => steps), [0, 0, 0, 0, 0, 0, 0, 4000]);
  assert.ok(hostile.every(([, finite]) => finite));
  assert.deepEqual(sampled.votes.map((v) => [v.answer, v.votes, v.chosen]), [['2', 2, true], ['3', 1, false]]);
  assert.deepEqual(sampled.steps.map((s) => [s.text, s.fate, s.count]),
    [['1+1=2.', 'chosen', 2], ['Answer: 2', 'chosen', 2], ['1+1=3.', 'pruned', 1], ['Answer: 3', 'pruned', 1]]);
  assert.deepEqual(terse, [[], [], [['7', 5]]], 'a preset may tell of the winner alone');
  assert.deepEqual(many, [512, 65536], 'what is kept has a bound');
  assert.deepEqual(chosen.map((v) => [v.answer, v.weight]), [['b', 0.9], ['a', 0.6]], 'the best score leads where that chooses');
});
