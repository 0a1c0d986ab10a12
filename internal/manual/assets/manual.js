// The search of the documents, and buttons that copy commands. Without it all else works.
'use strict';
(() => {
  const root = document.currentScript.dataset.root;
  const input = document.getElementById('site-query');
  const list = document.getElementById('site-results');
  const count = document.getElementById('site-count');
  const most = 20; // results shown
  let pages; // what search.js holds; undefined until it is there

  // searchable is called by search.js, which is loaded when somebody wants to search.
  window.searchable = (all) => {
    pages = all.map((page) => ({...page, sections: page.sections.map(([anchor, heading, text]) =>
      ({anchor, heading, text, low: text.toLowerCase(), lowHeading: `${page.title} ${heading}`.toLowerCase()}))}));
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

  // score says how well a section fits all words; 0: not at all.
  const score = (page, section, words) => {
    let sum = page.decision ? 0 : 2;
    for (const word of words) {
      const at = section.low.indexOf(word);
      const named = section.lowHeading.includes(word);
      if (at < 0 && !named) return 0;
      sum += (named ? 8 : 0) + (at < 0 ? 0 : new RegExp(`(?<![a-z0-9])${literal(word)}(?![a-z0-9])`).test(section.low) ? 2 : 1);
    }
    return sum + (words.length > 1 && section.low.includes(words.join(' ')) ? 6 : 0);
  };

  // marked is text with the words in it marked; never parsed as markup.
  const marked = (text, words) => {
    const parts = document.createDocumentFragment();
    text.split(new RegExp(`(${words.map(literal).join('|')})`, 'i')).forEach((part, i) => {
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
    const words = [...new Set(input.value.toLowerCase().split(/\s+/).filter(Boolean))].slice(0, 8);
    list.hidden = words.length === 0 || !pages;
    count.textContent = '';
    if (list.hidden) return;
    const hits = pages.flatMap((page) => page.sections.map((section) => ({page, section, points: score(page, section, words)})))
      .filter((hit) => hit.points > 0).sort((a, b) => b.points - a.points);
    count.textContent = hits.length === 0 ? 'Nothing found' : `${hits.length} sections`;
    list.replaceChildren(...hits.slice(0, most).map((hit) => result(hit, words)));
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
