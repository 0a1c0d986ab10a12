// The search of the documents, and buttons that copy commands. Without it all else works.
'use strict';
(() => {
  const root = document.currentScript.dataset.root;
  const input = document.getElementById('site-query');
  const list = document.getElementById('site-results');
  const count = document.getElementById('site-count');
  const shown = 20; // results
  let pages; // what search.js holds; undefined until it is there

  // searchable is called by search.js, which is loaded when somebody wants to search.
  window.searchable = (all) => {
    pages = all.map((page) => ({...page, sections: page.sections.map(([anchor, heading, text, names]) =>
      ({anchor, heading, text, low: text.toLowerCase(), lowHeading: `${page.title} ${heading}`.toLowerCase(), names: names.toLowerCase()}))}));
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

  // wanted are the words of a query, with what finds each: where it begins a word, and where it is one.
  const wanted = (query) => {
    const all = [...new Set(query.toLowerCase().split(/[\s?!,;]+/).filter(Boolean))].slice(0, 12);
    const words = all.filter((word) => !empty.has(word));
    return (words.length > 0 ? words : all).map((word) => {
      const begins = /^[a-z0-9]/.test(word) ? `(?<![a-z0-9])${literal(word)}` : literal(word);
      return {word, begins: new RegExp(begins), whole: new RegExp(`${begins}(?![a-z0-9])`), name: new RegExp(`(^|[\n ,.])${literal(word)}($|[\n ,:=])`)};
    });
  };

  // score says how many of the words a section has, and how well it fits them: what it is called and what its
  // tables explain says more than what it mentions.
  const score = (section, words) => {
    let found = 0;
    let points = 0;
    for (const {begins, whole, name} of words) {
      const of = (text, most, least) => (whole.test(text) ? most : begins.test(text) ? least : 0);
      const here = of(section.lowHeading, 10, 5) + (name.test(section.names) ? 8 : of(section.names, 4, 2)) + of(section.low, 2, 1);
      found += here > 0 ? 1 : 0;
      points += here;
    }
    return {found, points: points + (words.length > 1 && section.low.includes(words.map(({word}) => word).join(' ')) ? 6 : 0)};
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
    const all = pages.flatMap((page) => page.sections.map((section) => ({page, section, ...score(section, words)})));
    const most = Math.max(...all.map((hit) => hit.found));
    // Without a section that has all words, those with most of them. Decisions say why, which few look for.
    const hits = all.filter((hit) => hit.found > 0 && hit.found === most)
      .sort((a, b) => Boolean(a.page.decision) - Boolean(b.page.decision) || b.points - a.points);
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
