// What a model writes, as the page shows it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { answerWith, ask, browse, complaints, desktop, divert, ended, fitsItsWidth, open, page, phone, shot } from './browser.mjs';
import { delta, startScripted } from './scripted.mjs';
import { startServer } from './server.mjs';

const sample = readFileSync(new URL('writing.txt', import.meta.url), 'utf8');
const hostile = readFileSync(new URL('hostile.txt', import.meta.url), 'utf8');

let server;

browse(async () => {
  server = await startServer();
  return [server.stop];
});

const own = '.exchange:last-child section.own > .text';

/** Shows a text in an element of its own, and returns a handle of it. */
const shown = (text) => page.evaluateHandle(async (text) => {
  const { Markdown } = await import(new URL('js/markdown.js', document.querySelector('script[type=module]').src).href);
  const element = document.createElement('div');
  element.className = 'text';
  document.querySelector('main').append(element);
  new Markdown(element).update(text);
  return element;
}, text);

test('headings, lists, tables, quotes, links, code and formulas are what they are', async () => {
  await open(server);
  await answerWith(sample);
  await ask('Show me all of it');
  await ended();
  await page.locator(`${own} math`).nth(8).waitFor();
  await page.locator(`${own} .hl-keyword`).first().waitFor();
  const count = (selector) => page.locator(`${own} ${selector}`).count();
  for (const [selector, n] of Object.entries({
    'h3': 1, 'h4': 1, 'em': 1, 'strong': 2, 'del': 1, 'a': 4, 'ol > li > ul > li': 2, 'blockquote p': 2, 'table tbody tr': 2, 'td br': 1, 'hr': 1,
    '.task': 2, 'img': 0, '.code': 3, '.display math': 4, '.result': 1, 'math menclose, math [class*=boxed], math mrow[style*=border], math mpadded[style*=border]': 1,
  })) assert.equal(await count(selector), n, selector);
  assert.equal(await page.locator(`${own} math`).count(), 9);
  assert.equal(await page.locator(`${own} .source`).count(), 1, 'what is no TeX stays as it is');
  const text = await page.locator(own).innerText();
  for (const words of ['costs $5 or $10', '2*3*4 = 24', '~5 km', '<b>tags</b> & entities © are text', 'javascript: is no link']) assert.ok(text.includes(words), words);
  const links = await page.locator(`${own} a`).evaluateAll((all) => all.map((a) => [a.getAttribute('href'), a.rel, a.target]));
  for (const [href, rel, target] of links) {
    assert.match(href, /^(https?:|mailto:)/);
    assert.deepEqual([rel, target], ['noopener noreferrer nofollow', '_blank']);
  }
  assert.deepEqual(await page.locator(`${own} figcaption span`).allInnerTexts(), ['python', 'go', 'text']);
  for (const [name, size] of Object.entries({ desktop, tablet: { width: 820, height: 1180 }, phone })) {
    for (const colorScheme of ['light', 'dark']) {
      await page.setViewportSize(size);
      await page.emulateMedia({ colorScheme });
      await fitsItsWidth();
      for (const [part, at] of [['top', 'h3'], ['end', 'blockquote']]) {
        await page.locator(`${own} ${at}`).first().evaluate((e) => e.scrollIntoView());
        await shot(`writing-${part}-${name}-${colorScheme}`);
      }
    }
  }
});

test('a code block is copied, with a clipboard and without', async () => {
  await open(server);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await shown('```js\nconst a = `1`;\n  b();\n```\n\n```\nold\n```');
  await page.locator('.copy').first().click();
  await page.locator('.copy', { hasText: 'Copied' }).first().waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), 'const a = `1`;\n  b();');
  const read = await page.evaluate(async () => {
    const { readText } = navigator.clipboard;
    Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true }); // as it is by plain HTTP
    document.querySelectorAll('.copy')[1].click();
    await Promise.resolve();
    delete navigator.clipboard;
    return readText.call(navigator.clipboard);
  });
  assert.equal(read, 'old');
  assert.equal(await page.locator('.copy').nth(1).innerText(), 'Copied');
});

test('nothing that a model writes runs, is fetched, or takes a name of the page', async () => {
  await open(server);
  const asked = [];
  page.on('request', (r) => asked.push(r.url()));
  const pieces = hostile.split('\n====\n');
  assert.ok(pieces.length > 60, `${pieces.length} pieces`);
  for (const piece of [...pieces, hostile]) await (await shown(piece)).dispose();
  await answerWith(hostile);
  await ask('Attack');
  await ended();
  await page.locator(`${own} math`).first().waitFor();
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const found = await page.evaluate(() => {
    const allowed = new Set(['p', 'span', 'br', 'a', 'code', 'pre', 'figure', 'figcaption', 'button', 'ul', 'ol', 'li', 'h3', 'h4', 'h5', 'h6',
      'blockquote', 'strong', 'em', 'del', 'hr', 'div', 'table', 'thead', 'tbody', 'tr', 'th', 'td']);
    const names = new Set(['class', 'href', 'rel', 'target', 'tabindex', 'role', 'aria-label', 'scope', 'type', 'start']);
    const odd = [];
    for (const text of document.querySelectorAll('.text')) {
      for (const e of text.querySelectorAll('*')) {
        const maths = e.namespaceURI === 'http://www.w3.org/1998/Math/MathML';
        if (!maths && !allowed.has(e.localName)) odd.push(e.outerHTML);
        for (const { name, value } of e.attributes) {
          if (maths ? /^(on|id$|name$|href|src|xlink)|action/.test(name) : !names.has(name)) odd.push(`${e.localName} ${name}=${value}`);
          if (name === 'href' && !/^(https?:\/\/|mailto:)/i.test(value)) odd.push(value);
          if (/javascript:|url\(/i.test(e.getAttribute('style') ?? '')) odd.push(e.getAttribute('style'));
        }
      }
    }
    return { odd, ran: window.ran, title: document.title, cookie: document.cookie, question: document.getElementById('question')?.localName };
  });
  assert.deepEqual(found, { odd: [], ran: undefined, title: 'Lutra', cookie: '', question: 'textarea' });
  const elsewhere = asked.filter((at) => !at.startsWith(`${server.url}/`) || !/\/(web\/|metrics$|readyz$|v1\/)/.test(at));
  assert.deepEqual(elsewhere, [], 'requests to elsewhere');
});

test('text as markup is refused by the browser itself', async () => {
  await open(server);
  const faults = await page.evaluate(() => [
    () => { document.createElement('p').innerHTML = '<b>x</b>'; },
    () => { new DOMParser().parseFromString('<b>x</b>', 'text/html'); },
    () => { trustedTypes.createPolicy('other', { createHTML: (x) => x }); },
  ].map((attempt) => { try { attempt(); return 'allowed'; } catch (err) { return err.name; } }));
  assert.deepEqual(faults, ['TypeError', 'TypeError', 'TypeError']);
  assert.ok(complaints.every((c) => /Trusted|trusted/.test(c)), complaints.join('\n'));
  complaints.length = 0;
});

test('texts that are hard to read are shown all the same', async () => {
  await open(server);
  const hard = ['>'.repeat(20_000), '['.repeat(20_000), '*a '.repeat(10_000), '- '.repeat(2_000) + 'a', '$'.repeat(20_000), '`'.repeat(20_001), '\\['.repeat(5_000),
    '|a'.repeat(3_000) + '\n' + '|-'.repeat(3_000), '$' + '\\frac{'.repeat(2_000) + '$', '$\\def\\a{\\a\\a}\\a$', '\\boxed{'.repeat(1_000), '_a'.repeat(10_000), '![a]('.repeat(5_000), 'x'.repeat(200_000), 'a\n' + '- '.repeat(20_000), '- ' + '$'.repeat(20_000)];
  for (const text of hard) {
    const element = await shown(text);
    assert.ok(await element.evaluate((e) => e.textContent.length) > 0, text.slice(0, 20));
    await element.evaluate((e) => e.remove());
  }
});

test('a text that grows ends as the same text at once', async () => {
  await open(server);
  const differ = await page.evaluate(async (texts) => {
    const { Markdown } = await import('/web/js/markdown.js');
    const wrong = [];
    const settled = (e) => { // what is drawn later is compared by its source
      const copy = e.cloneNode(true);
      copy.querySelectorAll('.maths').forEach((m) => m.replaceWith('formula'));
      return copy.innerHTML;
    };
    for (const text of texts) {
      const whole = document.createElement('div');
      new Markdown(whole).update(text);
      for (const size of [1, 7, 60]) {
        const grown = document.createElement('div');
        const view = new Markdown(grown);
        for (let i = size; i < text.length + size; i += size) view.update(text.slice(0, i));
        if (settled(grown) !== settled(whole)) wrong.push([size, settled(grown), settled(whole)]);
      }
    }
    return wrong;
  }, [sample, ...hostile.split('\n====\n'), 'a\n#\nb', 'a\n***bold***', 'a\n\n1. b\n\n2. c\n', 'text\r\n\r\n- a\r\n- b', 'a\n===\nb', '$$\na\n\nb\n$$\n', '1. a\n2. b\n\n   c\n\n3. d\n- e\n* f\n\ng', '  - a\n - b\n    - c\n\n    - d\n\n  - e\n-\n  f\n- ---\n- g\nlazy\n', '3. a\n\n   ```\n   - x\n\n   - y\n   ```\n4. b', 'x\n$$\n- 1\n$$\ny']);
  assert.deepEqual(differ, []);
});

/** An answer of many blocks, as long as those that reasoning models give. */
function longAnswer() {
  let text = '';
  for (let i = 0; text.length < 47_000; i++) {
    text += `## Step ${i}\n\nThe sum of $${i}$ and **${i + 1}** is ${2 * i + 1}, which \`f(${i})\` gives as well.\n\n- one\n- two\n  - three\n\n\`\`\`py\nx = ${i}\nprint(x)\n\`\`\`\n\n`;
  }
  return text;
}

test('of a long answer each block is made once, and a selection stays while it streams', async () => {
  const text = longAnswer(), chunks = [delta({ role: 'assistant', content: '' })];
  for (let i = 0; i < text.length; i += 24) chunks.push(delta({ content: text.slice(i, i + 24) }));
  chunks.push(delta({}, { finish_reason: 'stop' }));
  const stream = await startScripted(chunks);
  try {
    await open(server);
    await divert(stream);
    await ask('At length');
    stream.next(12);
    const word = page.locator(`${own} > p strong`).first();
    await word.waitFor();
    await page.evaluate((own) => {
      const element = document.querySelector(own);
      const first = element.querySelector('p strong');
      getSelection().selectAllChildren(first);
      window.watched = { first, added: 0, frames: 0 };
      new MutationObserver((records) => {
        for (const { addedNodes } of records) for (const n of addedNodes) window.watched.added += 1 + (n.querySelectorAll?.('*').length ?? 0);
      }).observe(element, { childList: true, subtree: true });
    }, own);
    stream.next(chunks.length);
    await ended();
    const { added, elements, kept, selected } = await page.evaluate((own) => {
      const element = document.querySelector(own);
      return { added: window.watched.added, elements: document.createTreeWalker(element).root.querySelectorAll('*').length,
        kept: window.watched.first.isConnected, selected: String(getSelection()) };
    }, own);
    assert.equal(selected, '1');
    assert.ok(kept);
    assert.ok(elements > 3_000, `${elements} elements`);
    assert.ok(added < 4 * elements, `${added} nodes were added for ${elements} elements`);
  } finally {
    await stream.stop();
  }
});

test('of a long list each item is made once', async () => {
  await open(server);
  const { added, elements } = await page.evaluate(async () => {
    const { Markdown } = await import('/web/js/markdown.js');
    const element = document.createElement('div'), view = new Markdown(element);
    let text = '', added = 0;
    const watch = new MutationObserver(() => {});
    watch.observe(element, { childList: true, subtree: true });
    for (let i = 0; text.length < 47_000; i++) {
      for (const piece of [`${i + 1}. item`, ` **${i}** or`, ` \`${i}\`,\n`, '   - and more\n']) {
        view.update(text += piece);
        for (const { addedNodes } of watch.takeRecords()) for (const n of addedNodes) added += n.nodeType === 1 ? 1 + n.querySelectorAll('*').length : 0;
      }
    }
    return { added, elements: element.querySelectorAll('*').length };
  });
  assert.ok(elements > 4_000, `${elements} elements`);
  assert.ok(added < 1.1 * elements, `${added} elements were added of ${elements}`);
});

test('a thought is folded once the answer begins, says how long it took, and can be opened', async () => {
  const stream = await startScripted([delta({ role: 'assistant', content: '' }), delta({ reasoning_content: 'First, **twelve** times' }), delta({ reasoning_content: ' seven.' }),
    delta({ content: 'It is 84.' }), delta({}, { finish_reason: 'stop' })]);
  try {
    await open(server);
    await divert(stream);
    await ask('What is 12 * 7?');
    stream.next(1);
    await page.locator('.thoughts strong').waitFor();
    assert.equal(await page.locator('.reasoning summary').innerText(), 'Thinking …');
    await shot('thinking');
    stream.next(2);
    await page.locator(own, { hasText: '84' }).waitFor();
    assert.equal(await page.locator('.reasoning[open]').count(), 0);
    await page.locator('.reasoning summary').click();
    stream.next(1);
    await ended();
    assert.match(await page.locator('.reasoning summary').innerText(), /^Thought for \d+(\.\d)? m?s$/);
    assert.equal(await page.locator('.thoughts').innerText(), 'First, twelve times seven.', 'it stays open');
  } finally {
    await stream.stop();
  }
});
