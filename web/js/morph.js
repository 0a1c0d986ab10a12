// Makes one tree of elements like another by the fewest changes, for texts that grow.

/** Content by which an element is known, however it is shown now. @type {WeakMap<Element, { key: string, settle: (element: HTMLElement) => void }>} */
const keys = new WeakMap();

/**
 * Names the content of an element, which morph then leaves alone if it is the same.
 * @param {HTMLElement} element
 * @param {string} key
 * @param {(element: HTMLElement) => void} settle shows the content better, in the element that is in the page with it
 */
export function keyed(element, key, settle) {
  keys.set(element, { key, settle });
  queueMicrotask(() => { if (element.isConnected) settle(element); });
  return element;
}

/**
 * @param {Element} old in the page
 * @param {Element} made
 * @param {number} [from] which of the old one's children are made anew; others stay
 * @returns {Element} the one that is in the page now
 */
export function morph(old, made, from = 0) {
  const known = keys.get(old), content = keys.get(made);
  if (known && content && known.key === content.key) return old;
  if (old.nodeName !== made.nodeName || known) {
    old.replaceWith(made);
    return made;
  }
  if (from === 0) {
    for (const { name } of [...old.attributes]) if (!made.hasAttribute(name)) old.removeAttribute(name);
    for (const { name, value } of made.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  const kept = [...old.childNodes].slice(from), { length } = made.childNodes;
  [...made.childNodes].forEach((child, i) => {
    const now = kept[i];
    if (!now) old.append(child);
    else if (now instanceof Text && child instanceof Text) extend(now, child.data);
    else if (now instanceof Element && child instanceof Element) morph(now, child);
    else now.replaceWith(child);
  });
  kept.slice(length).forEach((child) => child.remove());
  if (content) {
    keys.set(old, content);
    content.settle(/** @type {HTMLElement} */ (old));
  }
  return old;
}

/** @param {Text} text @param {string} data */
function extend(text, data) {
  if (text.data === data) return;
  if (data.startsWith(text.data)) text.appendData(data.slice(text.data.length));
  else text.data = data;
}
