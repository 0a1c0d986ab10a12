// The search of the documents, and buttons that copy commands. Without it all else works.
'use strict';
(() => {
  const root = document.currentScript.dataset.root;
  const input = document.getElementById('site-query');
  const list = document.getElementById('site-results');
  const count = document.getElementById('site-count');
  const shown = 20; // results
  // Pages that say how the project is made, or why: few look for them.
  const inner = /^(CONTRIBUTING|CHANGELOG|adr\/|considered|testing|architecture|npu|soak|performance)/;
  let pages; // what search.js holds; undefined until it is there

  // searchable is called by search.js, which is loaded when somebody wants to search.
  window.searchable = (all) => {
    pages = all.map((page) => ({...page, low: page.title.toLowerCase(), inner: page.decision || inner.test(page.path), sections: page.sections.map(([anchor, heading, text, names]) =>
      ({anchor, heading, text, low: text.toLowerCase(), lowHeading: heading.toLowerCase(), names: names.toLowerCase()}))}));
    show();
  };
  const load = () => {
    if (load.begun) return;
    load.begun = true;
    const script = document.createElement('script');
    script.src = `${root}search.js`;
    script.onerror = () => { load.begun = false; };
    document.head.append(script);
  };

  // literal is a word as a pattern.
  const literal = (word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

  // Words of questions that say nothing of what is looked for.
  const empty = new Set(('a an and are as at be by can do does for from get have how i if in into is it its me my of on or set should '
    + 'so than that the there this to use using want was what when where which who why will with you your').split(' '));

  // What the documents call what people ask for, by the stems of their words.
  const also = {
    temperatur: 'sampling', top_p: 'sampling', randomnes: 'sampling', quantiz: 'quantis', compres: 'quantis', nginx: 'proxy',
    embedd: 'vectors', speculativ: 'speculation', voting: 'self_consistency', ram: 'memory', kill: 'stopping', best: 'best_of_n',
    think: 'reasoning', delet: 'uninstalling', remov: 'uninstalling', updat: 'upgrading', password: 'keys', rerank: 'rankings', monitor: 'metrics',
  };

  // stem is a word without what nouns and verbs end in.
  const stem = (word) => (/^[a-z]{6,}$/.test(word) ? word.replace(/(ing|es|e|s)$/, '') : word);

  // wanted are the words of a query, with what finds each: where it begins a word, and where it is one.
  const wanted = (query) => {
    const all = [...new Set(query.toLowerCase().split(/[\s?!,;]+/).filter(Boolean))].slice(0, 12);
    const words = all.filter((word) => !empty.has(word));
    return (words.length > 0 ? words : all).map((asked) => {
      const word = stem(asked);
      const from = (text) => (/^[a-z0-9]/.test(text) ? `(?<![a-z0-9])${literal(text)}` : literal(text));
      const begins = also[word] ? `(?:${from(word)}|${from(also[word])})` : from(word);
      return {word, asked, begins: new RegExp(begins), whole: new RegExp(`(?:${from(asked)}${also[word] ? `|${from(also[word])}` : ''})s?(?![a-z0-9])`),
        name: new RegExp(`(^|[\n ,.])${literal(asked)}($|[\n ,:=])`)};
    });
  };

  // score says how well a section fits words, each of which counts by how rare it is: what a section is called and
  // what its tables explain says more than what it mentions, and a short one more than a long one.
  const score = ({page, section}, words) => {
    let found = 0;
    let points = 0;
    for (const {begins, whole, name, rare} of words) {
      const of = (text, most, least) => (whole.test(text) ? most : begins.test(text) ? least : 0);
      const here = of(section.lowHeading, 12, 8) + of(page.low, 4, 2) + (name.test(section.names) ? 6 : of(section.names, 3, 2))
        + of(section.low, 3, 2) / (1 + section.low.length / 4000);
      found += here > 0 ? 1 : 0;
      points += here * rare;
    }
    const together = words.length > 1 && `${section.lowHeading} ${section.low}`.includes(words.map(({asked}) => asked).join(' '));
    return (points + (together ? 8 : 0)) * (found / words.length) * (page.inner ? 0.4 : page.path === 'index.html' ? 0.7 : 1);
  };

  // marked is text with the words in it marked; never parsed as markup.
  const marked = (text, words) => {
    const parts = document.createDocumentFragment();
    text.split(new RegExp(`((?<![a-z0-9])(?:${words.map(literal).join('|')}))`, 'i')).forEach((part, i) => {
      if (i % 2 === 0) return parts.append(part);
      const mark = document.createElement('mark');
      mark.textContent = part;
      parts.append(mark);
    });
    return parts;
  };

  const result = ({page, section}, words) => {
    const line = document.createElement('li');
    const link = document.createElement('a');
    link.href = `${root}${page.path}${section.anchor && section !== page.sections[0] ? `#${section.anchor}` : ''}`;
    const heading = section === page.sections[0] ? page.title : `${page.title} › ${section.heading}`;
    link.append(marked(heading, words));
    const first = Math.max(0, Math.min(...words.map((word) => section.low.indexOf(word)).filter((at) => at >= 0)));
    const from = Number.isFinite(first) ? Math.max(0, first - 50) : 0;
    const excerpt = document.createElement('small');
    excerpt.append(from > 0 ? '…' : '', marked(section.text.slice(from, from + 160), words), '…');
    link.append(excerpt);
    line.append(link);
    return line;
  };

  const show = () => {
    const words = wanted(input.value);
    list.hidden = words.length === 0 || !pages;
    count.textContent = '';
    if (list.hidden) return;
    const all = pages.flatMap((page) => page.sections.map((section) => ({page, section})));
    for (const word of words) {
      const has = all.filter(({section}) => word.begins.test(section.lowHeading) || word.begins.test(section.low)).length;
      word.rare = Math.log(1 + all.length / (1 + has));
    }
    const hits = all.map((hit) => ({...hit, points: score(hit, words)})).filter((hit) => hit.points > 0).sort((a, b) => b.points - a.points);
    count.textContent = hits.length === 0 ? 'Nothing found' : `${hits.length} sections`;
    list.replaceChildren(...hits.slice(0, shown).map((hit) => result(hit, words.map(({word}) => word))));
    if (hits.length === 0) {
      const nothing = document.createElement('li');
      nothing.textContent = 'Nothing found';
      list.append(nothing);
    }
  };

  document.getElementById('site-search').hidden = false;
  input.addEventListener('focus', load);
  input.addEventListener('input', () => { load(); show(); });
  input.addEventListener('keydown', (event) => {
    if (event.key === 'Enter') list.querySelector('a')?.click();
  });
  list.addEventListener('click', (event) => {
    if (event.target.closest('a')) list.hidden = true; // to a section of this page
  });
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') { list.hidden = true; return; }
    const links = [...list.querySelectorAll('a')];
    const at = links.indexOf(document.activeElement);
    if (!list.hidden && (event.key === 'ArrowDown' || event.key === 'ArrowUp') && (at >= 0 || document.activeElement === input)) {
      event.preventDefault();
      (links[at + (event.key === 'ArrowDown' ? 1 : -1)] ?? input).focus();
    } else if (event.key === '/' && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) {
      event.preventDefault();
      input.focus();
    }
  });
  document.addEventListener('click', (event) => {
    if (!event.target.closest('#site-search')) list.hidden = true;
  });

  if (navigator.clipboard) {
    for (const block of document.querySelectorAll('pre')) {
      const code = block.textContent;
      const button = document.createElement('button');
      button.className = 'copy';
      button.type = 'button';
      button.textContent = 'Copy';
      button.addEventListener('click', async () => {
        await navigator.clipboard.writeText(code);
        button.textContent = 'Copied';
      });
      block.append(button);
    }
  }
})();
